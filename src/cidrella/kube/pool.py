"""Connections that are kept: taken for one request, given back after it, closed when nobody needs them.

Rules:

- At most so many are in use at a time; whoever comes then waits for a turn, in order.
- The one that was used last is taken first, so that those that are too many grow old.
- One that is old is not used: the server, or something in front of it, may be about to close it.
- Connections belong to the ssl context that they were made with: once certificates change, new ones are made, and the
  old ones go as soon as they are not in use.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from cidrella.kube.errors import NoAnswerError

if TYPE_CHECKING:
    import ssl

    from cidrella.kube.dialing import Dialer
    from cidrella.kube.http1 import Connection

IDLE_MAX: Final = 15.0
"""Seconds for which a connection is kept without use."""

_CLOSING: Final = 1.0
"""Seconds that the event loop has to put closed connections away."""


class Pool:
    """The connections of one client, at most `size` in use."""

    def __init__(self, dialer: Dialer, size: int) -> None:
        self._dialer = dialer
        self._turns = asyncio.Semaphore(size)
        self._closed = False
        self._alive: set[Connection] = set()
        self._idle: list[Connection] = []
        self._tls: ssl.SSLContext | None = None
        """What all idle connections were made with."""
        self._sweeper: asyncio.TimerHandle | None = None

    async def take(self, tls: ssl.SSLContext | None, deadline: float) -> Connection:
        """A connection for one request, to be given back: one that is idle, or else a new one.

        Raises what `Dialer.dial` does, TimeoutError at the loop's time `deadline`, and NoAnswerError if closed.
        """
        now = asyncio.get_running_loop().time()
        if now >= deadline:
            raise TimeoutError
        if self._turns.locked():
            async with asyncio.timeout_at(deadline):
                await self._turns.acquire()
        else:
            await self._turns.acquire()
        try:
            return self._kept(tls, now) or await self._made(tls, deadline)
        except BaseException:
            self._turns.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for others, or close it if it is of no use to them."""
        self._turns.release()
        if self._closed or connection.tls is not self._tls or not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.freed = loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(IDLE_MAX, self._sweep)

    async def close(self) -> None:
        """Close all connections, those in use too. None can be taken afterwards."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        alive = list(self._alive)
        for each in alive:
            each.abort()
        if alive:
            await asyncio.wait([each.lost for each in alive], timeout=_CLOSING)

    def _kept(self, tls: ssl.SSLContext | None, now: float) -> Connection | None:
        """An idle connection that is as good as new."""
        if tls is not self._tls:
            self._tls = tls
            self._drop(len(self._idle))
        while self._idle:
            last = self._idle.pop()
            if last.reusable and last.freed > now - IDLE_MAX:
                return last
            last.abort()
        return None

    async def _made(self, tls: ssl.SSLContext | None, deadline: float) -> Connection:
        self._check_open()
        async with asyncio.timeout_at(deadline):
            connection = await self._dialer.dial(tls, self._alive, deadline)
        connection.tls = tls
        try:
            self._check_open()  # it may have been closed meanwhile
        except NoAnswerError:
            connection.abort()
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise NoAnswerError("the client is closed")

    def _sweep(self) -> None:
        """Close those that nobody has used for long: they are the first ones. Look again later if others are left."""
        loop = asyncio.get_running_loop()
        old = loop.time() - IDLE_MAX
        self._drop(sum(each.freed <= old for each in self._idle))
        self._sweeper = loop.call_later(IDLE_MAX, self._sweep) if self._idle else None

    def _drop(self, count: int) -> None:
        """Close the first so many idle connections."""
        for each in self._idle[:count]:
            each.abort()
        del self._idle[:count]
