"""Prefixes: which texts are read, what is made of them, and how they compare."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.prefix import Family, Prefix, PrefixError, format_address
from tests.core.build import prefix


@st.composite
def prefixes(draw: st.DrawFn, near: int = 0) -> Prefix:
    """Draw a prefix; with `near`, one of so many bits at the start of the space, so that two of them nest at times."""
    family = draw(st.sampled_from(Family))
    length = draw(st.integers(0, family.bits))
    return Prefix.masked(family, draw(st.integers(0, (1 << (near or family.bits)) - 1)), length)


@pytest.mark.parametrize(
    ("text", "family", "network", "length"),
    [
        ("10.0.0.0/8", Family.IPV4, 10 << 24, 8),
        ("10.0.0.0/7", Family.IPV4, 10 << 24, 7),
        ("10.2.3.4/32", Family.IPV4, 0x0A020304, 32),
        ("0.0.0.0/0", Family.IPV4, 0, 0),
        ("255.255.255.255/32", Family.IPV4, 0xFFFFFFFF, 32),
        ("192.168.128.0/17", Family.IPV4, 0xC0A88000, 17),
        ("::/0", Family.IPV6, 0, 0),
        ("::/128", Family.IPV6, 0, 128),
        ("fd00::/8", Family.IPV6, 0xFD << 120, 8),
        ("FD00::/8", Family.IPV6, 0xFD << 120, 8),
        ("fd00:0:0:0:0:0:0:0/100", Family.IPV6, 0xFD << 120, 100),
        ("0fd0::/16", Family.IPV6, 0x0FD0 << 112, 16),
        ("64:ff9b::10.0.0.0/104", Family.IPV6, (0x64FF9B << 96) | (10 << 24), 104),
        ("::10.0.0.0/104", Family.IPV6, 10 << 24, 104),
        ("::fffe:10.0.0.0/104", Family.IPV6, (0xFFFE << 32) | (10 << 24), 104),
        ("1::ffff:10.0.0.0/104", Family.IPV6, (1 << 112) | (0xFFFF << 32) | (10 << 24), 104),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", Family.IPV6, (1 << 128) - 1, 128),
    ],
)
def test_texts_that_are_ranges(text: str, family: Family, network: int, length: int) -> None:
    """C1: a range is read where it is written as Kubernetes' CEL cidr() accepts it, whatever its length and letters."""
    assert Prefix.parse(text) == (family, network, length)


