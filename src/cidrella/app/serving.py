"""Service addresses as they stand: the ranges and their bands, who sits where, what is wrong, and what can be had.

Everything comes from the objects themselves; no webhook is asked, and none need be running. Taken is an address that a
Service has, one for which there is an IPAddress, and one that is set in a RangeAllocation: it may have been given a
moment ago, to a Service that is yet to come.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.core.address import Address
from cidrella.core.bands import Band
from cidrella.core.bitmap import Bitmap
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.core.repair import Finding, ServiceHolding, Wrong, plan_repair
from cidrella.model.chosen import chosen_by, seen_service
from cidrella.model.serviceip import range_name, seen_ip_address, seen_service_cidr
from cidrella.serviceip.errors import CorruptAllocationError
from cidrella.serviceip.ranges import DEFAULT_OBJECT, FLAG, find_ranges, named_range
from cidrella.serviceip.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cidrella.app.inventory import ServiceInventory
    from cidrella.core.prefix import Family
    from cidrella.serviceip.ranges import KnownRange, Ranges, RefusedRange

API_SERVER: Final = "default/kubernetes"
"""The API server's own Service. It has the first address of the first range, or will have."""
_RANGES: Final = "ServiceRanges"
_CORRUPT: Final = "RangeAllocationCorrupt"
_BY_HAND: Final = "ClusterIPInDynamicBand"


class NoRangesError(LookupError):
    """There is no range that Services could get addresses from."""


class Remark(NamedTuple):
    """Something that somebody should look at."""

    reason: str
    """One word; what a repair loop finds has the reasons of its events (B8)."""
    service: str
    """The Service that it is about, as "namespace/name"; "" where it is about none."""
    address: str
    message: str


class Seat(NamedTuple):
    """An address that is taken, and all that shows it."""

    address: Address
    services: tuple[str, ...] = ()
    """The Services that have it, which should be one at most."""
    type: str = ""
    """That of the first of them."""
    chosen: str = ""
    """By whom or what that one was chosen, as far as it shows; "" if it does not."""
    parent: str | None = None
    """Who has it by its IPAddress; None where there is none."""
    granted: str | None = None
    """Whom it was given to of late; "" where that is forgotten, None where no RangeAllocation has it."""

    @property
    def holder(self) -> str:
        """Who has it, or is about to; "" where that is not known."""
        return ", ".join(self.services) or self.parent or self.granted or ""


@dataclass(frozen=True, slots=True)
class BandStanding:
    """A band, and how full it is."""

    band: Band
    first: Address
    last: Address
    capacity: int
    allocated: int

    @property
    def free(self) -> int:
        """How many addresses nobody has."""
        return self.capacity - self.allocated


@dataclass(frozen=True, slots=True)
class Book:
    """What is known of one range."""

    known: KnownRange
    state: State | None
    """None where there is no RangeAllocation, or one that is corrupt."""
    taken: Bitmap

    @property
    def cidr(self) -> Prefix:
        """The range."""
        return self.known.range.cidr

    def band(self, address: Address) -> Band | None:
        """The band that an address of the range is in; None where it has no bands."""
        offset = self.known.range.offset(address)
        return self.known.range.band(offset) if offset is not None and self.known.range.static else None

    def bands(self) -> Iterator[BandStanding]:
        """The bands that it has, of which a small range has one."""
        for band in Band:
            first, end = self.known.range.bounds(band)
            if first < end:
                low, high = map(self.known.range.address, (first, end - 1))
                yield BandStanding(band, low, high, end - first, self.taken.count_in(first, end))

    def why_static(self) -> str:
        """What is wrong with choosing from the dynamic band of a range that has a static one."""
        first, last = map(self.known.range.address, (0, self.known.range.static - 1))
        return f"any Service that chooses none may be given it while nobody has it; the static band is {first} - {last}"


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """How everything stands."""

    books: tuple[Book, ...]
    """In the order in which ranges are drawn from."""
    refused: tuple[RefusedRange, ...]
    families: tuple[Family, ...]
    seats: Mapping[Address, Seat]
    """Every address that is taken, also those in no range, in order."""
    remarks: tuple[Remark, ...]
    """First those about ranges, which concern every answer; then those about Services."""
    reserved: Address | None
    """What the API server will take for itself, where it has not yet."""


def take_stock_of_services(inventory: ServiceInventory, flag: Sequence[Prefix]) -> ServiceStanding:
    """How things stand. Raises `NoRangesError`. O(n log n) in the Services."""
    stored = [cidr for each in inventory.allocations if (cidr := named_range(each.name)) is not None]
    ranges = find_ranges(flag, map(seen_service_cidr, inventory.cidrs), stored)
    if not ranges.known and not ranges.refused:
        raise NoRangesError(f"{inventory.place} has no ServiceCIDR: say which range Services have, with {FLAG}")
    return _Stocktaking(inventory, ranges).result()


