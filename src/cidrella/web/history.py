"""The last changes, encoded once for all who follow them.

Whoever follows is a place in here, the version that it has seen, and has no queue of its own: one that reads slowly
costs nobody anything, and when the history has gone on without it, it is told to begin anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import Final

COUNT_MAX: Final = 1024
"""Changes: at four a second, some minutes."""
SIZE_MAX: Final = 8 << 20
"""Bytes, all of them together. A change of everything, with 5,000 nodes, is about one million."""


class ForgottenError(LookupError):
    """The changes after a version are not known any more, or it is no version of this process."""


class History:
    """Changes by their version, which grows by one with each. The last one is always kept, however large."""

    def __init__(self, version: int, *, count_max: int = COUNT_MAX, size_max: int = SIZE_MAX) -> None:
        self.version = version
        """The latest."""
        self._count_max = count_max
        self._size_max = size_max
        self._changes: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.ended = False
        """Nobody is told anything any more."""

    def add(self, change: bytes) -> None:
        """What makes the next version."""
        self.version += 1
        self._changes.append(change)
        self._size += len(change)
        while len(self._changes) > self._count_max or (self._size > self._size_max and len(self._changes) > 1):
            self._size -= len(self._changes.popleft())
        self._wake()

    def after(self, version: int) -> list[bytes]:
        """The changes after a version, the oldest first. Raises `ForgottenError`."""
        behind = self.version - version
        if not 0 <= behind <= len(self._changes):
            raise ForgottenError(version)
        return list(islice(self._changes, len(self._changes) - behind, None))

    async def wait(self, version: int) -> None:
        """Wait for a change after a version, or for the end."""
        while version == self.version and not self.ended:
            await self._news.wait()

    def forget(self) -> None:
        """Whoever follows has to begin anew, with the version that comes now."""
        self._changes.clear()
        self._size = 0
        self.version += 1
        self._wake()

    def end(self) -> None:
        """Let everybody go."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
