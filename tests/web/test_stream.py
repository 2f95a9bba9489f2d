"""Following changes."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from cidrella.kube import listening
from cidrella.web import stream as stream_module
from cidrella.web.board import News
from tests.web.samples import Asker, node, serve, until

if TYPE_CHECKING:
    import aiohttp

    from cidrella.web.board import Board

PATH = "/api/v1/stream"


class Follower:
    """Reads events as a browser does."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, Any]:
        """The next event with its fields; a comment is one, too. Empty at the end."""
        fields: dict[str, Any] = {}
        while True:
            line = (await asyncio.wait_for(self.response.content.readline(), 60)).decode()
            if line in {"", "\n"}:
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = json.loads(value) if name == "data" else value

    async def change(self) -> dict[str, Any]:
        """The next change."""
        while (event := await self.next()).get("event") != "change":
            assert event
        assert int(event["id"]) == event["data"]["version"]
        return dict(event["data"])


def follow(ask: Asker, query: str = "", **headers: str) -> Any:
    return ask.session.get(f"{ask.server.url}{PATH}{query}", headers=headers)


def test_changes_as_they_come() -> None:
    """Who follows is told each change, in order, in the form that browsers read."""

    async def scenario(ask: Asker, board: Board) -> None:
        async with follow(ask) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert response.headers["Cache-Control"] == "no-store"
            follower = Follower(response)
            assert await follower.next() == {"retry": "1000"}
            for name in ("a", "b", "c\nevent: fake\ndata: {}\n\n"):
                board.post(News(nodes=[node(name)]))
                assert (await follower.change())["nodes"]["set"][0]["name"] == name

    serve(scenario)


@pytest.mark.parametrize("how", ["query", "header", "both"])
def test_going_on_from_where_one_was(how: str) -> None:
    """By the version in the query, or, for a browser that comes back, in the header, which is the newer one."""

    async def scenario(ask: Asker, board: Board) -> None:
        version = board.history.version
        for name in ("a", "b"):
            board.post(News(nodes=[node(name)]))
        query = {"query": f"?since={version}", "header": "", "both": f"?since={version - 1000}"}[how]
        headers = {} if how == "query" else {"Last-Event-ID": str(version)}
        async with follow(ask, query, **headers) as response:
            follower = Follower(response)
            assert [(await follower.change())["nodes"]["set"][0]["name"] for _ in range(2)] == ["a", "b"]

    serve(scenario)


def test_what_is_forgotten() -> None:
    """Who was away too long, or was with another process, is told to load everything, and that is the end."""

    async def scenario(ask: Asker, board: Board) -> None:
        for since in (board.history.version - 100_000, board.history.version + 1, 0):
            async with follow(ask, f"?since={since}") as response:
                follower = Follower(response)
                await follower.next()
                assert (await follower.next())["event"] == "reload"
                assert await follower.next() == {}

    serve(scenario)


def test_a_board_that_is_cleared() -> None:
    """Who is there when everything is forgotten is told, too."""

    async def scenario(ask: Asker, board: Board) -> None:
        async with follow(ask) as response:
            follower = Follower(response)
            await follower.next()
            board.clear()
            assert (await follower.next())["event"] == "reload"

    serve(scenario)


def test_a_version_that_is_none() -> None:
    """It is said."""

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask(f"{PATH}?since=now")).status == 400

    serve(scenario)


def test_only_its_head() -> None:
    """There is none without the rest: nobody's head is kept open for minutes."""

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask(PATH, "HEAD")).status == 405

    serve(scenario)


def test_signs_of_life() -> None:
    """Where nothing happens, an event says that the server is still there; it is no version to go on from."""

    async def scenario(ask: Asker, board: Board) -> None:
        ask.server.streams.heartbeat = 0.05
        async with follow(ask) as response:
            follower = Follower(response)
            await follower.next()
            assert await follower.next() == {"event": "alive", "data": {}}
            board.post(News(nodes=[node("a")]))
            assert (await follower.change())["nodes"]["set"][0]["name"] == "a"

    serve(scenario)


def test_it_ends_after_a_while() -> None:
    """Who follows comes back and shows again who it is; it ends in good order, as far as a stream can."""

    async def scenario(ask: Asker, _: Board) -> None:
        ask.server.streams.lasts = 0.05
        async with follow(ask) as response:
            follower = Follower(response)
            assert await follower.next() == {"retry": "1000"}
            assert await follower.next() == {}

    serve(scenario)


def test_those_who_look_are_known() -> None:
    """It is counted who follows, and the board is kept up for them."""

    async def scenario(ask: Asker, board: Board) -> None:
        ask.server.streams.heartbeat = 0.05
        async with follow(ask) as one, follow(ask) as two:
            for each in (one, two):
                await Follower(each).next()
            assert ask.series.viewers._value.get() == 2
            assert board.looked_at
        await until(lambda: ask.series.viewers._value.get() == 0)
        assert ask.series.dropped._value.get() == 0

    serve(scenario)


def test_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than may is asked to come back."""
    monkeypatch.setattr(stream_module, "VIEWERS_MAX", 1)

    async def scenario(ask: Asker, _: Board) -> None:
        async with follow(ask) as response:
            await Follower(response).next()
            answer = await ask(PATH)
            assert (answer.status, answer.headers["Retry-After"]) == (503, "30")

    serve(scenario)


def test_who_does_not_read_is_dropped() -> None:
    """Nothing is kept for them: what was sent is taken in, or the connection is cut; others do not notice."""

    async def scenario(ask: Asker, board: Board) -> None:
        ask.server.streams.stalled = 3.0  # enough for the other, who reads, on a slow day
        loop = asyncio.get_running_loop()
        where = urlsplit(ask.server.url)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            await loop.sock_connect(deaf, (where.hostname, where.port))
            await loop.sock_sendall(deaf, f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await until(lambda: ask.series.viewers._value.get() == 1)
            async with follow(ask) as response:
                follower = Follower(response)
                await follower.next()
                # More than the buffers of any kernel hold.
                for number in range(40):
                    board.post(News(nodes=[node(str(number), reason="x" * 500_000)]))
                    await follower.change()
                await until(lambda: ask.series.dropped._value.get() == 1)
                await until(lambda: ask.series.viewers._value.get() == 1)

    serve(scenario)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such thing")
def test_who_does_not_read_the_little_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too little is sent to be held back, the system cuts them off, and that is counted as well."""
    monkeypatch.setattr(listening, "STALLED", 0.5)

    async def scenario(ask: Asker, board: Board) -> None:
        ask.server.streams.stalled = 3600.0
        loop = asyncio.get_running_loop()
        where = urlsplit(ask.server.url)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            await loop.sock_connect(deaf, (where.hostname, where.port))
            await loop.sock_sendall(deaf, f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await until(lambda: ask.series.viewers._value.get() == 1)
            for number in range(20):
                board.post(News(nodes=[node(str(number), reason="x" * 1000)]))
            await until(lambda: ask.series.dropped._value.get() == 1)
            board.post(News(nodes=[node("one more")]))
            await until(lambda: ask.series.viewers._value.get() == 0)

    serve(scenario)


def test_the_end() -> None:
    """Who follows does not hold up a server that ends."""

    async def scenario(ask: Asker, _: Board) -> None:
        response = await follow(ask)
        follower = Follower(response)
        await follower.next()
        ending = asyncio.ensure_future(ask.server._runner.shutdown())
        assert await follower.next() == {}
        await ending

    serve(scenario)
