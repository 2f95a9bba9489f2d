"""What a path of the API names."""

from __future__ import annotations

from typing import Final, NamedTuple

_OF_NAMESPACES: Final = frozenset({"status", "finalize"})
"""What follows a namespace and is a part of it, not a resource in it."""


class Target(NamedTuple):
    """A resource, or an object of it, or a part of that."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    part: str = ""
    """`status`, where that is meant; with slashes, if more follows."""


def parse(path: str) -> Target | None:
    """What a path names below a version; None for one that leads to no resource.

    >>> parse("/api/v1/namespaces/default/services/web/status")
    Target(group='', version='v1', plural='services', namespace='default', name='web', part='status')
    >>> parse("/apis/apps/v1") is None
    True
    """
    first, *parts = path.strip("/").split("/")
    if first == "apis" and parts:
        group, *parts = parts
    elif first == "api":
        group = ""
    else:
        return None
    if len(parts) < 2 or not all(parts):
        return None
    version, plural, *rest = parts
    namespace = ""
    if plural == "namespaces" and len(rest) > 1 and rest[1] not in _OF_NAMESPACES:
        namespace, plural, *rest = rest
    name = rest[0] if rest else ""
    return Target(group, version, plural, namespace, name, "/".join(rest[1:]))
