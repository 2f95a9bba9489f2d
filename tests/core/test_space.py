"""The address space rule by rule, and what it costs."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core import grid as grid_module
from cidrella.core.prefix import Family, Prefix
from cidrella.core.space import AddressSpace, Holding, NotHeldError, _Several
from tests.core.build import prefix
from tests.core.counting import CountedBits, CountingDict, Meter

if TYPE_CHECKING:
    from cidrella.core.view import View


def view_of(cidr: str, length: int) -> View:
    block_range = prefix(cidr)
    return AddressSpace(block_range.family).view(block_range, length)


def given_to(view: View, *holders: str) -> list[str]:
    return [str(view.allocate(holder)) for holder in holders]


def take(view: View, count: int) -> list[Prefix]:
    return view.allocate_many([f"n{number}" for number in range(count)])


# --- What is given (A1, A2, A3) ---


def test_a_block_of_another_size_is_stepped_around() -> None:
    """A1, A6, pitfall 2: views of different sizes on one range step around what the other gave, larger or smaller."""
    space = AddressSpace(Family.IPV4)
    small, large = space.view(prefix("10.0.0.0/24"), 27), space.view(prefix("10.0.0.0/24"), 26)
    assert given_to(small, "a") == ["10.0.0.0/27"]
    assert given_to(large, "b") == ["10.0.0.64/26"]
    assert given_to(small, "c", "d") == ["10.0.0.32/27", "10.0.0.128/27"]
    assert given_to(large, "e", "f") == ["10.0.0.192/26", "None"]
    assert (small.free, large.free) == (1, 0)


@given(st.integers(0, 6), st.integers(0, 8), st.lists(st.integers(0, 255), max_size=6))
def test_blocks_are_aligned_inside_and_apart(range_bits: int, block_bits: int, held: list[int]) -> None:
    """A1, A2: every block is aligned to its size, lies in its range, and shares no address with what was held."""
    space = AddressSpace(Family.IPV4)
    for number, address in enumerate(held):
        space.occupy(Prefix.masked(Family.IPV4, address, 32 - number), f"found-{number}")
    found = [holding.prefix for holding in space]
    block_range = Prefix.masked(Family.IPV4, 0, 32 - min(8, range_bits + block_bits))
    view = space.view(block_range, 32 - min(8, block_bits))
    given_blocks = take(view, view.free)
    for number, block in enumerate(given_blocks):
        assert block.network % block.size == 0
        assert block_range.network <= block.network <= block.last <= block_range.last
        for other in found + given_blocks[:number]:
            assert block.last < other.network or other.last < block.network


def test_ipv6_has_no_limit_of_its_own() -> None:
    """A3, pitfall 9: a /16 of IPv6 hands out /120s, 2 to the 104th of them, and counts them exactly."""
    view = view_of("fd00::/16", 120)
    assert view.capacity == view.free == 1 << 104
    assert given_to(view, "a", "b") == ["fd00::/120", "fd00::100/120"]
    assert view.free == (1 << 104) - 2


def test_the_whole_of_a_family_can_be_a_range() -> None:
    """A3: ranges of length 0 and blocks of a single address work, in both families."""
    assert given_to(view_of("0.0.0.0/0", 32), "a", "b") == ["0.0.0.0/32", "0.0.0.1/32"]
    assert given_to(view_of("::/0", 128), "a", "b") == ["::/128", "::1/128"]
    assert given_to(view_of("::/0", 0), "a", "b") == ["::/0", "None"]
    assert given_to(view_of("255.255.255.254/31", 32), "a", "b", "c") == [
        "255.255.255.254/32",
        "255.255.255.255/32",
        "None",
    ]


def test_views_are_of_the_spaces_family_and_hold_a_block() -> None:
    """A2, S7: a view of the other family, of blocks larger than the range, or of too many bits is a mistake."""
    space = AddressSpace(Family.IPV4)
    with pytest.raises(AssertionError):
        space.view(prefix("fd00::/16"), 24)
    with pytest.raises(AssertionError):
        space.view(prefix("10.0.0.0/16"), 15)
    with pytest.raises(AssertionError):
        space.view(prefix("10.0.0.0/16"), 33)
    assert space.view(prefix("10.0.0.0/16"), 16).capacity == 1
    assert space.view(prefix("10.0.0.0/16"), 32).capacity == 65536


def test_a_view_says_what_it_is() -> None:
    """A2: a view knows its family, its range and the length of its blocks."""
    view = view_of("fd00::/48", 64)
    assert (view.family, str(view.block_range), view.length) == (Family.IPV6, "fd00::/48", 64)


# --- The cursor (A5) ---


def test_a_fresh_pool_gives_its_lowest_block_first() -> None:
    """A5: the first block of a fresh pool is its lowest, the next the one after it."""
    assert given_to(view_of("10.0.0.128/25", 27), "a", "b") == ["10.0.0.128/27", "10.0.0.160/27"]


def test_released_blocks_are_reused_last() -> None:
    """A5: the search goes on after the last block given, and comes back to a released one when it has wrapped."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/30"), 32)
    assert given_to(view, "a", "b") == ["10.0.0.0/32", "10.0.0.1/32"]
    space.release(prefix("10.0.0.0/32"), "a")
    assert given_to(view, "c", "d", "e", "f") == ["10.0.0.2/32", "10.0.0.3/32", "10.0.0.0/32", "None"]


