"""Keeps the page's board true: what the controller knows, and what else the page shows, is drawn on it.

Rules:

- It is drawn while somebody looks. Before that, and after, it costs next to nothing: how many blocks are free is noted
  for the forecast, and who was given what is remembered, and since when a node has had what it has.
- Four times a second, what changed is posted. Nodes that the API told of are looked at at once; those that do not stand
  well with each round, for pools come and go; all others in turn, so many at a time, because a neighbour or a pool may
  have changed what there is to say of them. So a round costs little, whatever the number of nodes.
- Looking takes turns with the controller's work, on the same event loop, and is cut into small pieces.
- Whatever goes wrong here is logged, and no reason to end anything.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

import structlog

from cidrella.app.page_rows import NO_FORECAST, SERVED, Stood, explanation, node_row, pool_row, range_rows
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.web import api
from cidrella.web.board import LAST, News
from cidrella.web.forecast import Course, forecast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from cidrella.app.surroundings import Surroundings
    from cidrella.controller.insight import Insight
    from cidrella.core.decision import Node
    from cidrella.core.pool import Pool, PoolRange
    from cidrella.kube.reflector import Change
    from cidrella.web.board import Board

PERIOD: Final = 0.25
"""Seconds between two rounds."""
SAMPLING: Final = 10.0
"""Seconds between two looks at how many blocks are free."""
FORECASTING: Final = 60.0
"""Seconds between two forecasts. They change all the time, and with each a pool's row, for everybody who follows."""
PIECE: Final = 100
"""Nodes that are looked at without letting others have their turn: some milliseconds."""
IN_TURN: Final = 250
"""Nodes that are looked at in a round because it is their turn; and as many of those that do not stand well."""
_AGAIN: Final = 5.0
"""Seconds to wait after something went wrong."""

_log = structlog.get_logger()


