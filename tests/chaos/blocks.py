"""Ranges of addresses, as plain numbers. The checker's own arithmetic, on the standard library's."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Block(NamedTuple):
    """A network. Two are compared by their addresses only where they are of one version."""

    version: int
    first: int
    last: int
    length: int

    def __str__(self) -> str:
        address = IPv4Address(self.first) if self.version == 4 else IPv6Address(self.first)
        return f"{address}/{self.length}"

    def overlaps(self, other: Block) -> bool:
        """Whether they share an address."""
        return self.version == other.version and self.first <= other.last and other.first <= self.last

    def contains(self, other: Block) -> bool:
        """Whether all of the other is inside."""
        return self.version == other.version and self.first <= other.first and other.last <= self.last


@lru_cache(maxsize=1 << 16)
def block(text: str) -> Block:
    """Read a network, also with bits set behind the mask: these are no part of it."""
    network = ip_network(text, strict=False)
    return Block(network.version, int(network.network_address), int(network.broadcast_address), network.prefixlen)


def meet(one: Iterable[Block], other: Iterable[Block]) -> bool:
    """Whether any of the one overlaps any of the other."""
    others = tuple(other)
    return any(each.overlaps(another) for each in one for another in others)


def count_touched(around: Block, length: int, taken: Iterable[Block]) -> int:
    """How many of the blocks of a length in a range have an address in common with what is taken."""
    host_bits = (32 if around.version == 4 else 128) - length
    runs = sorted(
        (max(each.first, around.first) >> host_bits, min(each.last, around.last) >> host_bits)
        for each in taken
        if each.overlaps(around)
    )
    touched, beyond = 0, 0
    for first, last in runs:
        touched += max(0, last + 1 - max(first, beyond))
        beyond = max(beyond, last + 1)
    return touched