def test_the_search_wraps_to_just_before_the_cursor() -> None:
    """A5: wrapping covers everything up to the last block given, and that one too when it is released."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/30"), 32)
    assert given_to(view, "a", "b", "c", "d")[3] == "10.0.0.3/32"
    space.release(prefix("10.0.0.1/32"), "b")
    assert given_to(view, "e") == ["10.0.0.1/32"]
    space.release(prefix("10.0.0.1/32"), "e")
    assert given_to(view, "f") == ["10.0.0.1/32"]


def test_many_at_once_wrap_too() -> None:
    """A5: many blocks at once are those that one call after the other would give, across the end of the range."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/29"), 32)
    take(view, 6)
    for number in (0, 1, 3):
        space.release(Prefix(Family.IPV4, (10 << 24) + number, 32), f"n{number}")
    assert [str(block) for block in take(view, 9)] == [f"10.0.0.{number}/32" for number in (6, 7, 0, 1, 3)]
    assert given_to(view, "x") == ["None"]


def test_many_for_nobody() -> None:
    """A5: nothing asked for is nothing given, and the cursor stays."""
    view = view_of("10.0.0.0/29", 32)
    assert view.allocate_many([]) == []
    assert given_to(view, "a") == ["10.0.0.0/32"]


def test_each_view_has_its_own_cursor() -> None:
    """A5: the cursor is one per pool: what another pool over the same range gives does not move it."""
    space = AddressSpace(Family.IPV4)
    one, two = space.view(prefix("10.0.0.0/29"), 32), space.view(prefix("10.0.0.0/29"), 32)
    assert given_to(one, "a", "b") == ["10.0.0.0/32", "10.0.0.1/32"]
    space.release(prefix("10.0.0.0/32"), "a")
    assert given_to(two, "c") == ["10.0.0.0/32"]
    assert given_to(one, "d") == ["10.0.0.2/32"]


def test_a_reservation_taken_back_does_not_move_the_cursor() -> None:
    """A5: the block of a reservation that was taken back is the next one to be given, at the end of the range too."""
    view = view_of("10.0.0.0/30", 32)
    for wanted in ("10.0.0.0/32", "10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"):
        assert given_to(view, "a") == [wanted]
        view.take_back(prefix(wanted), "a")
        assert given_to(view, "b") == [wanted]


def test_an_earlier_reservation_taken_back_does_not_move_the_cursor() -> None:
    """A5: when others have followed, a block taken back waits for the search to come round."""
    view = view_of("10.0.0.0/30", 32)
    assert given_to(view, "a", "b") == ["10.0.0.0/32", "10.0.0.1/32"]
    view.take_back(prefix("10.0.0.0/32"), "a")
    assert given_to(view, "c", "d", "e") == ["10.0.0.2/32", "10.0.0.3/32", "10.0.0.0/32"]
    view.take_back(prefix("10.0.0.3/32"), "d")
    view.take_back(prefix("10.0.0.2/32"), "c")
    assert given_to(view, "f", "g") == ["10.0.0.2/32", "10.0.0.3/32"]


