"""Which pools apply to a node, in the order in which they are tried (S2, S3, S5, K4), without looking at each of them.

Theory of operation:

- A term can only match a node that has what one of its requirements asks for. Each term is filed under one such
  thing, its *anchor*: a label with one of a few values, a node's name, or a label's mere presence. A node's labels
  then lead straight to the few pools that may match. Terms without an anchor (`NotIn`, `DoesNotExist` alone) are
  looked at every time.
- Only labels that some selector mentions matter. Nodes alike in those share one answer, which is kept.
- An answer is a row of offers (`cidrella.core.offer`). Their order does not depend on how full pools are, so an answer
  stays right until pools come, go, or change their selector (K2).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from cidrella.core.label_pools import LabelPools
from cidrella.core.offer import Lane, offers
from cidrella.core.selector import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cidrella.core.offer import Offer
    from cidrella.core.pool import Part, Pool
    from cidrella.core.selector import Requirement, Term

_MEMO_LIMIT = 1 << 16
"""Answers kept at most: more than the kinds of nodes a cluster has, and a bound on what departed nodes leave behind."""

_FEW_KEYS = 16
"""Label keys up to which each is looked up in a node's labels; beyond, the node's labels are looked up among them."""

_Anchor = tuple[str, ...]
"""("label", key, value), ("label", key), ("name", value), or () for terms that have none."""


class PoolIndex:
    """The pools that give, filed by what they ask for."""

    __slots__ = ("_anchored", "_anchors", "_defaults", "_fallback", "_keys", "_memo", "_names", "label_pools")

    def __init__(self) -> None:
        self.label_pools = LabelPools()
        """Those of the pools that ask for labels."""
        self._defaults: dict[Part, list[Pool]] = {}
        """By what they give, each list in order."""
        self._anchored: dict[_Anchor, dict[str, Pool]] = {}
        self._anchors: dict[str, set[_Anchor]] = {}
        """For a pool: what it is filed under."""
        self._keys: dict[str, int] = {}
        """The label keys that selectors mention, and how many do."""
        self._names: dict[str, int] = {}
        """The node names that selectors mention, and how many do."""
        self._memo: dict[object, tuple[Offer, ...]] = {}
        self._fallback: tuple[dict[Part, Lane], tuple[Offer, ...]] | None = None
        """The lanes of the defaults, the same for all nodes, and the offers to a node that nothing else applies to."""

    def add(self, pool: Pool) -> None:
        """File a pool. O(its requirements + log of the defaults)."""
        if pool.spec.selector is None:
            insort(self._defaults.setdefault(pool.part, []), pool, key=_place)
        for requirement in _requirements(pool):
            self._keys[requirement.key] = self._keys.get(requirement.key, 0) + 1
        # Node names that no selector mentions are all alike to the index, which holds for these operators alone.
        assert all(each.operator in (Operator.IN, Operator.NOT_IN) for each in _field_requirements(pool))
        for name in _field_values(pool):
            self._names[name] = self._names.get(name, 0) + 1
        self._anchors[pool.name] = self._choose_anchors(pool)
        for anchor in self._anchors[pool.name]:
            self._anchored.setdefault(anchor, {})[pool.name] = pool
        self.label_pools.add(pool)
        self._memo, self._fallback = {}, None

    def remove(self, pool: Pool) -> None:
        """Undo `add`. The same cost."""
        if pool.spec.selector is None:
            row = self._defaults[pool.part]
            del row[bisect_left(row, _place(pool), key=_place)]
            if not row:
                del self._defaults[pool.part]
        for requirement in _requirements(pool):
            _count_down(self._keys, requirement.key)
        for name in _field_values(pool):
            _count_down(self._names, name)
        for anchor in self._anchors.pop(pool.name):
            del self._anchored[anchor][pool.name]
            if not self._anchored[anchor]:
                del self._anchored[anchor]
        self.label_pools.remove(pool)
        self._memo, self._fallback = {}, None

    def offers(self, name: str, labels: Mapping[str, str]) -> tuple[Offer, ...]:
        """What a node may be given, in order; none where no pool applies. O(labels) for a kind seen before."""
        kind = self.kind(name, labels)
        found = self._memo.get(kind)
        if found is None:
            found = self._find(name, labels)
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo = {}
            self._memo[kind] = found
        return found

    def kind(self, name: str, labels: Mapping[str, str]) -> object:
        """What of a node selectors look at: nodes of one kind are alike to all pools, until pools come or go."""
        mentioned_name = name if name in self._names else None
        if len(self._keys) <= _FEW_KEYS:
            return (mentioned_name, *map(labels.get, self._keys))
        return (mentioned_name, frozenset((key, labels[key]) for key in self._keys.keys() & labels.keys()))

    def _choose_anchors(self, pool: Pool) -> set[_Anchor]:
        """For each term, the requirement that fewest others are filed under: a rack rather than a zone."""
        chosen: set[_Anchor] = set()
        for term in _terms(pool):
            chosen.update(min(_possible_anchors(term), key=self._crowd, default=()))
        return chosen

    def _crowd(self, anchors: Iterable[_Anchor]) -> int:
        return sum(len(self._anchored.get(anchor, ())) for anchor in anchors)

    def _find(self, name: str, labels: Mapping[str, str]) -> tuple[Offer, ...]:
        if self._fallback is None:
            lanes = {part: Lane(list(pools)) for part, pools in self._defaults.items()}
            self._fallback = lanes, offers({}, lanes)
        defaults, without_a_match = self._fallback
        matching: dict[Part, list[tuple[tuple[object, ...], Pool]]] = {}
        for pool in self._candidates(name, labels).values():
            assert pool.spec.selector is not None
            matched = pool.spec.selector.matched(name, labels)
            if matched is not None:
                matching.setdefault(pool.part, []).append((pool.place(matched), pool))
        if not matching:
            return without_a_match
        return offers({part: Lane([pool for _, pool in sorted(row)]) for part, row in matching.items()}, defaults)

    def _candidates(self, name: str, labels: Mapping[str, str]) -> dict[str, Pool]:
        """The pools with an anchor that the node has: all that can match, and few others."""
        anchors: list[_Anchor] = [(), ("name", name)]
        for key in self._keys.keys() & labels.keys():
            anchors += ("label", key), ("label", key, labels[key])
        found: dict[str, Pool] = {}
        for anchor in anchors:
            found.update(self._anchored.get(anchor, {}))
        return found


def _place(default: Pool) -> tuple[object, ...]:
    return default.place(matched=0)


def _terms(pool: Pool) -> tuple[Term, ...]:
    return pool.spec.selector.terms if pool.spec.selector else ()


def _requirements(pool: Pool) -> Iterator[Requirement]:
    for term in _terms(pool):
        yield from term.expressions
        yield from term.fields


def _field_requirements(pool: Pool) -> Iterator[Requirement]:
    for term in _terms(pool):
        yield from term.fields


def _field_values(pool: Pool) -> Iterator[str]:
    for requirement in _field_requirements(pool):
        yield from requirement.values


def _possible_anchors(term: Term) -> list[list[_Anchor]]:
    """What a node must have for the term to match: choices, each a list of which the node has one."""
    names: list[list[_Anchor]] = [
        [("name", value) for value in wanted.values] for wanted in term.fields if wanted.operator is Operator.IN
    ]
    values: list[list[_Anchor]] = [
        [("label", wanted.key, value) for value in wanted.values]
        for wanted in term.expressions
        if wanted.operator is Operator.IN
    ]
    keys: list[list[_Anchor]] = [
        [("label", wanted.key)]
        for wanted in term.expressions
        if wanted.operator in (Operator.EXISTS, Operator.GT, Operator.LT)
    ]
    return names + values + keys or ([[()]] if len(term) else [])


def _count_down(counts: dict[str, int], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
