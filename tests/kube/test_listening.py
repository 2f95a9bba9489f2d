"""Request bodies with a content coding: refused, and never decompressed, by every listener."""

from __future__ import annotations

import asyncio
import re
import zlib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import compression_utils, web

import cidrella
from cidrella.kube import listening
from cidrella.kube.listening import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

SECONDS = 60.0
BOMB = zlib.compress(bytes(8 << 20))
CODINGS = ["gzip", "deflate", "br", "zstd", "x-gzip", "compress", "anything"]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a listener that answers POST / with the body."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application()
    app.router.add_post("/", echo)
    async with asyncio.timeout(SECONDS), Listener(app, "127.0.0.1", 0, grace=0.1) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            yield reader, writer
        finally:
            writer.close()


def head(codings: Iterable[str], length: int, target: str = "POST /") -> bytes:
    """A request up to its body, with one Content-Encoding header per value."""
    sent = [f"{target} HTTP/1.1", "Host: x", f"Content-Length: {length}"]
    return "\r\n".join([*sent, *(f"Content-Encoding: {each}" for each in codings), "", ""]).encode()


async def reply(reader: asyncio.StreamReader) -> tuple[int, list[str], bytes]:
    """The status, the header lines and the body of the next reply."""
    status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
    (length,) = (each.partition(": ")[2] for each in headers if each.startswith("Content-Length: "))
    return int(status.split()[1]), headers, await reader.readexactly(int(length))


async def ask(codings: Iterable[str], body: bytes, target: str = "POST /") -> tuple[int, list[str], bytes]:
    """The reply to one request on a connection of its own."""
    async with connected() as (reader, writer):
        writer.write(head(codings, len(body), target) + body)
        return await reply(reader)


async def flood(writer: asyncio.StreamWriter) -> None:
    """Send until the other side closes the connection."""
    while True:
        writer.write(bytes(1 << 16))
        await writer.drain()


@pytest.mark.parametrize(
    "codings",
    [
        *([each] for each in CODINGS),
        ["GZip"],
        ["identity, gzip"],
        ["identity", "gzip"],
        ["gzip", "identity"],
        ["gzip;q=1"],
    ],
)
def test_a_content_coding_is_refused(codings: list[str]) -> None:
    """415, with the codings that are accepted (RFC 9110, 15.5.16), whether the body is in that coding or not."""
    status, headers, text = asyncio.run(ask(codings, b"no such thing"))
    assert (status, text) == (415, b"Content-Encoding is not supported; send the body without one\n")
    assert "Accept-Encoding: identity" in headers


@pytest.mark.parametrize(
    "codings", [[], ["identity"], ["Identity"], [""], [" , ,"], ["identity, ,IDENTITY\t"], ["", "identity"]]
)
def test_no_content_coding_is_accepted(codings: list[str]) -> None:
    """Names of codings are case-insensitive, and empty list elements are ignored (RFC 9110, 8.4.1 and 5.6.1.2)."""
    status, headers, text = asyncio.run(ask(codings, BOMB))
    assert (status, text) == (200, BOMB)
    assert not any(each.startswith("Accept-Encoding") for each in headers)


@pytest.mark.parametrize("target", ["GET /", "POST /nowhere", "DELETE /", "OPTIONS *"])
@pytest.mark.parametrize("body", [b"", b"x"])
def test_refused_whatever_is_asked_for(target: str, body: bytes) -> None:
    """Also where there is no such route or no such method, and where there is no body."""
    assert asyncio.run(ask(["gzip"], body, target))[0] == 415


@pytest.mark.parametrize("target", ["POST /", "GET /", "POST /nowhere"])
def test_nothing_is_decompressed(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Neither while the reply is made nor while the rest of the body is read and dropped."""
    inflated = 0
    decompress = compression_utils.ZLibDecompressor.decompress_sync

    def counted(self: compression_utils.ZLibDecompressor, data: bytes, *args: int, **options: int) -> bytes:
        nonlocal inflated
        found = decompress(self, data, *args, **options)
        inflated += len(found)
        return found

    monkeypatch.setattr(compression_utils.ZLibDecompressor, "decompress_sync", counted)

    async def scenario() -> None:
        async with connected() as (reader, writer):
            for _ in range(2):  # the second reply shows that the first body was read to its end
                writer.write(head(["deflate"], len(BOMB), target) + BOMB)
                assert (await reply(reader))[0] == 415

    asyncio.run(scenario())
    assert inflated == 0


def test_the_body_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply comes before the body. A body that does not end is dropped for a while, then the connection closes."""
    monkeypatch.setattr(listening, "_LINGER", 0.2)

    async def scenario() -> None:
        async with connected() as (reader, writer):
            writer.write(head(["gzip"], 1 << 40))
            assert (await reply(reader))[0] == 415
            with pytest.raises(ConnectionError):
                await flood(writer)

    asyncio.run(scenario())


def test_every_listener_is_this_one() -> None:
    """What is bounded here is bounded for all: no other module listens."""
    package = Path(cidrella.__file__).parent
    listens = re.compile(r"AppRunner\(|ServerRunner\(|run_app\(|start_server\(|create_server\(|start_http_server\(")
    found = [path for path in package.rglob("*.py") if listens.search(path.read_text())]
    assert found == [Path(listening.__file__)]
