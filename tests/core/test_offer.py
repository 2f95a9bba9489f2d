"""Lanes and offers: the first that has room, without looking again at what is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.offer import Lane
from tests.core.build import pool, spec
from tests.core.counting import CountingList, Meter

if TYPE_CHECKING:
    from cidrella.core.pool import Pool


def full_pools(count: int) -> list[Pool]:
    pools = [pool(spec(f"p{number}", "10.0.0.0/28 /28")) for number in range(count)]
    for each in pools:
        each.views[0].allocate("somebody")
    return pools


def test_full_pools_are_passed_once() -> None:
    """A4, A9: a thousand full pools are looked at once, and cost every further node of the same kind nothing."""
    meter = Meter()
    room = pool(spec("room", "10.0.0.0/24 /28"))
    lane = Lane(CountingList([*full_pools(1000), room], meter))
    assert lane.first_open(epoch=7) is room
    assert meter.during() <= 1002
    for _ in range(50):
        assert lane.first_open(epoch=7) is room
    assert meter.during() <= 100


def test_a_lane_of_full_pools_says_so_at_once() -> None:
    """A4: when everything is full, the next node hears it without another look at any pool."""
    meter = Meter()
    lane = Lane(CountingList(full_pools(100), meter))
    assert lane.first_open(epoch=0) is None
    assert meter.during() == 100
    assert lane.first_open(epoch=0) is None
    assert meter.during() == 0


def test_after_a_release_a_lane_looks_again() -> None:
    """N4: when any full range has got room, as the epoch tells, the lane starts over from its first pool."""
    pools = full_pools(3)
    lane = Lane(pools)
    assert lane.first_open(epoch=0) is None
    pools[1].views[0].take_back(pools[1].views[0].block_range, "somebody")
    assert lane.first_open(epoch=0) is None
    assert lane.first_open(epoch=1) is pools[1]
    assert lane.first_open(epoch=1) is pools[1]


def test_a_pool_is_open_when_all_its_families_are() -> None:
    """S4: a dual-stack pool of which one family is full is not open, whichever family that is."""
    few_ipv6 = pool(spec("few-ipv6", "10.0.0.0/24 /28", "fd00::/64 /64"))
    few_ipv4 = pool(spec("few-ipv4", "10.0.0.0/28 /28", "fd00::/60 /64"))
    few_ipv6.views[1].allocate("somebody")
    few_ipv4.views[0].allocate("somebody")
    room = pool(spec("room", "10.0.0.0/24 /28", "fd00::/60 /64"))
    assert Lane([few_ipv6, few_ipv4, room]).first_open(epoch=0) is room
