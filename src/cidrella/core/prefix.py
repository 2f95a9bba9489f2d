"""Prefixes of either family as integers.

Rules:

- A prefix is its family, its first address as a number, and its length. Text is read once, on the way in, and written
  once, on the way out: everything between is arithmetic.
- There are two readers. `Prefix.parse` is strict, as Kubernetes' CEL `cidr()` is (C1): it is for what people write.
  `Prefix.parse_lenient` takes what older API servers let through (N7): it is for what already stands on a node, where
  refusing to understand would mean handing the same addresses out again.
"""

from __future__ import annotations

import ipaddress
import re
from enum import Enum
from typing import NamedTuple, Self

_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_LEADING_ZEROS = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")
_MAPPED_IPV4 = 0xFFFF  # the upper 96 bits of ::ffff:0:0/96


class PrefixError(ValueError):
    """Text that is not a prefix. `str()` says what is wrong with it, without repeating it."""


class Family(Enum):
    """An IP family. Families sort IPv4 first, as `podCIDRs` do."""

    IPV4 = 4
    IPV6 = 6

    bits: int
    """How many bits an address has."""

    def __init__(self, version: int) -> None:
        self.bits = 32 if version == 4 else 128

    # Members are singletons; Enum would hash the name, in Python, each time a prefix is looked up.
    __hash__ = object.__hash__

    def __lt__(self, other: Family) -> bool:
        return self.value < other.value

    def __str__(self) -> str:
        return f"IPv{self.value}"


class Prefix(NamedTuple):
    """A range of addresses: all that share the first `length` bits of `network`.

    Sorts by family, then by address as a number (so 10.2.0.0 is before 10.10.0.0), then the larger range first.

    >>> block = Prefix.parse("10.2.0.0/23")
    >>> block.size, block.last == Prefix.parse("10.2.1.255/32").network
    (512, True)
    >>> print(Prefix.parse("fd00::/8"))
    fd00::/8
    """

    family: Family
    network: int
    length: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a range as Kubernetes' CEL `cidr()` does, and insist on its network address. Raises `PrefixError`.

        >>> Prefix.parse("10.0.0.1/8")
        Traceback (most recent call last):
        cidrella.core.prefix.PrefixError: has host bits set; the range that holds it is 10.0.0.0/8
        """
        head, slash, tail = text.partition("/")
        if not slash:
            raise PrefixError("has no length; write it as ADDRESS/LENGTH, for example 10.0.0.0/16")
        family, address = read_address(head)
        if is_mapped(family, address):
            raise PrefixError("is an IPv4-mapped IPv6 range; write the IPv4 range itself")
        if not _LENGTH.fullmatch(tail) or int(tail) > family.bits:
            raise PrefixError(f"has the length {tail!r}; an {family} length is a number from 0 to {family.bits}")
        prefix = cls.masked(family, address, int(tail))
        if prefix.network != address:
            raise PrefixError(f"has host bits set; the range that holds it is {prefix}")
        return prefix

    @classmethod
    def parse_lenient(cls, text: str) -> Self:
        """Read a range that is already in use: host bits are masked, leading zeros are decimal. Raises `PrefixError`.

        >>> print(Prefix.parse_lenient("010.001.0.7/024"))
        10.1.0.0/24
        """
        head, slash, tail = drop_zeros(text).partition("/")
        if not slash:
            raise PrefixError("has no length")
        family, address = read_address(head)
        if not _LENGTH.fullmatch(tail) or int(tail) > family.bits:
            raise PrefixError(f"has the length {tail!r}, which is none of {family}")
        length = int(tail)
        if is_mapped(family, address) and length >= 96:
            # Go's net.ParseCIDR, through which older servers accepted this, means the IPv4 range.
            return cls.masked(Family.IPV4, address & 0xFFFFFFFF, length - 96)
        return cls.masked(family, address, length)

    @classmethod
    def masked(cls, family: Family, address: int, length: int) -> Self:
        """The prefix of this length that holds the address."""
        host_bits = family.bits - length
        return cls(family, address >> host_bits << host_bits, length)

    @property
    def host_bits(self) -> int:
        """How many bits of an address are left to tell its members apart."""
        return self.family.bits - self.length

    @property
    def size(self) -> int:
        """The number of addresses."""
        return 1 << (self.family.bits - self.length)

    @property
    def last(self) -> int:
        """The highest address, as a number."""
        return self.network + self.size - 1

    @property
    def ordinal(self) -> int:
        """Which of the prefixes of its length this is, counted from address 0."""
        return self.network >> (self.family.bits - self.length)

    def contains(self, other: Prefix) -> bool:
        """Whether every address of the other lies in this one."""
        return (
            self.family is other.family
            and self.length <= other.length
            and (self.network ^ other.network) >> (self.family.bits - self.length) == 0
        )

    def overlaps(self, other: Prefix) -> bool:
        """Whether the two share an address. Prefixes nest or are apart: there is nothing between."""
        return self.contains(other) or other.contains(self)

    def __str__(self) -> str:
        return f"{format_address(self.family, self.network)}/{self.length}"


def format_address(family: Family, address: int) -> str:
    """The canonical text of one address."""
    if family is Family.IPV4:
        return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"
    return str(ipaddress.IPv6Address(address))


def drop_zeros(text: str) -> str:
    """The text without spaces around it and zeros in front of its numbers, which older servers took as decimal."""
    return _LEADING_ZEROS.sub("", text.strip())


def is_mapped(family: Family, address: int) -> bool:
    """Whether this is an IPv4 address in the clothes of IPv6."""
    return family is Family.IPV6 and address >> 32 == _MAPPED_IPV4


def read_address(text: str) -> tuple[Family, int]:
    """An address, strictly. The standard library's parser, less the zone that Kubernetes refuses. `PrefixError`."""
    try:
        if ":" not in text:
            return Family.IPV4, int(ipaddress.IPv4Address(text))
        if "%" not in text:
            return Family.IPV6, int(ipaddress.IPv6Address(text))
    except ipaddress.AddressValueError as error:
        raise PrefixError(f"is no address: {error}") from error
    raise PrefixError("names a zone, which a range cannot have")
