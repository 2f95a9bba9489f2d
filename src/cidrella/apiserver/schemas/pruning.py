"""What the server takes out of objects and puts into them before it looks at them: unknown fields, nulls, defaults."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.structural import NOTHING

if TYPE_CHECKING:
    from cidrella.apiserver.schemas.structural import Node

    Json = dict[str, Any]

ROOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
"""What every object has, whether its schema says so or not. What is in metadata is not for schemas to say."""


def prune(root: Node, obj: Json) -> list[str]:
    """Remove what the schema does not know, and tell the paths of what was removed, in order."""
    unknown: list[str] = []
    _prune_object(root, obj, "", unknown, ROOT_FIELDS)
    return sorted(unknown)


def _prune(node: Node | None, value: Any, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_object(node, value, f"{path}.", unknown, frozenset())
    elif node is None or node.items is not None or not node.preserves:
        items = None if node is None else node.items
        for at, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(items, item, f"{path}[{at}]", unknown)


def _prune_object(node: Node | None, obj: Json, path: str, unknown: list[str], kept: frozenset[str]) -> None:
    # Most of what an object holds is neither unknown nor holds anything itself: it is passed over at once.
    strange: list[str] = []
    known = {} if node is None else node.properties
    additional = None if node is None else node.additional
    for name, value in obj.items():
        below = known.get(name, additional)
        if below is None:
            strange.append(name)
        elif value and name not in kept and isinstance(value, dict | list):
            _prune(below, value, f"{path}{name}", unknown)
    if strange and (node is None or not node.preserves):
        for name in strange:
            if name not in kept:
                unknown.append(f"{path}{name}")
                del obj[name]


def default(root: Node, obj: Json) -> None:
    """Put in the defaults, and take out the nulls that the schema allows no null for."""
    _default_object(root, obj, ROOT_FIELDS)


def _default(node: Node, value: Any) -> None:
    if isinstance(value, dict):
        _default_object(node, value, frozenset())
    elif node.items is not None:
        for at, item in enumerate(value):
            if item is None and not node.items.nullable and node.items.default is not NOTHING:
                value[at] = deepcopy(node.items.default)
            if isinstance(value[at], dict | list):
                _default(node.items, value[at])


def _default_object(node: Node, obj: Json, kept: frozenset[str]) -> None:
    for name, child in node.defaults:
        if name not in kept and (name not in obj or (obj[name] is None and not child.nullable)):
            obj[name] = deepcopy(child.default)
    nulls: list[str] = []
    for name, value in obj.items():
        if value is not None and not isinstance(value, dict | list):
            continue
        below = node.properties.get(name, node.additional)
        if below is None or name in kept:
            continue
        if value is not None:
            _default(below, value)
        elif not below.nullable:
            nulls.append(name)
    for name in nulls:
        below = node.properties.get(name, node.additional)
        if below is None or below.default is NOTHING:
            del obj[name]
        else:
            obj[name] = deepcopy(below.default)