def test_only_the_last_reservation_taken_back_moves_the_search_back() -> None:
    """A5: the cursor goes back for the block that was given last, not for an earlier one, whatever is free by then."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/30"), 32)
    assert given_to(view, "a", "b") == ["10.0.0.0/32", "10.0.0.1/32"]
    space.release(prefix("10.0.0.1/32"), "b")
    view.take_back(prefix("10.0.0.0/32"), "a")
    assert given_to(view, "c") == ["10.0.0.2/32"]


def test_the_cursor_goes_back_to_where_it_stood() -> None:
    """A5: a reservation that stepped over held blocks, and was taken back, leaves the search before those blocks."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/30"), 32)
    space.occupy(prefix("10.0.0.0/31"), "found")
    assert given_to(view, "a") == ["10.0.0.2/32"]
    view.take_back(prefix("10.0.0.2/32"), "a")
    space.release(prefix("10.0.0.0/31"), "found")
    assert given_to(view, "b") == ["10.0.0.0/32"]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("many", [False, True])
def test_the_last_of_many_taken_back_is_the_next(count: int, many: bool) -> None:
    """A5: the last of blocks given at once, taken back, is the next to be given, though earlier ones are free too."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/28"), 32)
    take(view, 4)
    space.occupy(prefix("10.0.0.4/31"), "found")
    blocks = take(view, count) if many else [view.allocate(f"n{number}") for number in range(count)]
    last = blocks[-1]
    assert last == Prefix(Family.IPV4, (10 << 24) + 5 + count, 32)
    for number, block in enumerate(blocks[:-1]):
        assert block is not None
        space.release(block, f"n{number}")
    view.take_back(last, f"n{count - 1}")
    space.release(prefix("10.0.0.4/31"), "found")
    assert given_to(view, "a") == ["10.0.0.4/32" if count == 1 else str(last)]


def test_after_many_to_the_end_of_the_range_the_search_wraps() -> None:
    """A2, A5: when many at once have reached the range's end, the next search begins at its start, not beyond."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/29"), 32)
    blocks = take(view, 8)
    space.release(blocks[3], "n3")
    assert given_to(view, "a", "b") == ["10.0.0.3/32", "None"]


@pytest.mark.parametrize("before", [0, 100, 255, 256])
def test_many_at_once_step_around_what_is_held_far_ahead(before: int) -> None:
    """A1: many blocks at once, over the bounds of words of 256, go around every block that is held in between."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/21"), 32)
    held = [300, 511, 512, 1300]
    for number in held:
        space.occupy(Prefix(Family.IPV4, (10 << 24) + number, 32), "found")
    given_blocks = take(view, before) + view.allocate_many([f"m{number}" for number in range(1400 - before)])
    wanted = [number for number in range(1404) if number not in held]
    assert [block.network - (10 << 24) for block in given_blocks] == wanted
    space.check()


# --- Counts (A8) ---


def test_free_counts_what_anything_takes_away() -> None:
    """A8: capacity is the aligned blocks; free is less every block that anything held touches, however it lies."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/24"), 28)
    counts = [(view.capacity, view.free)]
    for text in ("10.0.0.0/28", "10.0.0.16/30", "10.0.0.20/32", "10.0.0.64/26", "10.0.0.64/28", "9.0.0.0/8"):
        space.occupy(prefix(text), "x")
        counts.append((view.capacity, view.free))
    assert counts == [(16, 16), (16, 15), (16, 14), (16, 14), (16, 10), (16, 10), (16, 10)]
    space.occupy(prefix("0.0.0.0/0"), "y")
    assert (view.capacity, view.free) == (16, 0)
    space.release(prefix("0.0.0.0/0"), "y")
    assert (view.capacity, view.free) == (16, 10)


def test_overlapping_views_each_count_what_they_share() -> None:
    """A8: a block given from one pool is missing from every pool that it lies in, and from no other."""
    space = AddressSpace(Family.IPV4)
    whole, half, other = (space.view(prefix(text), 28) for text in ("10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25"))
    given_to(half, "a")
    assert (whole.free, half.free, other.free) == (15, 7, 8)
    take(other, 3)
    assert (whole.free, half.free, other.free) == (12, 7, 5)


