"""Connections to one who answers HTTP, in bounds: how many there are, and how long the head of a request may take.

aiohttp bounds what a connection may be idle, and who answers bounds what a body may take. In between is the head: who
begins one has to end it soon. The beginning is seen here, as bytes that come in while nothing is answered; that a
request is answered is told by a middleware.

Where there are as many as may be, the oldest that asks nothing makes room for a new one: nobody keeps a kubelet out by
holding connections.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Serve = Callable[[], asyncio.Protocol]


class Connections:
    """Those there are; no more than `limit`, and `patience` is what a head may take, in seconds.

    `on_stalled` is told of each that the system closed because the other side took in nothing.
    """

    def __init__(self, limit: int, patience: float, on_stalled: Callable[[], None]) -> None:
        self.limit = limit
        self.patience = patience
        self.on_stalled = on_stalled
        self.open: dict[asyncio.BaseTransport, _Connection] = {}

    def accept(self, serve: Serve) -> asyncio.Protocol:
        """The protocol of a new one, around the one that serves it."""
        return _Connection(self, serve)

    def make_room(self) -> bool:
        """Close the oldest that is not answered; False if all are."""
        for transport, connection in self.open.items():
            if not connection.answering and not transport.is_closing():
                cast("asyncio.Transport", transport).abort()
                return True
        return False

    @contextmanager
    def answering(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """While a request that came by this connection is answered."""
        found = self.open.get(transport) if transport else None
        if found is None:  # it is closed by now
            yield
            return
        found.begin()
        try:
            yield
        finally:
            found.answering = False


class _Connection(asyncio.Protocol):
    """One of them, and the protocol inside it, which it passes everything on to."""

    def __init__(self, connections: Connections, serve: Serve) -> None:
        self._connections = connections
        self._serve = serve
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.answering = False

    def begin(self) -> None:
        """The head is there."""
        self.answering = True
        self._disarm()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if len(self._connections.open) >= self._connections.limit and not self._connections.make_room():
            self._transport.abort()
            return
        self._connections.open[transport] = self
        self._inner = self._serve()
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._inner is None or self._transport is None:
            return
        if not self.answering and self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._connections.patience, self._transport.abort)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner else None

    def pause_writing(self) -> None:
        if self._inner:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner:
            self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._disarm()
        if isinstance(error, TimeoutError):
            self._connections.on_stalled()
        if self._inner and self._transport:
            del self._connections.open[self._transport]
            self._inner.connection_lost(error)
            self._inner = None

    def _disarm(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None
