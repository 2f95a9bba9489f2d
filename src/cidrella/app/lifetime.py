"""How a process that runs for long ends: by a signal, by itself, or by force.

The first SIGTERM or SIGINT asks for an orderly end: the work is cancelled, and finishes what is in flight. A thread of
its own counts the seconds meanwhile, so that nothing that hangs, be it the event loop or a look-up that cannot be
cancelled, keeps the process longer than it may take. The second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from threading import Timer
from typing import TYPE_CHECKING, Final, Self

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ENDED: Final = 0
FAILED: Final = 1
GRACE: Final = 4.7
"""Seconds for an orderly end, so that with what the interpreter takes it is less than 5."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger()


class ToldError(Exception):
    """What ended the work, and is in the log already."""


class Lifetime:
    """Within it, signals end the work. Leaving it means that everything ended in time."""

    def __init__(
        self, grace: float = GRACE, leave: Callable[[int], object] = os._exit, *, what: str = "the controller"
    ) -> None:
        self._what = what
        self._leave = leave
        self._timer = Timer(grace, self._out_of_time)
        self._timer.daemon = True
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    async def spend_on(self, work: Coroutine[object, object, None]) -> int:
        """Do the work until a signal comes, and return the exit code: 0 if it ended because it was told to."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._tell, number, task)
        try:
            await asyncio.wait([task])
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
        return self._outcome(task)

    def _tell(self, number: signal.Signals, task: asyncio.Task[None]) -> None:
        if self._told:
            _log.warning("told to stop again: leaving at once", signal=number.name)
            self._leave(128 + number)
            return
        _log.info("told to stop: finishing what is in flight", signal=number.name)
        self._told = True
        self._timer.start()
        task.cancel()

    def _outcome(self, task: asyncio.Task[None]) -> int:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ToldError):
            return FAILED
        if error is not None:
            _log.error(f"{self._what} failed", error=str(error), exc_info=error)
            return FAILED
        if not self._told:
            _log.error(f"{self._what} ended by itself, which it should not")
            return FAILED
        _log.info("stopped")
        return ENDED

    def _out_of_time(self) -> None:
        _log.error("did not stop in time: leaving as it is")
        self._leave(FAILED)