def test_views_alike_share_their_count_until_the_last_goes() -> None:
    """A8: of two pools with one range, closing one leaves the other's count as it was."""
    space = AddressSpace(Family.IPV4)
    one, two = space.view(prefix("10.0.0.0/24"), 28), space.view(prefix("10.0.0.0/24"), 28)
    given_to(one, "a")
    one.close()
    given_to(two, "b")
    assert two.free == 14
    space.check()
    two.close()
    space.check()
    assert space.view(prefix("10.0.0.0/24"), 28).free == 14


def test_a_view_that_is_closed_gives_nothing() -> None:
    """S6: when its pool has gone a view has nothing free and gives nothing, one by one or many at once."""
    space = AddressSpace(Family.IPV4)
    view, other = space.view(prefix("10.0.0.0/24"), 28), space.view(prefix("10.0.0.0/24"), 28)
    view.close()
    assert view.free == 0
    assert view.allocate("a") is None
    assert view.allocate_many(["a", "b"]) == []
    assert str(view.block_range) == "10.0.0.0/24"
    assert other.free == 16


# --- Who holds what (N6) ---


def test_holdings_are_around_at_and_inside() -> None:
    """N6: asked about a prefix, the space names all who hold any of its addresses and nobody else."""
    space = AddressSpace(Family.IPV4)
    for text, holder in [("10.0.0.0/16", "a"), ("10.0.1.0/24", "b"), ("10.0.1.0/24", "c"), ("10.0.1.9/32", "d")]:
        space.occupy(prefix(text), holder)
    space.occupy(prefix("10.0.2.0/24"), "e")
    around = {Holding(prefix("10.0.0.0/16"), "a")}
    at = {Holding(prefix("10.0.1.0/24"), "b"), Holding(prefix("10.0.1.0/24"), "c")}
    assert set(space.holdings(prefix("10.0.1.0/24"))) == around | at | {Holding(prefix("10.0.1.9/32"), "d")}
    assert set(space.holdings(prefix("10.0.1.128/25"))) == around | at
    assert set(space.holdings(prefix("10.0.3.0/24"))) == around
    assert list(space.holdings(prefix("10.1.0.0/16"))) == []
    assert len(space) == 4


@pytest.mark.parametrize("length", [27, 28, 29, 30, 31])
def test_holdings_inside_are_found_among_many(length: int) -> None:
    """N6: what lies inside a prefix is found among many held ones, whichever way of looking is the shorter."""
    space = AddressSpace(Family.IPV4)
    single = [Prefix(Family.IPV4, (10 << 24) + number, 32) for number in range(100) if number % 3]
    for block in single:
        space.occupy(block, "a")
    for ordinal in range(1 << (length - 25)):
        asked = Prefix(Family.IPV4, (10 << 24) + (ordinal << (32 - length)), length)
        inside = [Holding(block, "a") for block in single if asked.network <= block.network <= asked.last]
        assert sorted(space.holdings(asked), key=lambda each: each.prefix) == inside
        space.occupy(asked, "b")
        space.check()
    assert len(space) == len(single) + (1 << (length - 25))


def test_what_is_nested_inside_stays_held() -> None:
    """N6, A8: when a prefix goes that had others inside it, which had others inside them, all of those stay touched."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/16"), 30)
    for text in ("10.0.0.0/28", "10.0.0.0/20", "10.0.0.0/16"):
        space.occupy(prefix(text), "a")
    space.release(prefix("10.0.0.0/16"), "a")
    space.check()
    assert view.free == (1 << 14) - (1 << 10)
    space.release(prefix("10.0.0.0/20"), "a")
    space.check()
    assert view.free == (1 << 14) - 4


def test_holders_are_kept_side_by_side() -> None:
    """N6, pitfall 20: whoever occupies what others hold stands beside them, once, however often it is said."""
    space = AddressSpace(Family.IPV4)
    for holder in ("a", "a", "b", "b", "c", "a"):
        space.occupy(prefix("10.0.0.0/24"), holder)
    space.occupy(prefix("10.0.0.0/25"), "a")
    assert [each.holder for each in space.holdings(prefix("10.0.0.0/24"))] == ["a", "b", "c", "a"]
    space.release(prefix("10.0.0.0/24"), "a")
    space.release(prefix("10.0.0.0/24"), "b")
    assert set(space) == {Holding(prefix("10.0.0.0/24"), "c"), Holding(prefix("10.0.0.0/25"), "a")}
    space.check()


def test_an_address_is_free_when_the_last_holder_lets_go() -> None:
    """N6: what two hold is free when both have let go, whether they hold the same prefix or one inside the other."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/24"), 24)
    for text, holder in [("10.0.0.0/24", "a"), ("10.0.0.0/24", "b"), ("10.0.0.0/24", "c"), ("10.0.0.0/30", "a")]:
        space.occupy(prefix(text), holder)
    for text, holder in [("10.0.0.0/24", "b"), ("10.0.0.0/24", "a"), ("10.0.0.0/24", "c")]:
        space.release(prefix(text), holder)
        assert view.free == 0
        space.check()
    space.release(prefix("10.0.0.0/30"), "a")
    assert view.free == 1


