"""Connections that are kept and given up: on both event loops, against a server that does as it is told."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Any

import pytest

from cidrella.kube import dialing, http1, pool
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access, Credentials
from cidrella.kube.errors import NoAnswerError
from cidrella.kube.http1 import Connection
from cidrella.kube.transport import Call, Transport
from tests.kube.talking import CLOSE, HEAD, REPLY, talking


def test_a_connection_is_used_again(run: Any) -> None:
    """Requests that follow each other need one connection."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access(server.url)) as client:
            for _ in range(5):
                assert await client.get("/x", dict) == {}
            async with client.watch("/x", {}) as chunks:
                assert [each async for each in chunks] == [b"{}"]
            await client.get("/x", dict)
            assert (len(server.requests), server.connections) == (7, 1)

    run(scenario())


@pytest.mark.parametrize(
    "replies",
    [
        (HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", REPLY),
        (b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", REPLY),
        (REPLY + b"more", REPLY),
        (REPLY + REPLY, REPLY),
        (REPLY, CLOSE, REPLY),
        (HEAD + b"\r\n{}", CLOSE, REPLY),
    ],
)
def test_a_connection_that_is_not_used_again(run: Any, replies: tuple[bytes | str, ...]) -> None:
    """One that the server closes or means to, or that it goes on speaking on, is not used for another request."""

    async def scenario() -> None:
        async with talking(*replies) as server, Client(Access(server.url)) as client:
            assert await client.get("/x", dict) == {}
            await server.until(lambda: server.open == 0)
            await asyncio.sleep(0.01)  # the loop looks at what came in, the end of the connection, meanwhile
            assert await client.get("/x", dict) == {}
            assert (len(server.requests), server.connections) == (2, 2)

    run(scenario())


def test_bytes_while_idle(run: Any) -> None:
    """A connection on which the server speaks without being asked is closed."""

    async def scenario() -> None:
        gone = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(REPLY)
            await answered.wait()
            writer.write(REPLY)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            gone.set()

        answered = asyncio.Event()
        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with listening, Client(Access(url)) as client:
            assert await client.get("/x", dict) == {}
            answered.set()
            await asyncio.wait_for(gone.wait(), pool.IDLE_MAX - 5)
            assert await client.get("/x", dict) == {}

    run(scenario())


def test_old_connections(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that was idle for long is not used, and closed by itself."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access(server.url)) as client:
            monkeypatch.setattr(pool, "IDLE_MAX", 0.0)
            await client.get("/x", dict)
            await client.get("/x", dict)
            assert server.connections == 2
            monkeypatch.setattr(pool, "IDLE_MAX", 0.05)
            await client.get("/x", dict)
            await server.until(lambda: server.open == 0)

    run(scenario())


def test_connections_have_a_limit(run: Any) -> None:
    """At most so many requests are under way; the others wait, are served in turn, or run out of time."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access(server.url), connections=2) as client:
            assert await asyncio.gather(*(client.get("/x", dict) for _ in range(20))) == [{}] * 20
            assert server.most == 2
            server.replies = [None]
            stuck = [asyncio.create_task(client.get("/stuck", dict)) for _ in range(2)]
            await server.until(lambda: len(server.requests) == 22)
            with pytest.raises(NoAnswerError, match="no answer in time"):
                await client.request("GET", "/x", timeout=0.05)
            assert len(server.requests) == 22
            for each in stuck:
                each.cancel()
            await asyncio.wait(stuck)
            server.replies = [REPLY]
            assert await client.get("/x", dict) == {}

    run(scenario())


def test_no_time_at_all(run: Any) -> None:
    """A request whose time is over is not sent."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access(server.url)) as client:
            for timeout in (0.0, -1.0):
                with pytest.raises(NoAnswerError, match="no answer in time"):
                    await client.request("GET", "/x", timeout=timeout)
            assert server.connections == 0

    run(scenario())


@pytest.mark.parametrize("text", [REPLY[:9], REPLY[:40], REPLY[:-1], b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_half_a_reply(run: Any, text: bytes) -> None:
    """A reply that stops is no answer in time, and one that is cut off a lost connection; a watch ends no better."""

    async def scenario() -> None:
        async with talking(text, text, CLOSE, text, CLOSE, REPLY) as server, Client(Access(server.url)) as client:
            with pytest.raises(NoAnswerError, match="no answer in time"):
                await client.request("GET", "/x", timeout=0.1)
            with pytest.raises(NoAnswerError, match="connection lost: the server closed it"):
                await client.get("/x", dict)
            with pytest.raises(NoAnswerError, match="connection lost: the server closed it"):
                async with client.watch("/x", {}) as chunks:
                    assert [each async for each in chunks] == []
            assert await client.get("/x", dict) == {}
            assert server.connections == 4

    run(scenario())


def test_a_watch_without_a_length(run: Any) -> None:
    """A watch whose end is that of the connection is read to there."""

    async def scenario() -> None:
        async with talking(HEAD + b"\r\n{}\n{}\n", CLOSE, REPLY) as server, Client(Access(server.url)) as client:
            async with client.watch("/x", {}) as chunks:
                assert b"".join([each async for each in chunks]) == b"{}\n{}\n"
            assert await client.get("/x", dict) == {}

    run(scenario())


def test_a_watch_that_is_left(run: Any) -> None:
    """A watch that is left before its end closes its connection, and leaves room for another."""

    async def scenario() -> None:
        endless = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
        async with talking(endless) as server, Client(Access(server.url), connections=1) as client:
            for _ in range(3):
                async with client.watch("/x", {}) as chunks:
                    assert await anext(chunks) == b"{}\n"
                await server.until(lambda: server.open == 0)
            assert server.connections == 3

    run(scenario())


def test_a_slow_reader_makes_the_server_wait(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not read piles up to a bound, and no byte of it is lost."""
    monkeypatch.setattr(http1, "READ_AHEAD", 10_000)
    text = bytes(range(256)) * 40_000

    async def scenario() -> None:
        sent = 0

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(text))
            for at in range(0, len(text), 4096):
                writer.write(text[at : at + 4096])
                await writer.drain()
                sent = at
            writer.close()

        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with listening, Client(Access(url)) as client, client.watch("/x", {}) as chunks:
            got = await anext(chunks)
            before = -1
            while sent > before:
                before = sent
                await asyncio.sleep(0.2)
            assert sent < len(text) - 4096
            got += b"".join([each async for each in chunks])
            assert got == text

    run(scenario())


class Wire:
    """A transport that only notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def write(self, _: bytes) -> None:
        self.done.append("write")

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")

    def abort(self) -> None:
        self.done.append("abort")

    def is_closing(self) -> bool:
        return "abort" in self.done


def wired() -> tuple[Connection, Wire]:
    connection, wire = Connection(set()), Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    return connection, wire


def test_reading_ahead_has_a_limit(run: Any) -> None:
    """Reading pauses when too much waits, and goes on when it was taken."""

    async def scenario() -> None:
        connection, wire = wired()
        asking = asyncio.create_task(connection.begin(b"", asyncio.get_running_loop().time() + 60))
        await asyncio.sleep(0)
        connection.data_received(head := HEAD + b"Content-Length: 1000000\r\n\r\n")
        await asking
        connection.data_received(b"x" * (http1.READ_AHEAD - len(head)))
        assert wire.done == ["write"]
        connection.data_received(b"x")
        connection.data_received(b"x")
        assert wire.done == ["write", "pause"]
        assert len(await connection.piece()) == http1.READ_AHEAD - len(head) + 2
        assert wire.done == ["write", "pause", "resume"]
        connection.abort()

    run(scenario())


class WiredDialer(dialing.Dialer):
    """Connections to nowhere."""

    async def dial(self, *_: object) -> Connection:
        return wired()[0]


def test_connections_belong_to_their_certificates(run: Any) -> None:
    """One that was made with what has been replaced meanwhile is not used again, even if it was in use then."""

    async def scenario() -> None:
        connections = pool.Pool(WiredDialer("https://h", "", ""), 4)
        old, new = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
        later = asyncio.get_running_loop().time() + 60
        first, second = await connections.take(old, later), await connections.take(new, later)
        connections.give_back(second)
        connections.give_back(first)
        assert not first.reusable
        assert await connections.take(new, later) is second
        assert await connections.take(new, later) is not first
        await connections.close()

    run(scenario())


def test_what_came_in_before_the_end_is_given_out_first(run: Any) -> None:
    """A connection that breaks right after it brought something has brought it."""

    async def scenario() -> None:
        connection, _ = wired()
        asking = asyncio.create_task(connection.begin(b"", asyncio.get_running_loop().time() + 60))
        await asyncio.sleep(0)
        connection.data_received(HEAD + b"Content-Length: 9\r\n\r\n")
        await asking
        waiting = asyncio.create_task(connection.piece())
        await asyncio.sleep(0)
        connection.data_received(b"x")
        connection.connection_lost(OSError("broken"))
        assert await waiting == b"x"
        with pytest.raises(OSError, match="broken"):
            await connection.piece()

    run(scenario())


def test_a_reply_that_ends_as_its_time_does(run: Any) -> None:
    """A whole reply counts, whatever happens before it is looked at; its connection does not."""

    async def scenario() -> None:
        connection, _ = wired()
        asking = asyncio.create_task(connection.exchange(b"", asyncio.get_running_loop().time() + 60, 1000))
        await asyncio.sleep(0)
        connection.data_received(REPLY)
        connection.connection_lost(None)
        assert (await asking).body == b"{}"
        assert not connection.reusable

    run(scenario())


@pytest.mark.parametrize("path", ["/a b", "/a\r\nHost: b", "/ä", ""])
def test_what_is_no_path(run: Any, path: str) -> None:
    """A path that would be read as something else is not sent."""

    async def scenario() -> None:
        async with talking(REPLY) as server, Client(Access(server.url)) as client:
            with pytest.raises(ValueError, match="not the URL of a request"):
                await client.get(path, dict)
            assert server.connections == 0

    run(scenario())


def test_what_is_no_header(run: Any) -> None:
    """A credential that would be read as another header is not sent."""

    async def scenario() -> None:
        transport = Transport(Access("http://127.0.0.1:1"), timeout=1, connections=1)
        with pytest.raises(ValueError, match="no header has"):
            await transport.exchange(
                Call("GET", "http://127.0.0.1:1/", None, "", ""), Credentials("a\r\nb", None), None
            )

    run(scenario())
