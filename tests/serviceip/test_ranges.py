"""Which ranges Services get addresses from, and which are refused, in words."""

from __future__ import annotations

import pytest

from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix
from cidrella.model.serviceip import SeenServiceCIDR, range_name
from cidrella.serviceip.ranges import Ranges, find_ranges, named_range


def prefixes(*texts: str) -> tuple[Prefix, ...]:
    return tuple(map(Prefix.parse, texts))


def service_cidr(name: str, *cidrs: str, created: str = "2026-01-01T00:00:00Z", going: bool = False) -> SeenServiceCIDR:
    return SeenServiceCIDR(name, f"uid-{name}", created, prefixes(*cidrs), terminating=going)


def known(found: Ranges) -> list[str]:
    """The ranges in use; those that give nothing new in parentheses."""
    return [str(each.range.cidr) if each.gives else f"({each.range.cidr})" for each in found.known]


def test_the_flag_decides() -> None:
    """B9: the ranges of the flag, in its order, whatever the objects say; the first is of the default family."""
    found = find_ranges(
        prefixes("fd00::/112", "10.96.0.0/16"), [service_cidr("kubernetes", "10.96.0.0/12", "fd00::/108")]
    )
    assert known(found) == ["fd00::/112", "10.96.0.0/16"]
    assert found.families == (Family.IPV6, Family.IPV4)
    assert {each.source for each in found.known} == {"--service-cluster-ip-range"}
    assert (found.refused, found.warnings) == ((), ())


def test_a_flag_that_the_cluster_does_not_know() -> None:
    """A range of the flag that no ServiceCIDR covers is used, with a warning; without such objects there is none."""
    flag = prefixes("10.96.0.0/16")
    found = find_ranges(flag, [service_cidr("kubernetes", "10.97.0.0/16")])
    assert known(found) == ["10.96.0.0/16"]
    (warning,) = found.warnings
    assert "no ServiceCIDR covers 10.96.0.0/16" in warning
    assert find_ranges(flag, []).warnings == ()


def test_the_objects_in_order() -> None:
    """Without a flag: the API server's own ServiceCIDR first, then by age, then by name, each in its own order."""
    objects = [
        service_cidr("b", "10.3.0.0/24", created="2026-01-03T00:00:00Z"),
        service_cidr("a", "10.2.0.0/24", created="2026-01-03T00:00:00Z"),
        service_cidr("old", "fd00:1::/120", "10.1.0.0/24", created="2026-01-01T00:00:00Z"),
        service_cidr("kubernetes", "10.0.0.0/24", "fd00::/120", created="2026-01-02T00:00:00Z"),
    ]
    found = find_ranges((), objects)
    assert known(found) == [
        "10.0.0.0/24",
        "fd00::/120",
        "fd00:1::/120",
        "10.1.0.0/24",
        "10.2.0.0/24",
        "10.3.0.0/24",
    ]
    assert found.families == (Family.IPV4, Family.IPV6)
    assert found.known[3].source == "ServiceCIDR old"
    assert find_ranges((), objects[:-1]).families == (Family.IPV6, Family.IPV4)  # the oldest decides then


def test_nothing_is_configured() -> None:
    """No flag and no object: no range, no family, and nothing to complain about here."""
    assert find_ranges((), []) == Ranges()


def test_a_range_on_its_way_out() -> None:
    """A ServiceCIDR that is being deleted is still accounted for, and gives nothing; unless another has its range."""
    going = service_cidr("going", "10.1.0.0/24", created="2026-01-02T00:00:00Z", going=True)
    stays = service_cidr("stays", "10.1.0.0/24", created="2026-01-03T00:00:00Z")
    first = service_cidr("kubernetes", "10.0.0.0/24")
    assert known(find_ranges((), [first, going])) == ["10.0.0.0/24", "(10.1.0.0/24)"]
    both = find_ranges((), [first, going, stays])
    assert known(both) == ["10.0.0.0/24", "10.1.0.0/24"]
    assert both.known[1].source == "ServiceCIDR stays"
    assert known(find_ranges((), [first, stays, going._replace(created="2026-01-09T00:00:00Z")])) == known(both)


