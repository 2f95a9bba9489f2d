"""`cidrella services`: the addresses of Services, who has them, and which can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cidrella.app.choosing import check, next_static
from cidrella.app.inventory import printable
from cidrella.app.serving import NoRangesError, find_book, find_refused, take_stock_of_services
from cidrella.cli import shared, source
from cidrella.cli.bar import drawn
from cidrella.cli.structured import structured
from cidrella.cli.table import table
from cidrella.cli.terminal import marks_for
from cidrella.core.address import Address
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from cidrella.app.choosing import Answer, NextStatic
    from cidrella.app.serving import Book, Remark, Seat, ServiceStanding
    from cidrella.cli.terminal import Marks

NOT_TO_BE_HAD = 3
"""The exit code where an address that was asked about cannot be had, or fewer are free than were asked for."""
_LINES = 40
"""Addresses, and warnings, that are shown in a table before the others are only counted."""
_MOST = 65_536

ServiceRanges = Annotated[
    str,
    typer.Option(
        "--service-cluster-ip-range",
        metavar="CIDR[,CIDR]",
        help="The ranges of Services, as the API server was told: one, or one of each family; else the ServiceCIDRs.",
        show_default=False,
    ),
]


def services(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    every: Annotated[bool, typer.Option("--all", help="List every address that is taken, however many.")] = False,
    static: Annotated[
        int | None,
        typer.Option(
            "--next-static",
            min=1,
            max=_MOST,
            metavar="N",
            help="Name so many free addresses of the static band, of each family: safe to choose.",
            show_default=False,
        ),
    ] = None,
    checked: Annotated[
        str | None,
        typer.Option(
            "--check", metavar="IP", help="Say whether an address can be had, and who has it.", show_default=False
        ),
    ] = None,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    service_cluster_ip_range: ServiceRanges = "",
    output: shared.Format = shared.Output.TABLE,
) -> None:
    """Show the ranges of Services with their bands, how full each band is, and who has which address.

    The static band is for addresses that people choose; Services that choose none are given one of the dynamic band
    first. Read from the cluster, or from files, whether or not a webhook runs. Nothing is changed anywhere.

    Exit code 0: all is said, or the address can be had. 3: it cannot, or that is for Kubernetes to decide, or fewer
    than N are free. 2: the input is wrong.
    """
    if checked is not None and static is not None:
        raise typer.BadParameter("--check and --next-static ask different things; ask one")
    address = _address(checked) if checked is not None else None
    flag = shared.parse_service_ranges(service_cluster_ip_range)
    inventory = source.services_from_either(
        filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context
    )
    try:
        standing = take_stock_of_services(inventory, flag)
    except NoRangesError as error:
        raise typer.BadParameter(str(error)) from error
    for each in (*map(str, standing.refused), *(_told(each) for each in standing.remarks if not each.service)):
        shared.warn(printable(each))
    if address is not None:
        _tell_answer(check(standing, address), output)
    elif static is not None:
        _tell_next(next_static(standing, static), static, standing, output)
    else:
        _tell_all(standing, output, every=every)


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except PrefixError as error:
        raise typer.BadParameter(f"--check: {text!r} {error}") from error


def _tell_answer(answer: Answer, output: shared.Output) -> None:
    if output is not shared.Output.TABLE:
        typer.echo(structured({"check": _answer_as_object(answer)}, output), nl=False)
    else:
        can = {True: "can be had: ", False: "cannot be had: ", None: ""}[answer.available]
        where = f" ({_where(answer)})" if answer.range else ""
        typer.echo(printable(f"{answer.address} {can}{answer.why}{where}"))
        if answer.advice:
            shared.warn(answer.advice)
    if not answer.available:
        raise typer.Exit(NOT_TO_BE_HAD)


def _where(answer: Answer) -> str:
    return f"{answer.band.value} band of {answer.range}" if answer.band else f"{answer.range}, which has no bands"


def _tell_next(found: NextStatic, asked: int, standing: ServiceStanding, output: shared.Output) -> None:
    """An address a line, for people and for scripts."""
    if output is not shared.Output.TABLE:
        typer.echo(structured({"nextStatic": [str(each) for each in found.addresses]}, output), nl=False)
    else:
        typer.echo("".join(f"{each}\n" for each in found.addresses), nl=False)
    for family, count in found.short.items():
        ranges = ", ".join(str(book.cidr) for book in standing.books if book.cidr.family is family) or "none"
        shared.warn(f"only {count} of {asked} {family} addresses are free in static bands (ranges: {ranges})")
    if found.short:
        raise typer.Exit(NOT_TO_BE_HAD)


def _tell_all(standing: ServiceStanding, output: shared.Output, *, every: bool) -> None:
    if output is not shared.Output.TABLE:
        typer.echo(structured(_as_object(standing), output), nl=False)
        return
    console = Console()
    marks = marks_for(console) if console.is_terminal else None
    seats = list(standing.seats.values())
    shown = seats if every else seats[:_LINES]
    text = _ranges_table(standing, marks)
    if shown:
        text += "\n" + _seats_table(standing, shown)
    if len(shown) < len(seats):
        text += f"and {len(seats) - len(shown)} more; --all lists them\n"
    typer.echo(text, nl=False)
    remarks = [each for each in standing.remarks if each.service]
    for remark in remarks[:_LINES]:
        shared.warn(printable(_told(remark)))
    if len(remarks) > _LINES:
        shared.warn(f"and {len(remarks) - _LINES} more; -o json has them all")


def _told(remark: Remark) -> str:
    return " ".join(filter(None, (remark.service, remark.address, remark.message)))


def _ranges_table(standing: ServiceStanding, marks: Marks | None) -> str:
    """A row for each band, so that every number stands under its header. With marks, a bar is drawn of them."""
    header = ["RANGE", "BAND", "FIRST", "LAST", "CAPACITY", "ALLOCATED", "FREE", "STATE", "SOURCE"]
    rows = []
    for book in standing.books:
        for band in book.bands():
            used = [drawn(band.allocated, band.capacity, marks)] if marks else []
            name = band.band.value if book.known.range.static else "-"
            counts = map(str, (band.capacity, band.allocated, band.free))
            ends = str(band.first), str(band.last)
            rows.append([str(book.cidr), name, *ends, *counts, _state(book), book.known.source, *used])
    return table([*header, *(["USED"] if marks else [])], rows)


def _state(book: Book) -> str:
    if not book.known.gives:
        return "Terminating"
    return "Full" if book.taken.count == book.taken.size else "Active"


def _seats_table(standing: ServiceStanding, seats: list[Seat]) -> str:
    rows = [(str(seat.address), _band(standing, seat), *map(printable, _holder(seat))) for seat in seats]
    return table(("ADDRESS", "BAND", "HOLDER", "TYPE", "NOTE"), rows)


def _band(standing: ServiceStanding, seat: Seat) -> str:
    book = find_book(standing.books, seat.address)
    if book is None:
        return "not managed" if find_refused(standing.refused, seat.address) else "out of range"
    band = book.band(seat.address)
    return band.value if band else "-"


def _holder(seat: Seat) -> tuple[str, str, str]:
    """Who has an address, the type of the Service, and what else is to be said."""
    notes = [f"chosen {seat.chosen}"] if seat.chosen else []
    if seat.services:
        if seat.parent is not None and seat.parent not in seat.services:
            notes.append(f"its IPAddress is of {seat.parent or 'nobody'}")
    else:
        notes.append("by its IPAddress" if seat.parent is not None else "by its RangeAllocation; no Service has it")
    return seat.holder or "-", seat.type or "-", "; ".join(notes)


def _as_object(standing: ServiceStanding) -> dict[str, object]:
    return {
        "ranges": [
            {
                "cidr": str(book.cidr),
                "source": book.known.source,
                "state": _state(book),
                "bands": [
                    {
                        "band": band.band.value if book.known.range.static else None,
                        "first": str(band.first),
                        "last": str(band.last),
                        "capacity": band.capacity,
                        "allocated": band.allocated,
                        "free": band.free,
                    }
                    for band in book.bands()
                ],
            }
            for book in standing.books
        ],
        "refused": [{"cidr": str(each.cidr), "source": each.source, "message": each.why} for each in standing.refused],
        "addresses": [_seat_as_object(standing, seat) for seat in standing.seats.values()],
        "warnings": [
            {
                "reason": each.reason,
                "service": each.service or None,
                "address": each.address or None,
                "message": each.message,
            }
            for each in standing.remarks
        ],
    }


def _seat_as_object(standing: ServiceStanding, seat: Seat) -> dict[str, object]:
    book = find_book(standing.books, seat.address)
    band = book.band(seat.address) if book else None
    return {
        "address": str(seat.address),
        "range": str(book.cidr) if book else None,
        "band": band.value if band else None,
        **_who(seat),
    }


def _who(seat: Seat) -> dict[str, object]:
    return {
        "services": list(seat.services),
        "type": seat.type or None,
        "chosen": seat.chosen or None,
        "ipAddressOf": seat.parent,
        "inRangeAllocation": seat.granted is not None,
        "givenTo": seat.granted or None,
    }


def _answer_as_object(answer: Answer) -> dict[str, object]:
    return {
        "address": str(answer.address),
        "available": answer.available,
        "range": str(answer.range) if answer.range else None,
        "band": answer.band.value if answer.band else None,
        "message": answer.why,
        "advice": answer.advice or None,
        "holder": _who(answer.seat) if answer.seat else None,
    }