class _Stocktaking:
    """One pass over the input."""

    def __init__(self, inventory: ServiceInventory, ranges: Ranges) -> None:
        self._ranges = ranges
        self._remarks = [Remark(_RANGES, "", "", text) for text in ranges.warnings]
        self._seats: dict[Address, Seat] = {}
        self._holdings: list[ServiceHolding] = []
        self._chosen: list[tuple[str, Address, str]] = []
        allocations = {each.name: each for each in inventory.allocations}
        self._states: dict[Prefix, State] = {}
        for known in ranges.known:
            if (found := allocations.get(range_name(known.range.cidr))) is not None:
                try:
                    self._states[known.range.cidr] = State.read(found, known.range)
                except CorruptAllocationError as error:
                    self._remarks.append(Remark(_CORRUPT, "", "", str(error)))
        self._seat_services(inventory)
        self._seat_addresses(inventory)
        self._seat_grants()

    def result(self) -> ServiceStanding:
        books = tuple(self._book(known) for known in self._ranges.known)
        return ServiceStanding(
            books=books,
            refused=self._ranges.refused,
            families=self._ranges.families,
            seats=dict(sorted(self._seats.items())),
            remarks=(*self._remarks, *self._faults(books), *self._chosen_badly(books)),
            reserved=self._reserved(),
        )

    def _seat_services(self, inventory: ServiceInventory) -> None:
        sitting: defaultdict[Address, dict[str, tuple[str, str]]] = defaultdict(dict)
        for obj in inventory.services:
            service, chosen = seen_service(obj), chosen_by(obj)
            self._holdings.append(ServiceHolding(service.name, service.cluster_ips))
            for text in service.cluster_ips:
                try:
                    address = Address.parse_lenient(text)
                except PrefixError:
                    continue  # which is found among the faults
                sitting[address][service.name] = service.type, chosen.get(text, "")
                if text in chosen:
                    self._chosen.append((service.name, address, chosen[text]))
        for address, services in sitting.items():
            names = sorted(services)
            self._seats[address] = Seat(address, tuple(names), *services[names[0]])

    def _seat_addresses(self, inventory: ServiceInventory) -> None:
        for each in map(seen_ip_address, inventory.addresses):
            try:
                address = Address.parse_lenient(each.name)
            except PrefixError:
                continue  # the API server takes no such name
            self._seats[address] = self._seats.get(address, Seat(address))._replace(parent=each.parent)

    def _seat_grants(self) -> None:
        for state in self._states.values():
            for offset in state.bitmap:
                address = state.range.address(offset)
                grant = state.recent.get(offset)
                known = self._seats.get(address, Seat(address))
                self._seats[address] = known._replace(granted=grant.service if grant else "")

    def _book(self, known: KnownRange) -> Book:
        taken = Bitmap(known.range.usable)
        for address in self._seats:
            if (offset := known.range.offset(address)) is not None:
                taken.add(offset)
        return Book(known, self._states.get(known.range.cidr), taken)

    def _reserved(self) -> Address | None:
        """The first address of the first range, while the API server's own Service is not to be seen."""
        if any(each.service == API_SERVER for each in self._holdings):
            return None
        first = next(iter(self._ranges.known), None)
        if first is None or first.source not in {FLAG, f"ServiceCIDR {DEFAULT_OBJECT}"}:
            return None
        return first.range.address(0)

    def _faults(self, books: Sequence[Book]) -> Iterator[Remark]:
        """What a repair loop would find. Where there is no RangeAllocation, nothing is missing from it.

        An address of a range that is not used is Kubernetes' own affair.
        """
        bitmaps = [(book.known.range, book.state.bitmap if book.state else book.taken) for book in books]
        for finding in plan_repair(bitmaps, self._holdings, {}).findings:
            if finding.wrong is Wrong.OUT_OF_RANGE:
                address = Address.parse_lenient(finding.address)
                if find_refused(self._ranges.refused, address) is not None:
                    continue
            yield Remark(finding.wrong.value, finding.service, finding.address, _words(finding))

    def _chosen_badly(self, books: Sequence[Book]) -> Iterator[Remark]:
        """Addresses that people chose where others are drawn."""
        for service, address, chosen in sorted(self._chosen):
            book = find_book(books, address)
            if book is not None and book.band(address) is Band.DYNAMIC:
                message = f"was chosen {chosen} and is in the dynamic band of {book.cidr}: {book.why_static()}"
                yield Remark(_BY_HAND, service, str(address), message)


def find_book(books: Iterable[Book], address: Address) -> Book | None:
    """The range that gives an address."""
    return next((book for book in books if book.known.range.offset(address) is not None), None)


def find_refused(refused: Iterable[RefusedRange], address: Address) -> RefusedRange | None:
    """The range that an address is in, of those that are not used."""
    alone = Prefix(address.family, address.number, address.family.bits)
    return next((each for each in refused if each.cidr.contains(alone)), None)


def _words(finding: Finding) -> str:
    match finding.wrong:
        case Wrong.NOT_ALLOCATED:
            return "is not set in the RangeAllocation; the repair loop puts it back"
        case Wrong.ALREADY_ALLOCATED:
            return f"is also the address of {finding.other}; one of the two has to be created anew"
        case Wrong.OUT_OF_RANGE:
            return "is in no range of Services; create the Service anew to have another"
        case Wrong.NOT_VALID:
            return "is no address; create the Service anew"
