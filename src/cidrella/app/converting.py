"""`cidrella convert`: pools of one kind, said as pools of the other.

The two kinds say much the same, in other words. A ClusterCIDR of one family is a ClusterCIDRConfig if its selector can
be said of labels alone; one of two families is two of these, for the same nodes. But they are tried in another order
(S3, K4), in another turn (K3), and what a node gets is put together in another way. So an object is converted only if
both hold:

- it can be said in the other kind by itself, which is for this module;
- every node still gets what it would have got, whatever pools there are beside it. That is for `cidrella.core.restate`,
  which looks at all of them.

An object that cannot be converted stays as it is, so that the result can always take the place of what was given. One
that is being deleted gives nothing, and nobody can write down that it is going: it is left out, and only its name is
still taken.

Nothing depends on the order in which the objects are given. Of two that would get the same name, the one that would
keep its own gets it; one that stays takes none.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.core.prefix import Family, Prefix
from cidrella.core.restate import Change, held_back
from cidrella.core.selector import Operator
from cidrella.model.configs import ClusterCIDRConfig, ClusterCIDRConfigSpec, LabelSelector, LabelSelectorRequirement
from cidrella.model.convert import pool_spec
from cidrella.model.kinds import POOL_KINDS, kind_of, pool_name
from cidrella.model.objects import (
    FAMILY_ORDER_ANNOTATION,
    FINALIZER,
    FOREIGN_FINALIZER,
    IPV6_FIRST,
    ClusterCIDR,
    ClusterCIDRSpec,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from cidrella.model.syntax import name_fault
from cidrella.model.validate import validate_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cidrella.model.kinds import PoolKind, PoolObject

    Progress = Callable[[int, int], None]

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_CARRIED_OVER: Final = frozenset({FAMILY_ORDER_ANNOTATION, _LAST_APPLIED})
_OURS: Final = frozenset({FINALIZER, FOREIGN_FINALIZER})
_NUMBERS: Final = frozenset({Operator.GT.value, Operator.LT.value})
_OF_A_FAMILY: Final = re.compile(r"(.+?)(?:[-.](?:ip)?v?|(?:ip)?v)([46])")
"""A name that ends in that of a family, such as pods-ipv4 or pods-v6."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that stays as it is, and why."""

    pool: PoolObject
    reason: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came of it."""

    pools: list[PoolObject]
    """All that there are now, in the order of those that they came from."""
    converted: int
    """How many of those that were given are now of the other kind."""
    refused: list[Refusal]
    left_out: list[PoolObject]
    """Those that are being deleted, of either kind."""


class _CannotError(Exception):
    """An object cannot be said in the other kind: why."""


@dataclass(frozen=True, slots=True)
class _Made:
    """Objects of the one kind, and those of the other that say the same."""

    before: tuple[PoolObject, ...]
    after: tuple[PoolObject, ...]

    @property
    def keeps_its_name(self) -> bool:
        return self.after[0].metadata.name == self.before[0].metadata.name


def convert(
    pools: Sequence[PoolObject], target: PoolKind, progress: Progress = lambda _done, _total: None
) -> Conversion:
    """Make of each pool what it would be as the target kind, where every node then gets what it would have got.

    O(n²) in the pools, if no label tells them apart; `progress` is told how many were compared, and of how many.
    """
    staying = [each for each in pools if each.metadata.deletion_timestamp is None]
    given = [each for each in staying if kind_of(each) is not target]
    names = {each.metadata.name for each in pools if kind_of(each) is target}
    made, reasons = _say_all(given, target, names)
    reasons |= _held_back(staying, made, progress)
    made = _without(made, reasons)
    if clashes := _clashes(made, target):
        reasons |= clashes
        made = _without(made, clashes)
        reasons |= _held_back(staying, made, progress)
    left_out = [each for each in pools if each.metadata.deletion_timestamp is not None]
    return _outcome(staying, _without(made, reasons), reasons, left_out)


def other_kind(pools: Iterable[PoolObject]) -> PoolKind | None:
    """A kind that none of these pools is of; None where there is no such."""
    present = {kind_of(each) for each in pools}
    return next((each for each in POOL_KINDS if each not in present), None)


def _say_all(given: list[PoolObject], target: PoolKind, names: set[str]) -> tuple[list[_Made], dict[str, str]]:
    """What can be said in the other kind, and why the rest cannot."""
    groups = list(_groups(given, target))
    # A stem that anybody else could want as a name is nobody's.
    wanted = Counter(chain(names, (each.metadata.name for each in given), filter(None, map(_stem, groups))))
    made: list[_Made] = []
    reasons: dict[str, str] = {}
    for group in groups:
        stem = _stem(group)
        try:
            made.append(_say(group, stem if wanted[stem] == 1 else group[0].metadata.name, target, names))
        except _CannotError as error:
            reasons |= {pool_name(each): str(error) for each in group}
    return made, reasons


def _without(made: list[_Made], reasons: Mapping[str, str]) -> list[_Made]:
    return [each for each in made if pool_name(each.before[0]) not in reasons]


def _clashes(made: list[_Made], target: PoolKind) -> dict[str, str]:
    """Those that would get a name that another, which is called so already, is to keep, each with the reason."""
    keeping = {each.before[0].metadata.name for each in made if each.keeps_its_name}
    reasons = {}
    for one in made:
        taken = [] if one.keeps_its_name else [name for each in one.after if (name := each.metadata.name) in keeping]
        for each in one.before if taken else ():
            kind = kind_of(each)
            reasons[pool_name(each)] = (
                f"there would be two {target}s {taken[0]}, its own and that of {kind} {taken[0]}; rename one of them"
            )
    return reasons


def _groups(given: list[PoolObject], target: PoolKind) -> Iterator[tuple[PoolObject, ...]]:
    """What is to be converted together: one of each family for the same nodes, where there is just one of each."""
    pairs = _pairs(given) if target.struct is ClusterCIDR else {}
    for each in given:
        pair = pairs.get(str(pool_spec(each).selector))
        if pair is None or not any(each is one for one in pair):
            yield (each,)
        elif each is pair[0]:
            yield pair


def _pairs(given: list[PoolObject]) -> dict[str, tuple[PoolObject, ...]]:
    """By selector: the two, IPv4 first, that are all there is with this selector, if they are of both families."""
    alike: dict[str, list[PoolObject]] = {}
    for each in sorted(given, key=lambda each: pool_spec(each).ranges[0].cidr.family):
        alike.setdefault(str(pool_spec(each).selector), []).append(each)
    families = {text: [pool_spec(each).ranges[0].cidr.family for each in row] for text, row in alike.items()}
    return {text: tuple(row) for text, row in alike.items() if families[text] == list(Family)}


def _say(group: tuple[PoolObject, ...], name: str, target: PoolKind, names: set[str]) -> _Made:
    """A group in the other kind, under a name and none that is taken. Raises `_CannotError`."""
    after: tuple[PoolObject, ...]
    if target.struct is ClusterCIDR:
        after = (_cluster_cidr([each for each in group if isinstance(each, ClusterCIDRConfig)], name),)
    else:
        after = tuple(chain.from_iterable(_configs(each) for each in group if isinstance(each, ClusterCIDR)))
    for each in after:
        if each.metadata.name in names:
            raise _CannotError(f"there is a {target} {each.metadata.name} already; rename one of them")
        if problems := validate_pool(each):
            raise _CannotError(f"as a {target} it would be invalid: {'; '.join(map(str, problems))}")
    return _Made(group, after)


def _held_back(pools: Sequence[PoolObject], made: list[_Made], progress: Progress) -> dict[str, str]:
    """The pools that have to stay for the sake of others, each with the reason."""
    changing = {pool_name(each) for one in made for each in one.before}
    changes = [Change(tuple(map(pool_spec, one.before)), tuple(map(pool_spec, one.after))) for one in made]
    staying = [pool_spec(each) for each in pools if pool_name(each) not in changing]
    stopped = held_back(staying, changes, progress)
    return {pool_name(each): reason for number, reason in stopped.items() for each in made[number].before}


def _outcome(
    pools: Sequence[PoolObject], made: list[_Made], reasons: Mapping[str, str], left_out: list[PoolObject]
) -> Conversion:
    instead = {pool_name(each): one for one in made for each in one.before}
    result: list[PoolObject] = []
    for each in pools:
        one = instead.get(pool_name(each))
        if one is None:
            result.append(each)
        elif each is one.before[0]:
            result += one.after
    refused = [Refusal(each, reasons[pool_name(each)]) for each in pools if pool_name(each) in reasons]
    return Conversion(result, len(instead), refused, left_out)


def _configs(pool: ClusterCIDR) -> Iterator[ClusterCIDRConfig]:
    """One for each family."""
    spec = pool_spec(pool)
    if len(spec.ranges) > 1 and pool.metadata.annotations.get(FAMILY_ORDER_ANNOTATION) == IPV6_FIRST:
        raise _CannotError("it gives IPv6 first (F1), and of two ClusterCIDRConfigs a node gets IPv4 first")
    selector = _label_selector(pool.spec.node_selector)
    for cidr, length in spec.ranges:
        name = pool.metadata.name + (f"-{str(cidr.family).lower()}" if len(spec.ranges) > 1 else "")
        yield ClusterCIDRConfig(
            metadata=_metadata(name, [pool]),
            spec=ClusterCIDRConfigSpec(cidr=str(cidr), per_node_mask_size=length, node_selector=selector),
        )


def _label_selector(selector: NodeSelector | None) -> LabelSelector | None:
    if selector is None or not selector.node_selector_terms:
        return None
    terms = _telling(selector.node_selector_terms)
    if not terms:
        raise _CannotError(
            "its selector is an empty term, which matches no node; a ClusterCIDRConfig's cannot say that"
        )
    if len(terms) > 1:
        raise _CannotError(
            f"its selector has {len(terms)} terms, of which a node must match one; a ClusterCIDRConfig's has no "
            "alternatives"
        )
    (term,) = terms
    if term.match_fields:
        raise _CannotError("its selector looks at fields (matchFields); a ClusterCIDRConfig's looks at labels only")
    labels: dict[str, str] = {}
    expressions = []
    for each in term.match_expressions:
        if each.operator in _NUMBERS:
            raise _CannotError(
                f"its selector compares {each.key} as a number ({each.operator}), which a ClusterCIDRConfig's cannot"
            )
        if each.operator == Operator.IN.value and len(each.values) == 1 and each.key not in labels:
            labels[each.key] = each.values[0]
        else:
            expressions.append(LabelSelectorRequirement(key=each.key, operator=each.operator, values=each.values))
    return LabelSelector(match_labels=labels, match_expressions=expressions)


def _telling(terms: Iterable[NodeSelectorTerm]) -> list[NodeSelectorTerm]:
    """The terms without those that add nothing: an empty one matches no node (S1), and once is enough for the rest."""
    telling = {
        (_canonical(term.match_expressions), _canonical(term.match_fields)): term
        for term in terms
        if term.match_expressions or term.match_fields
    }
    return list(telling.values())


def _canonical(requirements: Iterable[NodeSelectorRequirement]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Requirements, so that those are equal that differ in the order of things only. How many there are counts (S3)."""
    return tuple(sorted((each.key, each.operator, tuple(sorted(each.values))) for each in requirements))


