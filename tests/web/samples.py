"""Rows for tests, and a board with the recorded example on it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry

from cidrella.web import api
from cidrella.web.board import Board, News
from cidrella.web.doors import OpenDoor
from cidrella.web.series import WebSeries
from cidrella.web.server import WebServer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cidrella.web.doors import Door

EXAMPLE = msgspec.json.decode((Path(__file__).parents[1] / "page" / "example_state.json").read_bytes(), type=api.State)


def node(name: str, **fields: Any) -> api.Node:
    known: dict[str, Any] = {
        "blocks": ["10.0.0.0/24"],
        "pools": ["a"],
        "state": "served",
        "terminating": False,
        "since": "2026-01-01T00:00:00Z",
        "reason": "",
        "help": "",
    }
    return api.Node(name=name, **known | fields)


def everything(state: api.State = EXAMPLE) -> News:
    """All of a state, to be posted."""
    return News(
        cluster=state.cluster,
        ranges=state.ranges,
        service_ranges=state.service_ranges,
        pools=state.pools,
        nodes=state.nodes,
        services=state.services,
        events=state.events,
        allocations=state.allocations,
    )


def filled(state: api.State = EXAMPLE) -> Board:
    board = Board(state.cluster)
    board.post(everything(state))
    return board


class Answer:
    """An answer, as far as tests look at it."""

    def __init__(self, response: aiohttp.ClientResponse, text: str) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = text

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Asker:
    """Who asks a server."""

    def __init__(self, server: WebServer, session: aiohttp.ClientSession, series: WebSeries) -> None:
        self.server = server
        self.session = session
        self.series = series

    async def __call__(self, path: str, method: str = "GET", **options: Any) -> Answer:
        options.setdefault("allow_redirects", False)
        async with self.session.request(method, f"{self.server.url}{path}", **options) as response:
            return Answer(response, await response.text())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes within moments; for a minute, in case it does not."""
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError


def serve(
    scenario: Callable[[Asker, Board], Coroutine[None, None, None]],
    *,
    board: Callable[[], Board] = filled,
    door: Callable[[WebSeries], Door] = lambda _: OpenDoor(),
    metrics: bool = True,
) -> None:
    """Serve a board, and hand the scenario what asks."""

    async def all_of_it() -> None:
        registry = CollectorRegistry()
        series = WebSeries(registry)
        shown = board()
        server = WebServer(
            "127.0.0.1",
            0,
            readiness=lambda: ["nodes are not listed yet"],
            registry=registry if metrics else None,
            board=shown,
            explain=lambda name: _explained(shown, name),
            door=door(series),
            series=series,
        )
        async with server, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            await scenario(Asker(server, session, series), shown)

    asyncio.run(all_of_it())


def _explained(board: Board, name: str) -> api.Explanation | None:
    found = board.find_node(name)
    return None if found is None else api.Explanation(node=found, labels={"rack": "<b>"}, pools=[])
