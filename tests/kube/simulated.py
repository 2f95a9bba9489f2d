"""An event loop whose time is simulated: waiting takes none, and the same test takes the same course each time."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _Instant(selectors.SelectSelector):
    """A selector that lets time pass instead of waiting for it. It serves no sockets but the loop's own."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See what is there already; if nothing is, let the time pass that the loop would have waited."""
        if timeout is None:
            raise AssertionError("everybody waits for something that nothing will bring about")
        self.now += max(0.0, timeout)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop that starts at second 1,000 and jumps to the next timer whenever there is nothing else to do."""

    def __init__(self) -> None:
        self._instant = _Instant()
        super().__init__(self._instant)

    def time(self) -> float:
        """The simulated time, in seconds."""
        return self._instant.now


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as asyncio.run does, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
