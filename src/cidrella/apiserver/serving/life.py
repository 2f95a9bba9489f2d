"""What goes on behind the requests: definitions are served, what is marked is emptied, events go by themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.customs import customs
from cidrella.apiserver.kinds import namespaces
from cidrella.apiserver.serving.definitions import Definitions
from cidrella.apiserver.serving.emptying import Emptying
from cidrella.apiserver.serving.holdings import NAMESPACES
from cidrella.apiserver.serving.sweeping import Sweeping
from cidrella.apiserver.serving.writing import fill
from cidrella.apiserver.words.statuses import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]


class Life:
    """All of it, between `begin` and `end`."""

    def __init__(self, holdings: Holdings, namespace: Resource, definition: Resource) -> None:
        self._holdings = holdings
        self._namespace = namespace
        self._definitions = Definitions(holdings, definition)
        self._going_namespaces = Emptying(holdings, namespace, self._inside, namespaces.end_deletion)
        self._going_definitions = Emptying(holdings, definition, self._definitions.contents, customs.end_deletion)
        self._sweeper: asyncio.Task[None] | None = None
        holdings.beginnings[NAMESPACES] = _begin_namespace_deletion
        holdings.beginnings[definition.store_key] = customs.begin_deletion
        holdings.followers[NAMESPACES] = self._namespace_changed
        holdings.followers[definition.store_key] = self._definition_changed

    def begin(self) -> None:
        """Serve what is stored, make what has to be there, and go on with what was left."""
        self._definitions.load()
        for name in namespaces.INITIAL:
            if self._holdings.store.get(NAMESPACES, name) is None:
                obj: Json = {"metadata": {"name": name}, "spec": {}, "status": {}}
                fill(self._holdings, self._namespace, obj)
                self._holdings.create(self._namespace, name, obj)
        self._going_namespaces.resume()
        self._going_definitions.resume()
        self._sweeper = asyncio.get_running_loop().create_task(Sweeping(self._holdings).run())

    async def end(self) -> None:
        """Leave the rest for another time."""
        if self._sweeper:
            self._sweeper.cancel()
        await self._going_namespaces.close()
        await self._going_definitions.close()

    def _inside(self, name: str) -> Iterator[tuple[Served, str]]:
        storages = {each.resource.store_key: each for each in self._holdings.registry.all()}
        for served in storages.values():
            if served.resource.namespaced:
                yield served, name

    def _namespace_changed(self, entry: Entry, gone: bool) -> None:
        if not gone:
            self._going_namespaces.look_at(entry)

    def _definition_changed(self, entry: Entry, gone: bool) -> None:
        self._definitions.changed(entry, gone)
        if not gone:
            self._going_definitions.look_at(entry)


def _begin_namespace_deletion(namespace: Json, now: str) -> None:
    name = namespace["metadata"]["name"]
    if name in namespaces.LASTING:
        raise forbidden(NAMESPACES, "", name, "this namespace may not be deleted")
    namespaces.begin_deletion(namespace, now)
