"""Slow, obviously right twins of `AddressSpace` and `View`.

Two of them, which share nothing but the shape of their operations:

- `OracleSpace` is what the tests compare the real space with. What is held is a plain list of (prefix, holder) pairs.
  A view has no state but its cursor: every question is answered anew, by turning each pair into the interval of blocks
  that it touches, merging those, and looking at what is left between. So an IPv6 /16 that hands out /120s is no harder
  than an IPv4 /28 that hands out /32s.
- `BruteSpace` is what `OracleSpace` itself is compared with. It looks at every block, and at every address of it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.prefix import Family, Prefix

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    Pair = tuple[Prefix, Hashable]


class Interval(NamedTuple):
    """Numbers from `start` on, below `end`."""

    start: int
    end: int


def addresses(prefix: Prefix) -> Interval:
    """Tell the addresses of a prefix."""
    return Interval(prefix.network, prefix.network + 2 ** (prefix.family.bits - prefix.length))


def share_an_address(one: Prefix, other: Prefix) -> bool:
    """Whether two prefixes overlap, by where they start and end and nothing else."""
    a, b = addresses(one), addresses(other)
    return one.family is other.family and a.start < b.end and b.start < a.end


def merged(intervals: list[Interval]) -> list[Interval]:
    """Write the same numbers in the fewest intervals, lowest first."""
    result: list[Interval] = []
    for interval in sorted(intervals):
        if result and interval.start <= result[-1].end:
            result[-1] = Interval(result[-1].start, max(result[-1].end, interval.end))
        else:
            result.append(interval)
    return result


class OracleSpace:
    """Who holds what: a list."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.pairs: list[Pair] = []

    def occupy(self, prefix: Prefix, holder: Hashable) -> list[Pair]:
        """Record a holder; what others hold of the same addresses comes back."""
        others = [pair for pair in self.holdings(prefix) if pair[1] != holder]
        if (prefix, holder) not in self.pairs:
            self.pairs.append((prefix, holder))
        return others

    def release(self, prefix: Prefix, holder: Hashable) -> None:
        """Forget a holder. `ValueError` where it holds no such thing."""
        self.pairs.remove((prefix, holder))

    def holdings(self, prefix: Prefix) -> list[Pair]:
        """Who holds any address of a prefix."""
        return [pair for pair in self.pairs if share_an_address(pair[0], prefix)]

    def view(self, block_range: Prefix, length: int) -> OracleView:
        """Make a range to hand blocks of one length out of."""
        return OracleView(self, block_range, length)


class OracleView:
    """A range, a block size and a cursor. Blocks are numbered from the start of the range."""

    def __init__(self, space: OracleSpace, block_range: Prefix, length: int) -> None:
        self.space = space
        self.block_range = block_range
        self.length = length
        self.block_size: int = 2 ** (space.family.bits - length)
        self.capacity = block_range.size // self.block_size
        self.cursor = 0
        self.last: tuple[Prefix, int] | None = None
        """The block given last, and where the search for it began."""

    @property
    def free(self) -> int:
        """How many blocks overlap nothing that is held."""
        return sum(gap.end - gap.start for gap in self.gaps(0, self.capacity))

    def allocate(self, holder: Hashable) -> Prefix | None:
        """Give the first free block from the cursor on, wrapping."""
        return next(iter(self.allocate_many([holder])), None)

    def allocate_many(self, holders: Sequence[Hashable]) -> list[Prefix]:
        """Give a block to each holder, as many as there are, in the order of the search."""
        numbers = list(islice(self.free_blocks(), len(holders)))
        blocks = [self.block(number) for number in numbers]
        self.space.pairs.extend(zip(blocks, holders, strict=False))
        for number in numbers:
            self.last = self.block(number), self.cursor
            self.cursor = (number + 1) % self.capacity
        return blocks

    def take_back(self, block: Prefix, holder: Hashable) -> None:
        """Undo an `allocate`: after the last one, the search starts where it started before."""
        self.space.release(block, holder)
        if self.last is not None and self.last[0] == block:
            self.cursor = self.last[1]
            self.last = None

    def free_blocks(self) -> Iterator[int]:
        """List the free blocks in the order of the search: from the cursor to the end, then from the start."""
        for gap in [*self.gaps(self.cursor, self.capacity), *self.gaps(0, self.cursor)]:
            yield from range(*gap)

    def gaps(self, start: int, end: int) -> list[Interval]:
        """Find the free blocks from `start` on, below `end`: what is left between the touched ones."""
        result: list[Interval] = []
        for touched in [*self.touched(), Interval(end, end)]:
            upto = min(touched.start, end)
            if start < upto:
                result.append(Interval(start, upto))
            start = max(start, touched.end)
        return result

    def touched(self) -> list[Interval]:
        """Find the blocks that overlap anything held, as intervals, lowest first."""
        whole = addresses(self.block_range)
        found: list[Interval] = []
        for prefix, _ in self.space.pairs:
            held = addresses(prefix)
            start, end = max(held.start, whole.start), min(held.end, whole.end)
            if start < end:
                first, last = (start - whole.start) // self.block_size, (end - 1 - whole.start) // self.block_size
                found.append(Interval(first, last + 1))
        return merged(found)

    def block(self, number: int) -> Prefix:
        """Turn a number in the range into its block."""
        return Prefix(self.space.family, self.block_range.network + number * self.block_size, self.length)

    def number(self, block: Prefix) -> int:
        """Turn a block into its number in the range."""
        return (block.network - self.block_range.network) // self.block_size


