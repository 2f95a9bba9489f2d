"""Why a node gets what it gets: every pool, whether it applies, and which rule puts it where it stands.

This looks at each pool in turn, in the plainest way there is. It shares with the planner what it explains
(`Selector.matched`, `Pool.rank`), not how the planner gets there fast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from cidrella.core.pool import PoolRange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.core.decision import Node
    from cidrella.core.pool import Pool
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
    before_next: str = ""
    """The rule that puts it before the next one, with what was compared. Empty for the last, and where it does not
    apply."""


def explain(node: Node, pools: Iterable[Pool]) -> list[Verdict]:
    """Every pool: those that apply in the order in which they are tried, then those that do not, by name."""
    verdicts = [_judge(node, pool) for pool in pools]
    applying = sorted((each for each in verdicts if each.applies), key=_order)
    others = sorted((each for each in verdicts if not each.applies), key=lambda each: each.pool.name)
    placed = [replace(one, before_next=_tie(one, two)) for one, two in pairwise(applying)]
    return placed + applying[-1:] + others


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


def _order(verdict: Verdict) -> tuple[bool, int, tuple[object, ...]]:
    return verdict.pool.spec.selector is None, -verdict.matched, verdict.pool.rank


def _tie(one: Verdict, two: Verdict) -> str:
    """The first point of S3 on which two neighbours differ."""
    name, first, second = two.pool.name, one.pool.rank, two.pool.rank
    points = (
        (
            "S3.1",
            (one.pool.spec.selector is None) != (two.pool.spec.selector is None),
            "has a selector; {0} is a default",
        ),
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
    rule, text = next((rule, text) for rule, differs, text in points if differs)
    return f"before {name} by {rule}: it {text.format(name)}"
