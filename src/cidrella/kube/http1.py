"""A connection that speaks HTTP/1.1: one request at a time, and its reply, whole or as it comes in.

Rules:

- A request is written once. What becomes of it is its reply or an error, and nothing is tried again here.
- A connection that failed, or whose request was given up, is closed at once and without a goodbye, which TLS would wait
  for: nobody knows what else would come in. So is one on which the server speaks without being asked.
- A reply that is read as it comes in makes the server wait while its reader is busy.
- A connection that failed drops what came in of a reply that is read whole. Once it is lost, reference counting frees
  it: it keeps no error that was raised, whose traceback would lead back to it.

Theory of operation. There is at most one who waits, for the end of a reply or for more of it. Whatever happens is noted
first, as the state of the parser or as `_failed`, and then the one who waits is woken to look; so nothing is missed
between two looks. A request costs one write, one future and one timer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from cidrella.kube.replies import BadReplyError, BodyTooLargeError, Reply, ReplyParser

if TYPE_CHECKING:
    import ssl
    from collections.abc import MutableSet

READ_AHEAD: Final = 1 << 19
"""Bytes of a reply that wait to be read before the server is made to wait."""


class Connection(asyncio.Protocol):
    """A connection, in `alive` from when it is made until it is lost."""

    def __init__(self, alive: MutableSet[Connection]) -> None:
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.tls: ssl.SSLContext | None = None
        """What it was made with; kept by the owner, like:"""
        self.freed = 0.0
        """The loop's time since which nobody uses it."""
        self._alive = alive
        self.transport: asyncio.Transport | None = None
        self._parser = ReplyParser()
        self._waiter: asyncio.Future[None] | None = None
        self._failed = False
        self._error: Exception | None = None
        """What went wrong first, until it is raised."""
        self._streaming = False
        self._limit = 0
        self._unread = 0
        self._paused = False

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent."""
        parser, transport = self._parser, self.transport
        return (
            parser.ended
            and parser.reusable
            and not self._paused
            and transport is not None
            and not transport.is_closing()
        )

    async def exchange(self, request: bytes, deadline: float, limit: int) -> Reply:
        """Send a request and read the whole reply, of at most `limit` bytes, until the loop's time is `deadline`.

        Raises BadReplyError or OSError, TimeoutError among them; the connection is closed then, and if cancelled.
        """
        parser = self._parser
        self._send(request, streaming=False)
        self._limit = limit
        timer = self._loop.call_at(deadline, self._expire)
        try:
            while not parser.ended:
                await self._event()
        except BaseException:
            self.abort()
            raise
        finally:
            timer.cancel()
        assert parser.head is not None
        code, content_type, retry_after, _ = parser.head
        reply = Reply(code, content_type, retry_after, bytes(parser.body))
        parser.body.clear()
        return reply

    async def begin(self, request: bytes, deadline: float) -> Reply:
        """Send a request and return the head of its reply; `piece` gives the body. Raises as `exchange` does."""
        parser = self._parser
        self._send(request, streaming=True)
        timer = self._loop.call_at(deadline, self._expire)
        try:
            while parser.head is None:
                await self._event()
        except BaseException:
            self.abort()
            raise
        finally:
            timer.cancel()
        return parser.head

    async def piece(self) -> bytes:
        """What came in of the body since the last time, waiting for something; b"" at its end. Raises as above."""
        parser = self._parser
        while not parser.body:
            if parser.ended:
                return b""
            await self._event()
        taken = bytes(parser.body)
        parser.body.clear()
        self._unread = 0
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return taken

    def abort(self) -> None:
        """Close the connection, whatever is under way: that fails."""
        self._fail(ConnectionAbortedError("closed by us"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self.transport = cast("asyncio.Transport", transport)
        self._alive.add(self)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        parser = self._parser
        if parser.ended or self._failed:
            self.abort()
            return
        try:
            ended = parser.feed(data)
        except BadReplyError as error:
            self._fail(error)
            return
        if ended:
            self._wake()
        elif self._streaming:
            self._unread += len(data)
            if self._unread > READ_AHEAD and not self._paused and self.transport is not None:
                self._paused = True
                self.transport.pause_reading()
            self._wake()
        elif parser.size > self._limit:
            self._fail(BodyTooLargeError(f"the reply has more than {self._limit} bytes"))

    def eof_received(self) -> None:
        """Called by the loop; it closes the connection then."""
        self._parser.finish()
        if self._parser.ended:
            self._wake()
        else:
            self._fail(ConnectionResetError("the server closed it"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop, also after we closed the connection."""
        self._alive.discard(self)
        self._parser.reusable = False
        self._fail(exc or ConnectionResetError("the server closed it"))
        if not self.lost.done():
            self.lost.set_result(None)

    def _send(self, request: bytes, *, streaming: bool) -> None:
        assert self.transport is not None
        self._streaming = streaming
        self._unread = 0
        self._parser.expect()
        self.transport.write(request)

    async def _event(self) -> None:
        """Wait until something happens. Raises what went wrong already: whoever calls has looked at all else."""
        if self._failed:
            raise self._taken_error()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        """Note the first thing that went wrong, drop what came in, and close the connection."""
        if not self._failed:
            self._failed = True
            self._error = error
            error.__traceback__ = error.__cause__ = error.__context__ = None  # frames in which we are a local variable
            self._parser.reusable = False
            if not self._streaming and not self._parser.ended:
                self._parser.body.clear()
            if self.transport is not None:
                self.transport.abort()
        self._wake()

    def _taken_error(self) -> Exception:
        """What went wrong, to be raised, and kept no longer; raised again, it is only known that something did."""
        error, self._error = self._error, None
        return error or ConnectionAbortedError("closed by us")