@pytest.mark.parametrize(
    ("text", "holder"), [("10.0.0.0/24", "b"), ("10.0.0.0/25", "a"), ("10.0.1.0/24", "a"), ("10.0.1.0/24", None)]
)
def test_releasing_what_is_not_held_is_an_error(text: str, holder: str | None) -> None:
    """N6: a release of what the holder does not hold says so and changes nothing."""
    space = AddressSpace(Family.IPV4)
    space.occupy(prefix("10.0.0.0/24"), "a")
    with pytest.raises(NotHeldError, match=f"^{text} is not held by {holder}$"):
        space.release(prefix(text), holder)
    assert list(space) == [Holding(prefix("10.0.0.0/24"), "a")]
    assert space.reopened == 0


def test_room_in_what_was_full_is_counted() -> None:
    """N4: the count moves when a full view gets room, and not before, so that full stays full till then."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/24"), 28)
    space.occupy(prefix("10.0.0.0/24"), "a")
    space.occupy(prefix("10.0.0.0/24"), "b")
    space.release(prefix("10.0.0.0/24"), "a")
    assert space.reopened == 0
    space.release(prefix("10.0.0.0/24"), "b")
    assert space.reopened == 1
    block = view.allocate("c")
    assert block is not None
    view.take_back(block, "c")
    assert space.reopened == 1
    space.occupy(prefix("10.0.0.0/25"), "a")
    space.occupy(prefix("10.0.0.128/25"), "b")
    space.release(prefix("10.0.0.0/25"), "a")
    assert space.reopened == 2
    space.release(prefix("10.0.0.128/25"), "b")
    assert space.reopened == 2


def test_every_range_that_got_room_is_counted() -> None:
    """N4: one release that gives room to a range around it, and to smaller ones inside it, counts each of them once."""
    space = AddressSpace(Family.IPV4)
    for cidr in ("10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/27"):
        space.view(prefix(cidr), 28)
    space.occupy(prefix("10.0.0.0/24"), "a")
    space.release(prefix("10.0.0.0/24"), "a")
    assert space.reopened == 3


def test_room_is_noticed_in_views_of_every_size() -> None:
    """N4, A1: what is released may make room for larger blocks and for many smaller ones: each view reopened counts."""
    space = AddressSpace(Family.IPV4)
    views = [space.view(prefix("10.0.0.0/28"), length) for length in (28, 30, 32)]
    space.occupy(prefix("10.0.0.0/28"), "a")
    space.occupy(prefix("10.0.0.0/32"), "b")
    space.release(prefix("10.0.0.0/28"), "a")
    assert [view.free for view in views] == [0, 3, 15]
    before = space.reopened
    assert before >= 2
    space.release(prefix("10.0.0.0/32"), "b")
    assert [view.free for view in views] == [1, 4, 16]
    assert space.reopened > before


# --- What it costs (A3, A4, A9) ---


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Count the words that are looked at in all grids made from here on."""
    monkeypatch.setattr(grid_module, "SparseBits", CountedBits)
    CountedBits.made.clear()
    CountedBits.meter.during()
    return CountedBits.meter


def words_stored() -> int:
    return sum(bits.words() for bits in CountedBits.made)


LEVELS = 16
"""An IPv6 grid has at most so many levels of words, each of which is looked at a few times at most."""


