"""The parts of one replica, which work side by side until one of them ends, and then end together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_log = structlog.get_logger()


async def run_parts(
    parts: Sequence[Awaitable[None]],
    failed: asyncio.Future[None],
    finish: Callable[[], Awaitable[object]],
    what: str,
) -> None:
    """Run all parts until this is cancelled, one of them ends or `failed` is set; raise what that was.

    Before they are told to end, the first one first, `finish` is awaited: what is under way needs them. `what` this is
    goes into the log.
    """
    tasks = [asyncio.ensure_future(each) for each in parts]
    try:
        done, _ = await asyncio.wait([*tasks, failed], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        raise AssertionError(f"a part of {what} ended")
    finally:
        await finish()
        for task in (*tasks, failed):
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                _log.error(f"a part of {what} failed", error=repr(error))
