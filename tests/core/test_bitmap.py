"""The bitmap against plain sets, what its search looks at, and its bytes against those that Go writes."""

from __future__ import annotations

import base64
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from cidrella.core.bitmap import BITS, Bitmap, CorruptError
from tests.core.counting import CountingList, Meter

SIZES = [1, 2, 14, 254, BITS - 1, BITS, BITS + 1, 3 * BITS - 2, 3 * BITS, 4 * BITS - 2]
"""Small ones, and those at the edge of a word."""
MOST = max(SIZES)
SAMPLES = json.loads((Path(__file__).parent / "data" / "bitmaps.json").read_text(encoding="utf-8"))
"""Written by the program in testenv/samples/bitmaps."""


def big_endian(offsets: set[int]) -> bytes:
    """The bytes as Go's big.Int has them, by way of one large integer."""
    number = sum(1 << offset for offset in offsets)
    return number.to_bytes((number.bit_length() + 7) // 8)


class Steps(RuleBasedStateMachine):
    """Single offsets and whole words come and go; a plain `set` is the oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.bitmap = Bitmap(1)
        self.offsets: set[int] = set()

    @initialize(size=st.sampled_from(SIZES))
    def start(self, size: int) -> None:
        self.bitmap = Bitmap(size)

    places = st.integers(0, MOST)

    @rule(place=places)
    def add(self, place: int) -> None:
        offset = place % self.bitmap.size
        assert self.bitmap.add(offset) == (offset not in self.offsets)
        self.offsets.add(offset)

    @rule(place=places)
    def discard(self, place: int) -> None:
        assert self.bitmap.discard(place) == (place in self.offsets)
        self.offsets.discard(place)

    @rule(place=places, whole=st.booleans())
    def fill(self, place: int, whole: bool) -> None:
        """A word and its neighbours, or all of them but one offset."""
        hole = place % self.bitmap.size
        first = hole // BITS * BITS - 5
        run = {*range(max(0, first), min(first + BITS + 10, self.bitmap.size))} - ({hole} if not whole else set())
        assert sum(map(self.bitmap.add, run)) == len(run - self.offsets)
        self.offsets |= run

    @rule(start=places, end=places)
    def next_free(self, start: int, end: int) -> None:
        start, end = start % self.bitmap.size, min(end, self.bitmap.size)
        expected = next((offset for offset in range(start, end) if offset not in self.offsets), None)
        assert self.bitmap.next_free(start, end) == expected

    @rule(first=places, end=places)
    def count_in(self, first: int, end: int) -> None:
        first, end = sorted((min(first, self.bitmap.size), min(end, self.bitmap.size)))
        assert self.bitmap.count_in(first, end) == len(self.offsets & {*range(first, end)})

    @rule()
    def store(self) -> None:
        """Go on with what was read from the bytes."""
        assert self.bitmap.snapshot() == big_endian(self.offsets)
        self.bitmap = Bitmap.restore(self.bitmap.snapshot(), self.bitmap.size)

    @rule(place=places)
    def copy(self, place: int) -> None:
        """Go on with a copy, whatever becomes of the original."""
        original, self.bitmap = self.bitmap, self.bitmap.copy()
        original.add(place % original.size)
        original.discard((place + 1) % original.size)

    @rule(others=st.sets(places))
    def subtract(self, others: set[int]) -> None:
        other = Bitmap(self.bitmap.size)
        for offset in others:
            other.add(offset % other.size)
        left = self.bitmap - other
        left.check()
        assert {*left} == self.offsets - {offset % other.size for offset in others}

    @invariant()
    def same(self) -> None:
        self.bitmap.check()
        assert self.bitmap.count == len(self.offsets)
        assert [*self.bitmap] == sorted(self.offsets)
        assert {offset for offset in range(-1, self.bitmap.size + 1) if offset in self.bitmap} == self.offsets


def test_it_behaves_as_a_set() -> None:
    """B5, B7: at every step members, counts, gaps, bytes and copies are those of a plain set."""
    run_state_machine_as_test(Steps)


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["what"] for sample in SAMPLES])
def test_the_bytes_that_go_writes(sample: dict[str, Any]) -> None:
    """B5: bytes of Go's big.Int are read as the offsets that they were made of, and written as the same bytes."""
    data = base64.b64decode(sample["data"])
    runs = (range(run["first"], run["end"], run["step"]) for run in sample["runs"])
    bitmap = Bitmap.restore(data, sample["size"])
    bitmap.check()
    assert [*bitmap] == [*chain.from_iterable(runs)]
    assert bitmap.snapshot() == data


def test_the_order_of_bytes() -> None:
    """B5: bit n of the big-endian integer is offset n, so offset 0 is the lowest bit of the last byte."""
    bitmap = Bitmap(254)
    assert bitmap.snapshot() == b""
    bitmap.add(0)
    assert bitmap.snapshot() == b"\x01"
    bitmap.add(8)
    bitmap.add(17)
    assert bitmap.snapshot() == b"\x02\x01\x01"


@pytest.mark.parametrize("size", [254, BITS - 2, BITS, BITS + 1, 2 * BITS])
def test_zeros_in_front_are_read(size: int) -> None:
    """B5: a writer that stores all bytes of the range, zeros as well, is understood."""
    data = b"\x05".rjust((size + 7) // 8, b"\0")
    assert [*Bitmap.restore(data, size)] == [0, 2]
    assert Bitmap.restore(data, size).snapshot() == b"\x05"


@pytest.mark.parametrize(
    ("data", "size", "problem"),
    [
        (b"\0" * 33, 254, "has 33 bytes; 254 addresses have 32 at most"),
        (b"\x01" + b"\0" * 32, 254, "has 33 bytes; 254 addresses have 32 at most"),
        (b"\0", 0, "has 1 bytes; 0 addresses have 0 at most"),
        (b"\x40" + b"\0" * 31, 254, "has the bit of offset 254 set; 254 addresses end at offset 253"),
        (b"\xff" * 32, 254, "has the bit of offset 255 set; 254 addresses end at offset 253"),
        (b"\x04", 2, "has the bit of offset 2 set; 2 addresses end at offset 1"),
        (
            b"\xff" * (BITS // 8),
            BITS - 2,
            f"has the bit of offset {BITS - 1} set; {BITS - 2} addresses end at offset {BITS - 3}",
        ),
        (
            b"\x02" + b"\0" * (BITS // 8),
            BITS + 1,
            f"has the bit of offset {BITS + 1} set; {BITS + 1} addresses end at offset {BITS}",
        ),
    ],
)
def test_bytes_that_are_no_bitmap_of_the_range(data: bytes, size: int, problem: str) -> None:
    """B5: more bytes than the range has, or a bit beyond its end, are refused, never cut off."""
    with pytest.raises(CorruptError, match=f"^{problem}$"):
        Bitmap.restore(data, size)


@pytest.mark.parametrize("size", SIZES)
def test_full_bitmaps(size: int) -> None:
    """B3, B5: a full one says so from wherever it is asked, is read back full, and one gap in it is found."""
    full = Bitmap.restore(((1 << size) - 1).to_bytes((size + 7) // 8), size)
    full.check()
    assert full.count == full.count_in(0, size) == size
    assert full.next_free(0, size) is full.next_free(size - 1, size) is None
    gap = size * 2 // 3
    assert full.discard(gap)
    full.check()
    assert full.next_free(0, size) == full.next_free(gap, size) == gap
    assert full.next_free(0, gap) is None


@pytest.mark.parametrize("offset", [-BITS - 1, -1, 2 * BITS - 2, 10 * BITS])
def test_offsets_beyond_the_range(offset: int) -> None:
    """B7: to release what is out of range changes nothing and is no error; to allocate it is a mistake of ours."""
    size = 2 * BITS - 2
    bitmap = Bitmap.restore(((1 << size) - 1).to_bytes(BITS // 4), size)
    assert not bitmap.discard(offset)
    assert offset not in bitmap
    assert bitmap.count == size
    with pytest.raises(AssertionError, match=f"offset {offset} of {size}"):
        bitmap.add(offset)


@given(st.lists(st.integers(0, 2**20 - 3), min_size=1, max_size=5), st.integers(0, 2**20 - 3))
def test_the_search_looks_at_two_words(gaps: list[int], start: int) -> None:
    """B3: the next free offset of a /12 with a handful left is found without going through it."""
    bitmap = Bitmap.restore(((1 << (2**20 - 2)) - 1).to_bytes(2**17), 2**20 - 2)
    for gap in gaps:
        bitmap.discard(gap)
    meter = Meter()
    bitmap.words = CountingList(bitmap.words, meter)
    assert bitmap.next_free(start, bitmap.size) == min((gap for gap in gaps if gap >= start), default=None)
    assert meter.during() <= 2
