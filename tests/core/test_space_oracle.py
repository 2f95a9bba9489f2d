"""The address space against its oracle, step by step.

Both are given the same orders by `Duo`, which compares everything they can be asked after each. Two drivers:

- `walk` is a long random walk from a fixed seed, the same in every run. Its terrain is small, so that things collide,
  and it counts the situations that it reached: the last of its tests insists that none of them was missed.
- `SpaceMachine` is hypothesis', which finds its own way and shrinks what it finds.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from cidrella.core.prefix import Family, Prefix
from cidrella.core.space import AddressSpace, NotHeldError
from tests.core.oracle import OracleSpace, share_an_address

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cidrella.core.view import View
    from tests.core.oracle import OracleView, Pair


class Open:
    """A view that is open on both sides, and what it gave that is still held."""

    def __init__(self, real: View, oracle: OracleView) -> None:
        self.real = real
        self.oracle = oracle
        self.given: list[Pair] = []
        self.free = oracle.free
        """At the last comparison."""


class Duo:
    """The real space and the oracle. Every order is carried out on both, and their answers are compared."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.real = AddressSpace(family)
        self.oracle = OracleSpace(family)
        self.views: list[Open] = []
        self.closed: list[tuple[Prefix, int]] = []
        self.epoch = 0
        """How often a full view had got room in the real space at the last comparison."""
        self.reached: Counter[str] = Counter()

    def reach(self, situation: str, when: object = True) -> None:
        self.reached[f"{self.family}: {situation}"] += bool(when)

    def open(self, block_range: Prefix, length: int) -> None:
        view = Open(self.real.view(block_range, length), self.oracle.view(block_range, length))
        self.reach("a view made over what is held", 0 < view.real.free < view.real.capacity)
        self.reach("a view made again", (block_range, length) in self.closed)
        self.reach("a view of a size that another hands out", any(length == other.real.length for other in self.views))
        self.reach(
            "a view made inside another's range",
            any(inside(block_range, other.oracle.block_range) for other in self.views),
        )
        self.views.append(view)

    def close(self, view: Open) -> None:
        view.real.close()
        self.views.remove(view)
        self.closed.append((view.oracle.block_range, view.oracle.length))
        last = all(other.real.length != view.real.length for other in self.views)
        self.reach("the last view of a size closed over what is held", last and self.oracle.pairs)

    def occupy(self, prefix: Prefix, holder: Hashable) -> None:
        self.reach("the same said twice", (prefix, holder) in self.oracle.pairs)
        expected = self.oracle.occupy(prefix, holder)
        others = [each for each in self.real.holdings(prefix) if each.holder != holder]
        assert Counter(others) == Counter(expected)
        self.real.occupy(prefix, holder)
        lengths = {other.length for other, _ in expected}
        self.reach("two holders of one prefix", prefix.length in lengths)
        self.reach("a prefix put around smaller ones", lengths and prefix.length < max(lengths))
        self.reach("a prefix put inside a larger one", lengths and prefix.length > min(lengths))
        self.reach(
            "a prefix put over whole ranges", any(inside(view.oracle.block_range, prefix) for view in self.views)
        )

    def release(self, prefix: Prefix, holder: Hashable) -> None:
        full = [view for view in self.views if not view.real.free]
        self.oracle.release(prefix, holder)
        self.real.release(prefix, holder)
        self.forget(prefix, holder)
        self.note_release(prefix)
        self.reach("a full pool that has room again", any(view.real.free for view in full))

    def note_release(self, prefix: Prefix) -> None:
        left = {other.length for other, _ in self.oracle.holdings(prefix)}
        if prefix.length in left:
            self.reach("a release that leaves another holder")
        elif left:
            self.reach("a release around what stays held", prefix.length < max(left))
            self.reach("a release under what stays held", prefix.length > min(left))
            self.reach("a release between what stays held", min(left) < prefix.length < max(left))

    def forget(self, prefix: Prefix, holder: Hashable) -> None:
        for view in self.views:
            view.given = [pair for pair in view.given if pair != (prefix, holder)]

    def release_what_is_not_held(self, prefix: Prefix, holder: Hashable) -> None:
        if (prefix, holder) not in self.oracle.pairs:
            with pytest.raises(NotHeldError):
                self.real.release(prefix, holder)
            self.reach("a release of what is not held")

    def allocate(self, view: Open, holder: Hashable) -> None:
        cursor = view.oracle.cursor
        expected = view.oracle.allocate(holder)
        assert view.real.allocate(holder) == expected
        self.note_given(view, cursor, [] if expected is None else [expected], [holder])

    def allocate_many(self, view: Open, holders: Sequence[Hashable]) -> None:
        cursor = view.oracle.cursor
        expected = view.oracle.allocate_many(holders)
        assert view.real.allocate_many(holders) == expected
        self.reach("many asked for and fewer given", 0 < len(expected) < len(holders))
        self.reach("more given at once than a word has bits", len(expected) > 256)
        self.note_given(view, cursor, expected, holders)

    def note_given(self, view: Open, cursor: int, blocks: list[Prefix], holders: Sequence[Hashable]) -> None:
        self.reach("a full pool", len(blocks) < len(holders))
        self.reach("a pool filled to the last block", blocks and not view.real.free)
        self.reach("a search that wrapped", any(view.oracle.number(block) < cursor for block in blocks))
        self.reach("a search that stepped over something", blocks and view.oracle.number(blocks[0]) > cursor)
        view.given.extend(zip(blocks, holders, strict=False))
        for block in blocks:
            assert view.oracle.block_range.network <= block.network <= block.last <= view.oracle.block_range.last
        for block in blocks[:1] + blocks[-1:]:
            assert len(self.oracle.holdings(block)) == 1, "what was given overlaps what was held"

    def take_back(self, view: Open, pair: Pair) -> None:
        cursor = view.oracle.cursor
        view.oracle.take_back(*pair)
        view.real.take_back(*pair)
        self.forget(*pair)
        self.reach("the last block given, taken back", view.oracle.cursor != cursor)
        self.reach("an earlier block taken back", view.oracle.cursor == cursor and view.oracle.capacity > 1)
        self.reach("the last block of a range taken back", cursor == 0 and view.oracle.cursor)

    def drain(self, view: Open) -> None:
        """What is reported as free can be allocated, and nothing more (A8)."""
        for number in range(view.oracle.free):
            self.allocate(view, f"drain-{number}")
        assert view.real.free == 0
        assert view.real.allocate("one too many") is None

    def compare(self, asked: Prefix) -> None:
        self.real.check()
        assert Counter(self.real) == Counter(self.oracle.pairs)
        assert len(self.real) == len({prefix for prefix, _ in self.oracle.pairs})
        assert Counter(self.real.holdings(asked)) == Counter(self.oracle.holdings(asked))
        for view in self.views:
            real, oracle = view.real, view.oracle
            assert (real.block_range, real.length) == (oracle.block_range, oracle.length)
            assert (real.capacity, real.free) == (oracle.capacity, oracle.free), f"{real.block_range} /{real.length}"
            assert view.free or not real.free or self.real.reopened > self.epoch, (
                "room appeared, and no release was counted"
            )
            view.free = real.free
        self.epoch = self.real.reopened


