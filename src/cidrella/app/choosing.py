"""Choosing an address for a Service: which are free in the static bands, and whether a certain one can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cidrella.app.serving import API_SERVER, find_book, find_refused
from cidrella.core.bands import Band
from cidrella.model.serviceip import range_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.app.serving import Book, Seat, ServiceStanding
    from cidrella.core.address import Address
    from cidrella.core.prefix import Family, Prefix


class Answer(NamedTuple):
    """Whether an address can be had."""

    address: Address
    available: bool | None
    """None: that is not for us to say, for the address is not managed here."""
    why: str
    range: Prefix | None = None
    band: Band | None = None
    """None also where a range has no bands."""
    seat: Seat | None = None
    advice: str = ""


class NextStatic(NamedTuple):
    """Free addresses of static bands, the default family first, and for each family with too few, how many."""

    addresses: list[Address]
    short: dict[Family, int]


def next_static(standing: ServiceStanding, count: int) -> NextStatic:
    """So many addresses of each family that are safe to choose: nobody has them, nor is about to."""
    found: dict[Family, list[Address]] = {family: [] for family in standing.families}
    for book in standing.books:
        if book.known.gives:
            of_family = found[book.cidr.family]
            of_family += _free_static(book, standing.reserved, count - len(of_family))
    short = {family: len(addresses) for family, addresses in found.items() if len(addresses) < count}
    return NextStatic([address for addresses in found.values() for address in addresses], short)


def check(standing: ServiceStanding, address: Address) -> Answer:
    """Whether an address can be had, and if not, why."""
    book = find_book(standing.books, address)
    seat = standing.seats.get(address)
    if book is None:
        return _check_elsewhere(standing, address, seat)
    band = book.band(address)
    if seat is not None:
        why = _had(seat) or _set(seat, range_name(book.cidr))
    elif not book.known.gives:
        why = f"{book.cidr} of {book.known.source} is on its way out, and gives nothing new"
    elif address == standing.reserved:
        why = f"it is what the API server takes for its own Service, {API_SERVER}"
    else:
        advice = book.why_static() if band is Band.DYNAMIC else ""
        return Answer(address, True, "nobody has it", book.cidr, band, None, advice)
    return Answer(address, False, why, book.cidr, band, seat)


def _check_elsewhere(standing: ServiceStanding, address: Address, seat: Seat | None) -> Answer:
    """The answer for an address that no range in use gives."""
    refused = find_refused(standing.refused, address)
    if refused is None:
        why = _out_of_range(standing, address)
        return Answer(address, available=False, why=f"{_had(seat)}, and {why}" if seat else why, seat=seat)
    if seat is not None:
        return Answer(address, available=False, why=_had(seat), seat=seat)
    return Answer(address, None, f"is not managed here (range refused: {refused}); Kubernetes decides")


def _free_static(book: Book, reserved: Address | None, count: int) -> Iterator[Address]:
    """The lowest free addresses of a static band."""
    start, end = book.known.range.bounds(Band.STATIC)
    while count > 0 and (offset := book.taken.next_free(start, end)) is not None:
        address = book.known.range.address(offset)
        if address != reserved:
            yield address
            count -= 1
        start = offset + 1


def _had(seat: Seat) -> str:
    """Who has an address by the objects of Kubernetes; "" for nobody."""
    if len(seat.services) > 1:
        return f"the Services {' and '.join(seat.services)} have it"
    if seat.services:
        return f"the Service {seat.services[0]} has it"
    if seat.parent is not None:
        return "there is an IPAddress of it" + (f", for {seat.parent}" if seat.parent else "")
    return ""


def _set(seat: Seat, name: str) -> str:
    """Why an address counts as taken that only a RangeAllocation has."""
    if seat.granted:
        return f"RangeAllocation {name} says that it was given to {seat.granted} of late"
    return f"it is set in RangeAllocation {name}; if nobody has it, the repair loop frees it"


def _out_of_range(standing: ServiceStanding, address: Address) -> str:
    for book in standing.books:
        if book.cidr.family is address.family and book.cidr.network <= address.number <= book.cidr.last:
            first, last = map(book.known.range.address, (0, book.known.range.usable - 1))
            return f"of {book.cidr}, only {first} - {last} are given"
    ranges = ", ".join(str(book.cidr) for book in standing.books) or "none in use"
    return f"it is in no range of Services (there is {ranges})"
