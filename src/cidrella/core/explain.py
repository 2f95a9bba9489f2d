"""Why a node gets what it gets: every pool, whether it applies, and which rule puts it where it stands.

This looks at each pool in turn, in the plainest way there is. It shares with the planner what it explains
(`Selector.matched`, `Pool.place`), not how the planner gets there fast.

Pools that give a node all of its blocks, and pools that give one family, stand in one list, each where its turn first
comes (K3). Pools of different families do not come before each other but stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from cidrella.core.decision import Reason
from cidrella.core.pool import PoolRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cidrella.core.decision import Decision, Node
    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Family
    from cidrella.core.selector import Selector


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say of one pool and one node."""

    pool: Pool
    applies: bool
    matched: int
    """The requirements that the node meets in the largest matching term; 0 for a default."""
    why: str
    """Why it applies, or why it does not."""
    full: tuple[PoolRange, ...] = ()
    """The families that had no block left when this was judged; with none, it had room."""
    turn: int = 0
    """In which of the four steps of K3 it is tried first, from 1; 0 where it does not apply."""
    before_next: str = ""
    """The rule that puts it before the next one, or beside it, with what was compared. Empty for the last, and where it
    does not apply."""


def explain(node: Node, pools: Iterable[Pool]) -> list[Verdict]:
    """Every pool: those that apply in the order in which they are tried, then those that do not, by name."""
    verdicts = [_judge(node, pool) for pool in pools]
    applying = sorted(_in_turn([each for each in verdicts if each.applies]), key=_order)
    others = sorted((each for each in verdicts if not each.applies), key=lambda each: each.pool.name)
    placed = [replace(one, before_next=_tie(one, two)) for one, two in pairwise(applying)]
    return placed + applying[-1:] + others


_FOREVER = "and let it register again: what stands in podCIDRs cannot be changed"
_REMEDIES = {
    Reason.NOT_AVAILABLE: "another pool that applies to it, or a node of these pools that goes and leaves its blocks",
    Reason.UNINITIALIZED: "the cloud provider's controller, which sets labels and removes the taint; otherwise the "
    "node is served with its current labels after --wait-for-cloud-provider-timeout (60s by default)",
    Reason.UNTRACKED: "a pool around them, if they are to be counted; the node itself lacks nothing",
    Reason.CONFLICT: f"to delete the node that should have other blocks, {_FOREVER}",
    Reason.INVALID: f"to delete the node, {_FOREVER}",
}
_NO_POOL = "a pool whose selector matches it, or one without a selector, which is for every node"


def remedy(decision: Decision) -> str:
    """What would help a node that stands so; empty where nobody has to do anything."""
    if decision.reason is Reason.NOT_AVAILABLE and not decision.tried:
        return _NO_POOL
    return _REMEDIES.get(decision.reason, "")


def _judge(node: Node, pool: Pool) -> Verdict:
    applies, matched, why = _applies(node, pool)
    full = tuple(PoolRange(view.block_range, view.length) for view in pool.full())
    return Verdict(pool, applies, matched, why, full)


def _applies(node: Node, pool: Pool) -> tuple[bool, int, str]:
    spec = pool.spec
    if spec.problem:
        return False, 0, f"it is invalid and gives nothing (S6): {spec.problem}"
    if spec.terminating:
        return False, 0, "it is being deleted and gives nothing (S6)"
    if not spec.guarded:
        return False, 0, "it has yet to get its finalizer, and gives nothing before (P1)"
    if spec.selector is None:
        return True, 0, "it has no selector: a default for every node (S2)"
    matched = spec.selector.matched(node.name, node.labels)
    if matched is None:
        return False, 0, _why_not(node, spec.selector)
    plural = "" if matched == 1 else "s"
    return True, matched, f"its selector matches with {matched} requirement{plural} (S1)"


