"""What goes only after what is in it: a namespace after its objects, a definition after the objects of its kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from cidrella.apiserver.serving.deleteoptions import DeleteOptions
from cidrella.apiserver.serving.deleting import remove
from cidrella.apiserver.store.journal import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]
    Contents = Callable[[str], Iterable[tuple[Served, str]]]
    End = Callable[[Json], bool]

_PAUSE: Final = 0.1
"""Seconds between looks at whether somebody has taken the last finalizer away."""

_log = structlog.get_logger()


class Emptying:
    """Empties what is marked for deletion, in the background, and then removes it.

    `contents` tells what is in one, by its path: resources, and the namespace to look in. `end` takes away from an
    object what keeps it until it is empty, and says whether nothing else does.
    """

    def __init__(self, holdings: Holdings, resource: Resource, contents: Contents, end: End) -> None:
        self._holdings = holdings
        self._resource = resource
        self._contents = contents
        self._end = end
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def resume(self) -> None:
        """Go on with what was marked before."""
        for entry in self._holdings.store.entries(self._resource.store_key):
            self.look_at(entry)

    def look_at(self, entry: Entry) -> None:
        """Begin, if this is marked and nobody has begun."""
        if b'"deletionTimestamp"' not in entry.body or entry.path in self._tasks:
            return
        if "deletionTimestamp" in entry.read()["metadata"]:
            task = asyncio.get_running_loop().create_task(self._run(entry.path))
            self._tasks[entry.path] = task
            task.add_done_callback(lambda _: self._tasks.pop(entry.path, None))

    async def close(self) -> None:
        """Leave the rest for another time."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, path: str) -> None:
        try:
            while self._left(path):
                await asyncio.sleep(_PAUSE)
            await self._holdings.store.settle()
        except StoreError as error:
            _log.error("what is marked for deletion stays", what=self._resource.plural, name=path, error=str(error))

    def _left(self, path: str) -> bool:
        """Delete what is in it. Whether something stays, or what holds it; removes it otherwise."""
        left = False
        for served, namespace in self._contents(path):
            for entry in self._holdings.store.entries(served.resource.store_key, namespace):
                left |= not remove(self._holdings, served, entry, DeleteOptions()).gone
        if left:
            return True
        found = self._holdings.store.get(self._resource.store_key, path)
        if found is None:
            return False
        obj = found.read()
        if self._end(obj):
            self._holdings.delete(self._resource, found)
        else:
            self._holdings.replace(self._resource, found, obj)
        return False