NO_LENGTH = "has no length; write it as ADDRESS/LENGTH, for example 10.0.0.0/16"
MAPPED = "is an IPv4-mapped IPv6 range; write the IPv4 range itself"
ZONE = "names a zone, which a range cannot have"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", NO_LENGTH),
        ("10.0.0.0", NO_LENGTH),
        ("fd00::", NO_LENGTH),
        ("/", "is no address: "),
        ("/8", "is no address: "),
        ("10/8", "is no address: "),
        ("10.0.0/8", "is no address: "),
        ("10.0.0.0.0/8", "is no address: "),
        ("256.0.0.0/8", "is no address: "),
        ("010.0.0.0/8", "is no address: Leading zeros"),
        ("10.00.0.0/8", "is no address: Leading zeros"),
        ("0x0a.0.0.0/8", "is no address: "),
        ("167772160/8", "is no address: "),
        ("a.b.c.d/8", "is no address: "),
        (" 10.0.0.0/8", "is no address: "),
        ("10.0.0.0 /8", "is no address: "),
        ("+10.0.0.0/8", "is no address: "),
        ("\N{FULLWIDTH DIGIT ONE}0.0.0.0/8", "is no address: "),
        ("1\N{SUPERSCRIPT TWO}.0.0.0/8", "is no address: "),
        ("10.0.0.0%eth0/8", "is no address: "),
        (":::/8", "is no address: "),
        ("1::2::3/64", "is no address: "),
        ("fd000::/8", "is no address: "),
        ("fg00::/8", "is no address: "),
        ("[fd00::]/8", "is no address: "),
        (" fd00::/8", "is no address: "),
        ("::010.0.0.0/104", "is no address: "),
        ("fe80::1%eth0/64", ZONE),
        ("fe80::%1/64", ZONE),
        ("::ffff:10.0.0.0/104", MAPPED),
        ("::ffff:a00:0/104", MAPPED),
        ("::ffff:0:0/96", MAPPED),
        ("::ffff:10.0.0.0/129", MAPPED),
        ("10.0.0.0/", "has the length ''; an IPv4 length is a number from 0 to 32"),
        ("10.0.0.0/33", "has the length '33'; an IPv4 length is a number from 0 to 32"),
        ("10.0.0.0/+8", "has the length '+8'; "),
        ("10.0.0.0/-0", "has the length '-0'; "),
        ("10.0.0.0/08", "has the length '08'; "),
        ("10.0.0.0/00", "has the length '00'; "),
        ("10.0.0.0/ 8", "has the length ' 8'; "),
        ("10.0.0.0/8 ", "has the length '8 '; "),
        ("10.0.0.0/8\n", "has the length '8\\n'; "),
        ("10.0.0.0/1_6", "has the length '1_6'; "),
        ("10.0.0.0/0x8", "has the length '0x8'; "),
        ("10.0.0.0/8.0", "has the length '8.0'; "),
        ("10.0.0.0/8/8", "has the length '8/8'; "),
        ("10.0.0.0/255.0.0.0", "has the length '255.0.0.0'; "),
        ("10.0.0.0/\N{FULLWIDTH DIGIT EIGHT}", "has the length '\N{FULLWIDTH DIGIT EIGHT}'; "),
        ("10.0.0.0/\N{ARABIC-INDIC DIGIT EIGHT}", "has the length '\N{ARABIC-INDIC DIGIT EIGHT}'; "),
        ("10.0.0.0/4294967304", "has the length '4294967304'; "),
        ("::/129", "has the length '129'; an IPv6 length is a number from 0 to 128"),
        ("::/0128", "has the length '0128'; "),
        ("::/ffff::", "has the length 'ffff::'; "),
        ("10.0.0.1/8", "has host bits set; the range that holds it is 10.0.0.0/8"),
        ("10.0.0.0/6", "has host bits set; the range that holds it is 8.0.0.0/6"),
        ("0.0.0.1/0", "has host bits set; the range that holds it is 0.0.0.0/0"),
        ("fd00::1/64", "has host bits set; the range that holds it is fd00::/64"),
        ("8000::/0", "has host bits set; the range that holds it is ::/0"),
    ],
)
def test_texts_that_are_no_ranges(text: str, problem: str) -> None:
    """C1: no netmask, bare address, leading zero, sign, space, zone, mapped range or host bit gets in."""
    with pytest.raises(PrefixError) as caught:
        Prefix.parse(text)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("10.1.2.0/24", "10.1.2.0/24"),
        ("10.1.2.3/24", "10.1.2.0/24"),
        ("10.1.2.3/0", "0.0.0.0/0"),
        ("10.1.2.3/32", "10.1.2.3/32"),
        ("010.001.002.003/24", "10.1.2.0/24"),
        ("0000010.1.2.0/24", "10.1.2.0/24"),
        ("10.00.000.0/8", "10.0.0.0/8"),
        ("10.1.2.0/024", "10.1.2.0/24"),
        ("10.1.2.0/00", "0.0.0.0/0"),
        (" 10.1.2.0/24\n", "10.1.2.0/24"),
        ("fd00::1/64", "fd00::/64"),
        ("FD00:0000:0000:0000:0000:0000:0000:0001/064", "fd00::/64"),
        ("fd00:0:0:0:0:0:0:0/16", "fd00::/16"),
        ("::ffff:10.1.2.3/120", "10.1.2.0/24"),
        ("::ffff:a01:203/128", "10.1.2.3/32"),
        ("::ffff:10.1.2.3/96", "0.0.0.0/0"),
        ("::ffff:10.1.2.3/95", "::fffe:0:0/95"),
        ("::fffe:10.1.2.3/120", "::fffe:a01:200/120"),
        ("1::ffff:10.1.2.3/120", "1::ffff:a01:200/120"),
    ],
)
def test_what_stands_on_a_node_is_read_leniently(text: str, means: str) -> None:
    """N7: host bits are masked, leading zeros are decimal, long and mapped forms mean what Go means by them."""
    assert str(Prefix.parse_lenient(text)) == means


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("10.1.2.0/0024", "10.1.2.0/24"),
        ("10.1.2.0/" + "0" * 5000 + "24", "10.1.2.0/24"),
        ("::ffff:010.001.002.003/120", "10.1.2.0/24"),
        ("00000fd00::/16", "fd00::/16"),
    ],
)
def test_any_number_of_leading_zeros_is_read(text: str, means: str) -> None:
    """N7: Go's parser, through which older servers accepted podCIDRs, skips any number of zeros in any number."""
    assert str(Prefix.parse_lenient(text)) == means


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no length"),
        ("10.1.2.0", "has no length"),
        ("None", "has no length"),
        ("/24", "is no address: "),
        ("10.1.2/24", "is no address: "),
        ("10.1.2.256/24", "is no address: "),
        ("10.1.2.0x/24", "is no address: "),
        ("fd00:::/24", "is no address: "),
        ("fe80::1%eth0/64", ZONE),
        ("10.1.2.0/", "has the length '', which is none of IPv4"),
        ("10.1.2.0/33", "has the length '33', which is none of IPv4"),
        ("10.1.2.0/+8", "has the length '+8', which is none of IPv4"),
        ("10.1.2.0/-8", "has the length '-8', "),
        ("10.1.2.0/8/8", "has the length '8/8', "),
        ("10.1.2.0/\N{FULLWIDTH DIGIT EIGHT}", "has the length '\N{FULLWIDTH DIGIT EIGHT}', "),
        ("10.1.2.0/" + "1" * 5000, "has the length '1"),
        ("fd00::/129", "has the length '129', which is none of IPv6"),
    ],
)
def test_what_cannot_be_read_at_all(text: str, problem: str) -> None:
    """N7: what is no range by any reading is an error that says why, and never another kind of failure."""
    with pytest.raises(PrefixError) as caught:
        Prefix.parse_lenient(text)
    assert str(caught.value).startswith(problem)


