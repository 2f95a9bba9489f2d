"""What reading, writing and deleting have in common: the store, by resource and name, and who is told of changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.words.statuses import StatusError, forbidden, not_found

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cidrella.apiserver.registry import Registry, Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.services.addressing import ServiceAddresses
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.entries import Entry
    from cidrella.apiserver.store.store import Store

    Json = dict[str, Any]

NAMESPACES = "namespaces"


@dataclass(slots=True)
class Holdings:
    """What there is."""

    store: Store
    registry: Registry
    random: Random = field(default_factory=SystemRandom)
    addresses: ServiceAddresses | None = None
    """Who gives Services their addresses; None while there is nobody."""
    followers: dict[str, Callable[[Entry, bool], None]] = field(default_factory=dict)
    """By storage: who is told at once of what is there now, or (True) was."""

    beginnings: dict[str, Callable[[Json, str], None]] = field(default_factory=dict)
    """By storage, of what goes only after what is in it: what its deletion begins with. May raise `StatusError`."""

    withdrawn: Callable[[], None] = lambda: None
    """Told when something is no longer served."""

    def now(self) -> datetime:
        """The time, as objects say it."""
        return datetime.now(UTC)

    def find(self, resource: Resource, target: Target) -> Entry | None:
        """The stored object that a path names."""
        return self.store.get(resource.store_key, place(resource, target.namespace, target.name))

    def get(self, resource: Resource, target: Target) -> Entry:
        """Likewise. Raises `StatusError` where there is none."""
        found = self.find(resource, target)
        if found is None:
            raise not_found(resource.plural, resource.group, target.name)
        return found

    def create(self, resource: Resource, path: str, obj: Json) -> Entry:
        """Store a new object. Raises ExistsError."""
        return self._told(resource, self.store.create(resource.store_key, path, _stored(resource, obj)))

    def replace(self, resource: Resource, entry: Entry, obj: Json) -> Entry:
        """Store another state of an object. Raises MissingError, StaleError."""
        replaced = self.store.replace(resource.store_key, entry.path, _stored(resource, obj), entry.version)
        return self._told(resource, replaced)

    def delete(self, resource: Resource, entry: Entry) -> Entry:
        """Delete an object. Returns its last state, with the version of that. Raises MissingError, StaleError."""
        return self._told(resource, self.store.delete(resource.store_key, entry.path, entry.version), gone=True)

    def check_namespace(self, served: Served, target: Target, name: str) -> None:
        """Refuse to create in a namespace that is not there, or about to go. Raises `StatusError`."""
        if not served.resource.namespaced:
            return
        entry = self.store.get(NAMESPACES, target.namespace)
        if entry is None:
            raise not_found(NAMESPACES, "", target.namespace)
        if b'"deletionTimestamp"' in entry.body and "deletionTimestamp" in entry.read()["metadata"]:
            raise _terminating(served.resource, target.namespace, name)

    def knows(self, version: str, kind: str) -> bool:
        """Whether there is a built-in kind of this name."""
        return any(
            each.resource.kind == kind and each.resource.group_version == version and not each.resource.custom
            for each in self.registry.all()
        )

    def _told(self, resource: Resource, entry: Entry, *, gone: bool = False) -> Entry:
        follower = self.followers.get(resource.store_key)
        if follower:
            follower(entry, gone)
        return entry


def place(resource: Resource, namespace: str, name: str) -> str:
    """Under which an object is stored."""
    return f"{namespace}/{name}" if resource.namespaced else name


def _stored(resource: Resource, obj: Json) -> Json:
    return resource.encode(obj) if resource.encode else obj


def _terminating(resource: Resource, namespace: str, name: str) -> StatusError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused = forbidden(resource.plural, resource.group, name, why)
    refused.details = {**(refused.details or {}), "causes": [cause]}
    return refused