class BruteSpace:
    """Who holds what: a list, read address by address."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.pairs: list[Pair] = []

    def occupy(self, prefix: Prefix, holder: Hashable) -> list[Pair]:
        """Record a holder; what others hold of the same addresses comes back."""
        others = [pair for pair in self.holdings(prefix) if pair[1] != holder]
        self.pairs = [pair for pair in self.pairs if pair != (prefix, holder)] + [(prefix, holder)]
        return others

    def release(self, prefix: Prefix, holder: Hashable) -> None:
        """Forget a holder."""
        assert (prefix, holder) in self.pairs
        self.pairs = [pair for pair in self.pairs if pair != (prefix, holder)]

    def holdings(self, prefix: Prefix) -> list[Pair]:
        """Who holds any address of a (small) prefix."""
        return [pair for pair in self.pairs if any(address in range(*addresses(pair[0])) for address in of(prefix))]

    def is_free(self, block: Prefix) -> bool:
        """Whether nobody holds any address of a (small) block."""
        return not self.holdings(block)

    def view(self, block_range: Prefix, length: int) -> BruteView:
        """Make a (small) range to hand blocks of one length out of."""
        return BruteView(self, block_range, length)


class BruteView:
    """Every block of a range, written down. The cursor is how far the list has been turned."""

    def __init__(self, space: BruteSpace, block_range: Prefix, length: int) -> None:
        self.space = space
        size = 2 ** (space.family.bits - length)
        self.queue = [Prefix(space.family, address, length) for address in of(block_range) if address % size == 0]
        """The blocks in the order of the search: the last one handed out stands at the end."""
        self.before: list[Prefix] = []
        """The queue before the last one was handed out; empty when that has been undone."""

    @property
    def capacity(self) -> int:
        """How many blocks there are."""
        return len(self.queue)

    @property
    def free(self) -> int:
        """How many blocks have no address that is held."""
        return sum(1 for block in self.queue if self.space.is_free(block))

    def allocate(self, holder: Hashable) -> Prefix | None:
        """Give the first free block of the queue; it and all before it go to the end."""
        for position, block in enumerate(self.queue):
            if self.space.is_free(block):
                self.space.occupy(block, holder)
                self.before, self.queue = self.queue, self.queue[position + 1 :] + self.queue[: position + 1]
                return block
        return None

    def allocate_many(self, holders: Sequence[Hashable]) -> list[Prefix]:
        """One after the other."""
        return [block for holder in holders if (block := self.allocate(holder)) is not None]

    def take_back(self, block: Prefix, holder: Hashable) -> None:
        """Undo an `allocate`: after the last one, the queue is as it was before."""
        self.space.release(block, holder)
        if self.queue[-1] == block and self.before:
            self.queue, self.before = self.before, []


def of(prefix: Prefix) -> range:
    """Every address of a (small) prefix."""
    return range(*addresses(prefix))
