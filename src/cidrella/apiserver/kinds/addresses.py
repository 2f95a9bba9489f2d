"""What keeps a text from being an address or a range, in the words of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.address import Address
from cidrella.core.prefix import Prefix, PrefixError, is_mapped, read_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.core.prefix import Family


def cidr_fault(text: str) -> str:
    """What is wrong with a range; "" if nothing is.

    >>> cidr_fault("10.0.0.1/8")
    'must not have bits set beyond the prefix length'
    """
    lenient = _lenient_prefix(text)
    if lenient is None:
        return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    head, _, tail = text.partition("/")
    try:
        family, number = read_address(head)
    except PrefixError:
        return _LEADING_ZEROS
    if tail != str(int(tail)):
        return _LEADING_ZEROS
    if is_mapped(family, number):
        return "must not have an IPv4-mapped IPv6 address"
    if lenient.network != number:
        return "must not have bits set beyond the prefix length"
    return ""


_LEADING_ZEROS = "must not have leading 0s in IP or prefix length"


def address_fault(text: str) -> str:
    """What is wrong with an address; "" if nothing is.

    >>> address_fault("10.0.0.256")
    'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    """
    try:
        Address.parse_lenient(text)
    except PrefixError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    try:
        family, number = read_address(text)
    except PrefixError:
        return "must not have leading 0s"
    return "must not be an IPv4-mapped IPv6 address" if is_mapped(family, number) else ""


def canonical_cidr(text: str) -> str:
    """A range as it is to be written. It is one."""
    return str(Prefix.parse_lenient(text))


def canonical_address(text: str) -> str:
    """An address as it is to be written. It is one."""
    return str(Address.parse_lenient(text))


def two_families(texts: Iterable[str]) -> bool:
    """Whether these ranges are of both families. Raises PrefixError if one of them is no range."""
    return len({Prefix.parse_lenient(each).family for each in texts}) == 2


def family_of(text: str) -> Family | None:
    """The family of an address; None if it is none."""
    try:
        return Address.parse_lenient(text).family
    except PrefixError:
        return None


def _lenient_prefix(text: str) -> Prefix | None:
    if text != text.strip():
        return None
    try:
        return Prefix.parse_lenient(text)
    except PrefixError:
        return None
