"""What is served: resources by group, version and name. Built-in ones are always there, those of CRDs come and go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.serving.calls import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {None: 0, "beta": 1, "alpha": 2}


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A resource, and what its answers begin with."""

    resource: Resource
    since: int = 0
    """The version at which its schema last changed: what was stored before may not be as it is to be read now."""
    terminating: bool = False
    """Whether its CRD is about to go: nothing can be created any more."""
    head: bytes = field(init=False)
    """What an object begins with. What is stored has neither kind nor apiVersion: they are the resource's."""
    list_head: bytes = field(init=False)
    """What a list begins with."""
    item_head: bytes = field(init=False)
    """What an item of a list begins with: only those of custom resources say what they are."""

    def __post_init__(self) -> None:
        resource = self.resource
        head = b'{"kind":%s,"apiVersion":%s,'
        version = encode(resource.group_version)
        object.__setattr__(self, "head", head % (encode(resource.kind), version))
        object.__setattr__(self, "list_head", head % (encode(resource.list_kind or f"{resource.kind}List"), version))
        object.__setattr__(self, "item_head", self.head if resource.custom else b"{")

    def read(self, entry: Entry) -> Json:
        """What is stored, in the form of this version, without kind and apiVersion."""
        obj = entry.read()
        if self.resource.decode:
            obj = self.resource.decode(obj)
        if entry.version < self.since:
            self.resource.schema.prune(obj)
            self.resource.schema.default(obj)
        return obj

    def raw(self, entry: Entry) -> bytes:
        """Likewise, as JSON: mostly what is stored, as it is."""
        if self.resource.decode or entry.version < self.since:
            return encode(self.read(entry))
        return entry.body


class Registry:
    """What is served now."""

    def __init__(self, builtins: Iterable[Resource]) -> None:
        self.edition = 0
        """Grows with each change: what was made of all that is served is good for one edition."""
        self._found: dict[tuple[str, str, str], Served] = {}
        self._groups: dict[str, dict[str, dict[str, Served]]] = {}
        self._of_definitions: dict[str, list[Served]] = {}
        self._builtins = [Served(each) for each in builtins]
        self._build()

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """The resource of this name."""
        return self._found.get((group, version, plural))

    def groups(self) -> list[str]:
        """All that have a name, in the order in which they came."""
        return [each for each in self._groups if each]

    def versions(self, group: str) -> list[str]:
        """Of a group, the preferred one first; none if there is no such group."""
        return sorted(self._groups.get(group, ()), key=_rank)

    def served(self, group: str, version: str) -> list[Served]:
        """What a version of a group has, by name; nothing if there is no such version."""
        found = self._groups.get(group, {}).get(version, {})
        return [found[plural] for plural in sorted(found)]

    def all(self) -> list[Served]:
        """Everything."""
        return list(self._found.values())

    def is_custom(self, group: str) -> bool:
        """Whether only CRDs have made this group."""
        return all(
            each.resource.custom for version in self._groups.get(group, {}).values() for each in version.values()
        )

    def serve(self, definition: str, resources: Iterable[Resource], since: int) -> None:
        """Serve these from now on, for the CRD of this name, and no others; it was changed at this version."""
        self._of_definitions[definition] = [Served(each, since) for each in resources]
        self._build()

    def expire(self, definition: str) -> None:
        """Let nothing be created any more of what is served for a CRD."""
        found = self._of_definitions[definition]
        self._of_definitions[definition] = [replace(each, terminating=True) for each in found]
        self._build()

    def withdraw(self, definition: str) -> None:
        """Serve nothing any more for this CRD."""
        if self._of_definitions.pop(definition, None) is not None:
            self._build()

    def of(self, definition: str) -> list[Served]:
        """What is served for a CRD."""
        return self._of_definitions.get(definition, [])

    def _build(self) -> None:
        self.edition += 1
        self._found.clear()
        self._groups.clear()
        for served in (*self._builtins, *(each for one in self._of_definitions.values() for each in one)):
            resource = served.resource
            if self._found.setdefault((resource.group, resource.version, resource.plural), served) is served:
                versions = self._groups.setdefault(resource.group, {})
                versions.setdefault(resource.version, {})[resource.plural] = served


def _rank(version: str) -> tuple[object, ...]:
    """Where a version stands among others: stable ones first, newer ones first, then what is no version, by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, version)
    major, stage, minor = found.groups()
    return (0, _STAGES[stage], -int(major), -int(minor or 0))
