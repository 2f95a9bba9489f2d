"""The objects of the API: in memory, in order, with every change counted. With a journal, they outlive the process.

Theory of operation:

- A write is a compare and swap, and takes effect at once, in memory: there is one event loop, and no lock. Its number,
  the version, counts all changes of the store; it is never given again, not after a deletion, and not after a restart.
- With a journal, what is in memory may be ahead of the disk. So whoever answers a request, be it a write, a read or a
  refusal, waits with `settle` until all that it may have seen is durable. Watchers are told durable changes only.
- Objects are kept as encoded JSON: a list is answered by joining bytes, and nobody can change what is stored.
- When the disk fails, memory holds what nobody may be told, and the store is of no more use: everything is refused.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.store.entries import Change, Entry
from cidrella.apiserver.store.history import CHANGES, GoneError, History
from cidrella.apiserver.store.journal import FIRST_VERSION, DataDirError, Journal, StoreError
from cidrella.apiserver.store.watcher import Bells, OverrunError, Watcher

if TYPE_CHECKING:
    Json = dict[str, Any]

__all__ = [
    "Change",
    "DataDirError",
    "Entry",
    "ExistsError",
    "GoneError",
    "Journal",
    "MissingError",
    "OverrunError",
    "StaleError",
    "Store",
    "StoreError",
    "Watcher",
]


class ExistsError(Exception):
    """There is an object at this path."""


class MissingError(Exception):
    """There is no object at this path."""


class StaleError(Exception):
    """The object has another version than was expected."""


class _Shelf:
    """The objects of one storage."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.paths: list[str] = []
        """In order."""

    def put(self, path: str, entry: Entry | None) -> None:
        """O(log n), and moving the paths behind it where it is new or gone."""
        if entry is None:
            del self.entries[path]
            del self.paths[bisect_left(self.paths, path)]
            return
        if path not in self.entries:
            insort(self.paths, path)
        self.entries[path] = entry


