"""Single addresses of either family as integers.

As with prefixes there are two readers. `Address.parse` is strict: it is for what people write.
`Address.parse_lenient` takes what older API servers let through: it is for the address that a Service already has,
where refusing to understand would mean giving the same address out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from cidrella.core.prefix import Family, PrefixError, drop_zeros, format_address, is_mapped, read_address

if TYPE_CHECKING:
    from cidrella.core.prefix import Prefix


class Address(NamedTuple):
    """One address. Sorts by family, then as a number.

    >>> print(Address.parse("10.96.0.10"), Address.parse("FD00::0:a"))
    10.96.0.10 fd00::a
    """

    family: Family
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address as Kubernetes does in new objects. Raises `PrefixError`.

        >>> Address.parse("::ffff:10.96.0.10")
        Traceback (most recent call last):
        cidrella.core.prefix.PrefixError: is an IPv4-mapped IPv6 address; write the IPv4 address itself
        """
        if "%" in text:
            raise PrefixError("names a zone, which an address in a cluster cannot have")
        family, number = read_address(text)
        if is_mapped(family, number):
            raise PrefixError("is an IPv4-mapped IPv6 address; write the IPv4 address itself")
        return cls(family, number)

    @classmethod
    def parse_lenient(cls, text: str) -> Self:
        """Read an address that is already in use: leading zeros are decimal, mapped is IPv4. Raises `PrefixError`.

        >>> print(Address.parse_lenient("010.096.000.010"), Address.parse_lenient("::ffff:10.96.0.10"))
        10.96.0.10 10.96.0.10
        """
        family, number = read_address(drop_zeros(text))
        if is_mapped(family, number):
            return cls(Family.IPV4, number & 0xFFFFFFFF)
        return cls(family, number)

    def inside(self, cidr: Prefix) -> bool:
        """Whether a CIDR has the address.

        >>> from cidrella.core.prefix import Prefix
        >>> Address.parse("10.96.0.10").inside(Prefix.parse("10.96.0.0/24"))
        True
        """
        return self.family is cidr.family and cidr.network <= self.number <= cidr.last

    def __str__(self) -> str:
        return format_address(self.family, self.number)
