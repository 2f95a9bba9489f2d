"""Whether this process may write to the API: it leads, and has seen what there was when it began to.

Every write asks `on` right before it goes out. A process that was paused for longer than its lease finds the answer
changed by the clock alone, before anybody had a chance to tell it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Duty:
    """Taken up when the books of this process are complete, laid down when it no longer leads."""

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._taken_up = asyncio.Event()

    @property
    def leads(self) -> bool:
        """Whether this process leads, by the clock."""
        return self._leads()

    @property
    def on(self) -> bool:
        """Whether a write may go out now."""
        return self._taken_up.is_set() and self._leads()

    def take_up(self) -> None:
        """From now on there may be writes."""
        self._taken_up.set()

    def lay_down(self) -> None:
        """From now on there may be none."""
        self._taken_up.clear()

    async def wait(self) -> None:
        """Wait until duty was taken up. It may be over again by the time that somebody acts on it: ask `on`."""
        await self._taken_up.wait()
