"""The changes of late: what watchers are told from, and what brings back a list as it was.

It is bounded, in number and in bytes, over all storages together; what is forgotten is the oldest. A storage in which
little happens is remembered from the last of its own changes that was forgotten, however much happened elsewhere.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cidrella.apiserver.store.entries import Change, Entry

CHANGES: Final = 20_000
BYTES: Final = 64 * 1024 * 1024
"""Of the bodies that changes show. What was before is mostly what another change shows."""


class GoneError(Exception):
    """A version was asked for that is no longer remembered."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(f"version {version} is too old: what is remembered begins at {oldest}")
        self.version = version
        self.oldest = oldest
        """The oldest that could have been asked for."""


class History:
    """The changes of late, in order. `start` is the version from which on they are remembered."""

    def __init__(self, start: int, changes: int = CHANGES, size: int = BYTES) -> None:
        self._start = start
        self._room = changes
        self._bytes_left = size
        self._all: deque[Change] = deque()
        self._of: dict[str, deque[Change]] = {}
        """The same, by storage."""
        self._forgotten: dict[str, int] = {}
        """The latest change of each storage that is no longer remembered."""

    def add(self, change: Change) -> None:
        """A change, later than all others. O(1), amortised."""
        self._all.append(change)
        self._of.setdefault(change.storage, deque()).append(change)
        self._bytes_left -= len(change.shown.body)
        while self._all and (len(self._all) > self._room or self._bytes_left < 0):
            self._forget()

    def oldest(self, storage: str) -> int:
        """The oldest version from which on all changes in a storage are remembered. O(1)."""
        return self._forgotten.get(storage, self._start)

    def between(self, storage: str, after: int, until: int) -> list[Change]:
        """The changes in a storage that are later than `after`, but not than `until`. O(those later than `after`).

        Raises GoneError.
        """
        if after < self.oldest(storage):
            raise GoneError(after, self.oldest(storage))
        found = []
        for change in reversed(self._of.get(storage, ())):
            if change.version <= after:
                break
            if change.version <= until:
                found.append(change)
        found.reverse()
        return found

    def undone(self, storage: str, version: int, until: int) -> dict[str, Entry | None]:
        """What differed at a version from how it is at `until`, by path. Raises GoneError."""
        later = self.between(storage, version, until)
        return {change.shown.path: change.before for change in reversed(later)}

    def _forget(self) -> None:
        change = self._all.popleft()
        self._of[change.storage].popleft()
        self._forgotten[change.storage] = change.version
        self._bytes_left += len(change.shown.body)
