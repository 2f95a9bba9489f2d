"""Following the changes in a storage.

A watcher is a place in the history and nothing else: a change costs the same whether one or a thousand will read it,
and a slow reader costs nobody anything. One so slow that the history has forgotten what comes next has lost its place.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cidrella.apiserver.store.history import GoneError
from cidrella.apiserver.store.journal import StoreError

if TYPE_CHECKING:
    from cidrella.apiserver.store.entries import Change
    from cidrella.apiserver.store.history import History


class OverrunError(Exception):
    """A watcher was read too slowly: changes that it has not seen are forgotten."""


class Bells:
    """Who waits for a change, by storage."""

    def __init__(self) -> None:
        self._sleepers: dict[str, set[asyncio.Future[None]]] = {}
        self.durable = 0
        """The latest change that may be told."""
        self.failure = ""
        """Why there will be no more."""

    def ring(self, storage: str) -> None:
        """Wake those who wait for a change in a storage. O(those)."""
        for sleeper in self._sleepers.pop(storage, ()):
            if not sleeper.done():
                sleeper.set_result(None)

    def fail(self, why: str) -> None:
        """There will be no more changes, in any storage."""
        self.failure = why
        for storage in list(self._sleepers):
            self.ring(storage)

    async def wait(self, storage: str) -> None:
        """Until there is a change in a storage, or something else to look at."""
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.setdefault(storage, set()).add(sleeper)
        try:
            await sleeper
        finally:
            self._sleepers.get(storage, set()).discard(sleeper)


class Watcher:
    """The changes in a storage, or in a namespace of it, that are later than a version: each once, in order.

    What it gives are lists, of all that has become durable since the last. To stop waiting for the next one, by a
    timeout or otherwise, loses nothing.
    """

    def __init__(self, history: History, bells: Bells, storage: str, namespace: str, since: int) -> None:
        self._history = history
        self._bells = bells
        self._storage = storage
        self._prefix = f"{namespace}/" if namespace else ""
        self._seen = since
        self._closed = False

    @property
    def version(self) -> int:
        """All changes up to here have been given: what a bookmark says. Never less than it was."""
        durable = self._bells.durable
        if durable > self._seen and not self._closed and not self._next(durable):
            self._seen = durable
        return self._seen

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> list[Change]:
        """Raises OverrunError; StoreError if the store has failed."""
        while not self._closed:
            if changes := self._take():
                return changes
            if self._bells.failure:
                raise StoreError(self._bells.failure)
            await self._bells.wait(self._storage)
        raise StopAsyncIteration

    def close(self) -> None:
        """End it; who waits for the next is told that there is none."""
        self._closed = True
        self._bells.ring(self._storage)

    def _take(self) -> list[Change]:
        durable = self._bells.durable
        if durable <= self._seen:
            return []
        changes = self._next(durable)
        self._seen = durable
        return changes

    def _next(self, durable: int) -> list[Change]:
        try:
            changes = self._history.between(self._storage, self._seen, durable)
        except GoneError as error:
            raise OverrunError(f"changes in {self._storage} after {self._seen} are forgotten") from error
        return [each for each in changes if each.shown.path.startswith(self._prefix)] if self._prefix else changes
