"""What the server takes out of objects and puts into them before it looks at them: unknown fields, nulls, defaults."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.structural import NOTHING

if TYPE_CHECKING:
    from cidrella.apiserver.structural import Node

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
    elif isinstance(value, list) and (node is None or node.items is not None or not node.preserves):
        items = None if node is None else node.items
        for at, item in enumerate(value):
            _prune(items, item, f"{path}[{at}]", unknown)


def _prune_object(node: Node | None, obj: Json, path: str, unknown: list[str], kept: frozenset[str]) -> None:
    for name in list(obj):
        if name in kept:
            continue
        below = None if node is None else node.properties.get(name, node.additional)
        if below is not None:
            _prune(below, obj[name], f"{path}{name}", unknown)
        elif node is None or not node.preserves:
            unknown.append(f"{path}{name}")
            del obj[name]


def default(root: Node, obj: Json) -> None:
    """Put in the defaults, and take out the nulls that the schema allows no null for."""
    _default_object(root, obj, ROOT_FIELDS)


def _default(node: Node, value: Any) -> None:
    if isinstance(value, dict):
        _default_object(node, value, frozenset())
    elif isinstance(value, list) and node.items is not None:
        for at, item in enumerate(value):
            if item is None and not node.items.nullable and node.items.default is not NOTHING:
                value[at] = deepcopy(node.items.default)
            _default(node.items, value[at])


def _default_object(node: Node, obj: Json, kept: frozenset[str]) -> None:
    for name, child in node.properties.items():
        if child.default is not NOTHING and name not in kept and _is_open(obj.get(name, NOTHING), child):
            obj[name] = deepcopy(child.default)
    for name in list(obj):
        below = node.properties.get(name, node.additional)
        if below is None or name in kept:
            continue
        if obj[name] is None and not below.nullable:
            if below.default is NOTHING:
                del obj[name]
                continue
            obj[name] = deepcopy(below.default)
        _default(below, obj[name])


def _is_open(value: Any, node: Node) -> bool:
    return value is NOTHING or (value is None and not node.nullable)
