"""One family's address space: who holds which prefixes, shared by every pool.

Theory of operation:

- What is held is a set of prefixes, each with its holders. Node blocks of any size, blocks found on nodes, service
  ranges: all the same. Held prefixes may overlap, because third parties write them (N6); what the space gives never
  does (A1).
- They are kept by length, then by place. The lengths in use are few, so that "what contains this?" is one look-up each.
- For each block size that somebody hands out there is a `Grid`, which is told of every change and knows which of its
  blocks are free. A `View` is what a pool has: a range, a block size, and its own cursor.
- Memory is proportional to what is held; ranges and sizes cost nothing.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.grid import Grid, Reopenings
from cidrella.core.prefix import Prefix
from cidrella.core.view import View

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from cidrella.core.prefix import Family

    Holder = Hashable


class Holding(NamedTuple):
    """A held prefix and one of its holders."""

    prefix: Prefix
    holder: Holder


class _Several:
    """The holders of a prefix that has more than one, in the order in which they came."""

    __slots__ = ("holders",)

    def __init__(self, *holders: Holder) -> None:
        self.holders = dict.fromkeys(holders)


_NOBODY = object()
"""No holder; equal to none."""


class NotHeldError(LookupError):
    """A release of what the holder does not hold: the caller's books are wrong."""


