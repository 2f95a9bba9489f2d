"""The range of Service addresses and its two bands, as offsets.

Rules:

- Offset n of a range is its network address + 1 + n (B5). Neither the network address nor, in IPv4, the last one is
  ever given (B2).
- The first offsets are the static band: people choose from it. The others are the dynamic band: addresses are drawn
  from it first, so that what people choose is seldom gone already. A small range has no bands (B1), nor has any if the
  operator says so (B11): then all of it is drawn from as if it were the dynamic band.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.address import Address
from cidrella.core.prefix import Family

if TYPE_CHECKING:
    from cidrella.core.prefix import Prefix

SMALLEST_BAND = 16
LARGEST_BAND = 256
BAND_SHARE = 16
"""Between the two, the static band is one part in so many of the range."""

LARGEST_IPV6 = 65535
"""How many addresses of an IPv6 range are used, as in Kubernetes' own bitmaps: one is kept in one object, and a /64 is
no reason to keep more than a large cluster needs. Kubernetes itself may give those beyond, where it keeps no bitmap."""

SHORTEST_IPV4 = 12
"""The length of the largest IPv4 range: its bitmap takes 175 kB in its object, where an object may have about 1.5 MB,
and is written anew with every change."""


class RangeError(ValueError):
    """A range that cannot be one of Service addresses. `str()` says why, without repeating the range."""


class Band(Enum):
    """A part of a range; the values are those of the `scope` of Kubernetes' metrics (B10)."""

    STATIC = "static"
    DYNAMIC = "dynamic"


class ServiceRange(NamedTuple):
    """A range of Service addresses; offsets count its usable ones.

    >>> from cidrella.core.prefix import Prefix
    >>> services = ServiceRange.of(Prefix.parse("192.168.0.0/22"))
    >>> services.usable, services.static, str(services.address(services.static))
    (1022, 64, '192.168.0.65')
    """

    cidr: Prefix
    usable: int
    """How many addresses can be given: the offsets are those below."""
    static: int
    """The size of the static band, and so the first offset of the dynamic one; 0 if there is none."""

    @classmethod
    def of(cls, cidr: Prefix, *, banded: bool = True) -> ServiceRange:
        """The range of a CIDR, with its bands unless `banded` is false. Raises `RangeError`."""
        if cidr.family is Family.IPV4:
            if cidr.length < SHORTEST_IPV4:
                raise RangeError(
                    f"is larger than a /{SHORTEST_IPV4}: its bitmap does not fit in one object; take a part of it"
                )
            usable = cidr.size - 2
        else:
            usable = min(cidr.size - 1, LARGEST_IPV6)
        if usable < 1:
            raise RangeError("has no usable address: the first is never given, nor is the last of an IPv4 range")
        return cls(cidr, usable, band_size(cidr.size) if banded else 0)

    def offset(self, address: Address) -> int | None:
        """The offset of an address; None if it is not a usable one of the range."""
        offset = address.number - self.cidr.network - 1
        return offset if address.family is self.cidr.family and 0 <= offset < self.usable else None

    def beyond(self, address: Address) -> bool:
        """Whether an address is of the range, but beyond what is used of it: others may give it (B2).

        >>> from cidrella.core.prefix import Prefix
        >>> services = ServiceRange.of(Prefix.parse("fd00::/108"))
        >>> services.beyond(Address.parse("fd00::ffff")), services.beyond(Address.parse("fd00::1:0"))
        (False, True)
        """
        if address.family is not self.cidr.family or self.cidr.family is Family.IPV4:
            return False
        return self.cidr.network + self.usable < address.number <= self.cidr.last

    @property
    def in_part(self) -> bool:
        """Whether there are addresses beyond what is used."""
        return self.beyond(Address(self.cidr.family, self.cidr.last))

    def address(self, offset: int) -> Address:
        """The address of an offset."""
        return Address(self.cidr.family, self.cidr.network + 1 + offset)

    def band(self, offset: int) -> Band:
        """The band that an offset is in; without bands, the dynamic one."""
        return Band.STATIC if offset < self.static else Band.DYNAMIC

    def bounds(self, band: Band) -> tuple[int, int]:
        """The first offset of a band and the one beyond its last."""
        return (0, self.static) if band is Band.STATIC else (self.static, self.usable)


def band_size(size: int) -> int:
    """How many addresses the static band of so large a CIDR has (B1).

    The size is that of the CIDR, not of what is usable of it. One of 16 has no band: it would leave none to be drawn.
    """
    if size <= SMALLEST_BAND:
        return 0
    return min(max(SMALLEST_BAND, size // BAND_SHARE), LARGEST_BAND)
