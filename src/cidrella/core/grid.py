"""The blocks of one size: which of them are touched by anything held, and how many are free in each range.

Rules:

- A grid cuts a family's whole space into blocks of one length. A block is *touched* when a held prefix of any length
  shares an address with it. Only untouched blocks can be given.
- Every held prefix is told to every grid: a larger one touches a run of blocks, one of the same length touches one, and
  a smaller one touches the block around it, which is free again when the last such one inside it has gone.
- Counts are kept, not computed: a *tally* for each range that somebody asked for is adjusted with every change, so that
  "full" is known at once and "free" is exact (A4, A8).

A grid does not know who holds what. It relies on the space for that: `hold` and `drop` are called once per distinct
held prefix, and `drop` is told what else covers the same addresses.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice, repeat
from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.bits import SparseBits

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reopenings:
    """How often a range that was full got room. As long as this stands still, what is full stays full."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Tally:
    """How many blocks of one range are free. Shared by all pools with that range and block size."""

    __slots__ = ("capacity", "first", "free", "order", "users")

    def __init__(self, first: int, order: int, free: int) -> None:
        self.first = first
        self.order = order
        self.capacity = 1 << order
        self.free = free
        self.users = 0


class Layer(NamedTuple):
    """The tallies of ranges of one order, by their place: one look-up finds the one around a block."""

    order: int
    table: dict[int, Tally]
    places: list[int]
    """The places in order, to find those inside a run."""

    def within(self, first: int, order: int) -> Iterator[Tally]:
        """The tallies whose range is part of a larger run. O(log of the tallies + those found)."""
        low = bisect_left(self.places, first >> self.order)
        high = bisect_left(self.places, (first + (1 << order)) >> self.order)
        return (self.table[place] for place in self.places[low:high])


