"""`SparseBits` against plain sets, and what its form costs."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cidrella.core.bits import WORD, SparseBits
from tests.core.oracle import Interval, merged

SMALL_WIDTH = 12
"""Up to here every number is looked at after each step: 4096 of them, one level above the words."""
WIDEST = 40


class Numbers:
    """A set of integers as merged intervals: the oracle for widths at which a plain set does not fit."""

    def __init__(self) -> None:
        self.intervals: list[Interval] = []

    def __contains__(self, number: int) -> bool:
        return any(start <= number < end for start, end in self.intervals)

    def count(self, start: int, end: int) -> int:
        return sum(max(0, min(end, high) - max(start, low)) for low, high in self.intervals)

    def add(self, start: int, end: int) -> None:
        self.intervals = merged([*self.intervals, Interval(start, end)])

    def discard(self, start: int, end: int) -> None:
        cut = [(low, min(high, start)) for low, high in self.intervals]
        cut += [(max(low, end), high) for low, high in self.intervals]
        self.intervals = merged([Interval(low, high) for low, high in cut if low < high])

    def next_gap(self, start: int, end: int) -> int | None:
        for low, high in self.intervals:
            if low <= start < high:
                start = high
        return start if start < end else None


class SmallBits(RuleBasedStateMachine):
    """Few numbers, so that a plain `set` of them is the oracle and words fill up."""

    widths: ClassVar[st.SearchStrategy[int]] = st.integers(0, SMALL_WIDTH)

    @initialize(width=widths)
    def start(self, width: int) -> None:
        self.width = width
        self.bits = SparseBits(width)
        self.numbers: set[int] = set()

    def run(self, where: int, order: int) -> tuple[int, int]:
        order = min(order, self.width)
        return (where % (1 << self.width)) >> order << order, order

    places = st.integers(0, (1 << SMALL_WIDTH) - 1)
    orders = st.integers(0, SMALL_WIDTH)

    @rule(number=places)
    def add(self, number: int) -> None:
        number %= 1 << self.width
        assert self.bits.add(number) == (number not in self.numbers)
        self.numbers.add(number)

    @rule(number=places)
    def discard(self, number: int) -> None:
        number %= 1 << self.width
        assert self.bits.discard(number) == (number in self.numbers)
        self.numbers.discard(number)

    @rule(where=places, order=orders)
    def add_run(self, where: int, order: int) -> None:
        first, order = self.run(where, order)
        run = {*range(first, first + (1 << order))}
        assert self.bits.add_run(first, order) == len(run - self.numbers)
        self.numbers |= run

    @rule(where=places, order=orders)
    def discard_run(self, where: int, order: int) -> None:
        first, order = self.run(where, order)
        run = {*range(first, first + (1 << order))}
        assert self.bits.discard_run(first, order) == len(run & self.numbers)
        self.numbers -= run

    @rule(where=places, order=orders)
    def fill_all_but_one(self, where: int, order: int) -> None:
        """One number short of a full run: the next `add` there merges upwards."""
        first, order = self.run(where, order)
        hole = where % (1 << order) + first
        for number in range(first, first + (1 << order)):
            if number != hole:
                self.bits.add(number)
        self.bits.discard(hole)
        self.numbers |= {*range(first, first + (1 << order))}
        self.numbers.discard(hole)

    @rule(start=places, end=places)
    def next_gap(self, start: int, end: int) -> None:
        start, end = start % (1 << self.width), min(end, 1 << self.width)
        expected = next((number for number in range(start, end) if number not in self.numbers), None)
        assert self.bits.next_gap(start, end) == expected

    @rule(where=places, order=orders)
    def count(self, where: int, order: int) -> None:
        first, order = self.run(where, order)
        assert self.bits.count(first, order) == sum(first <= number < first + (1 << order) for number in self.numbers)

    @rule()
    def same_members(self) -> None:
        """Every number, in or out, and the stored bits as runs."""
        assert {number for number in range(1 << self.width) if number in self.bits} == self.numbers
        runs = [number for first, order in self.bits.runs() for number in range(first, first + (1 << order))]
        assert len(runs) == len(self.numbers)
        assert set(runs) == self.numbers

    @invariant()
    def canonical(self) -> None:
        self.bits.check()
        assert self.bits.count(0, self.width) == len(self.numbers)
        assert self.bits.next_gap(0, 1 << self.width) == self.lowest_missing()

    def lowest_missing(self) -> int | None:
        return next((number for number in range(1 << self.width) if number not in self.numbers), None)


class WideBits(RuleBasedStateMachine):
    """Many numbers on several levels, told to both sides as runs. Places are few, so that runs nest."""

    def __init__(self) -> None:
        super().__init__()
        self.width = WIDEST
        self.bits = SparseBits(self.width)
        self.numbers = Numbers()

    @initialize(width=st.integers(0, WIDEST))
    def start(self, width: int) -> None:
        self.width = width
        self.bits = SparseBits(width)

    orders = st.integers(0, WIDEST)
    places = st.builds(
        lambda high, low, shift: (high << (WIDEST - 2)) + (low << shift),
        st.integers(0, 3),
        st.integers(0, 5),
        st.sampled_from([0, WORD - 1, WORD, 2 * WORD, 3 * WORD, 4 * WORD]),
    )

    def run(self, where: int, order: int) -> tuple[int, int, int]:
        order = min(order, self.width)
        first = (where % (1 << self.width)) >> order << order
        return first, order, first + (1 << order)

    @rule(where=places, order=orders)
    def add_run(self, where: int, order: int) -> None:
        first, order, end = self.run(where, order)
        assert self.bits.add_run(first, order) == (1 << order) - self.numbers.count(first, end)
        self.numbers.add(first, end)

    @rule(where=places, order=orders)
    def discard_run(self, where: int, order: int) -> None:
        first, order, end = self.run(where, order)
        assert self.bits.discard_run(first, order) == self.numbers.count(first, end)
        self.numbers.discard(first, end)

    @rule(number=places)
    def add(self, number: int) -> None:
        number %= 1 << self.width
        assert self.bits.add(number) == (number not in self.numbers)
        self.numbers.add(number, number + 1)

    @rule(number=places)
    def discard(self, number: int) -> None:
        number %= 1 << self.width
        assert self.bits.discard(number) == (number in self.numbers)
        self.numbers.discard(number, number + 1)

    @precondition(lambda self: self.numbers.intervals)
    @rule(which=st.integers(0, 99), order=orders)
    def fill_the_rest(self, which: int, order: int) -> None:
        """Fill a run around something that is in, in pieces from both sides of it: the last piece merges upwards."""
        inside = self.numbers.intervals[which % len(self.numbers.intervals)].start
        first, order, end = self.run(inside, order)
        for piece in range(order):
            sibling = (inside >> piece ^ 1) << piece
            self.bits.add_run(sibling, piece)
        self.bits.add(inside)
        self.numbers.add(first, end)

    @rule(number=places)
    def member(self, number: int) -> None:
        number %= 1 << self.width
        assert (number in self.bits) == (number in self.numbers)

    @rule(start=places, end=st.one_of(places, st.just(1 << WIDEST)))
    def next_gap(self, start: int, end: int) -> None:
        start, end = start % (1 << self.width), min(end, 1 << self.width)
        assert self.bits.next_gap(start, end) == self.numbers.next_gap(start, end)

    @rule(where=places, order=orders)
    def count(self, where: int, order: int) -> None:
        first, order, end = self.run(where, order)
        assert self.bits.count(first, order) == self.numbers.count(first, end)

    @invariant()
    def canonical(self) -> None:
        self.bits.check()
        stored = [Interval(first, first + (1 << order)) for first, order in self.bits.runs()]
        assert sum(run.end - run.start for run in stored) == self.numbers.count(0, 1 << self.width)
        assert merged(stored) == self.numbers.intervals


def test_small_widths_behave_as_a_set() -> None:
    """A4, A8: at widths up to 12, members, counts and gaps are those of a plain set, in canonical form at each step."""
    run_state_machine_as_test(SmallBits)


def test_wide_runs_behave_as_intervals() -> None:
    """A3, A4, A8: at widths up to 40, runs of any order count and merge as intervals do, in canonical form."""
    run_state_machine_as_test(WideBits)


@pytest.mark.parametrize("width", [0, 1, 7, 8, 9, 15, 16, 17, 32, 128])
def test_whole_set_is_one_run(width: int) -> None:
    """A3: at every width, also those at the edge of a level, the whole set goes in and out as one run."""
    bits = SparseBits(width)
    assert bits.add_run(0, width) == 1 << width
    bits.check()
    assert (bits.count(0, width), bits.next_gap(0, 1 << width)) == (1 << width, None)
    assert bits.add_run(0, width) == 0
    last = (1 << width) - 1
    assert bits.discard(last)
    assert last not in bits
    bits.check()
    assert bits.next_gap(0, 1 << width) == last
    assert bits.discard_run(0, width) == last
    assert [*bits.runs()] == []
    bits.check()


@pytest.mark.parametrize("order", [WORD, 2 * WORD])
@pytest.mark.parametrize("backwards", [False, True])
def test_full_words_merge_upwards(order: int, backwards: bool) -> None:
    """A3, A9: numbers that are added one by one until none is missing leave one bit above and nothing below it."""
    bits = SparseBits(32)
    first = 5 << order
    numbers = range(first, first + (1 << order))
    for number in reversed(numbers) if backwards else numbers:
        assert bits.add(number)
    bits.check()
    assert [*bits.runs()] == [(first, order)]
    assert not bits.levels[0]
    assert bits.next_gap(first, 1 << 32) == first + (1 << order)
    assert not bits.add(first + 77)


def test_huge_run_costs_one_word() -> None:
    """A3: at width 128 a run of 2**100 numbers is stored as the 16 bits of one word, and one of 2**96 as one bit."""
    bits = SparseBits(128)
    assert bits.add_run(3 << 96, 96) == 1 << 96
    assert [*bits.runs()] == [(3 << 96, 96)]
    assert bits.discard_run(3 << 96, 96) == 1 << 96
    assert bits.add_run(7 << 100, 100) == 1 << 100
    assert sum(len(level) for level in bits.levels) == 1
    bits.check()
    assert bits.next_gap(7 << 100, 1 << 128) == 8 << 100
    assert bits.count(0, 128) == 1 << 100


def test_a_hole_in_a_huge_run_costs_a_word_per_level() -> None:
    """A3: one number taken out of 2**128 leaves one word per level, and putting it back leaves a single bit."""
    bits = SparseBits(128)
    bits.add_run(0, 128)
    hole = (1 << 127) + 12345
    assert bits.discard(hole)
    assert [len(level) for level in bits.levels] == [1] * (128 // WORD) + [0]
    assert bits.next_gap(0, 1 << 128) == hole
    assert bits.next_gap(hole + 1, 1 << 128) is None
    assert bits.add(hole)
    assert [*bits.runs()] == [(0, 128)]
    bits.check()


def test_a_run_swallows_what_lies_below_it() -> None:
    """A8: adding a run counts only what was missing of it, on whichever level that stood, and leaves nothing below."""
    bits = SparseBits(40)
    bits.add(0x12_3456_7801)
    bits.add_run(0x12_3456_0000, 8)
    bits.add_run(0x12_3400_0000, 16)
    assert bits.add_run(0x12_0000_0000, 32) == 2**32 - 1 - 2**8 - 2**16
    assert [*bits.runs()] == [(0x12_0000_0000, 32)]
    bits.check()


@given(st.sets(st.integers(0, 2**SMALL_WIDTH - 1)), st.integers(0, 2**SMALL_WIDTH - 1), st.integers(0, 2**SMALL_WIDTH))
def test_next_gap_stays_below_its_end(numbers: set[int], start: int, end: int) -> None:
    """A2, A4: the search for a gap never answers with a number from `end` on, however far a run of ones reaches."""
    bits = SparseBits(SMALL_WIDTH)
    for number in numbers:
        bits.add(number)
    expected = next((number for number in range(start, end) if number not in numbers), None)
    assert bits.next_gap(start, end) == expected
