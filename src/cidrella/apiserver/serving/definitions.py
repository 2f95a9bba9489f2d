"""Definitions of custom resources: with each change of one, what is served changes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from cidrella.apiserver.customs import customs
from cidrella.apiserver.schemas.schema import SchemaError
from cidrella.apiserver.words.times import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]

_log = structlog.get_logger()


class Definitions:
    """Those that there are, which the registry is told of."""

    def __init__(self, holdings: Holdings, resource: Resource) -> None:
        self._holdings = holdings
        self._resource = resource
        self._made_of: dict[str, Any] = {}
        """By path, what of a definition its resources are made of: they are made anew only if that changes."""

    def load(self) -> None:
        """Serve those that are stored."""
        for entry in self._holdings.store.entries(self._resource.store_key):
            self._serve(entry, entry.read())

    def changed(self, entry: Entry, gone: bool) -> None:
        """One was written, or went."""
        if gone:
            self._withdraw(entry.path)
            return
        definition = entry.read()
        others = [each.read() for each in self._holdings.store.entries(self._resource.store_key) if each != entry]
        if customs.accept(definition, others, format_time(self._holdings.now())):
            self._holdings.replace(self._resource, entry, definition)  # which calls this again
        else:
            self._serve(entry, definition)

    def contents(self, path: str) -> Iterator[tuple[Served, str]]:
        """What is served for one, each storage once."""
        storages = {each.resource.store_key: each for each in self._holdings.registry.of(path)}
        for served in storages.values():
            yield served, ""

    def _serve(self, entry: Entry, definition: Json) -> None:
        path, registry = entry.path, self._holdings.registry
        if not customs.is_established(definition):
            self._withdraw(path)
            return
        made_of = (definition["spec"], definition["status"]["acceptedNames"])
        if self._made_of.get(path) != made_of:
            try:
                registry.serve(path, customs.resources_of(definition), entry.version)
            except SchemaError as error:
                _log.error("a definition that is stored cannot be served", name=path, error=str(error))
                return
            self._made_of[path] = made_of
            self._holdings.withdrawn()  # a version of it may be
        if "deletionTimestamp" in definition["metadata"]:
            registry.expire(path)

    def _withdraw(self, path: str) -> None:
        if self._made_of.pop(path, None) is not None:
            self._holdings.registry.withdraw(path)
            self._holdings.withdrawn()
