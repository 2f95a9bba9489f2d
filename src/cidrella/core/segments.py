"""A range as a sequence of what it is made of: held prefixes and the gaps between them, in the order of addresses."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from cidrella.core.prefix import Prefix
    from cidrella.core.space import Holding


class Segment(NamedTuple):
    """Addresses side by side that the same holders have. Nobody has a gap."""

    first: int
    last: int
    holders: tuple[Hashable, ...]


def segments(holdings: Iterable[Holding], within: Prefix) -> Iterator[Segment]:
    """All of a range, from its first address to its last, given what is held in it. O(n log n) in that.

    Where held prefixes overlap, all of their holders are named, those of the larger prefix first.

    >>> from cidrella.core.prefix import Family, Prefix
    >>> from cidrella.core.space import AddressSpace
    >>> space = AddressSpace(Family.IPV4)
    >>> space.occupy(Prefix.parse("10.0.0.64/26"), "a")
    >>> whole = Prefix.parse("10.0.0.0/24")
    >>> [(each.last - each.first + 1, each.holders) for each in segments(space.holdings(whole), whole)]
    [(64, ()), (64, ('a',)), (128, ())]
    """
    held = sorted(holdings, key=lambda each: (each.prefix, str(each.holder)))
    open_prefixes: list[tuple[int, tuple[Hashable, ...]]] = [(within.last, ())]
    at = within.network
    for prefix, group in groupby(held, key=lambda each: each.prefix):
        first, last = max(prefix.network, within.network), min(prefix.last, within.last)
        while open_prefixes[-1][0] < first:
            end, holders = open_prefixes.pop()
            yield from _piece(at, end, holders)
            at = max(at, end + 1)
        around = open_prefixes[-1][1]
        yield from _piece(at, first - 1, around)
        at = max(at, first)
        open_prefixes.append((last, around + tuple(each.holder for each in group)))
    while open_prefixes:
        end, holders = open_prefixes.pop()
        yield from _piece(at, end, holders)
        at = max(at, end + 1)


def _piece(first: int, last: int, holders: tuple[Hashable, ...]) -> Iterator[Segment]:
    if first <= last:
        yield Segment(first, last, holders)
