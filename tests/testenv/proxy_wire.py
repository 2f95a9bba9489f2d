"""One end of the proxy's conversations: HTTP/1.1 (h11) on TLS (`ssl` on memory buffers) on a TCP stream (asyncio).

Why not asyncio's own TLS: a fault has to say exactly what the peer receives. Here, what was sent has left when `send`
returns; `abort` then ends TCP without ending TLS; `reset` is a TCP reset; and a connection belongs to its owner from
the first byte of the handshake, so that stopping the proxy leaves nothing behind.

Reading and writing may run in two tasks at a time, one each. Both can be cancelled without losing what was received.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from enum import StrEnum
from typing import Final

import h11

CHUNK: Final = 64 * 1024
"""How much is read at a time at most, in bytes."""
MAX_HEAD: Final = 1024 * 1024
"""How long a head may be, in bytes: what Go's server takes. h11's own limit of 16 KiB is less than some tokens need."""
GOODBYE_TIMEOUT: Final = 10.0
"""How long an orderly close waits for the peer to close too, in seconds. Stopping the proxy does not wait for it."""
LINGER_NOT: Final = struct.pack("ii", 1, 0)
"""For SO_LINGER: on, for no seconds. Closing then throws away what is unsent, and resets the connection."""


class Peer(StrEnum):
    """Who is at the other end."""

    CLIENT = "client"
    UPSTREAM = "upstream"


class LostError(Exception):
    """The peer is gone, or no longer speaks HTTP; the cause is chained under it."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(f"{peer} lost")
        self.peer = peer


class Tls:
    """TLS that never touches a socket: what was received goes into one buffer, what is to be sent comes out of one."""

    def __init__(self, context: ssl.SSLContext, *, server_hostname: str | None) -> None:
        self.received = ssl.MemoryBIO()
        self.to_send = ssl.MemoryBIO()
        self.session = context.wrap_bio(
            self.received, self.to_send, server_side=server_hostname is None, server_hostname=server_hostname
        )

    def encrypt(self, data: bytes) -> bytes:
        """Return what to send for this data."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.session.write(rest) :]
        return self.to_send.read()


class Stream:
    """Bytes to and from a peer, with or without TLS. Failures are OSError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: Tls | None) -> None:
        self._reader = reader
        self._writer = writer
        self._tls = tls
        # So that drain() waits until the kernel has everything: an abort would throw away what is left here.
        writer.transport.set_write_buffer_limits(0)

    async def handshake(self) -> None:
        """Agree on TLS, if there is to be any."""
        agreed = self._tls is None
        while self._tls and not agreed:
            try:
                self._tls.session.do_handshake()
                agreed = True
            except ssl.SSLWantReadError:
                pass
            finally:
                await self._flush(self._tls.to_send.read())  # also when it fails: it tells the peer why
            if not agreed:
                await self._fill(self._tls)

    async def read(self) -> bytes:
        """Return what comes next; nothing at the end. An end of TCP before that of TLS is an error."""
        if not self._tls:
            return await self._reader.read(CHUNK)
        while True:
            try:
                return self._tls.session.read(CHUNK)
            except ssl.SSLWantReadError:
                await self._fill(self._tls)

    async def write(self, data: bytes) -> None:
        """Send, and return when the kernel has it all."""
        await self._flush(self._tls.encrypt(data) if self._tls else data)

    async def close(self) -> None:
        """Say goodbye and wait a little for the peer's: to close with bytes unread resets, and loses what is sent."""
        with contextlib.suppress(OSError, TimeoutError):
            if self._tls:
                with contextlib.suppress(ssl.SSLWantReadError):
                    self._tls.session.unwrap()
                await self._flush(self._tls.to_send.read())
            self._writer.write_eof()
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                while await self._reader.read(CHUNK):
                    pass

    def abort(self) -> None:
        """End TCP at once, without a goodbye. Does nothing to a connection that has ended."""
        self._writer.transport.abort()

    def reset(self) -> None:
        """End TCP at once, with a reset. Does nothing to a connection that has ended."""
        connection: socket.socket = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.abort()

    async def closed(self) -> None:
        """Return when the socket is closed. How it came to that is no matter any more."""
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _fill(self, tls: Tls) -> None:
        if data := await self._reader.read(CHUNK):
            tls.received.write(data)
        else:
            tls.received.write_eof()

    async def _flush(self, data: bytes) -> None:
        if data:
            self._writer.write(data)
        await self._writer.drain()


class Wire:
    """HTTP events to and from a peer. Raises LostError for whatever ends the conversation."""

    def __init__(self, stream: Stream, peer: Peer) -> None:
        self.stream = stream
        self.peer = peer
        role = h11.SERVER if peer is Peer.CLIENT else h11.CLIENT
        self.http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)

    async def handshake(self) -> None:
        """Agree on TLS, if there is to be any."""
        try:
            await self.stream.handshake()
        except OSError as error:
            raise LostError(self.peer) from error

    async def receive(self) -> h11.Event:
        """Return the next event."""
        try:
            while not isinstance(event := self.http.next_event(), h11.Event):
                self.http.receive_data(await self.stream.read())
        except (OSError, h11.RemoteProtocolError) as error:
            raise LostError(self.peer) from error
        return event

    def pending(self) -> h11.Event | None:
        """Return the next event of this request if it was received already, else None."""
        try:
            event = self.http.next_event()
        except h11.RemoteProtocolError as error:
            raise LostError(self.peer) from error
        return event if isinstance(event, h11.Event) else None

    async def send(self, *events: h11.Event) -> None:
        """Send events, together, and return when the kernel has them."""
        try:
            await self.stream.write(b"".join(self.http.send(event) or b"" for event in events))
        except OSError as error:
            raise LostError(self.peer) from error

    async def gone(self) -> None:
        """Return when the peer has gone. What it says meanwhile is kept for `receive`."""
        with contextlib.suppress(OSError):
            while data := await self.stream.read():
                self.http.receive_data(data)

    def next_cycle(self) -> bool:
        """Get ready for the next request and return True, if both sides are done with this one and want another.

        A connection that has not seen this request is ready already.
        """
        if self.http.our_state is self.http.their_state is h11.DONE:
            self.http.start_next_cycle()
        return self.http.our_state is h11.IDLE