@pytest.mark.parametrize(("cidr", "length"), [("10.0.0.0/10", 24), ("fd00::/16", 120), ("fd00::/48", 64)])
def test_a_block_costs_the_same_however_many_are_held(meter: Meter, cidr: str, length: int) -> None:
    """A4, A9, pitfall 19: a block costs a few look-ups, no more with 10,000 blocks held than with a hundred."""
    view = view_of(cidr, length)
    worst = []
    for _ in range(3):
        looks = []
        for number in range(100):
            meter.during()
            view.allocate(f"n{number}")
            looks.append(meter.during())
        worst.append(max(looks))
        take(view, 5000)
    assert max(worst) <= 2 * LEVELS
    assert worst[2] <= worst[0] + 4


def test_the_block_after_the_last_costs_one_look(meter: Meter) -> None:
    """A4: as long as nothing is in the way, the next block is at the cursor, and not searched for."""
    view = view_of("10.0.0.0/16", 24)
    view.allocate("first")
    meter.during()
    for number in range(200):
        view.allocate(f"n{number}")
    assert meter.during() == 200


def test_a_count_that_is_wrong_is_found_out() -> None:
    """A8: a view that is told of room where there is none says so, and gives nothing."""
    view = view_of("10.0.0.0/28", 28)
    view.allocate("a")
    view._tally.free += 1
    with pytest.raises(AssertionError, match=r"^a tally says free where no block is$"):
        view.allocate("b")


def test_a_block_costs_the_same_however_full_the_pool_is(meter: Meter) -> None:
    """A4: to find the only free block among 16,384, from anywhere, takes a few look-ups."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/10"), 24)
    blocks = take(view, 16384)
    for at in (0, 1, 255, 256, 5000, 16383, 8192):
        space.release(blocks[at], f"n{at}")
        meter.during()
        assert view.allocate(f"n{at}") == blocks[at]
        assert meter.during() <= 12


def test_a_full_pool_says_so_without_searching(meter: Meter) -> None:
    """A4: a full pool answers from its count: not one word is looked at, whatever its size."""
    space = AddressSpace(Family.IPV6)
    view = space.view(prefix("fd00::/16"), 120)
    space.occupy(prefix("fd00::/17"), "a")
    space.occupy(prefix("fd00:8000::/17"), "b")
    meter.during()
    assert view.allocate("c") is None
    assert view.allocate_many(["c", "d"]) == []
    assert view.free == 0
    assert meter.during() == 0


def test_many_at_once_look_at_each_word_a_few_times(meter: Meter) -> None:
    """A9: ten thousand blocks at once look at words, of 256 blocks each, and not at blocks."""
    view = view_of("10.0.0.0/8", 24)
    meter.during()
    take(view, 10_000)
    assert meter.during() <= 10 * (10_000 // 256 + 1)


def test_memory_follows_what_is_held(meter: Meter) -> None:
    """A3, A9: words are stored for what is held, not for what could be; full runs of words cost nothing at all."""
    space = AddressSpace(Family.IPV6)
    view = space.view(prefix("fd00::/16"), 120)
    assert words_stored() == 0
    space.occupy(prefix("fd00::/17"), "half of it")
    assert words_stored() == 1
    blocks = take(view, 256)
    assert words_stored() == 2
    take(view, 256 * 256 - 256)
    assert words_stored() == 2
    space.occupy(prefix("fd00:c000::/120"), "far away")
    assert words_stored() == 3
    for number, block in enumerate(blocks):
        if number % 2:
            space.release(block, f"n{number}")
    assert words_stored() == 4
    assert meter.during() < 20_000


def test_overlapping_pools_cost_one_look_each_size(meter: Meter) -> None:
    """A4: hundreds of ranges of ten sizes over one another cost a block one look for each size, not for each range."""
    space = AddressSpace(Family.IPV4)
    views = [
        space.view(Prefix(Family.IPV4, (10 << 24) + (number << (32 - length)), length), 24)
        for length in range(8, 18)
        for number in range(min(100, 1 << (length - 8)))
    ]
    layers = views[0]._grid.layers
    layers[:] = [layer._replace(table=CountingDict(layer.table, meter)) for layer in layers]
    assert len(views) > 400
    assert len(layers) == 10
    meter.during()
    views[0].allocate("a")
    assert meter.during() <= 3 * len(layers)
    assert [view.free for view in views if view.block_range.contains(prefix("10.0.0.0/24"))] == [
        (1 << (24 - length)) - 1 for length in range(8, 18)
    ]
    views[0].take_back(prefix("10.0.0.0/24"), "a")
    assert meter.during() <= 3 * len(layers)


def test_no_text_is_read_or_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A4, pitfall 19: blocks are numbers from end to end: giving and releasing reads and writes no text."""
    space = AddressSpace(Family.IPV4)
    view = space.view(prefix("10.0.0.0/16"), 24)
    larger = space.view(prefix("10.0.0.0/16"), 23)

    def refuse(*_: object) -> str:
        raise AssertionError("text was read or written")

    for name in ("parse", "parse_lenient", "__str__"):
        monkeypatch.setattr(Prefix, name, refuse)
    block = view.allocate("a")
    assert block is not None
    assert len(larger.allocate_many(["b", "c"])) == 2
    view.take_back(block, "a")
    space.occupy(block, "d")
    assert len(list(space.holdings(block))) == 1
    space.release(block, "d")


