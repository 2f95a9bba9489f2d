"""Which pools contain a block, and to which of them it counts (P3).

Pools are filed by the length and place of their ranges. The lengths in use are few, so that the pools around a block
are found with one look-up each, however many pools there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Family, Prefix


class Atlas:
    """The pools by where they are."""

    __slots__ = ("_by_length",)

    def __init__(self) -> None:
        self._by_length: dict[tuple[Family, int], dict[int, dict[str, Pool]]] = {}

    def add(self, pool: Pool) -> None:
        """File a pool under each of its ranges."""
        for cidr, _ in pool.spec.ranges:
            places = self._by_length.setdefault((cidr.family, cidr.length), {})
            places.setdefault(cidr.network, {})[pool.name] = pool

    def remove(self, pool: Pool) -> None:
        """Undo `add`."""
        for cidr, _ in pool.spec.ranges:
            places = self._by_length[cidr.family, cidr.length]
            del places[cidr.network][pool.name]
            if not places[cidr.network]:
                del places[cidr.network]
            if not places:
                del self._by_length[cidr.family, cidr.length]

    def containing(self, block: Prefix) -> Iterator[Pool]:
        """The pools that have a range which wholly contains a block. O(range lengths in use + pools found)."""
        for (family, length), places in self._by_length.items():
            if family is block.family and length <= block.length:
                host_bits = family.bits - length
                yield from places.get(block.network >> host_bits << host_bits, {}).values()

    def counts_towards(self, block: Prefix, annotation: str) -> Pool | None:
        """The pool that a block counts towards (P3): the annotated one if it contains it, else by size, age, name."""
        around = {pool.name: pool for pool in self.containing(block)}
        if annotation in around:
            return around[annotation]
        return min(
            around.values(),
            key=lambda pool: (pool.view(block.family).length != block.length, pool.spec.created, pool.name),
            default=None,
        )
