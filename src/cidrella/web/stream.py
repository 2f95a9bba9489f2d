"""Following changes: `GET /api/v1/stream`, as server-sent events.

Rules:

- Changes go out in order, none twice and none left out. Who cannot be told them any more is told to load everything
  anew (`event: reload`), and that is the end of it.
- Nobody is buffered for: who does not take in what was sent for some seconds is cut off: by us where it is much, by the
  system where it is not even that.
- It ends after some minutes. Browsers come back by themselves, from where they were, and show again who they are.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cidrella.web.answers import fault
from cidrella.web.history import ForgottenError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.web.board import Board
    from cidrella.web.series import WebSeries

VIEWERS_MAX: Final = 500
HEARTBEAT: Final = 15.0
"""Seconds of silence after which a sign of life is sent: proxies close what is silent, and who went away is noticed."""
STALLED: Final = 10.0
"""Seconds that one may take to take in what was sent."""
LASTS: Final = 600.0
"""Seconds until it ends."""
_CHUNK: Final = 1 << 16
"""Bytes that are sent at a time: about as much is in memory for one who does not read."""
_ALIVE: Final = b"event: alive\ndata: {}\n\n"
"""No comment, of which browsers do not tell the page: it is to notice when nothing comes any more, too."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class Streams:
    """All that are open."""

    def __init__(self, board: Board, series: WebSeries) -> None:
        self._board = board
        self._series = series
        self._viewers = 0
        self.heartbeat = HEARTBEAT
        self.stalled = STALLED
        self.lasts = LASTS

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One of them, until it ends."""
        try:
            since = int(
                request.headers.get("Last-Event-ID") or request.query.get("since") or self._board.history.version
            )
        except ValueError:
            return fault(400, "since is no version")
        if self._viewers >= VIEWERS_MAX:
            return fault(503, f"{VIEWERS_MAX} look already; ask again later", **{"Retry-After": "30"})
        with self._seat():
            response = web.StreamResponse(headers=_HEADERS)
            await response.prepare(request)
            try:
                async with asyncio.timeout(self.lasts):
                    await self._tell(response, since)
            except TimeoutError:
                pass  # which is the end of it
            except _StalledError:
                self._series.dropped.inc()
                if request.transport is not None:
                    request.transport.abort()
            except ConnectionError:
                pass  # it has gone
            return response

    @contextmanager
    def _seat(self) -> Iterator[None]:
        self._viewers += 1
        self._series.viewers.set(self._viewers)
        self._board.came()
        try:
            yield
        finally:
            self._viewers -= 1
            self._series.viewers.set(self._viewers)
            self._board.went()

    async def _tell(self, response: web.StreamResponse, version: int) -> None:
        history = self._board.history
        await self._send(response, b"retry: 1000\n\n")
        while not history.ended:
            try:
                changes = history.after(version)
            except ForgottenError:
                await self._send(response, b"event: reload\ndata: {}\n\n")
                return
            version += len(changes)
            for change in changes:
                await self._send(response, change)
            if not changes and not await self._waited(version):
                await self._send(response, _ALIVE)

    async def _waited(self, version: int) -> bool:
        """Whether there was news before it was time for a sign of life."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.heartbeat):
                await self._board.history.wait(version)
                return True
        return False

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        """Raises `_StalledError` where it is not taken in."""
        for at in range(0, len(data), _CHUNK):
            try:
                async with asyncio.timeout(self.stalled):
                    await response.write(data[at : at + _CHUNK])
            except TimeoutError as error:
                raise _StalledError from error


class _StalledError(Exception):
    """Somebody does not read."""