def _cluster_cidr(configs: Sequence[ClusterCIDRConfig], name: str) -> ClusterCIDR:
    """One of one or both families, IPv4 first."""
    ranges = {Prefix.parse(each.spec.cidr).family.value: each.spec for each in configs}
    sizes = {family: Prefix.parse(spec.cidr).family.bits - spec.per_node_mask_size for family, spec in ranges.items()}
    size, *more = sizes.values()
    return ClusterCIDR(
        metadata=_metadata(name, configs),
        spec=ClusterCIDRSpec(
            per_node_host_bits=size,
            per_node_host_bits_ipv6=more[0] if more and more[0] != size else None,
            ipv4=ranges[4].cidr if 4 in ranges else "",
            ipv6=ranges[6].cidr if 6 in ranges else "",
            node_selector=_node_selector(configs[0].spec.node_selector),
        ),
    )


def _node_selector(selector: LabelSelector | None) -> NodeSelector | None:
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    expressions = [
        *(
            NodeSelectorRequirement(key=key, operator=Operator.IN.value, values=[value])
            for key, value in selector.match_labels.items()
        ),
        *(
            NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
            for each in selector.match_expressions
        ),
    ]
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=expressions)])


def _stem(group: Sequence[PoolObject]) -> str:
    """What the names of two have in common before the family, if that can be a name; else nothing."""
    parts = [_OF_A_FAMILY.fullmatch(each.metadata.name) for each in group]
    stems = {part[1] for part in parts if part}
    if len(group) == 1 or not all(parts) or len(stems) > 1:
        return ""
    (stem,) = stems
    return "" if name_fault(stem) else stem


def _metadata(name: str, sources: Sequence[PoolObject]) -> ObjectMeta:
    """A name, with the labels and annotations on which those that it comes from agree."""
    return ObjectMeta(
        name=name,
        labels=_common([each.metadata.labels for each in sources]),
        annotations={
            key: value
            for key, value in _common([each.metadata.annotations for each in sources]).items()
            if key not in _NOT_CARRIED_OVER
        },
    )


def _common(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows)}


def manifest(pool: PoolObject) -> dict[str, object]:
    """A pool as people write it: without what an API server or a controller adds to it."""
    metadata = msgspec.structs.replace(
        pool.metadata,
        uid="",
        generation=0,
        resource_version="",
        creation_timestamp=None,
        finalizers=[each for each in pool.metadata.finalizers if each not in _OURS],
        annotations={key: value for key, value in pool.metadata.annotations.items() if key != _LAST_APPLIED},
    )
    written: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(pool, metadata=metadata, status=None))
    return written
