"""Ranges of Service addresses: their bands, what of them is usable, and how offsets stand for addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.address import Address
from cidrella.core.bands import Band, RangeError, ServiceRange, band_size
from cidrella.core.prefix import Family, Prefix
from tests.core.build import prefix

# The range, how many addresses of it are usable, its static band, its dynamic band.
WORKED_EXAMPLES = [
    ("192.168.0.0/16", 65534, "192.168.0.1 - 192.168.1.0", "192.168.1.1 - 192.168.255.254"),
    ("192.168.0.0/22", 1022, "192.168.0.1 - 192.168.0.64", "192.168.0.65 - 192.168.3.254"),
    ("192.168.0.0/26", 62, "192.168.0.1 - 192.168.0.16", "192.168.0.17 - 192.168.0.62"),
]
BANDED = [
    ("10.96.0.0/12", 1048574, "10.96.0.1 - 10.96.1.0", "10.96.1.1 - 10.111.255.254"),
    ("10.96.0.0/20", 4094, "10.96.0.1 - 10.96.1.0", "10.96.1.1 - 10.96.15.254"),
    ("10.96.0.0/21", 2046, "10.96.0.1 - 10.96.0.128", "10.96.0.129 - 10.96.7.254"),
    ("10.96.0.0/23", 510, "10.96.0.1 - 10.96.0.32", "10.96.0.33 - 10.96.1.254"),
    ("10.96.0.0/24", 254, "10.96.0.1 - 10.96.0.16", "10.96.0.17 - 10.96.0.254"),
    ("10.96.0.0/27", 30, "10.96.0.1 - 10.96.0.16", "10.96.0.17 - 10.96.0.30"),
    ("fd00::/64", 65535, "fd00::1 - fd00::100", "fd00::101 - fd00::ffff"),
    ("fd00::/108", 65535, "fd00::1 - fd00::100", "fd00::101 - fd00::ffff"),
    ("fd00::/112", 65535, "fd00::1 - fd00::100", "fd00::101 - fd00::ffff"),
    ("fd00::/113", 32767, "fd00::1 - fd00::100", "fd00::101 - fd00::7fff"),
    ("fd00::/117", 2047, "fd00::1 - fd00::80", "fd00::81 - fd00::7ff"),
    ("fd00::/120", 255, "fd00::1 - fd00::10", "fd00::11 - fd00::ff"),
    ("fd00::/123", 31, "fd00::1 - fd00::10", "fd00::11 - fd00::1f"),
]
UNBANDED = [
    ("10.96.0.0/28", 14, "10.96.0.1 - 10.96.0.14"),
    ("10.96.0.0/29", 6, "10.96.0.1 - 10.96.0.6"),
    ("10.96.0.0/30", 2, "10.96.0.1 - 10.96.0.2"),
    ("fd00::/124", 15, "fd00::1 - fd00::f"),
    ("fd00::/126", 3, "fd00::1 - fd00::3"),
    ("fd00::/127", 1, "fd00::1 - fd00::1"),
]


def ends(services: ServiceRange, band: Band) -> str:
    """The first and the last address of a band."""
    first, end = services.bounds(band)
    return f"{services.address(first)} - {services.address(end - 1)}"


@pytest.mark.parametrize(("cidr", "usable", "static", "dynamic"), [*WORKED_EXAMPLES, *BANDED])
def test_bands(cidr: str, usable: int, static: str, dynamic: str) -> None:
    """B1, B2: the static band is the first part of a range, the dynamic band the rest of what is usable.

    The first three are the worked examples of kep-3070.
    """
    services = ServiceRange.of(prefix(cidr))
    assert (services.cidr, services.usable) == (prefix(cidr), usable)
    assert (ends(services, Band.STATIC), ends(services, Band.DYNAMIC)) == (static, dynamic)


@pytest.mark.parametrize(("cidr", "usable", "whole"), UNBANDED)
def test_small_ranges_have_no_band(cidr: str, usable: int, whole: str) -> None:
    """B1, B2: a range of 16 or fewer addresses is drawn from as a whole."""
    services = ServiceRange.of(prefix(cidr))
    assert (services.usable, services.static) == (usable, 0)
    assert services.bounds(Band.STATIC) == (0, 0)
    assert ends(services, Band.DYNAMIC) == whole


@pytest.mark.parametrize(("cidr", "usable"), [row[:2] for row in [*WORKED_EXAMPLES, *BANDED]])
def test_the_band_turned_off(cidr: str, usable: int) -> None:
    """B11: without the band the whole range is the dynamic one, of as many addresses as before."""
    services = ServiceRange.of(prefix(cidr), banded=False)
    assert services.bounds(Band.STATIC) == (0, 0)
    assert services.bounds(Band.DYNAMIC) == (0, usable)
    assert services.band(0) is services.band(usable - 1) is Band.DYNAMIC


@pytest.mark.parametrize(
    ("size", "band"),
    [
        (1, 0),
        (15, 0),
        (16, 0),
        (17, 16),
        (32, 16),
        (256, 16),
        (271, 16),
        (272, 17),
        (4095, 255),
        (4096, 256),
        (2**64, 256),
    ],
)
def test_the_size_of_the_band(size: int, band: int) -> None:
    """B1: one sixteenth of all addresses, but 16 at least and 256 at most; of 16 addresses, none."""
    assert band_size(size) == band


@pytest.mark.parametrize("cidr", ["10.0.0.0/11", "10.0.0.0/8", "0.0.0.0/0"])
def test_too_large_a_range(cidr: str) -> None:
    """B5: the bitmap of an IPv4 range beyond a /12 has no place in one object."""
    with pytest.raises(RangeError, match=r"^is larger than a /12: its bitmap does not fit in one object"):
        ServiceRange.of(prefix(cidr))


@pytest.mark.parametrize("cidr", ["10.0.0.0/31", "10.0.0.0/32", "fd00::/128"])
def test_nothing_usable(cidr: str) -> None:
    """B2: without the first, and in IPv4 the last, nothing is left of the smallest ranges."""
    with pytest.raises(RangeError, match=r"^has no usable address: "):
        ServiceRange.of(prefix(cidr))


@pytest.mark.parametrize(
    ("cidr", "address", "offset"),
    [
        ("10.96.0.0/24", "10.96.0.1", 0),
        ("10.96.0.0/24", "10.96.0.10", 9),
        ("10.96.0.0/24", "10.96.0.254", 253),
        ("10.96.0.0/24", "10.96.0.0", None),
        ("10.96.0.0/24", "10.96.0.255", None),
        ("10.96.0.0/24", "10.96.1.1", None),
        ("10.96.0.0/24", "10.95.255.255", None),
        ("10.96.0.0/24", "::a60:1", None),
        ("fd00::/64", "fd00::1", 0),
        ("fd00::/64", "fd00::ffff", 65534),
        ("fd00::/64", "fd00::", None),
        ("fd00::/64", "fd00::1:0", None),
        ("fd00::/120", "fd00::ff", 254),
        ("::a60:0/120", "10.96.0.1", None),
    ],
)
def test_offsets(cidr: str, address: str, offset: int | None) -> None:
    """B2, B5: offset 0 is the network address + 1; what is not usable, or of the other family, has none."""
    assert ServiceRange.of(prefix(cidr)).offset(Address.parse(address)) == offset


@pytest.mark.parametrize(
    ("cidr", "address", "beyond"),
    [
        ("fd00::/108", "fd00::ffff", False),
        ("fd00::/108", "fd00::1:0", True),
        ("fd00::/108", "fd00::f:ffff", True),
        ("fd00::/108", "fd00::10:0", False),
        ("fd00::/108", "fd00::", False),
        ("fd00::/108", "10.96.0.1", False),
        ("fd00::/112", "fd00::ffff", False),
        ("fd00::/112", "fd00::1:0", False),
        ("10.96.0.0/24", "10.96.0.255", False),
        ("10.96.0.0/24", "10.96.0.0", False),
    ],
)
def test_beyond_what_is_used(cidr: str, address: str, beyond: bool) -> None:
    """B2: of a large IPv6 range others may give what is beyond; what is never given is not beyond."""
    assert ServiceRange.of(prefix(cidr)).beyond(Address.parse(address)) is beyond


@pytest.mark.parametrize(
    ("cidr", "in_part"), [("fd00::/111", True), ("fd00::/112", False), ("fd00::/120", False), ("10.96.0.0/12", False)]
)
def test_used_in_part(cidr: str, in_part: bool) -> None:
    """B2: only an IPv6 range larger than a /112 has addresses beyond what is used."""
    assert ServiceRange.of(prefix(cidr)).in_part is in_part


@given(st.sampled_from(Family), st.integers(0, 2**128 - 1), st.data())
def test_offsets_and_bands_cover_the_range(family: Family, number: int, data: st.DataObject) -> None:
    """B1, B5: every offset has one address and one band, and the bands lie side by side."""
    length = data.draw(st.integers(12, 30) if family is Family.IPV4 else st.integers(0, 127))
    services = ServiceRange.of(
        Prefix.masked(family, number >> (128 - family.bits), length), banded=data.draw(st.booleans())
    )
    offset = data.draw(st.integers(0, services.usable - 1))
    assert services.offset(services.address(offset)) == offset
    first, end = services.bounds(services.band(offset))
    assert first <= offset < end
    assert services.bounds(Band.STATIC)[1] == services.bounds(Band.DYNAMIC)[0] < services.usable
