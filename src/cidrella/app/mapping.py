"""The address space as a picture would show it: each range, and what it is made of."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from cidrella.core.decision import ServiceRange
from cidrella.core.prefix import Prefix, format_address
from cidrella.core.segments import segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision
    from cidrella.core.segments import Segment
    from cidrella.core.space import Holding


class Kind(Enum):
    """What becomes of addresses."""

    FREE = "free"
    NODE = "node"
    SERVICE = "service range"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Area:
    """Addresses side by side with one fate."""

    first: int
    last: int
    kind: Kind
    holders: tuple[str, ...]
    pool: str
    """The pool that a node's block counts towards; empty otherwise."""

    @property
    def size(self) -> int:
        """The number of addresses."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class RangeMap:
    """A range that no other contains, with all that is in it."""

    cidr: Prefix
    pools: list[str]
    """The pools that hand blocks out of it, each with its own range and block size."""
    areas: list[Area]

    @property
    def free(self) -> int:
        """The addresses that nobody holds."""
        return sum(area.size for area in self.areas if area.kind is Kind.FREE)

    def span(self, area: Area) -> str:
        """An area's addresses as text: a prefix where it is one."""
        aligned = area.size & (area.size - 1) == 0 and area.first % area.size == 0
        if aligned:
            return str(Prefix(self.cidr.family, area.first, self.cidr.family.bits - area.size.bit_length() + 1))
        return f"{format_address(self.cidr.family, area.first)} - {format_address(self.cidr.family, area.last)}"


@dataclass(frozen=True, slots=True)
class Map:
    """Every range, IPv4 first, and the blocks of nodes that lie in none."""

    ranges: list[RangeMap]
    outside: list[tuple[Prefix, str]] = field(default_factory=list)


def make_map(cluster: Cluster, decisions: Sequence[Decision]) -> Map:
    """The picture of what the books hold, of which the decisions tell the pool. O(n log n) in what is held."""
    pool_of = {
        (block, decision.node): pool.name if pool is not None else ""
        for decision in decisions
        for block, pool in zip(decision.blocks, decision.pools, strict=True)
    }
    holdings = [holding for space in cluster.spaces.values() for holding in space]
    services = [each.prefix for each in holdings if isinstance(each.holder, ServiceRange)]
    pool_ranges = [(cidr, length, pool) for pool in cluster.pools.values() for cidr, length in pool.spec.ranges]
    roots = outermost([*services, *(cidr for cidr, _, _ in pool_ranges)])
    blocks_of = _Blocks(pool_of)
    held_in: dict[Prefix, list[Holding]] = {root: [] for root in roots}
    for holding in holdings:
        for root in _overlapping(roots, holding.prefix):
            held_in[root].append(holding)
    pools_in: dict[Prefix, list[str]] = {root: [] for root in roots}
    for cidr, length, pool in pool_ranges:
        pools_in[roots[bisect_right(roots, cidr) - 1]].append(f"{pool.name} ({cidr} by /{length})")
    maps = [
        RangeMap(
            root,
            pools_in[root],
            [blocks_of.area(root, segment) for segment in segments(held_in[root], root)],
        )
        for root in roots
    ]
    return Map(maps, sorted(each for each in pool_of if not _overlapping(roots, each[0])))


class _Blocks:
    """Finds the pool of a segment from the blocks of the node that holds it."""

    def __init__(self, pool_of: dict[tuple[Prefix, str], str]) -> None:
        self._by_node: dict[str, list[tuple[Prefix, str]]] = {}
        for (block, node), pool in pool_of.items():
            self._by_node.setdefault(node, []).append((block, pool))

    def area(self, root: Prefix, segment: Segment) -> Area:
        holders = tuple(dict.fromkeys(segment.holders))
        names = tuple(map(str, holders))
        if not holders:
            return Area(segment.first, segment.last, Kind.FREE, (), "")
        if len(holders) > 1 and not all(isinstance(holder, ServiceRange) for holder in holders):
            return Area(segment.first, segment.last, Kind.CONFLICT, names, "")
        if isinstance(holders[0], ServiceRange):
            return Area(segment.first, segment.last, Kind.SERVICE, names, "")
        address = Prefix(root.family, segment.first, root.family.bits)
        pool = next(pool for block, pool in self._by_node[names[0]] if block.contains(address))
        return Area(segment.first, segment.last, Kind.NODE, names, pool)


def outermost(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """Those that no other contains, in order."""
    outer: list[Prefix] = []
    for prefix in sorted(set(prefixes)):
        if not outer or not outer[-1].contains(prefix):
            outer.append(prefix)
    return outer


def _overlapping(roots: list[Prefix], prefix: Prefix) -> list[Prefix]:
    """Those of the ranges, sorted and apart, that share addresses with a prefix. O(log of all + those found)."""
    at = bisect_right(roots, prefix)
    if at and roots[at - 1].contains(prefix):
        return [roots[at - 1]]
    return list(takewhile(prefix.contains, islice(roots, at, None)))
