"""Changes of pools of one family: nodes wait until what belongs together is there, or gone, and not for ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cidrella.controller.together import Together
from cidrella.core.pool import PoolSpec
from cidrella.core.selector import Operator, Requirement, Selector, Term
from tests.core.build import spec
from tests.kube.simulated import simulate

FOUR = replace(spec("ccc/four", "10.0.0.0/24 /28"), composed=True)
SIX = replace(spec("ccc/six", "fd00::/112 /120"), composed=True)
POOL = spec("pods", "10.0.0.0/24 /28")
SELECTOR = Selector((Term((Requirement("np", Operator.IN, ("x",)),)),))

Change = tuple[PoolSpec | None, PoolSpec | None]


class Clock:
    """Pools that change at set times, and how long somebody then has to wait."""

    def __init__(self) -> None:
        self.guarded = 0.0
        """Seconds that it takes until pools are guarded."""
        self.together = Together(self._guard)

    async def _guard(self) -> None:
        await asyncio.sleep(self.guarded)

    async def wait(self) -> float:
        """Wait, and tell for how long."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self.together.wait_settled()
        return loop.time() - began


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ((None, replace(FOUR, guarded=False)), 1.0),
        ((None, FOUR), 1.0),  # with the finalizer in the manifest
        ((replace(FOUR, problem="odd", ranges=()), FOUR), 1.0),
        ((FOUR, replace(FOUR, terminating=True)), 1.0),
        ((FOUR, None), 1.0),
        ((FOUR, replace(FOUR, guarded=False)), 1.0),
        ((FOUR, replace(FOUR, problem="odd")), 1.0),
        ((FOUR, replace(FOUR, selector=SELECTOR)), 0.3),
        ((replace(FOUR, guarded=False), FOUR), 0.0),
        ((FOUR, FOUR), 0.0),
        ((None, replace(FOUR, terminating=True)), 0.0),
        ((None, replace(FOUR, problem="odd", ranges=())), 0.0),
        ((replace(FOUR, terminating=True), None), 0.0),
        ((replace(FOUR, guarded=False), replace(FOUR, guarded=False, selector=SELECTOR)), 0.0),
        ((None, POOL), 0.0),
        ((POOL, replace(POOL, terminating=True)), 0.0),
        ((POOL, None), 0.0),
    ],
)
def test_what_is_waited_for(change: Change, seconds: float) -> None:
    """K2, K3: nodes wait where a pool of one family comes or goes, less where its selector changes, else not at all."""

    async def scenario() -> None:
        clock = Clock()
        assert await clock.wait() == 0
        clock.together.pool_changed(*change)
        assert await clock.wait() == pytest.approx(seconds)
        assert await clock.wait() == 0

    simulate(scenario())


@pytest.mark.parametrize("other", [(None, SIX), (SIX, replace(SIX, terminating=True))])
def test_the_moment_begins_anew(other: Change) -> None:
    """K3: late in the moment of one pool others come, or go: for what belongs to those, too, nodes wait."""

    async def scenario() -> None:
        clock = Clock()
        clock.together.pool_changed(None, FOUR)
        waiting = asyncio.ensure_future(clock.wait())
        await asyncio.sleep(0.85)
        clock.together.pool_changed(*other)
        assert await waiting == pytest.approx(1.85)

    simulate(scenario())


def test_a_lesser_change_makes_nothing_shorter() -> None:
    """K2, K3: a selector that changes while pools come has nodes wait no less."""

    async def scenario() -> None:
        clock = Clock()
        clock.together.pool_changed(None, FOUR)
        clock.together.pool_changed(SIX, replace(SIX, selector=SELECTOR))
        assert await clock.wait() == pytest.approx(1.0)

    simulate(scenario())


def test_a_stream_holds_nobody_up() -> None:
    """K3, N4: where pools come all the time, nodes wait for seconds, and then are served."""

    async def scenario() -> None:
        clock = Clock()

        async def stream() -> None:
            while True:
                clock.together.pool_changed(None, FOUR)
                await asyncio.sleep(0.25)

        streaming = asyncio.ensure_future(stream())
        for _ in range(20):
            await asyncio.sleep(0.1)
            assert await clock.wait() <= 3.0 + 1e-6
        streaming.cancel()

    simulate(scenario())


def test_what_came_meanwhile_is_guarded() -> None:
    """P1, K3: a pool that follows is waited for until it is guarded."""

    async def scenario() -> None:
        clock = Clock()
        clock.together.pool_changed(None, FOUR)
        waiting = asyncio.ensure_future(clock.wait())
        await asyncio.sleep(0.5)
        clock.guarded = 0.75
        assert await waiting == pytest.approx(1.75)

    simulate(scenario())