def _why_not(node: Node, selector: Selector) -> str:
    missing = [
        " and ".join(_unmet(str(each), each.key, node) for each in term.unmet(node.name, node.labels))
        or "an empty term matches nothing"
        for term in selector.terms
    ]
    return f"its selector does not match (S1): {'; or: '.join(missing)}"


def _unmet(requirement: str, key: str, node: Node) -> str:
    if key in node.labels:
        return f"{requirement}, but the node has {key}={node.labels[key]}"
    return f"{requirement}, but the node has no such label" if key != "metadata.name" else requirement


def _in_turn(applying: list[Verdict]) -> Iterator[Verdict]:
    """The same verdicts, each with the step of K3 in which its pool is tried first."""
    chosen = {each.pool.part for each in applying if each.pool.part is not None and each.pool.spec.selector}
    for each in applying:
        yield replace(each, turn=_turn(each.pool, chosen))


def _turn(pool: Pool, chosen: set[Family]) -> int:
    """The step of K3 in which a pool is tried first; `chosen` are the families for which a selector matches."""
    if pool.part is None:
        return 1 if pool.spec.selector else 3
    # A default of one family is tried early where it completes what a selector has chosen for the other.
    return 2 if pool.spec.selector or chosen - {pool.part} else 4


def _order(verdict: Verdict) -> tuple[object, ...]:
    pool = verdict.pool
    return verdict.turn, pool.part or 0, pool.spec.selector is None, pool.place(verdict.matched)


def _tie(one: Verdict, two: Verdict) -> str:
    """What puts one of two neighbours before the other: for pools that give the same, the first point that differs."""
    name = two.pool.name
    if one.pool.part is two.pool.part:
        points = _points_of_s3(one, two) if one.pool.part is None else _points_of_k4(one, two)
        rule, text = next((rule, text) for rule, differs, text in points if differs)
        return f"before {name} by {rule}: it {text.format(name)}"
    if one.turn == two.turn:
        return f"beside {name} by K3: it gives {one.pool.part}; {name} {two.pool.part}"
    if one.pool.part is None:
        return f"before {name} by K3: it gives a node all of its blocks; {name} those of {two.pool.part}"
    return f"before {name} by K3: it has a selector, or completes what has one; {name} is a default"


_Points = tuple[tuple[str, bool, str], ...]
"""Of an order: each point by its name, whether two pools differ in it, and what to say then."""


def _points_of_s3(one: Verdict, two: Verdict) -> _Points:
    first, second = one.pool.rank, two.pool.rank
    return (
        ("S3.1", one.turn != two.turn, "has a selector; {0} is a default"),
        ("S3.2", one.matched != two.matched, f"meets {one.matched} requirements; {{0}} {two.matched}"),
        ("S3.3", first.capacity != second.capacity, f"has {first.capacity} Pod CIDRs in all; {{0}} {second.capacity}"),
        (
            "S3.4",
            first.host_bits != second.host_bits,
            f"has {first.host_bits} host bits a node; {{0}} {second.host_bits}",
        ),
        ("S3.5", first.selector != second.selector, "has the selector whose text sorts first"),
        ("S3.5", first.first_address != second.first_address, "has the lower first address"),
        ("S3.5", True, "has the name that sorts first"),
    )


def _points_of_k4(one: Verdict, two: Verdict) -> _Points:
    first, second = one.pool.rank, two.pool.rank
    return (
        (
            "K4.1",
            (one.pool.spec.selector is None) != (two.pool.spec.selector is None),
            "has a selector; {0} is a default",
        ),
        (
            "K4.2",
            first.host_bits != second.host_bits,
            f"has {first.host_bits} host bits a node; {{0}} {second.host_bits}",
        ),
        ("K4.3", one.matched != two.matched, f"meets {one.matched} requirements; {{0}} {two.matched}"),
        ("K4.4", first.first_address != second.first_address, "has the lower first address"),
        ("K4.5", True, "has the name that sorts first"),
    )
