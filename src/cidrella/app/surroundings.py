"""What the page shows beside what the controller knows: Services and events, followed once somebody looks.

Nobody needs them but the page. Where they may not be listed, the page says so, and goes without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cidrella.app import page_events
from cidrella.app.page_events import SeenEvent, read_event
from cidrella.app.page_services import Seats
from cidrella.kube.reflector import Reflector
from cidrella.kube.reflector_settings import Absence, ReflectorSettings
from cidrella.model.serviceip import SERVICES_PATH, SeenService, read_service
from cidrella.web.board import LAST

if TYPE_CHECKING:
    from cidrella.controller.insight import Insight
    from cidrella.kube.client import Client
    from cidrella.kube.reflector import Change
    from cidrella.web.board import Board, News

_ALWAYS = ReflectorSettings(absence=Absence.NEVER)


class Surroundings:
    """Followed by reflectors of their own."""

    def __init__(self, client: Client, insight: Insight, board: Board) -> None:
        self._insight = insight
        self._board = board
        self._seats = Seats()
        self._services: Reflector[SeenService] = Reflector(
            client, SERVICES_PATH, read_service, self._services_changed, settings=_ALWAYS
        )
        self._events: Reflector[SeenEvent] = Reflector(
            client, page_events.PATH, read_event, self._events_changed, settings=_ALWAYS
        )
        self.begin()

    def begin(self) -> None:
        """Nothing is drawn yet."""
        self._cidrs: tuple[object, ...] | None = None
        self._told = {each.row.id: each.row for each in self._events.objects.values() if each.row is not None}
        self._seats.begin()

    @property
    def remarks(self) -> list[str]:
        """What cannot be shown, and why."""
        troubles = {"Services": self._services.trouble, "Events": self._events.trouble}
        return [f"{what} are not shown: {trouble}" for what, trouble in troubles.items() if trouble]

    async def run(self) -> None:
        """Follow from the first look on."""
        await self._board.wait_looked_at()
        await asyncio.gather(self._services.run(), self._events.run())

    def look(self, news: News) -> None:
        """What changed."""
        told, self._told = self._told, {}
        news.events = sorted(told.values(), key=lambda each: (each.time, each.id))[-LAST:]
        cidrs = tuple(self._insight.service_ranges.values())
        if cidrs != self._cidrs:
            self._cidrs = cidrs
            self._seats.set_ranges(self._insight.flags.service_ranges, cidrs)
        news.services, news.services_gone = self._seats.take()
        news.service_ranges = self._seats.ranges()

    def _services_changed(self, changes: list[Change[SeenService]]) -> None:
        for change in changes:
            self._seats.change(*change)

    def _events_changed(self, changes: list[Change[SeenEvent]]) -> None:
        if self._board.looked_at:
            self._told |= {new.row.id: new.row for _, new in changes if new is not None and new.row is not None}
