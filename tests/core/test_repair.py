"""The repair plan: what the Services say against what the bitmaps say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.address import Address
from cidrella.core.bands import ServiceRange
from cidrella.core.bitmap import Bitmap
from cidrella.core.repair import STRIKES, Finding, RepairPlan, ServiceHolding, Wrong, plan_repair
from tests.core.build import prefix

if TYPE_CHECKING:
    from collections.abc import Iterable

Book = tuple[ServiceRange, Bitmap]


def addresses(*texts: str) -> tuple[Address, ...]:
    return tuple(map(Address.parse, texts))


def book(cidr: str, *texts: str) -> Book:
    """A range with these addresses in its bitmap."""
    services = ServiceRange.of(prefix(cidr))
    bitmap = Bitmap(services.usable)
    for address in addresses(*texts):
        offset = services.offset(address)
        assert offset is not None
        bitmap.add(offset)
    return services, bitmap


def services(**held: str) -> list[ServiceHolding]:
    """Services of one namespace: `web="10.96.0.1 fd00::1"`."""
    return [ServiceHolding(f"shop/{name}", tuple(texts.split())) for name, texts in held.items()]


def apply(books: Iterable[Book], plan: RepairPlan) -> None:
    """Do what the plan says."""
    for services, bitmap in books:
        for address in plan.put_back:
            offset = services.offset(address)
            if offset is not None:
                assert bitmap.add(offset)
        for address in plan.free:
            offset = services.offset(address)
            if offset is not None:
                assert bitmap.discard(offset)


NOTHING = RepairPlan(put_back=(), free=(), strikes={}, findings=())


def test_nothing_to_repair() -> None:
    """B8: bitmaps that say what the Services say are left alone; a Service without addresses says nothing."""
    books = [book("10.96.0.0/24", "10.96.0.1", "10.96.0.10"), book("fd00::/112", "fd00::a")]
    assert plan_repair(books, services(api="10.96.0.1", dns="10.96.0.10 fd00::a", headless=""), {}) == NOTHING
    assert plan_repair([], [], {}) == NOTHING


def test_missing_addresses_are_put_back() -> None:
    """B8: what a Service has and the bitmap has not is put back at once, and told at the Service."""
    books = [book("10.96.0.0/24", "10.96.0.1"), book("fd00::/112")]
    plan = plan_repair(books, services(api="10.96.0.1", dns="10.96.0.10 fd00::a"), {})
    assert plan == RepairPlan(
        put_back=addresses("10.96.0.10", "fd00::a"),
        free=(),
        strikes={},
        findings=(
            Finding("shop/dns", "10.96.0.10", Wrong.NOT_ALLOCATED),
            Finding("shop/dns", "fd00::a", Wrong.NOT_ALLOCATED),
        ),
    )
    apply(books, plan)
    assert plan_repair(books, services(api="10.96.0.1", dns="10.96.0.10 fd00::a"), {}) == NOTHING


def test_freed_with_the_third_strike() -> None:
    """B8: what no Service has is freed in the third round in a row, and not before."""
    books = [book("10.96.0.0/24", "10.96.0.1", "10.96.0.77")]
    strikes: dict[Address, int] = {}
    (leaked,) = addresses("10.96.0.77")
    for round_ in range(1, STRIKES):
        plan = plan_repair(books, services(api="10.96.0.1"), strikes)
        assert plan == RepairPlan(put_back=(), free=(), strikes={leaked: round_}, findings=())
        strikes = dict(plan.strikes)
    plan = plan_repair(books, services(api="10.96.0.1"), strikes)
    assert plan == RepairPlan(put_back=(), free=(leaked,), strikes={}, findings=())
    assert STRIKES == 3
    apply(books, plan)
    assert plan_repair(books, services(api="10.96.0.1"), plan.strikes) == NOTHING


def test_strikes_are_for_rounds_in_a_row() -> None:
    """B8: an address that was seen with a Service, or was out of the bitmap, between begins anew."""
    strikes = dict.fromkeys(addresses("10.96.0.7", "10.96.0.8"), 2)
    plan = plan_repair([book("10.96.0.0/24", "10.96.0.7")], services(web="10.96.0.7"), strikes)
    assert plan == NOTHING


def test_nothing_is_freed_in_two_rounds_that_were_lost() -> None:
    """B8: the plan is a function of what it was given: with the same strikes again it says the same again."""
    books = [book("10.96.0.0/24", "10.96.0.77")]
    strikes = dict.fromkeys(addresses("10.96.0.77"), 1)
    assert plan_repair(books, [], strikes) == plan_repair(books, [], strikes)
    assert strikes == dict.fromkeys(addresses("10.96.0.77"), 1)


def test_what_is_in_use_elsewhere_is_spared() -> None:
    """B8: an address that an object of the cluster's own allocator stands for gets no strike, however long it stays."""
    books = [book("10.96.0.0/24", "10.96.0.7", "10.96.0.8")]
    spared, leaked = addresses("10.96.0.7", "10.96.0.8")
    plan = plan_repair(books, [], {spared: 2, leaked: 2}, {spared})
    assert plan == RepairPlan(put_back=(), free=(leaked,), strikes={}, findings=())


def test_spared_addresses_of_services_are_put_back() -> None:
    """B8: what a Service has belongs into the bitmap, also where the cluster's own allocator gave it."""
    plan = plan_repair([book("10.96.0.0/24")], services(web="10.96.0.7"), {}, {*addresses("10.96.0.7")})
    assert plan.put_back == addresses("10.96.0.7")


