"""What the page shows beside what the controller knows: Services and events, followed while somebody looks.

Nobody needs them but the page: while nobody looks, nobody is asked for them, and nothing is kept of them. Where they
may not be listed, the page says so, and goes without.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from cidrella.app import page_events
from cidrella.app.page_events import SeenEvent, read_event
from cidrella.app.page_services import Seats
from cidrella.kube.reflector import Reflector
from cidrella.kube.reflector_settings import Absence, ReflectorSettings
from cidrella.model.serviceip import SERVICES_PATH, SeenService, read_service
from cidrella.web.board import LAST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cidrella.controller.insight import Insight
    from cidrella.kube.client import Client
    from cidrella.kube.reflector import Change
    from cidrella.web import api
    from cidrella.web.board import News

_PATIENCE: Final = 1.0
"""Seconds that one who looks waits for them to be listed; longer, and the page is shown without."""
_LOOK: Final = 0.02
"""Seconds between two looks at whether they are."""
_PIECE: Final = 200
"""Services that are looked at without letting others have their turn: some milliseconds."""
_ALWAYS: Final = ReflectorSettings(absence=Absence.NEVER)


class Surroundings:
    """Followed by reflectors of their own, new ones each time."""

    def __init__(self, client: Client, insight: Insight) -> None:
        self._client = client
        self._insight = insight
        self._forget()

    def _forget(self) -> None:
        self._seats = Seats()
        self._unseated: deque[Change[SeenService]] = deque()
        """What became of Services, to be looked at."""
        self._cidrs: tuple[object, ...] | None = None
        self._told: dict[str, api.Event] = {}
        self._reflectors: dict[str, Reflector[Any]] = {}

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follow them while this lasts. It begins when they are listed, or when that takes too long."""
        services = Reflector(self._client, SERVICES_PATH, read_service, self._services_changed, settings=_ALWAYS)
        events = Reflector(self._client, page_events.PATH, read_event, self._events_changed, settings=_ALWAYS)
        self._reflectors = {"Services": services, "Events": events}
        try:
            async with asyncio.TaskGroup() as group:
                following = [group.create_task(each.run()) for each in self._reflectors.values()]
                await self._wait_listed()
                yield
                for task in following:
                    task.cancel()
        finally:
            self._forget()

    async def _wait_listed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while not all(each.synced or each.trouble for each in self._reflectors.values()):
                    await asyncio.sleep(_LOOK)

    @property
    def remarks(self) -> list[str]:
        """What cannot be shown, or may not be true any more, and why."""
        return [*filter(None, (_remark(*each) for each in self._reflectors.items())), *self._seats.warnings]

    async def look(self, news: News) -> None:
        """What changed, found in small pieces: there may be ten thousand Services."""
        told, self._told = self._told, {}
        news.events = sorted(told.values(), key=lambda each: (each.time, each.id))[-LAST:]
        cidrs = tuple(self._insight.service_ranges.values())
        if cidrs != self._cidrs:
            self._cidrs = cidrs
            self._seats.set_ranges(self._insight.flags.service_ranges, cidrs)
        services: list[api.Service] = []
        gone: list[str] = []
        while self._unseated or self._seats.touched:
            for _ in range(min(_PIECE, len(self._unseated))):
                self._seats.change(*self._unseated.popleft())
            rows, left = self._seats.take(_PIECE)
            services += rows
            gone += left
            await asyncio.sleep(0)
        news.services, news.services_gone = services, gone
        news.service_ranges = self._seats.ranges()

    def _services_changed(self, changes: list[Change[SeenService]]) -> None:
        self._unseated.extend(changes)

    def _events_changed(self, changes: list[Change[SeenEvent]]) -> None:
        self._told |= {new.row.id: new.row for _, new in changes if new is not None and new.row is not None}


def _remark(what: str, reflector: Reflector[Any]) -> str:
    if reflector.trouble:
        how = "may have changed since they were seen" if reflector.synced else "are not shown"
        return f"{what} {how}: {reflector.trouble}"
    return "" if reflector.synced else f"{what} are not shown yet: they are being listed"