def inside(inner: Prefix, outer: Prefix) -> bool:
    """Whether a prefix is a part of another, and not all of it."""
    return share_an_address(inner, outer) and inner.length > outer.length


# --- Long walks from fixed seeds ---


class Terrain(NamedTuple):
    """Where a walk takes place, and how far it goes."""

    text: str
    """The prefix that everything but the huge prefixes lies in."""
    longest: int
    """The smallest prefixes and blocks."""
    spread: int
    """How many bits longer than its range a view's blocks are, at most."""
    steps: int
    held: int = 40
    """How much may be held before more is released than taken."""
    many: int = 6
    """The most blocks that are asked for at once."""
    dense: bool = False
    """Whether ranges are large and found prefixes small, so that many blocks fit between."""


CRAMPED_STEPS, WIDE_STEPS, DENSE_STEPS = 1500, 800, 80
TERRAINS = {
    1: Terrain("10.0.0.0/26", 32, 4, CRAMPED_STEPS),
    2: Terrain("255.255.255.224/27", 32, 5, CRAMPED_STEPS, held=30),
    3: Terrain("172.16.0.0/20", 32, 4, CRAMPED_STEPS, held=50),
    4: Terrain("10.0.0.0/8", 32, 24, WIDE_STEPS, held=50, many=20),
    5: Terrain("10.1.0.0/21", 32, 11, DENSE_STEPS, held=800, many=700, dense=True),
    6: Terrain("::/122", 128, 4, CRAMPED_STEPS),
    7: Terrain("fd00::ffe0/123", 128, 5, CRAMPED_STEPS, held=30),
    8: Terrain("fd00::/16", 120, 104, WIDE_STEPS, held=50, many=20),
    9: Terrain("fd12:3456:789a::/48", 64, 6, CRAMPED_STEPS, held=50),
    10: Terrain("ffff::/16", 27, 11, DENSE_STEPS, held=800, many=700, dense=True),
}
"""By seed: cramped ones in which everything collides, wide ones with sizes far apart, and dense ones with more blocks
than several words of `SparseBits` have. Some lie at the lower and the upper end of all addresses."""