def test_two_services_with_one_address() -> None:
    """B8: the first by name has it; each other is told who does, and nothing is revoked."""
    holdings = services(c="10.96.0.7", a="10.96.0.7", b="10.96.0.7 fd00::b")
    books = [book("10.96.0.0/24", "10.96.0.7"), book("fd00::/112", "fd00::b")]
    assert plan_repair(books, holdings, {}) == RepairPlan(
        put_back=(),
        free=(),
        strikes={},
        findings=(
            Finding("shop/b", "10.96.0.7", Wrong.ALREADY_ALLOCATED, "shop/a"),
            Finding("shop/c", "10.96.0.7", Wrong.ALREADY_ALLOCATED, "shop/a"),
        ),
    )


def test_two_services_with_one_missing_address() -> None:
    """B8: it is put back once, for the one that has it."""
    plan = plan_repair([book("10.96.0.0/24")], services(b="10.96.0.7", a="10.96.0.7"), {})
    assert plan.put_back == addresses("10.96.0.7")
    assert plan.findings == (
        Finding("shop/a", "10.96.0.7", Wrong.NOT_ALLOCATED),
        Finding("shop/b", "10.96.0.7", Wrong.ALREADY_ALLOCATED, "shop/a"),
    )


def test_one_service_that_names_its_address_twice() -> None:
    """B8: a Service is no other Service than itself."""
    plan = plan_repair([book("10.96.0.0/24")], services(web="10.96.0.7 10.96.0.7"), {})
    assert plan.put_back == addresses("10.96.0.7")
    assert plan.findings == (Finding("shop/web", "10.96.0.7", Wrong.NOT_ALLOCATED),)


@pytest.mark.parametrize("text", ["10.97.0.1", "10.96.0.0", "10.96.0.255", "fd00::1"])
def test_out_of_range(text: str) -> None:
    """B8: an address that no range has, of a family that none is of as well, is told; that is all."""
    plan = plan_repair([book("10.96.0.0/24")], services(web=text), {})
    assert plan == RepairPlan((), (), {}, (Finding("shop/web", text, Wrong.OUT_OF_RANGE),))


def test_beyond_what_is_kept() -> None:
    """B2, B8: nothing is wrong with an address that Kubernetes gave of the part of a range that is not kept here."""
    books = [book("10.96.0.0/24"), book("fd00::/108")]
    plan = plan_repair(books, services(a="fd00::5:1", b="fd00::10:0", c="fd00::"), {})
    assert plan.put_back == ()
    assert [(each.service, each.wrong) for each in plan.findings] == [
        ("shop/b", Wrong.OUT_OF_RANGE),
        ("shop/c", Wrong.OUT_OF_RANGE),
    ]


@pytest.mark.parametrize("text", ["nonsense", "10.96.0.256", "10.96.0.0/24", "fd00::1%eth0"])
def test_not_valid(text: str) -> None:
    """B8: what is no address is told as it stands in the Service; that is all."""
    plan = plan_repair([book("10.96.0.0/24")], services(web=text), {})
    assert plan == RepairPlan((), (), {}, (Finding("shop/web", text, Wrong.NOT_VALID),))


@pytest.mark.parametrize("text", ["010.096.0.007", "::ffff:10.96.0.7"])
def test_addresses_from_long_ago(text: str) -> None:
    """B8: an address that an older API server let through is held, so that it is not given to another."""
    plan = plan_repair([book("10.96.0.0/24")], services(web=text), {})
    assert plan.put_back == addresses("10.96.0.7")
    assert plan.findings == (Finding("shop/web", text, Wrong.NOT_ALLOCATED),)


def test_several_ranges_of_a_family() -> None:
    """B8: every range is compared with the Services whose addresses it has."""
    books = [book("10.96.0.0/24", "10.96.0.1"), book("10.97.0.0/24", "10.97.0.2", "10.97.0.3")]
    plan = plan_repair(books, services(a="10.96.0.1", b="10.96.0.9", c="10.97.0.2", d="10.97.0.9"), {})
    assert plan.put_back == addresses("10.96.0.9", "10.97.0.9")
    assert plan.strikes == dict.fromkeys(addresses("10.97.0.3"), 1)


def test_the_reasons_of_events() -> None:
    """B8: the reasons are those that Kubernetes' own repair loop gives."""
    assert [wrong.value for wrong in Wrong] == [
        "ClusterIPNotAllocated",
        "ClusterIPAlreadyAllocated",
        "ClusterIPOutOfRange",
        "ClusterIPNotValid",
    ]


LAST_PART = st.integers(1, 14)


@given(st.sets(LAST_PART), st.lists(st.lists(LAST_PART, max_size=2), max_size=6), st.sets(LAST_PART))
def test_three_rounds_make_the_bitmap_right(held: set[int], named: list[list[int]], spared: set[int]) -> None:
    """B8: whatever is wrong, after three rounds the bitmap has what Services have and what is spared, and no more."""
    books = [book("10.96.0.0/28", *(f"10.96.0.{part}" for part in held))]
    holdings = [
        ServiceHolding(f"shop/{at}", tuple(f"10.96.0.{part}" for part in parts)) for at, parts in enumerate(named)
    ]
    elsewhere = {*addresses(*(f"10.96.0.{part}" for part in spared))}
    plan = NOTHING
    for _ in range(STRIKES):
        plan = plan_repair(books, holdings, plan.strikes, elsewhere)
        assert not {*plan.put_back} & {*plan.free}
        apply(books, plan)
    used = {part for parts in named for part in parts}
    assert {offset + 1 for offset in books[0][1]} == used | (held & spared)
    assert plan.strikes == {}