class AddressSpace:
    """Who holds what, in one family.

    >>> from cidrella.core.prefix import Family
    >>> space = AddressSpace(Family.IPV4)
    >>> space.occupy(Prefix.parse("10.0.0.0/24"), "node-a")
    >>> pool = space.view(Prefix.parse("10.0.0.0/16"), 23)
    >>> print(pool.allocate("node-b"), pool.free)
    10.0.2.0/23 126
    """

    __slots__ = ("_grids", "_held", "_inner", "_others", "_reopenings", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._reopenings = Reopenings()
        self._held: dict[int, dict[int, Holder]] = {}
        """Holders by length and place. A length that was once in use stays: there are few, and views keep theirs."""
        self._grids: dict[int, Grid] = {}
        self._others: dict[int, list[Grid]] = {}
        """For a grid's length: the other grids. The lists are changed in place, because views keep theirs."""
        self._inner: dict[tuple[int, int], int] = {}
        """For a held prefix that contains other held ones (a conflict, or a service range put over nodes): how many."""

    @property
    def reopened(self) -> int:
        """How often a view that was full got room. As long as this stands still, what is full stays full."""
        return self._reopenings.count

    def __len__(self) -> int:
        """How many distinct prefixes are held."""
        return sum(map(len, self._held.values()))

    def __iter__(self) -> Iterator[Holding]:
        """Everything that is held, in no order."""
        for length, table in self._held.items():
            for ordinal, holders in table.items():
                prefix = self._prefix(length, ordinal)
                for holder in _each(holders):
                    yield Holding(prefix, holder)

    def occupy(self, prefix: Prefix, holder: Holder) -> None:
        """Record a holder, beside any others. Repeating it changes nothing.

        O(lengths in use + levels), and where the prefix contains held ones, O(what is held).
        """
        assert prefix.family is self.family
        length, ordinal = prefix.length, prefix.ordinal
        if length not in self._grids and any(self._longer(length)):
            # From now on it is known, and not searched for, whether anything lies inside a prefix of this length.
            self._add_grid(length)
        table = self._held.setdefault(length, {})
        if ordinal in table:
            holders = table[ordinal]
            if isinstance(holders, _Several):
                holders.holders[holder] = None
            elif holders != holder:
                table[ordinal] = _Several(holders, holder)
            return
        within = sum(1 for _ in self._inside(length, ordinal))
        if within:
            self._inner[length, ordinal] = within
        for around in self._around(length, ordinal):
            self._inner[around] = self._inner.get(around, 0) + 1
        table[ordinal] = holder
        for grid in self._grids.values():
            grid.hold(length, ordinal, not within)

    def release(self, prefix: Prefix, holder: Holder) -> None:
        """Forget a holder. An address is free again when nobody is left who holds it (N6). Raises `NotHeldError`.

        O(lengths in use + levels), and where the prefix contains held ones, O(what is held).
        """
        length, ordinal = prefix.length, prefix.ordinal
        table = self._held.get(length, {})
        holders = table.get(ordinal, _NOBODY)
        if isinstance(holders, _Several) and holder in holders.holders:
            del holders.holders[holder]
            if len(holders.holders) == 1:
                table[ordinal] = next(iter(holders.holders))
        elif holders == holder:
            del table[ordinal]
            self._drop(length, ordinal)
        else:
            raise NotHeldError(f"{prefix} is not held by {holder}")

    def holdings(self, prefix: Prefix) -> Iterator[Holding]:
        """Who holds any address of a prefix: what contains it, the prefix itself, what lies inside it."""
        length, ordinal = prefix.length, prefix.ordinal
        same = [(length, ordinal)] if ordinal in self._held.get(length, ()) else []
        for found, place in chain(self._around(length, ordinal), same, self._inside(length, ordinal)):
            for holder in _each(self._held[found][place]):
                yield Holding(self._prefix(found, place), holder)

    def view(self, block_range: Prefix, length: int) -> View:
        """A range to hand blocks of one length out of. O(held) for a length that nobody used before.

        The range and every length from its own up to an address's are valid; the caller has checked that (C1, C2).
        """
        assert block_range.family is self.family
        assert block_range.length <= length <= self.family.bits
        if length not in self._grids:
            self._add_grid(length)
        grid = self._grids[length]
        return View(self, grid, block_range, self._held.setdefault(length, {}), self._others[length])

    def forget_grid(self, grid: Grid) -> None:
        """Stop keeping track of a block size that no view hands out any more."""
        del self._grids[grid.length]
        self._note_others()

    def check(self) -> None:
        """Assert every invariant; O(everything)."""
        inner: Counter[tuple[int, int]] = Counter()
        for length, table in self._held.items():
            for ordinal, holders in table.items():
                assert 0 <= ordinal < 1 << length
                assert not isinstance(holders, _Several) or len(holders.holders) > 1
                inner.update(self._around(length, ordinal))
        assert inner == self._inner, "a count of nested prefixes has drifted"
        for length, grid in self._grids.items():
            grid.check()
            fresh = self._fresh_grid(length)
            assert fresh.bits.levels == grid.bits.levels, "a grid does not show what is held"
            assert fresh.inside == grid.inside

    def _add_grid(self, length: int) -> None:
        self._grids[length] = self._fresh_grid(length)
        self._note_others()

    def _fresh_grid(self, length: int) -> Grid:
        """A grid that knows everything held. O(held)."""
        grid = Grid(length, self._reopenings)
        for held in sorted(self._held):
            # From the largest down, so that nothing held lies inside what is added.
            for ordinal in self._held[held]:
                grid.hold(held, ordinal, True)
        return grid

    def _note_others(self) -> None:
        for length, grid in self._grids.items():
            self._others.setdefault(length, [])[:] = [other for other in self._grids.values() if other is not grid]

    def _prefix(self, length: int, ordinal: int) -> Prefix:
        return Prefix(self.family, ordinal << (self.family.bits - length), length)

    def _around(self, length: int, ordinal: int) -> list[tuple[int, int]]:
        """The held prefixes that contain this one, without itself."""
        return [
            (shorter, ordinal >> (length - shorter))
            for shorter, table in self._held.items()
            if shorter < length and ordinal >> (length - shorter) in table
        ]

    def _inside(self, length: int, ordinal: int) -> Iterator[tuple[int, int]]:
        """The held prefixes that this one contains, without itself: by place or one by one, whichever is fewer."""
        if ordinal in self._held.get(length, ()):
            nothing = (length, ordinal) not in self._inner
        else:
            nothing = length in self._grids and ordinal not in self._grids[length].inside
        if nothing:
            return
        for longer in self._longer(length):
            table = self._held[longer]
            below = longer - length
            if 1 << below < len(table):
                places = range(ordinal << below, (ordinal + 1) << below)
                yield from ((longer, place) for place in places if place in table)
            else:
                yield from ((longer, place) for place in table if place >> below == ordinal)

    def _longer(self, length: int) -> list[int]:
        """The lengths of held prefixes that may lie inside one of this length."""
        return [longer for longer, table in self._held.items() if longer > length and table]

    def _drop(self, length: int, ordinal: int) -> None:
        """Tell the grids that nobody holds a prefix any more."""
        around = self._around(length, ordinal)
        shortest = min(around)[0] if around else None
        for place in around:
            self._inner[place] -= 1
            if not self._inner[place]:
                del self._inner[place]
        within = list(self._inside(length, ordinal)) if (length, ordinal) in self._inner else []
        self._inner.pop((length, ordinal), None)
        for grid in self._grids.values():
            grid.drop(length, ordinal, shortest)
            if grid.length > length:
                for place in within:
                    grid.restore(*place)


def _each(holders: Holder) -> Iterable[Holder]:
    return holders.holders if isinstance(holders, _Several) else (holders,)
