"""What a pool has of the address space: a range, a block size, and a cursor of its own.

A view hands blocks out; who holds what, and which blocks are free, is the space's and the grid's to know. It keeps
hold of those parts of them that an allocation touches, because an allocation is made a million times.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from cidrella.core.bits import ALL, BIT, LOW, WORD
from cidrella.core.grid import Grid, Tally
from cidrella.core.prefix import Prefix

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from cidrella.core.prefix import Family
    from cidrella.core.space import AddressSpace

    Holder = Hashable

# A Prefix without the keyword handling of its constructor, for the two places that make one for each allocation.
_PREFIX_OF = partial(tuple.__new__, Prefix)

_NONE = -1
"""No block."""


class View:
    """A range out of which blocks of one length are handed, in a space shared with other views.

    The cursor makes released blocks the last to be given again (A5).
    """

    __slots__ = (
        "_cursor",
        "_end",
        "_family",
        "_first",
        "_grid",
        "_host_bits",
        "_last",
        "_length",
        "_others",
        "_space",
        "_table",
        "_tally",
        "_words",
    )

    def __init__(
        self, space: AddressSpace, grid: Grid, block_range: Prefix, table: dict[int, Holder], others: list[Grid]
    ) -> None:
        self._space = space
        self._grid = grid
        self._length = grid.length
        self._words = grid.bits.levels[0]
        self._table = table
        self._others = others
        self._family = space.family
        self._host_bits = space.family.bits - grid.length
        self._first = block_range.network >> self._host_bits
        self._tally = grid.watch(self._first, grid.length - block_range.length)
        self._end = self._first + self._tally.capacity
        self._cursor = self._first
        self._last: int | tuple[int, int] = _NONE
        """The block given last; with it, where the cursor had stood, if that was not at the block itself."""

    @property
    def family(self) -> Family:
        """The family of its addresses."""
        return self._family

    @property
    def block_range(self) -> Prefix:
        """The range that the blocks come from."""
        return Prefix(self._family, self._first << self._host_bits, self._grid.length - self._tally.order)

    @property
    def length(self) -> int:
        """The length of its blocks."""
        return self._grid.length

    @property
    def capacity(self) -> int:
        """The aligned blocks of the range, held or not. O(1)."""
        return self._tally.capacity

    @property
    def free(self) -> int:
        """The blocks that could be given right now. O(1)."""
        return self._tally.free

    def allocate(self, holder: Holder) -> Prefix | None:
        """Give the next free block to a holder, or None where the range is full. O(levels); O(1) for None."""
        tally = self._tally
        if not tally.free:
            return None
        words = self._words
        block = self._cursor
        at = block >> WORD
        word = words.get(at, ALL)  # of a word that is not stored only a search can tell
        if word >> (block & LOW) & 1:
            block = self._next_free()
            at = block >> WORD
            word = words.get(at, 0)
            self._last = block, self._cursor
        else:
            self._last = block
        self._cursor = block + 1 if block + 1 < self._end else self._first
        # What `Grid.hold` does for a block of its own size that is known to be free, without looking it up again.
        grid = self._grid
        word |= BIT[block & LOW]
        if word == ALL:
            grid.bits.fill(at)
        else:
            words[at] = word
        if grid.only is tally:
            tally.free -= 1
        else:
            for order, table, _ in grid.layers:
                if block >> order in table:
                    table[block >> order].free -= 1
        for other in self._others:
            other.hold(self._length, block, True)
        self._table[block] = holder
        return _PREFIX_OF((self._family, block << self._host_bits, self._length))

    def allocate_many(self, holders: Sequence[Holder]) -> list[Prefix]:
        """Give each holder a block, in order, until the range is full: the same blocks as one call each. O(blocks)."""
        with _no_collection():
            return self._allocate_many(holders, min(len(holders), self._tally.free))

    def _allocate_many(self, holders: Sequence[Holder], wanted: int) -> list[Prefix]:
        grid = self._grid
        length = grid.length
        host_bits = self._host_bits
        networks: list[int] = []
        takers = iter(holders)
        while len(networks) < wanted:
            first = self._next_free()
            word = self._words.get(first >> WORD, 0) >> (first & LOW)
            clear = (word & -word).bit_length() - 1 if word else (1 << WORD) - (first & LOW)
            count = min(clear, self._end - first, wanted - len(networks))
            for each in (grid, *self._others):
                each.hold_span(length, first, count)
            after = first + count
            self._table.update(zip(range(first, after), takers, strict=False))
            networks += range(first << host_bits, after << host_bits, 1 << host_bits)
            self._last = after - 1 if count > 1 else (first, self._cursor)
            self._cursor = after if after < self._end else self._first
        return list(map(_PREFIX_OF, zip(repeat(self._family), networks, repeat(length))))

    def take_back(self, block: Prefix, holder: Holder) -> None:
        """Undo an `allocate`. The cursor stands where it stood before, unless others were given since (A5)."""
        self._space.release(block, holder)
        last, cursor = self._last if isinstance(self._last, tuple) else (self._last, self._last)
        if block.ordinal == last and block.length == self._length:
            self._cursor, self._last = cursor, _NONE

    def close(self) -> None:
        """Give the view up, once: its pool is gone. What was given stays held; nothing more is given."""
        self._grid.unwatch(self._tally)
        self._tally = Tally(self._first, self._tally.order, 0)
        if not self._grid.watched:
            self._space.forget_grid(self._grid)

    def _next_free(self) -> int:
        """The first free block from the cursor on, wrapping at the end of the range. There must be one."""
        bits = self._grid.bits
        block = bits.next_gap(self._cursor, self._end)
        if block is None:
            block = bits.next_gap(self._first, self._cursor)
        assert block is not None, "a tally says free where no block is"
        return block


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from looking for cycles among thousands of new blocks, which can have none.

    Measured with 65,536 blocks: 300 ns each instead of 400.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
