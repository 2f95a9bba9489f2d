"""Grids: counts kept as prefixes come and go, against counting anew."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.bits import ALL
from cidrella.core.grid import Grid, Tally, aligned_runs


def counted(grid: Grid, tally: Tally) -> int:
    """Count the free blocks of a range by asking for each."""
    return sum(block not in grid.bits for block in range(tally.first, tally.first + tally.capacity))


def share_an_address(one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Whether two prefixes, each a length and an ordinal, are the same as far as the shorter goes."""
    shorter = min(one[0], two[0])
    return one[1] >> (one[0] - shorter) == two[1] >> (two[0] - shorter)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_span_is_cut_into_the_fewest_aligned_runs(first: int, count: int) -> None:
    """A4: the runs are aligned, adjoin, make up the span, and no two of them could be one."""
    runs = list(aligned_runs(first, count))
    at = first
    for start, order in runs:
        assert start == at
        assert start % (1 << order) == 0
        at += 1 << order
    assert at == first + count
    for (start, order), (_, following) in pairwise(runs):
        assert order != following or start % (2 << order) != 0
    assert len(runs) <= 2 * max(1, count.bit_length())


def test_the_first_blocks_of_all_are_one_run() -> None:
    """A4: from block 0 on, a power of two is a single run, however large."""
    assert list(aligned_runs(0, 1 << 100)) == [(0, 100)]
    assert list(aligned_runs(0, 7)) == [(0, 2), (4, 1), (6, 0)]
    assert list(aligned_runs(3, 0)) == []


def test_a_tally_is_shared_and_goes_with_its_last_user() -> None:
    """A8: all that count one range share its tally, which is dropped when the last of them stops."""
    grid = Grid(8)
    grid.hold(8, 3, clean=True)
    one, two, other = grid.watch(0, 4), grid.watch(0, 4), grid.watch(16, 4)
    assert one is two
    assert (one.capacity, one.free, other.free) == (16, 15, 16)
    grid.unwatch(one)
    grid.check()
    grid.hold(8, 4, clean=True)
    assert two.free == 14
    watched = []
    for tally in (two, other):
        watched.append(grid.watched)
        grid.unwatch(tally)
        grid.check()
    assert [*watched, grid.watched] == [True, True, False]
    assert grid.watch(0, 4).free == 14


LENGTH = 8
"""Of the blocks. Held prefixes are from 4 bits shorter to 3 bits longer."""
held_prefixes = st.integers(4, 11).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, (1 << length) - 1)))
watched_runs = st.integers(0, 8).flatmap(
    lambda order: st.tuples(st.just(order), st.integers(0, (1 << (8 - order)) - 1))
)


@given(st.lists(held_prefixes, max_size=12, unique=True), st.lists(watched_runs, min_size=1, max_size=8))
def test_counts_are_exact_as_prefixes_come(held: list[tuple[int, int]], watched: list[tuple[int, int]]) -> None:
    """A8: each tally is what counting its blocks anew gives, whichever sizes of prefixes touch them."""
    grid = Grid(LENGTH)
    tallies = [grid.watch(at << order, order) for order, at in watched]
    for at, (length, ordinal) in enumerate(held):
        inside = [one for one in held[:at] if one[0] > length and one[1] >> (one[0] - length) == ordinal]
        grid.hold(length, ordinal, clean=not inside)
        grid.check()
        assert [tally.free for tally in tallies] == [counted(grid, tally) for tally in tallies]
    for block in range(1 << LENGTH):
        touched = any(share_an_address((LENGTH, block), one) for one in held)
        assert (block in grid.bits) == touched


@given(st.integers(5, 11), st.data(), st.lists(watched_runs, min_size=1, max_size=8))
def test_a_span_is_the_same_as_its_prefixes(length: int, data: st.DataObject, watched: list[tuple[int, int]]) -> None:
    """A8: many prefixes held at once leave the same bits and counts as each held by itself."""
    first = data.draw(st.integers(0, (1 << length) - 1))
    count = data.draw(st.integers(1, (1 << length) - first))
    before = data.draw(
        st.lists(
            st.integers(0, (1 << length) - 1).filter(lambda at: not first <= at < first + count),
            max_size=3,
            unique=True,
        )
    )
    at_once, one_by_one = Grid(LENGTH), Grid(LENGTH)
    for grid in (at_once, one_by_one):
        for order, at in watched:
            grid.watch(at << order, order)
        for ordinal in before:
            grid.hold(length, ordinal, clean=True)
    at_once.hold_span(length, first, count)
    for ordinal in range(first, first + count):
        one_by_one.hold(length, ordinal, clean=True)
    at_once.check()
    assert at_once.bits.levels == one_by_one.bits.levels
    assert at_once.inside == one_by_one.inside
    assert [tally.free for layer in at_once.layers for tally in layer.table.values()] == [
        tally.free for layer in one_by_one.layers for tally in layer.table.values()
    ]


@pytest.mark.parametrize(("length", "blocks"), [(6, 4), (8, 1), (10, 1)])
def test_what_is_dropped_is_free_again(length: int, blocks: int) -> None:
    """A8: a prefix larger than, as large as or smaller than a block gives back exactly what it took."""
    grid = Grid(LENGTH)
    tally = grid.watch(0, 8)
    grid.hold(length, 1, clean=True)
    assert tally.free == 256 - blocks
    grid.drop(length, 1, None)
    assert tally.free == 256
    assert grid.inside == {}
    grid.check()


