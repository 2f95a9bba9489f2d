"""What the watch on Services shows goes into the books at once: what was let go is freed, what came is put back.

Rules:

- Only the repairer does this, and only what it hears of during its term: everything else is for its rounds.
- An address that no Service has any more is freed, unless the books remember that it was given to another Service, or
  again to the same: that one may be about to be stored.
- An address that a Service has and that the books lack was given by the API server's own allocator. It is put back, and
  told (B8). Where the books have it already, as they do if we gave it, there is nothing to do.
- What does not work is not tried again: the rounds see to it. Nor is anything freed that the rounds may have freed by
  then, for it may be somebody else's already.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from cidrella.core.repair import Finding, Wrong
from cidrella.kube.errors import KubeError
from cidrella.serviceip.errors import DeposedError, UnusableError

if TYPE_CHECKING:
    from cidrella.model.serviceip import Grant
    from cidrella.serviceip.books import Books
    from cidrella.serviceip.holders import Holders, Moves
    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.notices import Notices
    from cidrella.serviceip.state import State
    from cidrella.serviceip.tenure import Tenure

_log = structlog.get_logger()

_PACE: Final = 0.1
"""Seconds between two turns. Services that come or go in one are looked up and entered together."""


class _Loss(NamedTuple):
    """An address that a Service let go, and until when that is reason enough to free it."""

    service: str
    until: float


@dataclass(slots=True)
class _News:
    """What is to be done about one range, by offset."""

    lost: dict[int, _Loss] = field(default_factory=dict)
    gained: dict[int, str] = field(default_factory=dict)


class Follower:
    """Enters what is heard. `lifetime` is for how long a loss is news, in seconds."""

    def __init__(self, books: Books, holders: Holders, tenure: Tenure, notices: Notices, lifetime: float) -> None:
        self._books = books
        self._holders = holders
        self._tenure = tenure
        self._notices = notices
        self._lifetime = lifetime
        self._news: dict[Ledger, _News] = defaultdict(_News)
        self._term = ""
        """The term in which the news came."""
        self._wake = asyncio.Event()

    def hear(self, moves: Moves) -> None:
        """Note what the watch told."""
        if not self._tenure.on:
            return
        if self._term != self._tenure.term:
            self._term = self._tenure.term
            self._news.clear()
        until = asyncio.get_running_loop().time() + self._lifetime
        for ledger in self._books.ledgers():
            for address, service in moves.lost.items():
                if (offset := ledger.range.offset(address)) is not None:
                    self._news[ledger].lost[offset] = _Loss(service, until)
            for address, service in moves.gained.items():
                if (offset := ledger.range.offset(address)) is not None:
                    self._news[ledger].gained[offset] = service
        if self._news:
            self._wake.set()

    async def run(self) -> None:
        """Enter what is heard, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            news, self._news = self._news, defaultdict(_News)
            await asyncio.gather(*(self._enter(ledger, each, self._term) for ledger, each in news.items()))
            await asyncio.sleep(_PACE)

    async def _enter(self, ledger: Ledger, news: _News, term: str) -> None:
        try:
            if news.lost:
                await self._free(ledger, news.lost, term)
            if news.gained:
                await self._put_back(ledger, news.gained, term)
        except DeposedError:
            pass  # who leads now sees it as well
        except (KubeError, UnusableError) as error:
            _log.warning(
                "what changed among the Services is left to the rounds",
                range=str(ledger.range.cidr),
                error=str(error),
            )

    async def _free(self, ledger: Ledger, lost: dict[int, _Loss], term: str) -> None:
        clock = asyncio.get_running_loop().time

        def edit(state: State) -> int:
            self._tenure.require(term)
            going = [
                offset
                for offset, loss in lost.items()
                if clock() < loss.until
                and state.range.address(offset) not in self._holders
                and _is_over(state.recent.get(offset), loss.service)
            ]
            return sum(state.free(offset, term) for offset in going)

        freed = await ledger.change(edit, once=True)
        _log.debug("freed what Services let go", range=str(ledger.range.cidr), addresses=freed)

    async def _put_back(self, ledger: Ledger, gained: dict[int, str], term: str) -> None:
        state = ledger.state
        if state is None or any(offset not in state.bitmap for offset in gained):
            state = await ledger.refresh()  # another replica may have given it
        if all(offset in state.bitmap for offset in gained):
            return

        def edit(state: State) -> list[int]:
            self._tenure.require(term)
            there = [offset for offset in gained if state.range.address(offset) in self._holders]
            return [offset for offset in there if state.add(offset)]

        for offset in await ledger.change(edit):
            address = str(ledger.range.address(offset))
            self._notices.found(Finding(gained[offset], address, Wrong.NOT_ALLOCATED))


def _is_over(entry: Grant | None, service: str) -> bool:
    """Whether what is remembered of an address is no more than the grant to the Service that is gone.

    A Service that was given its address before it had a name is remembered by the beginning of its name, and a "*".
    """
    if entry is None:
        return True
    beginning, unnamed, _ = entry.service.partition("*")
    return not entry.again and (service.startswith(beginning) if unnamed else service == entry.service)
