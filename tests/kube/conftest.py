"""What the tests of the transport share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """What runs a scenario, within a minute."""
    with_loop = {"asyncio": asyncio.run, "uvloop": uvloop.run}[request.param]

    def within_a_minute(scenario: Coroutine[Any, Any, None]) -> None:
        with_loop(asyncio.wait_for(scenario, 60))

    return within_a_minute
