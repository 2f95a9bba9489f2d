"""Ranges of Services, and who has which address."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cidrella.app.page_services import Seats
from cidrella.model.serviceip import SeenService, SeenServiceCIDR
from tests.core.build import prefix

if TYPE_CHECKING:
    from cidrella.web import api

RANGES = (SeenServiceCIDR("kubernetes", "u", "", (prefix("10.96.0.0/24"), prefix("fd00::/120")), ()),)


def service(name: str, *addresses: str) -> SeenService:
    return SeenService(name, "uid", "ClusterIP", addresses)


def seats(*services: SeenService) -> Seats:
    made = Seats()
    for each in services:
        made.change(None, each)
    made.set_ranges((), RANGES)
    return made


def test_who_sits_where() -> None:
    """B1: each address with its band; what is in no range is shown, too, and rubbish is not."""
    rows, gone = seats(
        service("default/kubernetes", "10.96.0.1", "fd00::1"),
        service("a/web", "10.96.0.200"),
        service("a/old", "192.0.2.1", "rubbish"),
    ).take()
    assert [(row.address, row.range, row.band, row.holder) for row in rows] == [
        ("10.96.0.1", "10.96.0.0/24", "static", "default/kubernetes"),
        ("fd00::1", "fd00::/120", "static", "default/kubernetes"),
        ("10.96.0.200", "10.96.0.0/24", "dynamic", "a/web"),
        ("192.0.2.1", "", "", "a/old"),
    ]
    assert gone == []


def test_bands() -> None:
    """B1, B2: where each begins and ends, and how many of it are taken."""
    found = seats(service("a/a", "10.96.0.1"), service("a/b", "10.96.0.16"), service("a/c", "10.96.0.17"))
    found.take()
    four, six = found.ranges()
    assert (four.range, four.family, four.source, four.message) == (
        "10.96.0.0/24",
        "IPv4",
        "ServiceCIDR kubernetes",
        "",
    )
    assert four.static is not None
    assert four.dynamic is not None
    assert (four.static.first, four.static.last, four.static.total, four.static.used) == (
        "10.96.0.1",
        "10.96.0.16",
        16,
        2,
    )
    assert (four.dynamic.first, four.dynamic.last, four.dynamic.total, four.dynamic.used) == (
        "10.96.0.17",
        "10.96.0.254",
        238,
        1,
    )
    assert six.static is not None
    assert six.static.used == 0


def test_ranges_without_bands() -> None:
    """B2: a small range has one band; one that is too large, or that the flag leaves out, has none, and says why."""
    made = Seats()
    cidrs = [SeenServiceCIDR("small", "u", "", (prefix("10.1.0.0/29"), prefix("10.0.0.0/8")), ())]
    made.set_ranges((), cidrs)
    small, large = sorted(made.ranges(), key=lambda each: each.range, reverse=True)
    assert small.static is None
    assert small.dynamic is not None
    assert (large.static, large.dynamic) == (None, None)
    assert "larger than a /12" in large.message
    made.set_ranges((prefix("10.96.0.0/16"),), RANGES)
    first = made.ranges()[0]
    assert (first.range, first.source, first.message) == ("10.96.0.0/16", "--service-cluster-ip-range", "")


def test_ranges_by_age_and_those_that_go() -> None:
    """B2: of two that overlap, the older one is in use, as for `cidrella services`; one that goes, says so."""
    made = Seats()
    young = SeenServiceCIDR("a-young", "u", "2026-02-01T00:00:00Z", (prefix("10.1.0.0/24"),), (), True)
    old = SeenServiceCIDR("z-old", "u", "2026-01-01T00:00:00Z", (prefix("10.1.0.0/23"),), ("'rubbish' is no CIDR",))
    made.set_ranges((), [young, old])
    first, second = made.ranges()
    assert (first.range, first.message) == ("10.1.0.0/23", "")
    assert "it overlaps 10.1.0.0/23 of ServiceCIDR z-old" in second.message
    assert made.warnings == ("ServiceCIDR z-old cannot be read: 'rubbish' is no CIDR",)
    made.set_ranges((), [young])
    assert made.ranges()[0].message.startswith("it gives nothing new")


def test_an_address_twice() -> None:
    """Whatever an API server let through, a Service has an address once, and leaves it once."""
    odd = service("a/odd", "10.96.0.9", "10.96.0.9", "::ffff:10.96.0.9")
    found = seats(odd)
    assert len(found.take()[0]) == 1
    found.change(odd, None)
    assert found.take() == ([], ["10.96.0.9"])


def test_changes() -> None:
    """Only what changed is told, also of an address that two have for a while."""
    one, two = service("a/one", "10.96.0.9"), service("a/two", "10.96.0.9")
    found = seats(one)
    found.take()
    assert found.take() == ([], [])
    found.change(None, two)
    assert [row.holder for row in found.take()[0]] == ["a/one, a/two"]
    found.change(one, service("a/one", "10.96.0.10"))
    assert [(row.address, row.holder) for row in found.take()[0]] == [("10.96.0.9", "a/two"), ("10.96.0.10", "a/one")]
    found.change(two, None)
    assert found.take() == ([], ["10.96.0.9"])


def test_other_ranges() -> None:
    """Where ranges change, everybody is looked at again, and nobody who went is forgotten."""
    leaving = service("a/leaving", "10.96.0.8")
    found = seats(service("a/one", "10.96.0.9"), leaving)
    found.take()
    found.change(leaving, None)
    found.set_ranges((), ())
    rows, gone = found.take()
    assert [(row.address, row.range, row.band) for row in rows] == [("10.96.0.9", "", "")]
    assert (gone, found.ranges()) == (["10.96.0.8"], [])


def test_a_walk() -> None:
    """After any number of changes it is as if it had been made anew; what was told adds up to that."""
    rng = random.Random(7)
    living: dict[str, SeenService] = {}
    walking = seats()
    shown: dict[str, api.Service] = {}
    for _ in range(500):
        name = f"a/{rng.randrange(20)}"
        old = living.pop(name, None)
        new = None
        if rng.random() < 0.7:
            new = living[name] = service(name, *{f"10.96.0.{rng.randrange(1, 40)}" for _ in range(rng.randrange(3))})
        walking.change(old, new)
        if rng.random() < 0.5:
            rows, gone = walking.take()
            shown |= {row.address: row for row in rows}
            for address in gone:
                shown.pop(address, None)
            fresh = seats(*living.values())
            assert shown == {row.address: row for row in fresh.take()[0]}
            assert walking.ranges() == fresh.ranges()