class TestCheck:
    """A space that is broken says so: the check that other tests rely on is not blind."""

    def space(self) -> AddressSpace:
        space = AddressSpace(Family.IPV4)
        space.view(prefix("10.0.0.0/24"), 28)
        for text, holder in [("10.0.0.0/24", "a"), ("10.0.0.0/24", "b"), ("10.0.0.0/28", "c")]:
            space.occupy(prefix(text), holder)
        space.check()
        return space

    def test_a_drifted_count_of_nested_prefixes(self) -> None:
        """N6: a count of what lies inside a prefix that is too high, too low or of nothing is found."""
        for wrong in (2, 0):
            space = self.space()
            space._inner[24, 10 << 16] = wrong
            with pytest.raises(AssertionError, match=r"^a count of nested prefixes has drifted$"):
                space.check()

    def test_a_grid_that_does_not_show_what_is_held(self) -> None:
        """A1: a touched block that nobody holds is found."""
        space = self.space()
        space._grids[28].bits.add(5)
        with pytest.raises(AssertionError, match=r"^a grid does not show what is held$"):
            space.check()

    def test_a_miscounted_block(self) -> None:
        """A1: a block with another number of prefixes inside than are held there is found."""
        space = self.space()
        space._grids[28].inside[5] = 1
        with pytest.raises(AssertionError):
            space.check()

    def test_an_impossible_place(self) -> None:
        """A2: a prefix outside of the family's space, above or below, is found."""
        for place, is_sound in ((1 << 24, False), ((1 << 24) - 1, True), (0, True), (-1, False)):
            space = AddressSpace(Family.IPV4)
            space._held[24] = {place: "d"}
            with nullcontext() if is_sound else pytest.raises(AssertionError):
                space.check()

    def test_a_single_holder_kept_as_several(self) -> None:
        """N6: several holders are more than one."""
        space = self.space()
        space._held[24][10 << 16] = _Several("a")
        with pytest.raises(AssertionError):
            space.check()


@pytest.mark.parametrize("collecting", [True, False])
def test_a_batch_leaves_the_collector_as_it_was(collecting: bool) -> None:
    """A4: a batch is spared the garbage collector, which afterwards is on or off as it was before."""
    view = AddressSpace(Family.IPV4).view(prefix("10.0.0.0/24"), 28)
    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        view.allocate_many(["a", "b"])
        assert gc.isenabled() is collecting
        with pytest.raises(TypeError):
            view.allocate_many(5)  # type: ignore[arg-type]
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if was else gc.disable)()


def test_what_lies_inside_is_found_by_place() -> None:
    """N6: of many small prefixes, those inside a larger one, and no others, are found by looking where they may be."""
    space = AddressSpace(Family.IPV4)
    small = [Prefix(Family.IPV4, (10 << 24) + (number << 4), 28) for number in range(64)]
    for number, each in enumerate(small):
        if number % 3:
            space.occupy(each, f"node-{number}")
    expected = {each for number, each in enumerate(small) if number % 3 and 16 <= number < 32}
    assert {each.prefix for each in space.holdings(prefix("10.0.1.0/24"))} == expected
    space.occupy(prefix("10.0.1.0/24"), "large")
    space.view(prefix("10.0.0.0/22"), 28)
    space.release(prefix("10.0.1.0/24"), "large")
    space.check()
    assert {each.prefix for each in space.holdings(prefix("10.0.1.0/24"))} == expected