class Lookout:
    """One per process. `surroundings` is what is shown beside what the controller knows."""

    def __init__(  # noqa: PLR0913 -- what it looks at, where that goes, and the clocks
        self,
        insight: Insight,
        board: Board,
        surroundings: Surroundings,
        facts: Callable[[], api.Facts],
        *,
        clock: Callable[[], float] = time.time,
        pace: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pace` is the clock of courses: one that nobody sets."""
        self._insight = insight
        self._board = board
        self._surroundings = surroundings
        self._facts = facts
        self._clock = clock
        self._pace = pace
        self._courses: dict[tuple[str, tuple[PoolRange, ...]], list[Course]] = {}
        self._forecasts: dict[str, api.Forecast] = {}
        self._forecast_at = float("-inf")
        self._recent: deque[api.Allocation] = deque(maxlen=LAST)
        self._stood: dict[str, Stood] = {}
        self._begin()

    def _begin(self) -> None:
        """Nothing is drawn yet."""
        self._changed: dict[str, None] = dict.fromkeys(self._insight.nodes)
        self._unwell: dict[str, None] = {}
        self._turns: deque[str] = deque()
        self._fresh: deque[api.Allocation] = deque(self._recent, maxlen=LAST)
        self._pools: dict[str, tuple[object, ...]] = {}
        """For a pool that is drawn: what it was drawn from."""
        self._ranges: tuple[object, ...] | None = None

    def nodes_changed(self, changes: Iterable[Change[Node]]) -> None:
        """Take note of what became of nodes. Never raises: the controller tells, and has other things to do."""
        try:
            self._take_note(changes)
        except Exception:
            _log.exception("the page missed what became of some nodes")  # until it is their turn to be looked at

    def _take_note(self, changes: Iterable[Change[Node]]) -> None:
        fresh, looked_at = Stood("", self._now()), self._board.looked_at
        for old, new in changes:
            node = new or old
            assert node is not None
            same = old is not None and new is not None and old.uid == new.uid
            if old is not None and old.pod_cidrs and not (same and node.pod_cidrs):
                self._note("released", old)
            elif same and node.pod_cidrs and old is not None and not old.pod_cidrs:
                self._note("given", node)
            if new is None:
                self._stood.pop(node.name, None)
            elif old is None or not same or old.pod_cidrs != new.pod_cidrs:
                self._stood[node.name] = fresh
            if looked_at:
                self._changed[node.name] = None

    def _note(self, what: str, node: Node) -> None:
        """A node has, or had, blocks."""
        pools = [self._pool_of(block, node.pool) for block in node.pod_cidrs]
        made = api.Allocation(time=self._now(), what=what, node=node.name, blocks=list(node.pod_cidrs), pools=pools)
        self._recent.append(made)
        self._fresh.append(made)

    def _pool_of(self, block: str, annotation: str) -> str:
        try:
            pool = self._insight.books.counts_towards(Prefix.parse_lenient(block), annotation)
        except PrefixError:
            return ""
        return pool.name if pool is not None else ""

    def explain(self, name: str) -> api.Explanation | None:
        """Why a node has what it has."""
        return explanation(self._insight, name, self._now(), self._stood.get(name))

    async def run(self) -> None:
        """Draw while somebody looks, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for work in (self._sample, self._draw):
                group.create_task(self._whatever_happens(work))

    async def _whatever_happens(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception:
                _log.exception("the page cannot be kept up for a moment")
            await asyncio.sleep(_AGAIN)

    # How many blocks are free

    async def _sample(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(SAMPLING)

    def sample(self) -> None:
        """Note how many blocks are free, and now and then, work out when there will be none. O(pools).

        Before everything is listed, there are nodes whose blocks seem to be free.
        """
        if not self._insight.listed():
            return
        now, date = self._pace(), self._clock()
        courses: dict[tuple[str, tuple[PoolRange, ...]], list[Course]] = {}
        for pool in self._insight.books.pools.values():
            key = pool.name, pool.spec.ranges
            own = courses[key] = self._courses.get(key) or [Course() for _ in pool.views]
            for course, view in zip(own, pool.views, strict=True):
                course.note(now, view.free)
        self._courses = courses
        if now - self._forecast_at >= FORECASTING:
            self._forecast_at = now
            found = {name: forecast(own, now, date) for (name, _), own in courses.items()}
            self._forecasts = {name: each for name, each in found.items() if each != NO_FORECAST}

    # The board

    async def _draw(self) -> None:
        while True:
            await self._board.wait_looked_at()
            try:
                async with self._surroundings.followed():
                    self._begin()
                    while self._board.looked_at:
                        await self.round()
                        await asyncio.sleep(PERIOD)
            finally:
                self._board.clear()

    async def round(self) -> None:
        """Post what changed."""
        news = News(cluster=self._facts())
        if self._insight.listed():
            news.nodes, news.nodes_gone = await self._look_at_nodes()
            self._look_at_pools(news)
            await self._surroundings.look(news)
            news.allocations, self._fresh = list(self._fresh), deque(maxlen=LAST)
        self._board.post(news)

    async def _look_at_nodes(self) -> tuple[list[api.Node], list[str]]:
        now = self._now()
        rows: list[api.Node] = []
        gone: list[str] = []
        todo = list(self._next_nodes())
        for at, name in enumerate(todo, 1):
            node = self._insight.nodes.get(name)
            if node is None:
                gone.append(name)
                self._unwell.pop(name, None)
            else:
                row = node_row(self._insight, node, now, self._stood.get(name))
                rows.append(row)
                self._stood[name] = Stood(row.state, row.since)
                if row.state == SERVED:
                    self._unwell.pop(name, None)
                else:
                    self._unwell[name] = None
            if at % PIECE == 0:
                await asyncio.sleep(0)
        return rows, gone

    def _next_nodes(self) -> dict[str, None]:
        """Those to be looked at now, each once. Of those that do not stand well, others the next time."""
        changed, self._changed = self._changed, {}
        unwell = list(islice(self._unwell, IN_TURN))
        for name in unwell:
            self._unwell[name] = self._unwell.pop(name)
        if not self._turns:
            self._turns.extend(dict.fromkeys([*self._insight.nodes, *self._board.node_names]))
        turns = [self._turns.popleft() for _ in range(min(IN_TURN, len(self._turns)))]
        return changed | dict.fromkeys(unwell) | dict.fromkeys(turns)

    def _look_at_pools(self, news: News) -> None:
        """Those that changed, and the ranges where some did. O(1) for a pool of which nothing changed."""
        insight, rows = self._insight, []
        pools = insight.books.pools
        for name, pool in pools.items():
            basis = self._basis(pool)
            if self._pools.get(name) != basis:
                self._pools[name] = basis
                rows.append(pool_row(insight, pool, self._forecasts.get(name, NO_FORECAST)))
        news.pools = rows
        news.pools_gone = [name for name in self._pools if name not in pools]
        for name in news.pools_gone:
            del self._pools[name]
        services = [cidr for each in insight.service_ranges.values() for cidr in each.ranges]
        services += insight.flags.service_ranges
        ranges = (tuple(services), tuple(pool.spec.ranges for pool in pools.values()), tuple(pools))
        if ranges != self._ranges:
            self._ranges = ranges
            news.ranges = range_rows(insight.books, services)

    def _basis(self, pool: Pool) -> tuple[object, ...]:
        """All that a pool's row is made from. What a pool that is going says of its nodes names them."""
        usage = self._insight.books.usage(pool)
        counts = [(view.free, usage.allocated(view.family)) for view in pool.views]
        named = tuple(usage.nodes) if pool.spec.terminating else len(usage.nodes)
        return pool.spec, self._forecasts.get(pool.name), named, *counts

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