class Grid:
    """All blocks of one length. Blocks are numbered from address 0."""

    __slots__ = ("bits", "inside", "layers", "length", "only", "reopenings")

    def __init__(self, length: int, reopenings: Reopenings | None = None) -> None:
        self.length = length
        self.reopenings = reopenings or Reopenings()
        self.bits = SparseBits(length)
        self.inside: dict[int, int] = {}
        """For a block: how many held prefixes are smaller than it and lie in it."""
        self.layers: list[Layer] = []
        self.only: Tally | None = None
        """The tally, if there is just one: then it need not be looked up."""

    def watch(self, first: int, order: int) -> Tally:
        """Keep count of an aligned run of blocks from now on. O(words in the run), once per distinct run."""
        layer = self._layer(order)
        if layer is None:
            layer = Layer(order, {}, [])
            self.layers.append(layer)
        place = first >> order
        if place not in layer.table:
            layer.table[place] = Tally(first, order, (1 << order) - self.bits.count(first, order))
            insort(layer.places, place)
        layer.table[place].users += 1
        self._note_only()
        return layer.table[place]

    def unwatch(self, tally: Tally) -> None:
        """Undo one `watch`."""
        tally.users -= 1
        layer = self._layer(tally.order)
        assert layer is not None, "a tally that is not watched"
        if not tally.users:
            place = tally.first >> tally.order
            del layer.table[place], layer.places[bisect_left(layer.places, place)]
        if not layer.table:
            self.layers.remove(layer)
        self._note_only()

    def _note_only(self) -> None:
        tallies = list(islice((tally for layer in self.layers for tally in layer.table.values()), 2))
        self.only = tallies[0] if len(tallies) == 1 else None

    def _layer(self, order: int) -> Layer | None:
        return next((layer for layer in self.layers if layer.order == order), None)

    @property
    def watched(self) -> bool:
        """Whether anybody still counts blocks of this size."""
        return bool(self.layers)

    def hold(self, length: int, ordinal: int, clean: bool = False) -> None:
        """A prefix is newly held; `clean` if nothing held lies inside it. O(levels + distinct orders of ranges)."""
        below = length - self.length
        if below < 0:
            self._touch_run(ordinal << -below, -below, clean)
        elif below:
            self._hold_inside(ordinal >> below, 1)
        else:
            self._touch(ordinal)

    def hold_span(self, length: int, first: int, count: int) -> None:
        """Many prefixes side by side are newly held, none of which overlaps what was held before.

        O(levels) for the span, and for prefixes smaller than a block also O(blocks around them).
        """
        below = length - self.length
        if below <= 0:
            for start, order in aligned_runs(first << -below, count << -below):
                self._touch_run(start, order, True)
            return
        end = first + count
        low, high = first >> below, (end - 1) >> below
        if low == high:
            self._hold_inside(low, count)
            return
        self._hold_inside(low, ((low + 1) << below) - first)
        self._hold_inside(high, end - (high << below))
        # The blocks between lie wholly in the span, so nothing was in them before, and they are full now.
        self.inside.update(zip(range(low + 1, high), repeat(1 << below)))
        for start, order in aligned_runs(low + 1, high - low - 1):
            self._touch_run(start, order, True)

    def drop(self, length: int, ordinal: int, shortest_around: int | None) -> None:
        """A prefix is no longer held. What is held inside it must be restored afterwards.

        `shortest_around` is the length of the largest held prefix that contains it, if there is one: that one may go on
        touching the block.
        """
        below = length - self.length
        covered = shortest_around is not None and shortest_around <= self.length
        if below < 0:
            if not covered:
                self._clear_run(ordinal << -below, -below)
            return
        block = ordinal >> below
        left = self.inside.get(block, 0)
        if below:
            left -= 1
            if left:
                self.inside[block] = left
            else:
                del self.inside[block]
        if not left and not covered:
            self._clear_run(block, 0)

    def restore(self, length: int, ordinal: int) -> None:
        """Touch again the blocks of a prefix that stayed held while one around it was dropped."""
        below = length - self.length
        if below < 0:
            self._touch_run(ordinal << -below, -below)
        else:
            self._touch_run(ordinal >> below, 0, True)

    def _hold_inside(self, block: int, count: int) -> None:
        """So many prefixes smaller than a block are newly held in it."""
        inside = self.inside
        before = inside.get(block)
        if before is None:
            inside[block] = count
            self._touch(block)
        else:
            inside[block] = before + count

    def _touch(self, block: int) -> None:
        if self.bits.add(block):
            for order, table, _ in self.layers:
                if block >> order in table:
                    table[block >> order].free -= 1

    def _touch_run(self, first: int, order: int, clean: bool = False) -> None:
        missing = self.bits.add_run(first, order, clean)
        for layer in self.layers:
            if layer.order < order:
                for tally in layer.within(first, order):
                    tally.free = 0
            elif first >> layer.order in layer.table:
                layer.table[first >> layer.order].free -= missing

    def _clear_run(self, first: int, order: int) -> None:
        """Free a run of blocks, all of which are touched."""
        self.bits.discard_run(first, order)
        for layer in self.layers:
            if layer.order < order:
                for tally in layer.within(first, order):
                    self.reopenings.count += not tally.free
                    tally.free = tally.capacity
            elif first >> layer.order in layer.table:
                tally = layer.table[first >> layer.order]
                self.reopenings.count += not tally.free
                tally.free += 1 << order

    def check(self) -> None:
        """Assert that the counts are those of the bits."""
        self.bits.check()
        for order, table, places in self.layers:
            assert table, "a layer without tallies is kept"
            assert places == sorted(table)
            for at, tally in table.items():
                assert (at << order, order) == (tally.first, tally.order)
                assert tally.users > 0, "an unused tally is kept"
                assert tally.free == tally.capacity - self.bits.count(tally.first, order), "a tally has drifted"
        assert all(count > 0 for count in self.inside.values())
        tallies = [tally for layer in self.layers for tally in layer.table.values()]
        assert self.only is (tallies[0] if len(tallies) == 1 else None), "the only tally is not the one there is"


def aligned_runs(first: int, count: int) -> Iterator[tuple[int, int]]:
    """Cut `count` numbers from `first` on into the fewest aligned runs (first, order).

    >>> list(aligned_runs(5, 8))
    [(5, 0), (6, 1), (8, 2), (12, 0)]
    """
    end = first + count
    while first < end:
        order = (end - first).bit_length() - 1
        if first:
            order = min(order, (first & -first).bit_length() - 1)
        yield first, order
        first += 1 << order
