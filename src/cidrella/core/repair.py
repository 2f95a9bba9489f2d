"""The repair plan: what is to be changed in the bitmaps so that they say what the Services say (B8).

A pure function of (bitmaps, Services, strikes). The Services must have been listed after the bitmaps were read: then
an address that a Service has, and that its bitmap has not, is really missing.

The other way round nothing can be said at once. An address is in the bitmap before its Service is there to be seen, and
stays there if the Service never comes. So an address in the bitmap that no Service has gets a strike in every round,
loses all of them when a Service has it, and is freed with the third in a row.

Nothing is revoked from a Service. What is wrong with its address is a finding, to be told where the Service is. Nothing
is wrong with one of a large IPv6 range that is beyond what is kept in its bitmap (B2): Kubernetes gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.address import Address
from cidrella.core.bitmap import Bitmap
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from cidrella.core.bands import ServiceRange

STRIKES = 3
"""In how many rounds in a row an address must be without a Service before it is freed, as in Kubernetes."""


class ServiceHolding(NamedTuple):
    """The addresses of a Service: its name as "namespace/name", and the texts of its `clusterIPs` without "None"."""

    service: str
    addresses: tuple[str, ...]


class Wrong(Enum):
    """What can be wrong with the address of a Service; the values are reasons of events."""

    NOT_ALLOCATED = "ClusterIPNotAllocated"
    ALREADY_ALLOCATED = "ClusterIPAlreadyAllocated"
    OUT_OF_RANGE = "ClusterIPOutOfRange"
    NOT_VALID = "ClusterIPNotValid"


class Finding(NamedTuple):
    """Something wrong with an address of a Service. The address is as the Service has it; `other` has it already."""

    service: str
    address: str
    wrong: Wrong
    other: str = ""


@dataclass(frozen=True)
class RepairPlan:
    """What to set and clear in the bitmaps, what to tell, and the strikes as they stand once that is done."""

    put_back: tuple[Address, ...]
    free: tuple[Address, ...]
    strikes: Mapping[Address, int]
    findings: tuple[Finding, ...]


def plan_repair(
    books: Sequence[tuple[ServiceRange, Bitmap]],
    holdings: Iterable[ServiceHolding],
    strikes: Mapping[Address, int],
    spared: Container[Address] = frozenset(),
) -> RepairPlan:
    """Compare bitmaps with Services. Of several Services with one address, the first by name is the one that has it.

    What is `spared` is in use elsewhere: it is not freed, and gets no strikes. O(addresses of Services + size).
    """
    stock = _Stock(books)
    findings = [
        Finding(holding.service, text, *wrong)
        for holding in sorted(holdings)
        for text in holding.addresses
        if (wrong := stock.look_up(holding.service, text))
    ]
    counts = {address: strikes.get(address, 0) + 1 for address in stock.leftovers() if address not in spared}
    return RepairPlan(
        put_back=tuple(stock.missing),
        free=tuple(address for address, count in counts.items() if count >= STRIKES),
        strikes={address: count for address, count in counts.items() if count < STRIKES},
        findings=tuple(findings),
    )


class _Stock:
    """Who has what, noted as the Services are gone through."""

    def __init__(self, books: Sequence[tuple[ServiceRange, Bitmap]]) -> None:
        self.books = [(services, bitmap, Bitmap(services.usable)) for services, bitmap in books]
        """Each range with its bitmap, and with another one of what Services were seen to have."""
        self.holders: dict[Address, str] = {}
        self.missing: list[Address] = []

    def look_up(self, service: str, text: str) -> tuple[Wrong] | tuple[Wrong, str] | None:
        """Note that a Service has this address; what is wrong with that, and the other one that has it already."""
        try:
            address = Address.parse_lenient(text)
        except PrefixError:
            return (Wrong.NOT_VALID,)
        place = self._place(address)
        if place is None:
            return None if any(services.beyond(address) for services, _, _ in self.books) else (Wrong.OUT_OF_RANGE,)
        offset, bitmap, seen = place
        holder = self.holders.setdefault(address, service)
        if holder != service:
            return Wrong.ALREADY_ALLOCATED, holder
        if not seen.add(offset) or offset in bitmap:
            return None
        self.missing.append(address)
        return (Wrong.NOT_ALLOCATED,)

    def _place(self, address: Address) -> tuple[int, Bitmap, Bitmap] | None:
        """The offset of an address in the range that has it, with both bitmaps of that."""
        for services, bitmap, seen in self.books:
            offset = services.offset(address)
            if offset is not None:
                return offset, bitmap, seen
        return None

    def leftovers(self) -> Iterator[Address]:
        """What is in the bitmaps and was seen with no Service."""
        for services, bitmap, seen in self.books:
            yield from map(services.address, bitmap - seen)
