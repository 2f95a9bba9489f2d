"""Single addresses: which texts are read, by which of the two readers, and how they compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix, PrefixError

MAPPED = "is an IPv4-mapped IPv6 address; write the IPv4 address itself"
ZONE = "names a zone, which an address in a cluster cannot have"


@pytest.mark.parametrize(
    ("text", "family", "number", "canonical"),
    [
        ("10.96.0.10", Family.IPV4, 0x0A60000A, "10.96.0.10"),
        ("0.0.0.0", Family.IPV4, 0, "0.0.0.0"),
        ("255.255.255.255", Family.IPV4, 0xFFFFFFFF, "255.255.255.255"),
        ("fd00::a", Family.IPV6, (0xFD00 << 112) + 10, "fd00::a"),
        ("FD00:0:0::000A", Family.IPV6, (0xFD00 << 112) + 10, "fd00::a"),
        ("::10.96.0.10", Family.IPV6, 0x0A60000A, "::a60:a"),
        ("::fffe:10.96.0.10", Family.IPV6, (0xFFFE << 32) + 0x0A60000A, "::fffe:a60:a"),
    ],
)
def test_texts_that_are_addresses(text: str, family: Family, number: int, canonical: str) -> None:
    """B4: both readers take what is written as Kubernetes wants it; the text of the address is the canonical one."""
    assert Address.parse(text) == Address.parse_lenient(text) == (family, number)
    assert str(Address.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no address: "),
        ("None", "is no address: "),
        ("10.96.0", "is no address: "),
        ("10.96.0.256", "is no address: "),
        ("10.96.0.10/32", "is no address: "),
        ("fd00:::1", "is no address: "),
        ("fd00::1/128", "is no address: "),
    ],
)
def test_texts_that_neither_reader_takes(text: str, problem: str) -> None:
    """B8: what is no address at all is refused, also where a Service has it already."""
    for read in (Address.parse, Address.parse_lenient):
        with pytest.raises(PrefixError, match=f"^{problem}"):
            read(text)


@pytest.mark.parametrize(
    ("text", "problem", "meant"),
    [
        ("010.096.000.010", "is no address: Leading zeros", "10.96.0.10"),
        (" 10.96.0.10 ", "is no address: ", "10.96.0.10"),
        ("::ffff:10.96.0.10", MAPPED, "10.96.0.10"),
        ("::ffff:a60:a", MAPPED, "10.96.0.10"),
        ("0000:00000::1", "is no address: ", "::1"),
    ],
)
def test_texts_that_older_servers_took(text: str, problem: str, meant: str) -> None:
    """B8: what a Service may have from long ago is understood as it was then, but not accepted anew."""
    with pytest.raises(PrefixError, match=f"^{problem}"):
        Address.parse(text)
    assert str(Address.parse_lenient(text)) == meant


@pytest.mark.parametrize("text", ["fe80::1%eth0", "10.96.0.10%eth0"])
def test_zones_are_refused(text: str) -> None:
    """B4: an address with a zone means something on one machine only."""
    with pytest.raises(PrefixError, match=f"^{ZONE}$"):
        Address.parse(text)
    with pytest.raises(PrefixError):
        Address.parse_lenient(text)


def test_addresses_sort_as_numbers() -> None:
    """B4: by family, then by number, so that .9 is before .10."""
    texts = ["10.96.0.9", "10.96.0.10", "255.0.0.0", "::1", "fd00::2"]
    assert [str(address) for address in sorted(map(Address.parse, reversed(texts)))] == texts


@given(st.sampled_from(Family), st.integers(0, 2**128 - 1))
def test_the_text_of_an_address_is_read_back(family: Family, number: int) -> None:
    """B4: written and read again it is the same address, unless it is IPv4 in the clothes of IPv6."""
    address = Address(family, number >> (128 - family.bits))
    assert Address.parse(str(address)) == Address.parse_lenient(str(address)) == address


@pytest.mark.parametrize(
    ("address", "cidr", "inside"),
    [
        ("10.96.0.0", "10.96.0.0/24", True),
        ("10.96.0.255", "10.96.0.0/24", True),
        ("10.96.1.0", "10.96.0.0/24", False),
        ("10.95.255.255", "10.96.0.0/24", False),
        ("::a60:1", "10.96.0.0/24", False),
        ("fd00::ffff", "fd00::/112", True),
    ],
)
def test_inside_a_cidr(address: str, cidr: str, inside: bool) -> None:
    """B2: from the first address of a CIDR to its last, of its own family."""
    assert Address.parse(address).inside(Prefix.parse(cidr)) is inside
