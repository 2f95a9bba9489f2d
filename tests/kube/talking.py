"""A server that says what a test tells it to, byte by byte, and notes who came."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
REPLY = HEAD + b"Content-Length: 2\r\n\r\n{}"
CLOSE = "then close"
RESET = "then reset"


class Server:
    """A server that answers the requests on each connection with what `replies` says, in turn, the last one for ever.

    A reply is bytes, or None for none; one that is followed by CLOSE or RESET is the last on its connection.
    """

    def __init__(self, *replies: bytes | str | None) -> None:
        self.replies = list(replies)
        self.url = ""
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.most = 0
        self.changed = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open -= 1
            self.changed.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        self.changed.set()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        assert not isinstance(reply, str)
        writer.write(reply or b"")
        await writer.drain()
        if self.replies[0] in {CLOSE, RESET}:
            if self.replies.pop(0) == RESET:
                peer = writer.get_extra_info("socket")
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            return False
        return True

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def talking(*replies: bytes | str | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(*replies)
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0, ssl=tls)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield server