class Store:
    """Objects by storage and path. With a journal: those in it, and each change goes there.

    `remembered` is how many changes are, at most (see `History`).
    """

    def __init__(self, journal: Journal | None = None, *, remembered: int = CHANGES) -> None:
        self._journal = journal
        self.version = journal.version if journal else FIRST_VERSION
        """Of the latest change; each write adds one."""
        self._shelves: dict[str, _Shelf] = {}
        self._history = History(self.version, remembered)
        self._bells = Bells()
        self._bells.durable = self.version
        self._settling: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Who waits for which version, in order."""
        if journal is not None:
            self._load(journal)
            journal.attach(self._landed, self._failed)

    def get(self, storage: str, path: str) -> Entry | None:
        """The object at a path. O(1)."""
        return self._shelf(storage).entries.get(path)

    def entries(self, storage: str, namespace: str = "") -> list[Entry]:
        """All objects of a storage, or those in a namespace, in order. O(those)."""
        shelf = self._shelf(storage)
        paths = _within(shelf.paths, namespace)
        return [shelf.entries[path] for path in paths]

    def entries_at(self, version: int, storage: str, namespace: str = "") -> list[Entry]:
        """As `entries`, at a version that was. O(those, and the changes since). Raises GoneError."""
        undone = self._history.undone(storage, version, self.version)
        entries = {**self._shelf(storage).entries, **undone}
        return [entry for path in _within(sorted(entries), namespace) if (entry := entries[path]) is not None]

    def create(self, storage: str, path: str, obj: Json) -> Entry:
        """Store a new object; metadata.resourceVersion is set in it. Raises ExistsError, StoreError."""
        if path in self._shelf(storage).entries:
            raise ExistsError(path)
        entry = Entry.write(path, self.version + 1, obj)
        self._change(Change(storage, None, entry, entry))
        return entry

    def replace(self, storage: str, path: str, obj: Json, expected: int) -> Entry:
        """Store another state of the object that has the expected version; metadata.resourceVersion is set in it.

        Raises MissingError, StaleError, StoreError.
        """
        before = self._expect(storage, path, expected)
        entry = Entry.write(path, self.version + 1, obj)
        self._change(Change(storage, before, entry, entry))
        return entry

    def delete(self, storage: str, path: str, expected: int) -> Entry:
        """Delete the object that has the expected version. Returns its last state, with the version of the deletion.

        Raises MissingError, StaleError, StoreError.
        """
        before = self._expect(storage, path, expected)
        shown = Entry.write(path, self.version + 1, before.read())
        self._change(Change(storage, before, None, shown))
        return shown

    async def settle(self) -> None:
        """Wait until all that was done so far is durable. In memory: at once. Raises StoreError if it never will be."""
        if self._bells.failure:
            raise StoreError(self._bells.failure)
        if self._bells.durable < self.version:
            settled = asyncio.get_running_loop().create_future()
            self._settling.append((self.version, settled))
            await settled

    def watch(self, storage: str, namespace: str = "", since: int | None = None) -> Watcher:
        """Follow the changes after a version, or after what there is now. Raises GoneError."""
        start = self.version if since is None else since
        if start < self._history.oldest(storage):
            raise GoneError(start, self._history.oldest(storage))
        return Watcher(self._history, self._bells, storage, namespace, start)

    def check(self) -> None:
        """Assert every invariant. O(n log n)."""
        for shelf in self._shelves.values():
            assert shelf.paths == sorted(shelf.entries)
            for path, entry in shelf.entries.items():
                obj = entry.read()
                assert entry.path == path
                assert obj["metadata"]["resourceVersion"] == str(entry.version)
                assert entry.labels == (obj["metadata"].get("labels") or {})
                assert entry.version <= self.version
        assert self._bells.durable <= self.version

    def _shelf(self, storage: str) -> _Shelf:
        shelf = self._shelves.get(storage)
        if shelf is None:
            shelf = self._shelves[storage] = _Shelf()
        return shelf

    def _expect(self, storage: str, path: str, expected: int) -> Entry:
        entry = self.get(storage, path)
        if entry is None:
            raise MissingError(path)
        if entry.version != expected:
            raise StaleError(path)
        return entry

    def _change(self, change: Change) -> None:
        """The one way to change anything."""
        if self._bells.failure:
            raise StoreError(self._bells.failure)
        self.version = change.version
        self._shelf(change.storage).put(change.shown.path, change.after)
        self._history.add(change)
        if self._journal is not None:
            self._journal.append(change)
        else:
            self._bells.durable = self.version
            self._bells.ring(change.storage)

    def _landed(self, changes: list[Change]) -> None:
        """Changes are durable: they may be told, and who waits for them goes on."""
        self._bells.durable = changes[-1].version
        while self._settling and self._settling[0][0] <= self._bells.durable:
            settled = self._settling.popleft()[1]
            if not settled.done():
                settled.set_result(None)
        for storage in {each.storage for each in changes}:
            self._bells.ring(storage)

    def _failed(self, why: str) -> None:
        """The journal takes nothing any more. What has not landed by now never will, as far as anybody may know."""
        self._bells.fail(why)
        while self._settling:
            settled = self._settling.popleft()[1]
            if not settled.done():
                settled.set_exception(StoreError(why))

    def _load(self, journal: Journal) -> None:
        for row in journal.read():
            self._shelf(row.storage).entries[row.path] = Entry(row.path, row.version, row.body)
        for shelf in self._shelves.values():
            shelf.paths = sorted(shelf.entries)


def _within(paths: list[str], namespace: str) -> list[str]:
    """Those in a namespace, of paths in order; all, if there is none."""
    if not namespace:
        return paths
    return paths[bisect_left(paths, f"{namespace}/") : bisect_left(paths, f"{namespace}0")]  # 0 comes next to /