def test_ranges_that_overlap() -> None:
    """No address is accounted for twice: of two ranges that share some, the later is refused, and says with which."""
    found = find_ranges(
        (), [service_cidr("kubernetes", "10.0.0.0/24"), service_cidr("wide", "10.0.0.0/16", "fd00::/112")]
    )
    assert known(found) == ["10.0.0.0/24", "fd00::/112"]
    (refused,) = found.refused
    assert str(refused) == (
        "10.0.0.0/16 of ServiceCIDR wide is not used: it overlaps 10.0.0.0/24 of ServiceCIDR kubernetes, "
        "and no address can be in two ranges"
    )


@pytest.mark.parametrize("now", ["10.0.0.0/25", "10.0.0.0/16"])
def test_a_range_that_shrank_or_grew(now: str) -> None:
    """B5: the books of the range as it was stand in the way; the words name the object, and what to do."""
    found = find_ranges(prefixes(now), [], prefixes("10.0.0.0/24", "10.9.0.0/24"))
    assert known(found) == []
    (refused,) = found.refused
    assert "RangeAllocation 10.0.0.0-24" in refused.why
    assert (
        f"if {now} has taken its place, delete that object (kubectl delete rangeallocation 10.0.0.0-24)" in refused.why
    )
    assert "every Service keeps its address" in refused.why
    assert found.families == (Family.IPV4,), "an IPv4 Service is told so, rather than given another family"


def test_the_families_of_a_cluster() -> None:
    """B9: a range of another family that is added later makes no cluster dual-stack."""
    first = service_cidr("kubernetes", "10.0.0.0/24", created="2026-01-05T00:00:00Z")
    six = service_cidr("six", "fd00::/112", created="2026-01-01T00:00:00Z")
    found = find_ranges((), [six, first])
    assert known(found) == ["10.0.0.0/24", "fd00::/112"]
    assert found.families == (Family.IPV4,)
    assert find_ranges((), [six, first._replace(name="later")]).families == (Family.IPV6,)
    assert find_ranges((), [six, first._replace(ranges=())]).families == (Family.IPV6,)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.0.0.9", ""),
        ("10.1.0.9", "10.1.0.0/24 of ServiceCIDR going gives nothing new at present"),
        (
            "10.0.7.9",
            "10.0.0.0/16 of ServiceCIDR wide is not used: it overlaps 10.0.0.0/24 of ServiceCIDR kubernetes, ",
        ),
        ("10.0.0.255", "10.0.0.0/16 of ServiceCIDR wide is not used: "),
        ("10.1.0.255", ""),
        ("10.9.0.1", ""),
        ("fd00::1", ""),
        ("fd00::", ""),
        ("fd00::1:0", "fd00::1:0 is beyond the part of fd00::/108 that is managed, its first 65,535 addresses"),
        ("fd00::10:0", ""),
    ],
)
def test_whose_an_address_is(address: str, why: str) -> None:
    """B2, B4: Kubernetes may give addresses that are not kept here, for several reasons; of no range at all is none."""
    objects = [
        service_cidr("kubernetes", "10.0.0.0/24", "fd00::/108"),
        service_cidr("going", "10.1.0.0/24", going=True),
        service_cidr("wide", "10.0.0.0/16"),
    ]
    found = find_ranges((), objects).unkept(Address.parse(address))
    assert found.startswith(why)
    assert bool(found) is bool(why)


def test_what_the_flag_leaves_out() -> None:
    """B4: a range of a ServiceCIDR that the flag does not name, or names in part, has addresses for Kubernetes."""
    objects = [
        service_cidr("kubernetes", "10.0.0.0/16", "fd00::/112"),
        service_cidr("more", "10.1.0.0/24"),
        service_cidr("going", "10.2.0.0/24", going=True),
    ]
    found = find_ranges(prefixes("10.0.0.0/24", "fd00::/111"), objects)
    assert [str(each.cidr) for each in found.left_out] == ["10.0.0.0/16", "10.1.0.0/24"]
    (whole, half) = (found.unkept(Address.parse(each)) for each in ("10.0.0.5", "10.0.5.0"))
    assert (whole, half[:39]) == ("", "10.0.0.0/16 of ServiceCIDR kubernetes i")
    assert "--service-cluster-ip-range leaves it out" in half
    assert found.refused == ()
    assert find_ranges((), objects).left_out == ()


