"""How connections are made: several addresses, proxies, names that are none; on both event loops."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.kube import dialing
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import MalformedReplyError, NoAnswerError
from cidrella.kube.files import Fixed
from cidrella.kube.tls import Tls
from tests.kube.serving import server_context
from tests.kube.talking import REPLY, talking
from tests.testenv.certs import Authority
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def test_a_name_that_cannot_be_one(run: Any) -> None:
    """A host that no resolver would take is no connection."""

    async def scenario() -> None:
        async with Client(Access(f"http://{'a' * 70}.example")) as client:
            with pytest.raises(NoAnswerError, match="no connection: "):
                await client.get("/x", dict)

    run(scenario())


def test_a_name_with_several_addresses(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the addresses of a name those that do not work are passed over."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access("http://name.invalid:1")) as client:
            ports = [free_port(), int(server.url.rpartition(":")[2])]

            async def addresses(host: str, _: int) -> list[Any]:
                assert host == "name.invalid"
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in ports]

            monkeypatch.setattr(dialing, "_addresses", addresses)
            assert await client.get("/x", dict) == {}

    run(scenario())


def test_cancelled_while_shaking_hands(run: Any) -> None:
    """Who is cancelled before there is a connection leaves none behind, and no turn taken."""

    async def scenario() -> None:
        came, gone = asyncio.Event(), asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.set()
            with suppress(ConnectionResetError):
                await reader.read()
            writer.close()
            gone.set()

        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with listening, Client(Access(url), connections=1) as client:
            for _ in range(2):
                asking = asyncio.create_task(client.get("/x", dict))
                await came.wait()
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                await gone.wait()
                came.clear()
                gone.clear()

    run(scenario())


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def tunnelling(answer: bytes, asked: list[bytes]) -> AsyncIterator[str]:
    """A proxy that answers CONNECT so, and then, if that was a success, connects."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if b" 200 " in answer:
            port = int(asked[-1].split()[1].rpartition(b":")[2])
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(relay(reader, back), relay(there, writer), return_exceptions=True)
            back.close()
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def test_tls_through_a_proxy(run: Any, tmp_path: Path) -> None:
    """To a server with TLS the proxy is asked for a tunnel, once for each connection, as whom its URL says."""
    authority = Authority(tmp_path)
    context = server_context(authority.server("server"))
    tls = Tls(Fixed(authority.certificate.read_bytes()))

    async def scenario() -> None:
        asked: list[bytes] = []
        async with (
            talking(REPLY, tls=context) as server,
            tunnelling(b"HTTP/1.1 200 OK\r\n\r\n", asked) as proxy,
            Client(Access(server.url, tls=tls, proxy=f"http://me:s%20t@{proxy}")) as client,
        ):
            for _ in range(3):
                assert await client.get("/x", dict) == {}
            target = server.url.removeprefix("https://").encode()
            authorization = b"Proxy-Authorization: Basic bWU6cyB0"
            assert asked == [
                b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n" + authorization + b"\r\n\r\n"
            ]
            assert server.connections == 1
            assert all(each.startswith(b"GET /x HTTP/1.1\r\nHost: " + target) for each in server.requests)
            assert not any(b"Proxy" in each for each in server.requests)

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", NoAnswerError, "no connection: the proxy answered 407"),
        (b"HTTP/1.1 502 No\r\n\r\n", NoAnswerError, "no connection: the proxy answered 502"),
        (b"", NoAnswerError, "no connection: the server closed it"),
        (b"SSH-2.0\r\n", MalformedReplyError, "no HTTP"),
    ],
)
def test_a_proxy_that_refuses(run: Any, answer: bytes, kind: type[Exception], message: str) -> None:
    """A proxy that makes no tunnel is told as what it said."""

    async def scenario() -> None:
        async with (
            tunnelling(answer, []) as proxy,
            Client(Access("https://nobody.invalid", proxy=f"http://{proxy}")) as client,
        ):
            with pytest.raises(kind, match=message):
                await client.get("/x", dict)

    run(scenario())