def test_half_of_what_has_merged_is_dropped() -> None:
    """A8: two large prefixes side by side, kept as one, give back exactly one half when one of them goes."""
    grid = Grid(24)
    tally = grid.watch(0, 24)
    grid.hold(9, 0, clean=True)
    grid.hold(9, 1, clean=True)
    assert tally.free == (1 << 24) - (1 << 16)
    grid.drop(9, 1, None)
    assert tally.free == (1 << 24) - (1 << 15)
    grid.check()
    assert [(1 << 15) - 1 in grid.bits, 1 << 15 in grid.bits] == [True, False]


def test_what_is_covered_stays_touched() -> None:
    """N6: a dropped prefix frees nothing that a larger one still covers, and a block stays touched by its last part."""
    grid = Grid(LENGTH)
    tally = grid.watch(0, 8)
    grid.hold(6, 0, clean=True)
    grid.hold(8, 1, clean=True)
    grid.drop(8, 1, 6)
    assert tally.free == 252
    grid.hold(10, 4, clean=True)
    grid.drop(10, 4, 6)
    assert tally.free == 252
    grid.hold(7, 0, clean=True)
    grid.drop(7, 0, 6)
    assert tally.free == 252
    grid.hold(10, 900, clean=True)
    grid.hold(10, 901, clean=True)
    grid.drop(10, 900, None)
    assert tally.free == 251
    grid.drop(10, 901, None)
    assert tally.free == 252
    grid.check()


def test_what_is_smaller_than_a_cover_does_not_count_as_one() -> None:
    """N6: a prefix around the dropped one, itself smaller than the block, does not cover the block."""
    grid = Grid(LENGTH)
    tally = grid.watch(0, 8)
    grid.hold(9, 0, clean=True)
    grid.hold(10, 0, clean=True)
    grid.drop(10, 0, 9)
    assert tally.free == 255
    grid.drop(9, 0, None)
    assert tally.free == 256


def test_what_stays_inside_is_restored() -> None:
    """N6: when a large prefix goes, blocks that smaller ones inside it hold are touched again and counted again."""
    grid = Grid(LENGTH)
    tally, part = grid.watch(0, 8), grid.watch(16, 2)
    grid.hold(4, 1, clean=True)
    grid.hold(7, 8, clean=True)
    grid.hold(10, 80, clean=True)
    grid.drop(4, 1, None)
    assert (tally.free, part.free) == (256, 4)
    grid.restore(7, 8)
    grid.restore(10, 80)
    assert (tally.free, part.free) == (253, 2)
    grid.check()


def test_a_tally_is_given_up_once() -> None:
    """A8: to stop counting what is not counted any more is a mistake."""
    grid = Grid(LENGTH)
    tally = grid.watch(0, 4)
    grid.unwatch(tally)
    with pytest.raises(AssertionError, match=r"^a tally that is not watched$"):
        grid.unwatch(tally)


class TestCheck:
    """A grid that is broken says so: the check that other tests rely on is not blind."""

    def grid(self) -> tuple[Grid, Tally]:
        grid = Grid(LENGTH)
        grid.hold(10, 0, clean=True)
        return grid, grid.watch(0, 4)

    def test_a_drifted_tally(self) -> None:
        """A8: a count that is off by one is found."""
        grid, tally = self.grid()
        tally.free += 1
        with pytest.raises(AssertionError, match=r"^a tally has drifted$"):
            grid.check()

    def test_an_unused_tally(self) -> None:
        """A9: a tally that nobody uses is found."""
        grid, tally = self.grid()
        tally.users = 0
        with pytest.raises(AssertionError, match=r"^an unused tally is kept$"):
            grid.check()

    def test_an_empty_layer(self) -> None:
        """A9: a layer without tallies is found."""
        grid, _ = self.grid()
        grid.layers[0].table.clear()
        with pytest.raises(AssertionError, match=r"^a layer without tallies is kept$"):
            grid.check()

    def test_a_misplaced_tally(self) -> None:
        """A8: a tally filed under another place than its own is found."""
        grid, tally = self.grid()
        grid.layers[0].table[1] = tally
        with pytest.raises(AssertionError):
            grid.check()
        grid.layers[0].places.append(1)
        with pytest.raises(AssertionError):
            grid.check()

    def test_another_tally_than_the_only_one(self) -> None:
        """A8: where there is one tally it is known as the only one, and where there are more none is."""
        grid, tally = self.grid()
        grid.only = None
        with pytest.raises(AssertionError, match=r"^the only tally is not the one there is$"):
            grid.check()
        grid.watch(16, 4)
        grid.check()
        grid.only = tally
        with pytest.raises(AssertionError, match=r"^the only tally is not the one there is$"):
            grid.check()

    def test_a_count_of_nothing(self) -> None:
        """A9: a block that counts no prefix inside it is found."""
        grid, _ = self.grid()
        grid.inside[9] = 0
        with pytest.raises(AssertionError):
            grid.check()

    @pytest.mark.parametrize(
        ("level", "at", "word", "problem"),
        [
            (0, 0, 0, "an empty word is stored"),
            (0, 1, 0, "an empty word is stored"),
            (0, 1, ALL + 1, "an empty word is stored"),
            (0, 1, ALL, "a full word is stored, not said by the bit above it"),
            (0, 2, 1, "a word is stored below a set bit"),
            (0, 16, 1, "a word lies outside the set's width"),
            (1, 1, 1, "a word lies outside the set's width"),
        ],
    )
    def test_broken_bits(self, level: int, at: int, word: int, problem: str) -> None:
        """A3: a word that is empty, too large or full, stored below a set bit, or out of bounds, is found."""
        grid = Grid(12)
        grid.hold(4, 2, clean=True)
        grid.check()
        grid.bits.levels[level][at] = word
        with pytest.raises(AssertionError, match=f"^{problem}$"):
            grid.check()
