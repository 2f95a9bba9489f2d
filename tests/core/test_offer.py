"""Lanes and offers: the first that has room, without looking again at what is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.offer import Lane, Offer, offers
from cidrella.core.prefix import Family
from tests.core.build import part, pool, spec
from tests.core.counting import CountingList, Meter

if TYPE_CHECKING:
    from cidrella.core.pool import Part, Pool


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


def test_an_offer_takes_one_of_each_lane_or_nothing() -> None:
    """S4, K3: what an offer gives is a view of each family with its pool, of the first pools that have room."""
    dual = pool(spec("dual", "10.0.0.0/24 /28", "fd00::/60 /64"))
    alone = Offer((Lane([dual]),), ()).open(epoch=0)
    assert alone == (dual.views, (dual, dual))
    full, four, six = full_pools(1)[0], pool(part("four", "10.0.0.0/24 /28")), pool(part("six", "fd00::/60 /64"))
    assert Offer((Lane([full, four]), Lane([six])), ()).open(epoch=0) == (four.views + six.views, (four, six))
    assert Offer((Lane([full]), Lane([six])), ()).open(epoch=0) is None
    assert Offer((Lane([six]), Lane([full])), ()).open(epoch=0) is None


def test_an_offer_that_has_room_is_not_put_together_again() -> None:
    """A4, A9: as long as the pools that were found have room, no lane is looked at, until something is released."""
    meter = Meter()
    pools = [*full_pools(100), pool(spec("two", "10.0.0.0/27 /28")), pool(spec("more", "10.0.0.0/24 /28"))]
    offer = Offer((Lane(CountingList(pools, meter)),), ())
    gift = offer.open(epoch=3)
    assert gift is not None
    assert meter.during() <= 102
    gift.views[0].allocate("a")
    assert offer.open(epoch=3) is gift
    assert meter.during() == 0
    gift.views[0].allocate("b")
    after = offer.open(epoch=3)
    assert after is not None
    assert after.pools == (pools[-1],)
    pools[7].views[0].take_back(pools[7].views[0].block_range, "somebody")
    again = offer.open(epoch=4)
    assert again is not None
    assert again.pools == (pools[7],)


def test_pools_that_were_tried_are_counted_once() -> None:
    """K3: a pool that several offers have in common was looked at once, up to the first that has room."""
    full, six = full_pools(3), pool(part("six", "fd00::/60 /64"))
    four, more = pool(part("four", "10.0.0.0/24 /28")), pool(part("more", "10.0.0.0/24 /28"))
    matching: dict[Part, Lane] = {Family.IPV4: Lane([full[0], four, more]), Family.IPV6: Lane([full[1]])}
    defaults: dict[Part, Lane] = {Family.IPV4: Lane([more]), Family.IPV6: Lane([full[2], six])}
    made = offers(matching, defaults)
    assert len(made) == 4
    gifts = [offer.open(epoch=0) for offer in made[:2]]
    assert [gift and gift.pools for gift in gifts] == [None, (four, six)]
    assert made[1].tried() == 2 + 1 + 2
    assert [lane.exhausted for lane in made[1].lanes_so_far] == [False, True, False]
