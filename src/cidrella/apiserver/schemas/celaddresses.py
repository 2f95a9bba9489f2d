"""What Kubernetes adds to CEL for addresses and ranges: every function once, with its types.

An address or a range is a text here, its canonical one: values of types of our own cannot be handed to CEL's evaluator.
That a function is only used on what it is for is seen to before, where expressions are checked, with types that differ.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.apiserver.words.faults import quoted
from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix, PrefixError, is_mapped, read_address

if TYPE_CHECKING:
    from collections.abc import Callable

IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
NO_OVERLOAD: Final = "no such overload"
"""What Kubernetes says of a call that nothing is there for."""
_REMEMBERED: Final = 256
"""Texts read last: rules read the same one again and again."""
_FIRST: Final = {Family.IPV4: "0.0.0.0", Family.IPV6: "::"}  # noqa: S104 - an address, not one to listen on


class Function(NamedTuple):
    """One way to call a function."""

    name: str
    takes: tuple[str, ...]
    gives: str
    does: Callable[..., object]
    member: bool = True
    """Whether it is called on its first argument."""


@lru_cache(_REMEMBERED)
def _address(text: str) -> Address:
    """An address. Raises `ValueError` in the words of Kubernetes."""
    try:
        family, number = read_address(text)
    except PrefixError:
        if "%" in text:
            raise ValueError(f"IP address {quoted(text)} with zone value is not allowed") from None
        why = f"ParseAddr({quoted(text)}): unable to parse IP"
        raise ValueError(f"IP Address {quoted(text)} parse error during conversion from string: {why}") from None
    if is_mapped(family, number):
        raise ValueError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(family, number)


@lru_cache(_REMEMBERED)
def _range(text: str) -> tuple[Address, Prefix]:
    """The address that a range is written with, and the range that it is in. Raises `ValueError`."""
    head, slash, tail = text.partition("/")
    try:
        address = Address.parse(head)
        length = Prefix.parse(f"{_FIRST[address.family]}{slash}{tail}").length
    except PrefixError as error:
        why = f"{quoted(text)} {error}"
        raise ValueError(f"network address parse error during conversion from string: {why}") from None
    return address, Prefix.masked(address.family, address.number, length)


def _can_be(read: Callable[[str], object]) -> Callable[[str], bool]:
    def can_be_read(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return can_be_read


def _other(read: Callable[[str], object]) -> Callable[[str], object]:
    """An argument that may be a text: one that cannot be read is as a call that nothing is there for."""

    def read_other(text: str) -> object:
        try:
            return read(text)
        except ValueError:
            raise ValueError(NO_OVERLOAD) from None

    return read_other


def _cidr(text: str) -> str:
    address, prefix = _range(text)
    return f"{address}/{prefix.length}"


def _contains_ip(text: str, other: str) -> bool:
    address = _other(_address)(other)
    assert isinstance(address, Address)
    return address.inside(_range(text)[1])


def _contains_cidr(text: str, other: str) -> bool:
    return _range(text)[1].contains(_range(other)[1])


def _within(*ranges: str) -> Callable[[str], bool]:
    parsed = [Prefix.parse(each) for each in ranges]
    return lambda text: any(_address(text).inside(each) for each in parsed)


_UNSPECIFIED: Final = _within("0.0.0.0/32", "::/128")
_LOOPBACK: Final = _within("127.0.0.0/8", "::1/128")
_LINK_LOCAL_MULTICAST: Final = _within("224.0.0.0/24", "ff02::/16")
_LINK_LOCAL_UNICAST: Final = _within("169.254.0.0/16", "fe80::/10")
_NOT_GLOBAL: Final = _within(
    *("0.0.0.0/32", "::/128", "127.0.0.0/8", "::1/128", "224.0.0.0/4", "ff00::/8"),
    *("169.254.0.0/16", "fe80::/10", "255.255.255.255/32"),
)

FUNCTIONS: Final = (
    Function("isIP", ("string",), "bool", _can_be(_address), member=False),
    Function("ip", ("string",), IP, lambda text: str(_address(text)), member=False),
    Function("ip.isCanonical", ("string",), "bool", lambda text: str(_address(text)) == text, member=False),
    Function("family", (IP,), "int", lambda text: _address(text).family.value),
    Function("isUnspecified", (IP,), "bool", _UNSPECIFIED),
    Function("isLoopback", (IP,), "bool", _LOOPBACK),
    Function("isLinkLocalMulticast", (IP,), "bool", _LINK_LOCAL_MULTICAST),
    Function("isLinkLocalUnicast", (IP,), "bool", _LINK_LOCAL_UNICAST),
    Function("isGlobalUnicast", (IP,), "bool", lambda text: not _NOT_GLOBAL(text)),
    Function("isCIDR", ("string",), "bool", _can_be(_range), member=False),
    Function("cidr", ("string",), CIDR, _cidr, member=False),
    Function("ip", (CIDR,), IP, lambda text: str(_range(text)[0])),
    Function("masked", (CIDR,), CIDR, lambda text: str(_range(text)[1])),
    Function("prefixLength", (CIDR,), "int", lambda text: _range(text)[1].length),
    Function("containsIP", (CIDR, "string"), "bool", _contains_ip),
    Function("containsIP", (CIDR, IP), "bool", _contains_ip),
    Function("containsCIDR", (CIDR, "string"), "bool", _contains_cidr),
    Function("containsCIDR", (CIDR, CIDR), "bool", _contains_cidr),
    # A text already, where they run.
    Function("string", (IP,), "string", str, member=False),
    Function("string", (CIDR,), "string", str, member=False),
)
