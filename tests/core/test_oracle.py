"""The oracle against brute force: a judge must be judged first."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.prefix import Family, Prefix
from tests.core.oracle import BruteSpace, Interval, OracleSpace, merged, share_an_address

if TYPE_CHECKING:
    from tests.core.oracle import BruteView, OracleView, Pair

BASE = {Family.IPV4: 10 << 24, Family.IPV6: 0xFD << 120}
"""Where the small ranges lie: 10.0.0.0 and fd00::. They have 32 addresses, so that each can be looked at."""
SMALL_BITS = 5

families = st.sampled_from(Family)


class Step(NamedTuple):
    """One operation, spelled in numbers that fit any state; what each means is decided when its turn comes."""

    action: str
    offset: int
    host_bits: int
    holder: str


steps = st.builds(
    Step,
    st.sampled_from(["occupy", "occupy wide", "release", "allocate", "allocate many", "take back"]),
    st.integers(0, 2**SMALL_BITS - 1),
    st.integers(0, SMALL_BITS),
    st.sampled_from("abc"),
)


class Twins:
    """The oracle and brute force, given the same orders, asked the same questions."""

    def __init__(self, family: Family, ranges: list[tuple[int, int, int]]) -> None:
        self.family = family
        self.oracle = OracleSpace(family)
        self.brute = BruteSpace(family)
        self.views: list[tuple[OracleView, BruteView]] = []
        for offset, host_bits, block_bits in ranges:
            block_range = self.small(offset, host_bits)
            length = family.bits - min(block_bits, host_bits)
            self.views.append((self.oracle.view(block_range, length), self.brute.view(block_range, length)))
        self.given: list[tuple[int, Prefix, str]] = []

    def small(self, offset: int, host_bits: int) -> Prefix:
        return Prefix.masked(self.family, BASE[self.family] + offset, self.family.bits - host_bits)

    def do(self, step: Step) -> None:
        index = step.offset % len(self.views)
        oracle, brute = self.views[index]
        match step.action:
            case "occupy":
                prefix = self.small(step.offset, step.host_bits)
                assert Counter(self.oracle.occupy(prefix, step.holder)) == Counter(
                    self.brute.occupy(prefix, step.holder)
                )
            case "occupy wide":
                prefix = self.small(step.offset, step.host_bits * 2)
                self.oracle.occupy(prefix, step.holder)
                self.brute.occupy(prefix, step.holder)
            case "release" if self.oracle.pairs:
                self.release(self.oracle.pairs[step.offset % len(self.oracle.pairs)])
            case "allocate":
                block = oracle.allocate(step.holder)
                assert block == brute.allocate(step.holder)
                self.note(index, [] if block is None else [block], step.holder)
            case "allocate many":
                holders = [step.holder] * step.host_bits
                blocks = oracle.allocate_many(holders)
                assert blocks == brute.allocate_many(holders)
                self.note(index, blocks, step.holder)
            case "take back" if self.given:
                index, block, holder = self.given.pop(-1 - step.offset % min(2, len(self.given)))
                self.views[index][0].take_back(block, holder)
                self.views[index][1].take_back(block, holder)

    def note(self, index: int, blocks: list[Prefix], holder: str) -> None:
        self.given.extend((index, block, holder) for block in blocks)

    def release(self, pair: Pair) -> None:
        self.oracle.release(*pair)
        self.brute.release(*pair)
        self.given = [(index, block, holder) for index, block, holder in self.given if (block, holder) != pair]

    def compare(self, asked: Prefix) -> None:
        assert Counter(self.oracle.holdings(asked)) == Counter(self.brute.holdings(asked))
        for oracle, brute in self.views:
            assert (oracle.capacity, oracle.free) == (brute.capacity, brute.free)
            assert len(list(oracle.free_blocks())) == oracle.free


@given(
    families,
    st.lists(st.tuples(st.integers(0, 31), st.integers(1, SMALL_BITS), st.integers(0, 3)), min_size=1, max_size=3),
    st.lists(steps, max_size=25),
)
def test_oracle_agrees_with_brute_force(family: Family, ranges: list[tuple[int, int, int]], orders: list[Step]) -> None:
    """A1, A2, A5, A8: interval arithmetic gives the blocks, holdings and counts that looking at each address gives."""
    twins = Twins(family, ranges)
    for step in orders:
        twins.do(step)
        twins.compare(twins.small(step.offset, step.host_bits))


@given(st.integers(0, 31), st.integers(0, 5), st.integers(0, 31), st.integers(0, 5))
def test_overlap_is_a_shared_address(one: int, one_bits: int, other: int, other_bits: int) -> None:
    """A1: two prefixes overlap for the oracle exactly when the sets of their addresses do."""
    a, b = Prefix.masked(Family.IPV4, one, 32 - one_bits), Prefix.masked(Family.IPV4, other, 32 - other_bits)
    common = {*range(a.network, a.last + 1)} & {*range(b.network, b.last + 1)}
    assert share_an_address(a, b) == bool(common)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=6))
def test_merging_keeps_the_numbers(lengths: list[tuple[int, int]]) -> None:
    """A8: merged intervals hold the same numbers, in order, with a gap between any two."""
    intervals = [Interval(start, start + length) for start, length in lengths]
    result = merged(intervals)
    assert {number for interval in result for number in range(*interval)} == {
        number for interval in intervals for number in range(*interval)
    }
    assert all(before.end < after.start for before, after in pairwise(result))


@pytest.mark.parametrize("family", Family)
def test_oracle_by_example(family: Family) -> None:
    """A2, A5, A8: four blocks, one half held by somebody else, are given lowest first, wrapping, until none is left."""
    twins = Twins(family, [(0, 4, 2)])
    view = twins.oracle.view(twins.small(0, 4), family.bits - 2)
    first, second, third, fourth = (twins.small(offset, 2) for offset in (0, 4, 8, 12))
    twins.oracle.occupy(twins.small(6, 1), "found")
    assert (view.capacity, view.free) == (4, 3)
    assert [view.allocate("a"), view.allocate("b")] == [first, third]
    twins.oracle.release(first, "a")
    assert [view.allocate("c"), view.allocate("d"), view.allocate("e")] == [fourth, first, None]
    view.take_back(first, "d")
    assert view.allocate("f") == first
    twins.oracle.release(twins.small(6, 1), "found")
    assert view.allocate("g") == second


def test_oracle_counts_what_cannot_be_enumerated() -> None:
    """A3, A8: an IPv6 /16 that hands out /120s has 2**104 blocks, and a held /32 in it takes 2**88 of them."""
    space = OracleSpace(Family.IPV6)
    view = space.view(Prefix.parse("fd00::/16"), 120)
    space.occupy(Prefix.parse("fd00::/32"), "found")
    assert (view.capacity, view.free) == (2**104, 2**104 - 2**88)
    assert view.allocate("a") == Prefix.parse("fd00:1::/120")