class Walk:
    """A random walk of a `Duo` over its terrain."""

    holders = ("node-a", "node-b", "node-c", "node-d", ("service", "kubernetes"), ("service", "second"))

    def __init__(self, seed: int, terrain: Terrain) -> None:
        self.rng = random.Random(seed)
        self.terrain = terrain
        self.whole = Prefix.parse(terrain.text)
        self.shortest = self.whole.length + (6 if terrain.dense else 2)
        """Of the prefixes that are found in the terrain."""
        self.duo = Duo(self.whole.family)
        self.hot = [self.rng.randrange(self.whole.size) for _ in range(4)]
        """Offsets that most prefixes are drawn around, so that they nest in wide terrain too."""
        self.growing = True
        self.actions = {
            self.occupy: 14,
            self.occupy_again: 6,
            self.occupy_huge: 2,
            self.release: 10,
            self.release_given: 10,
            self.release_huge: 8,
            self.release_nothing: 1,
            self.allocate: 30,
            self.allocate_many: 30 if terrain.dense else 6,
            self.take_back: 8,
            self.open: 6,
            self.close: 4,
        }

    def go(self) -> Counter[str]:
        self.occupy()
        self.open()
        for _ in range(self.terrain.steps):
            self.step()
            self.duo.compare(self.prefix(self.whole.length, self.terrain.longest))
        self.drain()
        return self.duo.reached

    def step(self) -> None:
        held = len(self.duo.oracle.pairs)
        if held > self.terrain.held or held < 3 or self.rng.random() < 0.02:
            self.growing = held <= self.terrain.held // 2
        if not self.growing and self.rng.random() < 0.5:
            for _ in range(1 + held // (8 if self.terrain.dense else 30)):
                self.release()
        else:
            actions, weights = zip(*self.actions.items(), strict=True)
            self.rng.choices(actions, weights)[0]()

    def prefix(self, shortest: int, longest: int) -> Prefix:
        length = self.rng.randint(shortest, longest)
        offset = self.rng.randrange(self.whole.size)
        if self.rng.random() < 0.7:
            near = self.rng.randrange(4) << (self.whole.family.bits - length)
            offset = (self.rng.choice(self.hot) ^ near) % self.whole.size
        return Prefix.masked(self.whole.family, self.whole.network + offset, length)

    def holder(self) -> Hashable:
        return self.rng.choice(self.holders)

    def occupy(self) -> None:
        self.duo.occupy(self.prefix(self.shortest, self.terrain.longest), self.holder())

    def occupy_again(self) -> None:
        if self.duo.oracle.pairs:
            prefix, holder = self.rng.choice(self.duo.oracle.pairs)
            self.duo.occupy(prefix, holder if self.rng.random() < 0.3 else self.holder())

    def occupy_huge(self) -> None:
        length = self.rng.choice([0, 4, 8, self.whole.length, self.whole.length + 1])
        self.duo.occupy(Prefix.masked(self.whole.family, self.whole.network, length), self.holder())

    def release(self) -> None:
        if self.duo.oracle.pairs:
            self.duo.release(*self.rng.choice(self.duo.oracle.pairs))

    def release_given(self) -> None:
        """Make room in a pool behind its cursor."""
        given = [pair for view in self.duo.views for pair in view.given]
        if given:
            self.duo.release(*self.rng.choice(given))

    def release_huge(self) -> None:
        """Release everything that covers most of the terrain, so that there is room again."""
        for pair in [pair for pair in self.duo.oracle.pairs if pair[0].length <= self.whole.length + 1]:
            self.duo.release(*pair)

    def release_nothing(self) -> None:
        self.duo.release_what_is_not_held(self.prefix(self.shortest, self.terrain.longest), self.holder())

    def allocate(self) -> None:
        if self.duo.views:
            view = self.rng.choice(self.duo.views)
            for _ in range(self.rng.randint(1, 3)):
                self.duo.allocate(view, self.holder())

    def allocate_many(self) -> None:
        if self.duo.views:
            view, count = self.rng.choice(self.duo.views), self.rng.randint(0, self.terrain.many)
            if self.terrain.dense and self.rng.random() < 0.7:
                view, count = max(self.duo.views, key=lambda one: one.oracle.free), self.terrain.many - count // 2
            self.duo.allocate_many(view, [self.holder() for _ in range(count)])

    def take_back(self) -> None:
        views = [view for view in self.duo.views if view.given]
        if views:
            view = self.rng.choice(views)
            self.duo.take_back(view, view.given[-1] if self.rng.random() < 0.7 else self.rng.choice(view.given))

    def open(self) -> None:
        if len(self.duo.views) >= (4 if self.terrain.dense else 7):
            return
        if self.duo.closed and self.rng.random() < 0.5:
            self.duo.open(*self.rng.choice(self.duo.closed))
            return
        dense = self.terrain.dense
        block_range = self.prefix(self.whole.length, self.whole.length + 2 if dense else self.terrain.longest - 2)
        longest = min(self.terrain.longest, block_range.length + self.terrain.spread)
        self.duo.open(block_range, self.rng.randint(longest - 2 if dense else block_range.length, longest))

    def close(self) -> None:
        if len(self.duo.views) > 2 or (self.duo.views and self.rng.random() < 0.3):
            self.duo.close(self.rng.choice(self.duo.views))

    def drain(self) -> None:
        for view in self.duo.views:
            if view.oracle.free <= 64:
                self.duo.drain(view)
                self.duo.compare(view.oracle.block_range)


@cache
def walk(seed: int) -> Counter[str]:
    """Walk from a seed, comparing at each step; the situations that were reached.

    Without coverage, which makes it three times as slow: other tests cover every branch. The marker `no_cover` of
    pytest-cov has no effect in a worker of pytest-xdist.
    """
    tracing = sys.gettrace()
    sys.settrace(None)
    try:
        return Walk(seed, TERRAINS[seed]).go()
    finally:
        sys.settrace(tracing)


SITUATIONS = [
    "a full pool",
    "a full pool that has room again",
    "a pool filled to the last block",
    "a prefix put around smaller ones",
    "a prefix put inside a larger one",
    "a prefix put over whole ranges",
    "a release around what stays held",
    "a release between what stays held",
    "a release of what is not held",
    "a release that leaves another holder",
    "a release under what stays held",
    "a search that stepped over something",
    "a search that wrapped",
    "a view made again",
    "a view made inside another's range",
    "a view made over what is held",
    "a view of a size that another hands out",
    "an earlier block taken back",
    "many asked for and fewer given",
    "more given at once than a word has bits",
    "the last block given, taken back",
    "the last block of a range taken back",
    "the last view of a size closed over what is held",
    "the same said twice",
    "two holders of one prefix",
]


@pytest.mark.parametrize("seed", TERRAINS)
def test_walk(seed: int) -> None:
    """A1, A2, A3, A5, A7, A8: on a long random walk, blocks, counts and holdings are the oracle's at every step."""
    walk(seed)


@pytest.mark.parametrize("family", Family)
def test_walks_reach_every_situation(family: Family) -> None:
    """A1, A5, A8: the walks prove something, because together they reach each situation in each family, repeatedly."""
    reached: Counter[str] = sum((walk(seed) for seed in TERRAINS), Counter())
    rare = {situation: reached[f"{family}: {situation}"] for situation in SITUATIONS}
    assert {situation: times for situation, times in rare.items() if times < 3} == {}
    assert {key.partition(": ")[2] for key in reached} == set(SITUATIONS), "a situation is counted that nobody asks for"


# --- Hypothesis finds its own way ---


class SpaceMachine(RuleBasedStateMachine):
    """A few prefixes of up to 64 units, at a scale of its own: a unit is one address, or a range of 2**8 or 2**100."""

    scales = st.sampled_from([("10.0.0.0/26", 0), ("10.0.0.0/18", 8), ("fd00::/122", 0), ("fd00::/22", 100)])
    offsets = st.integers(0, 63)
    host_bits = st.integers(0, 6)
    holders = st.sampled_from("abcd")
    picks = st.integers(0, 99)

    @initialize(scale=scales)
    def start(self, scale: tuple[str, int]) -> None:
        self.whole = Prefix.parse(scale[0])
        self.scale = scale[1]
        self.duo = Duo(self.whole.family)

    def prefix(self, offset: int, host_bits: int) -> Prefix:
        address = self.whole.network + (offset << self.scale)
        return Prefix.masked(self.whole.family, address, self.whole.family.bits - self.scale - host_bits)

    @rule(offset=offsets, host_bits=host_bits, more=st.integers(0, 8))
    def open(self, offset: int, host_bits: int, more: int) -> None:
        """Blocks may be smaller than a unit, so that held units are runs of them."""
        block_range = self.prefix(offset, host_bits)
        if len(self.duo.views) < 6:
            self.duo.open(block_range, min(block_range.length + more, self.whole.family.bits))
        self.duo.compare(block_range)

    @precondition(lambda self: self.duo.views)
    @rule(which=picks)
    def close(self, which: int) -> None:
        self.duo.close(self.view(which))
        self.duo.compare(self.whole)

    @rule(offset=offsets, host_bits=host_bits, holder=holders)
    def occupy(self, offset: int, host_bits: int, holder: str) -> None:
        self.duo.occupy(self.prefix(offset, host_bits), holder)
        self.duo.compare(self.prefix(offset, 1))

    @rule(length=st.integers(0, 16), holder=holders)
    def occupy_huge(self, length: int, holder: str) -> None:
        self.duo.occupy(Prefix.masked(self.whole.family, self.whole.network, length), holder)
        self.duo.compare(self.whole)

    @precondition(lambda self: self.duo.oracle.pairs)
    @rule(which=picks)
    def release(self, which: int) -> None:
        pair = self.duo.oracle.pairs[which % len(self.duo.oracle.pairs)]
        self.duo.release(*pair)
        self.duo.compare(pair[0])

    @rule(offset=offsets, host_bits=host_bits, holder=holders)
    def release_what_is_not_held(self, offset: int, host_bits: int, holder: str) -> None:
        self.duo.release_what_is_not_held(self.prefix(offset, host_bits), holder)
        self.duo.compare(self.whole)

    @precondition(lambda self: self.duo.views)
    @rule(which=picks, holder=holders)
    def allocate(self, which: int, holder: str) -> None:
        self.duo.allocate(self.view(which), holder)
        self.duo.compare(self.whole)

    @precondition(lambda self: self.duo.views)
    @rule(which=picks, wanted=st.lists(holders, max_size=20))
    def allocate_many(self, which: int, wanted: list[str]) -> None:
        self.duo.allocate_many(self.view(which), wanted)
        self.duo.compare(self.whole)

    @precondition(lambda self: any(view.given for view in self.duo.views))
    @rule(which=picks, back=st.integers(1, 3))
    def take_back(self, which: int, back: int) -> None:
        views = [view for view in self.duo.views if view.given]
        view = views[which % len(views)]
        self.duo.take_back(view, view.given[-min(back, len(view.given))])
        self.duo.compare(self.whole)

    def view(self, which: int) -> Open:
        return self.duo.views[which % len(self.duo.views)]


def test_any_sequence_of_steps() -> None:
    """A1, A2, A3, A5, A8: whatever hypothesis tries, blocks, counts and holdings are the oracle's at every step."""
    run_state_machine_as_test(SpaceMachine)


# --- By example ---


@pytest.mark.parametrize("family", Family)
def test_the_whole_family_is_a_range_like_any_other(family: Family) -> None:
    """A2, A3, A8: a view of the /0, at the coarsest and the finest block size, counts and gives as the oracle does."""
    everything = Prefix(family, 0, 0)
    duo = Duo(family)
    for length in (0, 1, 8, family.bits):
        duo.open(everything, length)
    finest, coarsest = duo.views[-1], duo.views[0]
    duo.allocate(finest, "first")
    duo.occupy(Prefix.masked(family, (1 << family.bits) - 1, family.bits), "last")
    duo.compare(everything)
    assert [view.real.free for view in duo.views] == [0, 0, 254, 2**family.bits - 2]
    duo.allocate(coarsest, "none")
    duo.occupy(everything, "all")
    duo.compare(everything)
    assert [view.real.free for view in duo.views] == [0, 0, 0, 0]
    for prefix, holder in [*duo.oracle.pairs]:
        duo.release(prefix, holder)
        duo.compare(everything)
    duo.allocate(coarsest, "whole")
    duo.compare(everything)


@pytest.mark.parametrize("family", Family)
def test_taken_back_block_is_given_next(family: Family) -> None:
    """A5: a block that is taken back at once is the next one given, also where it was the last one of the range."""
    block_range = Prefix.masked(family, 10 << 24, family.bits - 2)
    space = AddressSpace(family)
    view = space.view(block_range, family.bits)
    for offset in range(4):
        block = view.allocate("refused")
        assert block == Prefix(family, block_range.network + offset, family.bits)
        view.take_back(block, "refused")
        assert view.allocate("accepted") == block


def test_reservation_taken_back_does_not_move_the_cursor() -> None:
    """A5: a fresh pool whose only reservation was taken back is fresh still, and gives its lowest block first."""
    space = AddressSpace(Family.IPV4)
    view = space.view(Prefix.parse("10.0.0.0/28"), 30)
    lowest = Prefix.parse("10.0.0.0/30")
    space.occupy(lowest, "found")
    refused = view.allocate("refused")
    assert refused is not None
    view.take_back(refused, "refused")
    space.release(lowest, "found")
    assert view.allocate("next") == lowest


def test_block_of_a_former_view_does_not_move_the_cursor() -> None:
    """A5: a pool removed and added again is fresh, also when what its predecessor had reserved is taken back."""
    space = AddressSpace(Family.IPV4)
    former = space.view(Prefix.parse("10.0.0.0/28"), 30)
    reserved = former.allocate_many("abcd")[3]
    former.close()
    view = space.view(Prefix.parse("10.0.0.0/28"), 30)
    view.take_back(reserved, "d")
    space.release(Prefix.parse("10.0.0.0/30"), "a")
    assert view.allocate("next") == Prefix.parse("10.0.0.0/30")


def test_block_of_another_view_does_not_move_the_cursor() -> None:
    """A2, A5: taking back what another view gave moves no cursor, least of all out of the view's own range."""
    space = AddressSpace(Family.IPV4)
    other = space.view(Prefix.parse("10.0.0.0/24"), 28)
    view = space.view(Prefix.parse("10.0.1.0/24"), 28)
    blocks = other.allocate_many(range(16))
    view.take_back(blocks[15], 15)
    assert view.allocate("next") == Prefix.parse("10.0.1.0/28")