def test_where_else_there_may_be_room() -> None:
    """B3: a full range is not the end where Kubernetes has more of the family than is kept here."""
    plain = find_ranges((), [service_cidr("kubernetes", "10.0.0.0/24", "fd00::/108")])
    assert (plain.more(Family.IPV4), plain.more(Family.IPV6)) == (
        "",
        "there are addresses beyond the part of fd00::/108 that is managed, its first 65,535 addresses",
    )
    wide = find_ranges((), [service_cidr("kubernetes", "10.0.0.0/24"), service_cidr("wide", "10.0.0.0/16")])
    assert wide.more(Family.IPV4).startswith("10.0.0.0/16 of ServiceCIDR wide is not used")
    going = find_ranges((), [service_cidr("kubernetes", "fd00::/112"), service_cidr("x", "fd01::/100", going=True)])
    assert going.more(Family.IPV6) == ""
    flagged = find_ranges(prefixes("10.0.0.0/24"), [service_cidr("kubernetes", "10.0.0.0/16")])
    assert "leaves it out" in flagged.more(Family.IPV4)


def test_books_that_are_elsewhere() -> None:
    """A stored range that overlaps none, as one that was given up, is in nobody's way; nor is the range's own."""
    found = find_ranges(prefixes("10.0.0.0/24"), [], prefixes("10.0.0.0/24", "10.0.1.0/24", "fd00::/112"))
    assert known(found) == ["10.0.0.0/24"]


def test_what_is_in_use_stays_in_use() -> None:
    """Of two that overlap, the one that has its books goes first; of two that have, the first."""
    objects = [service_cidr("kubernetes", "10.0.0.0/16"), service_cidr("small", "10.0.1.0/24")]
    assert known(find_ranges((), objects)) == ["10.0.0.0/16"]
    assert known(find_ranges((), objects, prefixes("10.0.1.0/24"))) == ["10.0.1.0/24"]
    assert known(find_ranges((), objects, prefixes("10.0.1.0/24", "10.0.0.0/16"))) == ["10.0.0.0/16"]


@pytest.mark.parametrize("cidr", ["10.0.0.0/11", "10.0.0.0/31", "10.0.0.1/32", "fd00::/128"])
def test_a_range_that_cannot_be_used(cidr: str) -> None:
    """B2: too large for one object, or without a usable address: refused, and the others are used."""
    found = find_ranges((), [service_cidr("kubernetes", cidr), service_cidr("good", "10.200.0.0/24")])
    assert known(found) == ["10.200.0.0/24"]
    (refused,) = found.refused
    assert str(refused).startswith(f"{cidr} of ServiceCIDR kubernetes is not used: ")


def test_bands_can_be_switched_off() -> None:
    """B11: without bands the whole range is dynamic."""
    assert find_ranges(prefixes("10.0.0.0/16"), []).known[0].range.static == 256
    assert find_ranges(prefixes("10.0.0.0/16"), [], banded=False).known[0].range.static == 0


def test_what_cannot_be_read_is_told() -> None:
    """A range of a ServiceCIDR that is none is a warning."""
    odd = SeenServiceCIDR("odd", "u", "", prefixes("10.0.0.0/24"), ("'x' has no length",))
    found = find_ranges((), [odd])
    assert known(found) == ["10.0.0.0/24"]
    assert found.warnings == ("ServiceCIDR odd cannot be read: 'x' has no length",)


@pytest.mark.parametrize("cidr", ["10.96.0.0/16", "0.0.0.0/12", "fd00::/112", "2001:db8:1:2:3:4:5:0/112"])
def test_names_lead_back_to_ranges(cidr: str) -> None:
    """B5: the name of a RangeAllocation says which range it is of."""
    assert named_range(range_name(Prefix.parse(cidr))) == Prefix.parse(cidr)


@pytest.mark.parametrize("name", ["", "x", "10.96.0.0", "10.96.0.1-16", "10.96.0.0-016", "10-96-0-0-16-", "fd00---112"])
def test_names_that_are_of_no_range(name: str) -> None:
    """B5: an object that somebody made under another name is none of ours."""
    assert named_range(name) is None
