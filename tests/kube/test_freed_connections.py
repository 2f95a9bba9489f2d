"""Connections that failed are freed by reference counting, and with them the beginning of a reply.

Nothing is left for a full garbage collection, which the program makes rare.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.kube import dialing, transport
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import KubeError
from cidrella.kube.files import Fixed
from cidrella.kube.http1 import Connection
from cidrella.kube.replies import ReplyParser
from cidrella.kube.tls import Tls
from tests.kube.serving import server_context
from tests.kube.talking import CLOSE, HEAD, RESET, talking
from tests.testenv.certs import Authority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

PART = b"x" * 50_000
LENGTH = b"Content-Length: 1000000\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\nC350\r\n"
"""Announces a piece as long as PART."""
PATIENCE = 20.0
"""Seconds."""
LIMIT = 40_000
"""Bytes of a reply, here."""


class Made:
    """The connections that were made, as long as something else keeps them."""

    def __init__(self) -> None:
        self.count = 0
        self._connections: list[weakref.ref[Connection]] = []
        self._parsers: list[weakref.ref[ReplyParser]] = []

    def make(self, *given: Any) -> Connection:
        made = Connection(*given)
        self.count += 1
        self._connections.append(weakref.ref(made))
        self._parsers.append(weakref.ref(made._parser))
        return made

    @property
    def kept(self) -> list[object]:
        both: list[weakref.ref[Any]] = [*self._connections, *self._parsers]
        return [each() for each in both if each() is not None]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """All connections of a test, during which no garbage is collected."""
    made = Made()
    monkeypatch.setattr(dialing, "Connection", made.make)
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


@pytest.fixture(params=["plain", "tls"])
def connecting(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """What makes a server that says what it is told to, and a client of it: with TLS or without."""
    server_tls, client_tls = None, None
    if request.param == "tls":
        authority = Authority(tmp_path)
        server_tls = server_context(authority.server("server"))
        client_tls = Tls(Fixed(authority.certificate.read_bytes()))

    @asynccontextmanager
    async def connecting(*replies: bytes | str | None) -> AsyncIterator[Client]:
        async with talking(*replies, tls=server_tls) as server, Client(Access(server.url, tls=client_tls)) as client:
            yield client

    return connecting


async def read(client: Client) -> None:
    """A reply that is read as a whole."""
    await client.request("GET", "/x")


async def read_late(client: Client) -> None:
    """One that has no time to end."""
    await client.request("GET", "/x", timeout=0.2)


async def read_and_cancel(client: Client) -> None:
    """One that nobody waits for any more."""
    async with asyncio.timeout(0.2):
        await client.request("GET", "/x")


async def watch(client: Client) -> None:
    """A watch, to its end."""
    async with client.watch("/x", {}) as chunks:
        async for _ in chunks:
            pass


async def watch_and_leave(client: Client) -> None:
    """A watch that is left when something has come."""
    async with client.watch("/x", {}) as chunks:
        assert await anext(chunks)


async def watch_and_cancel(client: Client) -> None:
    """A watch that nobody waits for any more."""
    async with asyncio.timeout(0.2):
        await watch(client)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\n"
FAILURES: dict[str, tuple[Callable[[Client], Awaitable[None]], tuple[bytes | str | None, ...]]] = {
    "too large": (read, (HEAD + LENGTH + PART,)),
    "too large, chunked": (read, (HEAD + CHUNKED + PART,)),
    "too late": (read_late, (HEAD + LENGTH + PART[:20_000],)),
    "nothing in time": (read_late, (None,)),
    "cut": (read, (HEAD + LENGTH + PART[:20_000], CLOSE, b"")),
    "reset": (read, (HEAD + LENGTH + PART[:20_000], RESET, b"")),
    "cancelled": (read_and_cancel, (HEAD + LENGTH + PART[:20_000],)),
    "no HTTP": (read, (b"SSH-2.0-OpenSSH_9.2\r\n",)),
    "a bad chunk": (read, (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\nno number\r\n",)),
    "no head": (read, (b"HTTP/1.1 200 OK\r\nX: " + PART,)),
    "another protocol": (read, (b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nx",)),
    "more than was asked for": (read, (HEAD + b"Content-Length: 2\r\n\r\n{}more",)),
    "the last one": (read, (HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",)),
    "a watch without a head": (watch, (HEAD, CLOSE, b"")),
    "a watch that is cut": (watch, (HEAD + CHUNKED + PART[:20_000], CLOSE, b"")),
    "a watch that is reset": (watch, (HEAD + CHUNKED + PART[:20_000], RESET, b"")),
    "a watch that is no HTTP": (watch, (HEAD + CHUNKED + PART + b"no end",)),
    "a watch that is left": (watch_and_leave, (HEAD + CHUNKED + PART,)),
    "a watch that is left before it is no HTTP": (watch_and_leave, (HEAD + CHUNKED + PART + b"no end",)),
    "a watch that is cancelled": (watch_and_cancel, (HEAD + CHUNKED + PART,)),
    "a refusal of a watch that is too large": (watch, (NOT_FOUND + LENGTH + PART,)),
    "a refusal of a watch that is cut": (watch, (NOT_FOUND + LENGTH + PART[:20_000], CLOSE, b"")),
}


@pytest.mark.parametrize("name", FAILURES)
def test_freed_after_a_failure(
    run: Any, made: Made, connecting: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever the failure was, neither the connection nor its parser is left."""
    monkeypatch.setattr(transport, "BODY_MAX", LIMIT)
    act, replies = FAILURES[name]

    async def scenario() -> None:
        async with connecting(*replies) as client:
            with suppress(KubeError, TimeoutError):
                await act(client)
            await freed(made)

    run(scenario())
    assert made.count == 1


async def freed(made: Made) -> None:
    """Wait until nothing is kept."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while made.kept and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    assert not [type(each).__name__ for each in made.kept]


@pytest.mark.parametrize("name", ["too large", "too late", "cut", "reset", "a bad chunk"])
def test_the_beginning_of_a_reply_is_dropped(
    run: Any, made: Made, connecting: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The error leads to the connection for as long as it is kept, and not to what had come in."""
    monkeypatch.setattr(transport, "BODY_MAX", LIMIT)
    act, replies = FAILURES[name]

    async def scenario() -> None:
        async with connecting(*replies) as client:
            with pytest.raises(KubeError):
                await act(client)
            assert not any(each.body for each in made.kept if isinstance(each, ReplyParser))

    run(scenario())
