"""Which pools contain a block, and to which of them it counts (P3).

Pools are filed by the length and place of their ranges. The lengths in use are few, so that the pools around a block
are found with one look-up each. Pools that share a range stand in order, all of them and by block size, so that the
one that counts is the first of its row, however many there are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Family, Prefix

    _Row = list[tuple[str, str]]
    """(created, name) of pools, oldest first."""

_ANY_SIZE = -1


class Atlas:
    """The pools by where they are."""

    __slots__ = ("_by_length", "_pools")

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._by_length: dict[tuple[Family, int], dict[int, dict[int, _Row]]] = {}
        """By family and length of the range, then by its first address, then by block size."""

    def add(self, pool: Pool) -> None:
        """File a pool under each of its ranges. O(log of those that share a range)."""
        self._pools[pool.name] = pool
        for cidr, length in pool.spec.ranges:
            places = self._by_length.setdefault((cidr.family, cidr.length), {})
            rows = places.setdefault(cidr.network, {})
            for size in (length, _ANY_SIZE):
                insort(rows.setdefault(size, []), (pool.spec.created, pool.name))

    def remove(self, pool: Pool) -> None:
        """Undo `add`."""
        del self._pools[pool.name]
        for cidr, length in pool.spec.ranges:
            places = self._by_length[cidr.family, cidr.length]
            rows = places[cidr.network]
            for size in (length, _ANY_SIZE):
                row = rows[size]
                del row[bisect_left(row, (pool.spec.created, pool.name))]
                if not row:
                    del rows[size]
            if not rows:
                del places[cidr.network]
            if not places:
                del self._by_length[cidr.family, cidr.length]

    def counts_towards(self, block: Prefix, annotation: str) -> Pool | None:
        """The pool that a block counts towards (P3): the annotated one if it contains it, else by size, age, name.

        Where the annotation names several (`Decision.pool_name`), the first of them that contains it. O(names + range
        lengths in use).
        """
        for name in annotation.split(","):
            named = self._pools.get(name)
            if named is not None and any(cidr.contains(block) for cidr, _ in named.spec.ranges):
                return named
        around = list(self._rows_around(block))
        for size in (block.length, _ANY_SIZE):
            firsts = [rows[size][0] for rows in around if size in rows]
            if firsts:
                return self._pools[min(firsts)[1]]
        return None

    def _rows_around(self, block: Prefix) -> Iterator[dict[int, _Row]]:
        for (family, length), places in self._by_length.items():
            if family is block.family and length <= block.length:
                host_bits = family.bits - length
                rows = places.get(block.network >> host_bits << host_bits)
                if rows is not None:
                    yield rows
