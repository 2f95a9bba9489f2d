"""The page's own server, over a state that the test makes up. Runs on a thread of its own, beside the browser's."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from cidrella.web import api
from cidrella.web.board import Board
from cidrella.web.doors import OpenDoor
from cidrella.web.series import WebSeries
from cidrella.web.server import WebServer
from tests.web.samples import everything

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from cidrella.web.board import News
    from cidrella.web.doors import Door
    from cidrella.web.stream import Streams

_SECONDS = 60
_DROPPING = 0.5


class Site:
    """Served between entering and leaving."""

    def __init__(
        self, state: api.State, *, door: Callable[[WebSeries], Door] = lambda _: OpenDoor(), port: int = 0
    ) -> None:
        self._state = state
        self._door = door
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._server.__aexit__(kind, error, trace), self._loop).result(_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()

    async def _begin(self) -> None:
        series = WebSeries(CollectorRegistry())
        self.board = Board(self._state.cluster)
        self.board.post(everything(self._state))
        self._server = WebServer(
            "127.0.0.1",
            self._port,
            readiness=list,
            registry=None,
            board=self.board,
            explain=self._explain,
            door=self._door(series),
            series=series,
        )
        await self._server.__aenter__()
        self.url = self._server.url

    def post(self, news: News) -> None:
        """Something changes."""
        asyncio.run_coroutine_threadsafe(self._post(news), self._loop).result(_SECONDS)

    async def _post(self, news: News) -> None:
        self.board.post(news)

    @property
    def streams(self) -> Streams:
        """Those who follow."""
        return self._server.streams

    def forget(self) -> None:
        """Nobody can go on from where they were."""
        self._loop.call_soon_threadsafe(self.board.history.forget)

    def drop_viewers(self) -> None:
        """End every stream, as happens after some minutes."""
        self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        history = self.board.history
        history.end()
        self._loop.call_later(_DROPPING, setattr, history, "ended", False)

    def _explain(self, name: str) -> api.Explanation | None:
        node = self.board.find_node(name)
        if node is None:
            return None
        verdicts = [
            api.Verdict(pool=pool.name, applies=pool.name in node.pools, why="it is so", room=True, before_next="")
            for pool in self._state.pools
        ]
        return api.Explanation(node=node, labels={}, pools=sorted(verdicts, key=lambda each: not each.applies))
