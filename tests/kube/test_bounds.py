"""Connections in bounds, as one who answers HTTP has them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from cidrella.kube import listening
from cidrella.kube.listening import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEAD = 0.2


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD", HEAD)


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[str, int]]:
    """Answers POSTs with what they bring, and GETs after twice the time that a head may take."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(2 * HEAD)
        return web.Response(text="slow")

    app = web.Application()
    app.router.add_post("/", echo)
    app.router.add_get("/", slow)
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


def test_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """O6: one too many is closed at once; when another has gone, there is room again."""
    monkeypatch.setattr(listening, "CONNECTIONS_MAX", 1)

    async def ask(address: tuple[str, int]) -> tuple[bytes, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
        try:
            return await reply(reader), writer
        except (asyncio.IncompleteReadError, ConnectionError):
            return b"", writer

    async def scenario() -> None:
        async with listener() as address:
            found, first = await ask(address)
            assert found == b"ab"
            found, second = await ask(address)
            assert found == b""
            first.close()
            await first.wait_closed()
            await asyncio.sleep(0.1)
            found, third = await ask(address)
            assert found == b"ab"
            second.close()
            third.close()

    asyncio.run(scenario())
