"""Addresses for a Service: one for each family that it wants, or none at all (B9).

Theory of operation:

- A family may have several ranges. What is drawn comes from the dynamic bands of all of them, in order, before it comes
  from the static ones, in order: what people choose from is kept for them as long as anything else is left (B3).
- An address that is named comes from the range that has it, whichever band it is in (B4).
- The families of a Service are asked at the same time. If one fails, what the other gave is given back. What cannot be
  given back, because the API is away, is freed by the repairer.
- A Service that is refused after it was given an address, and comes again and again, gets another one each time: it may
  be the address that was refused. But only so often: then it gets those that it had before, in turn. Else one Service
  in a hot loop would use up a range before the repairer has freed anything.
- Addresses that the API server's own allocator has given (`Ledger.foreign`) are never drawn, and those who name one are
  told whose it is.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from cidrella.core.bands import Band
from cidrella.core.draw import draw
from cidrella.serviceip.errors import FullError, NoRangeError, OutOfRangeError, TakenError
from cidrella.serviceip.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cidrella.core.address import Address
    from cidrella.core.prefix import Family, Prefix
    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.metrics import Metrics

    How = Callable[[State, int, str], None]

_log = structlog.get_logger()

MOST_IDLE: Final = 16
"""How many addresses that nobody has, as far as is known, one Service was given of late before it gets no other."""


class Want(NamedTuple):
    """An address of a family that a Service wants: this very one, or any."""

    family: Family
    address: Address | None = None

    @property
    def scope(self) -> Band:
        """How it is asked for, as metrics say it (B10)."""
        return Band.DYNAMIC if self.address is None else Band.STATIC


class Given(NamedTuple):
    """An address that was given, and all that it takes to give it back."""

    address: Address
    write: str
    cidr: Prefix
    band: Band
    """The band that it lies in, however it was asked for."""


class Transaction:
    """Addresses that were given to one Service, until somebody says whether it takes them."""

    def __init__(self, given: Sequence[tuple[Ledger, Given]] = (), *, dry_run: bool = False) -> None:
        self._open = [] if dry_run else list(given)
        self.given = tuple(each for _, each in given)
        """In the order in which they were wanted."""

    async def commit(self) -> None:
        """The Service has them now: nothing is left to revert."""
        self._open = []

    async def revert(self) -> None:
        """Give them back, unless they are committed or given back already. Says in the log what it cannot do."""
        given, self._open = self._open, []
        await _give_back(given, State.revert)


class Allocator:
    """Gives addresses of the ranges that `ledgers` returns, in their order. `below(n)` draws from 0 to n - 1.

    `idle` says of an address that was given whether no Service is known to have it.
    """

    def __init__(
        self,
        ledgers: Callable[[], Sequence[Ledger]],
        *,
        below: Callable[[int], int] = secrets.randbelow,
        idle: Callable[[Address], bool] = lambda _: False,
        metrics: Metrics | None = None,
    ) -> None:
        self._ledgers = ledgers
        self._idle = idle
        self._below = below
        self._metrics = metrics

    async def allocate(self, service: str, wants: Sequence[Want], *, dry_run: bool = False) -> Transaction:
        """All that a Service ("namespace/name") wants, or nothing. A dry run says what it would give (B7).

        Raises Refusal, KubeError, UnusableError. If it is cancelled, what was given is given back, later.
        """
        found: dict[int, tuple[Ledger, Given]] = {}
        asked = [self._serve(service, want, number, found, dry_run=dry_run) for number, want in enumerate(wants)]
        try:
            failures = [each for each in await asyncio.gather(*asked, return_exceptions=True) if each is not None]
            given = [found[number] for number in sorted(found)]
        except asyncio.CancelledError:
            _give_back_later(() if dry_run else found.values(), State.revert)
            raise
        if failures:
            await _give_back(() if dry_run else given, State.revert)
            raise failures[0]
        return Transaction(given, dry_run=dry_run)

    async def release(self, given: Iterable[Given]) -> None:
        """Give back addresses that one has still. What is not allocated, or of no range, is no error (B7).

        Says in the log what it cannot do: the repairer frees what nobody has.
        """
        ledgers = {ledger.range.cidr: ledger for ledger in self._ledgers()}
        await _give_back([(ledgers[each.cidr], each) for each in given if each.cidr in ledgers], State.release)

    async def _serve(
        self, service: str, want: Want, number: int, found: dict[int, tuple[Ledger, Given]], *, dry_run: bool
    ) -> None:
        """Fulfil one want, and put what was given among the others."""
        ledgers = [ledger for ledger in self._ledgers() if ledger.range.cidr.family is want.family]
        try:
            if want.address is None:
                ledger, given = await self._draw(service, want.family, ledgers, dry_run=dry_run)
            else:
                ledger, given = await _name(service, want.address, ledgers, dry_run=dry_run)
        except Exception:
            if self._metrics and not dry_run:
                self._metrics.failed((ledger.range.cidr for ledger in ledgers), want.scope)
            raise
        found[number] = ledger, given
        if self._metrics and not dry_run:
            self._metrics.given(given.cidr, want.scope)

    async def _draw(
        self, service: str, family: Family, ledgers: Sequence[Ledger], *, dry_run: bool
    ) -> tuple[Ledger, Given]:
        """Any address: of the dynamic bands, then of the static ones."""
        if not ledgers:
            raise NoRangeError(family)
        for ledger, bands in _steps(ledgers):
            try:
                edit = partial(self._grant_any, ledger=ledger, bands=bands, service=service)
                return ledger, await _changed(ledger, edit, dry_run=dry_run)
            except FullError:
                continue
        raise FullError(ledger.range.cidr for ledger in ledgers)

    def _grant_any(self, state: State, *, ledger: Ledger, bands: Iterable[Band], service: str) -> Given:
        idle = [each for each in state.given_to(service) if self._idle(state.range.address(each))]
        if len(idle) >= MOST_IDLE:
            for offset in idle:
                if offset not in ledger.foreign:
                    with suppress(TakenError):  # there are too many of these already
                        return _grant(state, offset, service)
        for band in bands:
            drawn = draw(state.bitmap, state.range.bounds(band), self._below, ledger.foreign)
            if drawn is not None:
                return _grant(state, drawn, service)
        raise FullError((state.range.cidr,))


def _steps(ledgers: Sequence[Ledger]) -> list[tuple[Ledger, tuple[Band, ...]]]:
    """The bands in the order in which they are drawn from; those of a lone range in one change."""
    bands = (Band.DYNAMIC, Band.STATIC)
    if len(ledgers) == 1:
        return [(ledgers[0], bands)]
    return [(ledger, (band,)) for band in bands for ledger in ledgers]


async def _name(service: str, address: Address, ledgers: Sequence[Ledger], *, dry_run: bool) -> tuple[Ledger, Given]:
    """This very address."""
    if not ledgers:
        raise NoRangeError(address.family)
    for ledger in ledgers:
        if (offset := ledger.range.offset(address)) is not None:
            edit = partial(_grant_named, ledger=ledger, offset=offset, service=service)
            return ledger, await _changed(ledger, edit, dry_run=dry_run)
    raise OutOfRangeError(address, (ledger.range.cidr for ledger in ledgers))


async def _changed(ledger: Ledger, edit: Callable[[State], Given], *, dry_run: bool) -> Given:
    return await (ledger.peek(edit) if dry_run else ledger.change(edit, undo=_revert))


def _grant_named(state: State, *, ledger: Ledger, offset: int, service: str) -> Given:
    """One that is foreign is taken, unless by this very Service: the API server has yet to forget its last life."""
    by = ledger.foreign.get(offset, service)
    if by != service:
        raise TakenError(state.range.address(offset), by)
    return _grant(state, offset, service)


def _grant(state: State, offset: int, service: str) -> Given:
    state.grant(offset, service)
    return Given(state.range.address(offset), state.last_write, state.range.cidr, state.range.band(offset))


def _revert(state: State, given: Given) -> None:
    _end(state, given, State.revert)


def _end(state: State, given: Given, how: How) -> None:
    offset = state.range.offset(given.address)
    if offset is not None:
        how(state, offset, given.write)


async def _give_back(given: Iterable[tuple[Ledger, Given]], how: How) -> None:
    """Give addresses back, and wait for it. It goes on if whoever waits is cancelled."""
    if under_way := _give_back_later(given, how):
        await asyncio.wait(under_way)


def _give_back_later(given: Iterable[tuple[Ledger, Given]], how: How) -> list[asyncio.Future[None]]:
    under_way = []
    for ledger, each in given:
        released = ledger.submit(partial(_end, given=each, how=how), once=True)
        released.add_done_callback(partial(_say_if_failed, each))
        under_way.append(released)
    return under_way


def _say_if_failed(given: Given, released: asyncio.Future[None]) -> None:
    if not released.cancelled() and (error := released.exception()) is not None:
        _log.warning(
            "an address could not be given back: it is for the repairer", address=str(given.address), error=str(error)
        )
