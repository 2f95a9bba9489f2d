"""Events for people, through events.k8s.io/v1: the part that talks to the API (O3).

Rules, on top of those of `series`, which decides what is told, and when:

- `record` only notes down: it never waits, and never fails.
- One request at a time. What the API does not take is logged once for each kind of refusal, then dropped.
- An event that the API has forgotten (it keeps them for an hour) begins anew.
- When `run` is cancelled, what can be told within `FLUSH_SECONDS` and the usual pace is told.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from cidrella.kube.client import MERGE_PATCH
from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.series import EventSettings, Occurrence, Reference, Series, SeriesBook, TokenBucket
from cidrella.model.event import NOTE_MAX, WORD_MAX, Event, EventSeries, ObjectReference, cut, event_name, events_path
from cidrella.model.lease import micro_time
from cidrella.model.objects import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.kube.client import Client

__all__ = ["EventSettings", "Recorder", "Reference"]

FLUSH_SECONDS: Final = 0.5
"""What the last words may take: a process that is told to end has little time, and little of it is for this."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

_log = structlog.get_logger()


class Recorder:
    """What is recorded here is told to the API while `run` runs.

    `controller` and `instance` are who reports: a name with a domain, and the one process among several.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        controller: str = "cidrella.dev/controller",
        settings: EventSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = cut(instance, WORD_MAX)
        self._settings = settings or EventSettings()
        self._clock = clock
        self._book = SeriesBook(self._settings)
        self._pace = TokenBucket(self._settings.rate, self._settings.burst, clock())
        self._recorded = asyncio.Event()
        self._logged: set[tuple[object, ...]] = set()

    @property
    def dropped(self) -> int:
        """How often something was not told: for want of room, or because the API did not take it."""
        return self._book.dropped

    def record(
        self,
        about: Reference,
        reason: str,
        note: str,
        *,
        type: str = "Warning",  # noqa: A002 -- the API's name
        action: str = "Allocate",
    ) -> None:
        """Note down that something happened to an object. `type` is Warning or Normal. Never blocks, never raises."""
        what = Occurrence(about, type, cut(reason, WORD_MAX), cut(note, NOTE_MAX), cut(action, WORD_MAX))
        self._book.record(what, self._clock(), time.time())
        self._recorded.set()

    async def run(self) -> None:
        """Tell the API what is recorded, for ever, until cancelled."""
        try:
            while True:
                await self._something_due()
                while (seconds := self._pace.wait(self._clock())) > 0:
                    await asyncio.sleep(seconds)
                await self._tell_next()
        finally:
            await self._flush()

    async def _something_due(self) -> None:
        """Wait until there is something to tell."""
        while (seconds := self._book.wait(self._clock())) != 0:
            self._recorded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._recorded.wait()

    async def _flush(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                while self._book.pending and self._pace.wait(self._clock()) == 0:
                    if not await self._tell_next():
                        return

    async def _tell_next(self) -> bool:
        """One request, and what follows from its outcome; False if there was no success."""
        series = self._book.take(self._clock())
        so_many = series.count
        try:
            await self._send(series)
        except asyncio.CancelledError:
            self._book.failed(series, self._clock(), retry_after=0)
            raise
        except KubeError as error:
            self._refused(series, error)
            return False
        self._book.told(series, so_many, self._clock())
        return True

    async def _send(self, series: Series) -> None:
        """Create the event or tell its new count. Raises KubeError."""
        events = events_path(series.what.about.namespace or self._settings.namespace)
        method, path, content_type = "PATCH", f"{events}/{series.name}", MERGE_PATCH
        body: object = {"series": _count_of(series)}
        if not series.exists:
            series.name = series.name or event_name(series.what.about.name, secrets.token_hex(8))
            method, path, content_type, body = "POST", events, "application/json", self._event(series)
        seconds = self._settings.timeout
        encoded = msgspec.json.encode(body)
        await self._client.request(method, path, body=encoded, content_type=content_type, timeout=seconds)

    def _event(self, series: Series) -> Event:
        about, what = series.what.about, series.what
        return Event(
            metadata=ObjectMeta(name=series.name),
            event_time=micro_time(series.first),
            action=what.action,
            reason=what.reason,
            regarding=ObjectReference(
                api_version=about.api_version,
                kind=about.kind,
                namespace=about.namespace,
                name=about.name,
                uid=about.uid,
            ),
            note=what.note,
            type=what.type,
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            series=_count_of(series) if series.count > 1 else None,
        )

    def _refused(self, series: Series, error: KubeError) -> None:
        """Draw the consequences of a request that failed."""
        code = error.code if isinstance(error, ApiError) else 0
        if code == _NOT_FOUND and series.exists:
            self._book.gone(series)
            return
        if code == _CONFLICT and not series.exists:
            self._book.told(series, 1, self._clock())  # an earlier attempt got there, of which nothing was heard
            return
        if (type(error), code) not in self._logged:
            self._logged.add((type(error), code))
            _log.warning(
                "an event was not taken, and further ones may not be", reason=series.what.reason, error=str(error)
            )
        asked = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
        self._book.failed(series, self._clock(), asked if error.unsettled else None)


def _count_of(series: Series) -> EventSeries:
    return EventSeries(count=series.count, last_observed_time=micro_time(series.last))