@given(prefixes())
def test_text_and_back(block: Prefix) -> None:
    """C1, N7: both readers read the text of a prefix as that prefix, save a mapped one, which only nodes may have."""
    mapped = block.family is Family.IPV6 and block.network >> 32 == 0xFFFF
    if not mapped:
        assert Prefix.parse(str(block)) == block
        assert Prefix.parse_lenient(str(block)) == block


@given(prefixes())
def test_a_prefix_is_the_standard_librarys_network(block: Prefix) -> None:
    """A3: text, size and bounds are those of the standard library's networks, in both families."""
    network = ipaddress.ip_network((block.network, block.length))
    if block.family is Family.IPV6 and block.network < 1 << 32:
        network = ipaddress.IPv6Network((block.network, block.length))
    assert str(block) == str(network)
    assert block.size == network.num_addresses
    assert block.last == int(network.broadcast_address)
    assert block.host_bits == network.max_prefixlen - network.prefixlen
    assert format_address(block.family, block.last) == str(network.broadcast_address)


@given(st.integers(0, (1 << 32) - 1), st.integers(0, 32))
def test_host_bits_are_masked_as_the_standard_library_does(address: int, length: int) -> None:
    """N7: a lenient reading of any address in a range is the range; a strict one is an error unless it is the first."""
    text = f"{ipaddress.IPv4Address(address)}/{length}"
    network = ipaddress.ip_network(text, strict=False)
    assert str(Prefix.parse_lenient(text)) == str(network)
    if int(network.network_address) == address:
        assert str(Prefix.parse(text)) == text
    else:
        with pytest.raises(PrefixError, match="has host bits set"):
            Prefix.parse(text)


@given(st.text(alphabet="0123456789abf.:/% +-", max_size=24) | st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """C1, N7: no text does anything to the readers but be read or be refused, and the strict one takes the less."""
    try:
        strict = Prefix.parse(text)
    except PrefixError:
        strict = None
    try:
        lenient = Prefix.parse_lenient(text)
    except PrefixError:
        assert strict is None
    else:
        assert strict in (None, lenient)


@given(prefixes(near=6), prefixes(near=6))
def test_nesting_is_that_of_the_addresses(one: Prefix, two: Prefix) -> None:
    """A1, pitfall 7: containing and overlapping are what first and last addresses say, and nothing across families."""
    same = one.family is two.family
    assert one.contains(two) == (same and one.network <= two.network and two.last <= one.last)
    assert one.overlaps(two) == (same and one.network <= two.last and two.network <= one.last)


@given(prefixes())
def test_blocks_are_numbered_from_address_zero(block: Prefix) -> None:
    """A2: a prefix is aligned to its own size, and its ordinal counts the aligned prefixes before it."""
    assert block.ordinal * block.size == block.network


def test_prefixes_sort_as_numbers() -> None:
    """S3, pitfall 23: IPv4 before IPv6, then the address as a number and not as text, then the larger range."""
    wanted = ["10.2.0.0/16", "10.10.0.0/15", "10.10.0.0/16", "::/0", "2::/16", "10::/16"]
    assert [str(each) for each in sorted(map(prefix, reversed(wanted)))] == wanted


def test_families() -> None:
    """A3: a family knows its bits, its place in podCIDRs and its name."""
    assert [(str(family), family.bits) for family in sorted([Family.IPV6, Family.IPV4])] == [
        ("IPv4", 32),
        ("IPv6", 128),
    ]
    assert not Family.IPV4 < Family.IPV4
