"""Connections in bounds, as one who answers HTTP has them."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from cidrella.kube import listening
from cidrella.kube.listening import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp.typedefs import Handler

HEAD = 0.2


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD", HEAD)


async def slow(_: web.Request) -> web.Response:
    """Answers after twice the time that a head may take."""
    await asyncio.sleep(2 * HEAD)
    return web.Response(text="slow")


@asynccontextmanager
async def listener(get: Handler = slow) -> AsyncIterator[tuple[str, int]]:
    """Answers POSTs with what they bring."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application()
    app.router.add_post("/", echo)
    app.router.add_get("/", get)
    async with Listener(app, "127.0.0.1", 0, grace=0.1) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        yield host, int(port)


async def reply(reader: asyncio.StreamReader) -> bytes:
    """The body of the next one."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
    return await reader.readexactly(int(length.partition(b": ")[2]))


@pytest.mark.parametrize("before", [0, 1])
def test_a_head_that_does_not_end(before: int) -> None:
    """O6: the connection is closed, be it the first request or another, though bytes go on coming in."""

    async def scenario() -> None:
        async with listener() as address:
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(before):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert await reply(reader) == b"slow"
            reading = asyncio.create_task(reader.read())
            writer.write(b"POST / HTTP/1.1\r\n")
            for _ in range(100):
                await asyncio.sleep(HEAD / 4)
                if reading.done():
                    break
                writer.write(b"X: y\r\n")
            assert reading.done()
            assert isinstance(reading.exception(), ConnectionError) or not reading.result(), "without a word"
            writer.close()

    asyncio.run(scenario())


def test_what_takes_long_otherwise() -> None:
    """O6: an idle connection, a body and an answer are not for this to bound."""

    async def scenario() -> None:
        async with listener() as address:
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(2):
                await asyncio.sleep(2 * HEAD)
                writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
                await asyncio.sleep(2 * HEAD)
                writer.write(b"b")
                assert await reply(reader) == b"ab"
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert await reply(reader) == b"slow"
            writer.close()

    asyncio.run(scenario())


async def ask(address: tuple[str, int]) -> tuple[bytes, asyncio.StreamWriter]:
    """Ask by a new connection: what is answered, "" where it is closed."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
    try:
        return await reply(reader), writer
    except (asyncio.IncompleteReadError, ConnectionError):
        return b"", writer


def test_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """O6: while all that may be are answered, one more is closed at once; when one has gone, there is room again."""
    monkeypatch.setattr(listening, "CONNECTIONS_MAX", 1)

    begun, go_on = asyncio.Event(), asyncio.Event()

    async def waiting(_: web.Request) -> web.Response:
        begun.set()
        await go_on.wait()
        return web.Response(text="at last")

    async def scenario() -> None:
        async with listener(waiting) as address:
            reader, first = await asyncio.open_connection(*address)
            first.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            found, second = await ask(address)
            assert found == b""
            go_on.set()
            assert await reply(reader) == b"at last"
            first.close()
            await first.wait_closed()
            found, third = await ask(address)
            assert found == b"ab"
            second.close()
            third.close()

    asyncio.run(scenario())


def test_who_asks_nothing_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """O6: whoever holds all the connections there may be keeps nobody out; the oldest goes first."""
    monkeypatch.setattr(listening, "CONNECTIONS_MAX", 3)

    async def scenario() -> None:
        async with listener() as address:
            held = [await asyncio.open_connection(*address) for _ in range(3)]
            asked = []
            for count in range(1, 4):
                found, writer = await ask(address)
                asked.append(writer)
                assert found == b"ab"
                with suppress(ConnectionError):
                    assert await held[count - 1][0].read() == b""
                assert not any(reader.at_eof() for reader, _ in held[count:])
            for writer in (*asked, *(writer for _, writer in held)):
                writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("files", "limit"), [(300, 150), (1 << 20, 2048), (resource.RLIM_INFINITY, 2048)])
def test_files_are_left_for_others(monkeypatch: pytest.MonkeyPatch, files: int, limit: int) -> None:
    """O6: however many connect, the process can still reach the API server."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert Listener(web.Application(), "127.0.0.1", 0, grace=0.1)._connections.limit == limit


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such thing")
def test_who_takes_in_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """O6: what is meant for one who does not read is not kept for ever, whatever it is."""
    monkeypatch.setattr(listening, "STALLED", 0.5)

    async def large(_: web.Request) -> web.Response:
        return web.Response(body=bytes(30_000_000))

    async def scenario() -> None:
        app = web.Application()
        app.router.add_get("/", large)
        loop = asyncio.get_running_loop()
        async with Listener(app, "127.0.0.1", 0, grace=0.1) as server:
            host, _, port = server.url.removeprefix("http://").partition(":")
            with socket.socket() as deaf:
                deaf.setblocking(False)
                await loop.sock_connect(deaf, (host, int(port)))
                await loop.sock_sendall(deaf, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                for _ in range(6000):
                    await asyncio.sleep(0.01)
                    if not server._connections.open:
                        break
                assert not server._connections.open

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "said", [b"\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_what_is_no_http(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever sends it is told, and fills no log."""

    async def scenario() -> None:
        async with listener() as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(said)
            assert b" 400 " in await reader.readline()
            writer.close()

    with caplog.at_level("INFO"):
        asyncio.run(scenario())
    assert not caplog.records
