"""The bitmap of a Service range: which offsets are given.

Theory of operation:

- The bits are words of `2**WORD` bits, in a list. One integer beside them, `full`, has a bit for each word that has no
  gap left. So the next free offset is found by looking at no more than two words and at `full`, however full the range
  is and wherever its last gap lies.
- Everything is dense. `SparseBits` is made for a space of which little is in use and where whole runs come and go;
  this is read from bytes and written to bytes around every compare-and-swap that was lost, changes by single bits in
  between, and has a million of them at most. A word is a slice of the bytes: a /12 is read in about a millisecond
  (`SparseBits`, filled word by word, takes six times as long) and copied in microseconds.
- The bytes are those of the big-endian integer whose bit n is offset n, without leading zeros, as Go's
  `big.Int.Bytes()` writes them (B5). Zeros in front are read, as far as the range has bits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORD = 10
"""The logarithm of a word's bits. At 10, a /12 is 1024 words, and so `full` is one more such word: the two levels have
one size, and searching either costs the same (measured: 8 is read from bytes three times as slowly)."""

BITS = 1 << WORD
LOW = BITS - 1
ALL = (1 << BITS) - 1
BYTES = BITS // 8


class CorruptError(ValueError):
    """Bytes that are no bitmap of the range. `str()` says what is wrong with them, for people."""


class Bitmap:
    """A set of the offsets below `size`.

    >>> bitmap = Bitmap(254)
    >>> bitmap.add(0), bitmap.add(9), bitmap.add(9)
    (True, True, False)
    >>> bitmap.next_free(0, 254), bitmap.count, bitmap.snapshot().hex()
    (1, 2, '0201')
    """

    __slots__ = ("count", "full", "size", "words")

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        """How many offsets are in."""
        # There is a word for `size` itself as well, so the last word is never full: a search always ends.
        self.words = [0] * ((size >> WORD) + 1)
        self.full = 0

    @classmethod
    def restore(cls, data: bytes, size: int) -> Bitmap:
        """Read what `snapshot` or Kubernetes wrote. Raises `CorruptError`. O(size), about a millisecond for a /12."""
        if len(data) > (size + 7) // 8:
            raise CorruptError(f"has {len(data)} bytes; {size} addresses have {(size + 7) // 8} at most")
        padded = data.rjust(-len(data) % BYTES + len(data), b"\0")
        bitmap = cls(size)
        bitmap._fill([int.from_bytes(padded[end - BYTES : end]) for end in range(len(padded), 0, -BYTES)])
        beyond = bitmap.words[-1] >> (size & LOW)
        if beyond:
            offset = size + beyond.bit_length() - 1
            raise CorruptError(f"has the bit of offset {offset} set; {size} addresses end at offset {size - 1}")
        return bitmap

    def snapshot(self) -> bytes:
        """The bytes to store. O(size), a quarter of a millisecond for a /12."""
        return b"".join([word.to_bytes(BYTES) for word in reversed(self.words)]).lstrip(b"\0")

    def copy(self) -> Bitmap:
        """Another one of the same offsets."""
        other = Bitmap.__new__(Bitmap)
        other.size, other.count, other.words, other.full = self.size, self.count, self.words.copy(), self.full
        return other

    def __contains__(self, offset: int) -> bool:
        return 0 <= offset < self.size and self.words[offset >> WORD] >> (offset & LOW) & 1 == 1

    def __iter__(self) -> Iterator[int]:
        """The offsets that are in, ascending."""
        for at, word in enumerate(self.words):
            while word:
                lowest = word & -word
                yield (at << WORD) + lowest.bit_length() - 1
                word ^= lowest  # noqa: PLW2901 - eaten up bit by bit

    def __sub__(self, other: Bitmap) -> Bitmap:
        """What is in this one and not in the other. O(size), a quarter of a millisecond for a /12."""
        left = Bitmap(self.size)
        left._fill([mine & ~theirs for mine, theirs in zip(self.words, other.words, strict=True)])
        return left

    def add(self, offset: int) -> bool:
        """Put an offset in; whether it was missing. O(1)."""
        assert 0 <= offset < self.size, f"offset {offset} of {self.size}"
        at = offset >> WORD
        bit = 1 << (offset & LOW)
        word = self.words[at]
        if word & bit:
            return False
        self.words[at] = word = word | bit
        if word == ALL:
            self.full |= 1 << at
        self.count += 1
        return True

    def discard(self, offset: int) -> bool:
        """Take an offset out; whether it was in. One beyond the range never is (B7). O(1)."""
        if offset not in self:
            return False
        at = offset >> WORD
        if self.words[at] == ALL:
            self.full ^= 1 << at
        self.words[at] ^= 1 << (offset & LOW)
        self.count -= 1
        return True

    def next_free(self, start: int, end: int) -> int | None:
        """The lowest offset from `start` on, below `end`, that is not in. O(1), about a microsecond."""
        at, skipped = start >> WORD, start & LOW
        word = self.words[at] >> skipped
        # How many ones a number begins with, from its lowest bit: as many carries as adding one sets off.
        ones = (word ^ (word + 1)).bit_length() - 1
        if skipped + ones < BITS:
            free = start + ones
        else:
            full = self.full >> (at + 1)
            at += (full ^ (full + 1)).bit_length()
            word = self.words[at]
            free = (at << WORD) + (word ^ (word + 1)).bit_length() - 1
        return free if free < end else None

    def count_in(self, first: int, end: int) -> int:
        """How many offsets from `first` on, below `end`, are in. O(words between)."""
        whole = sum(map(int.bit_count, self.words[first >> WORD : end >> WORD]))
        return whole - self._count_in_word(first) + self._count_in_word(end)

    def _fill(self, words: list[int]) -> None:
        """Put all at once into one that is empty."""
        self.words[: len(words)] = words
        self.full = sum([1 << at for at, word in enumerate(words) if word == ALL])
        self.count = sum(map(int.bit_count, words))

    def _count_in_word(self, offset: int) -> int:
        """How many offsets of its word, below this one, are in."""
        return (self.words[offset >> WORD] & ((1 << (offset & LOW)) - 1)).bit_count()

    def check(self) -> None:
        """Assert that the words, the count and what is said to be full agree."""
        assert len(self.words) == (self.size >> WORD) + 1
        assert self.words[-1] >> (self.size & LOW) == 0, "a bit beyond the size is set"
        assert self.count == sum(map(int.bit_count, self.words))
        assert self.full == sum(1 << at for at, word in enumerate(self.words) if word == ALL)
