"""Lists whose items are told apart: none of them may be there twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.words import faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.apiserver.schemas.structural import Node
    from cidrella.apiserver.words.statuses import Fault


def item_key(node: Node, item: Any) -> str:
    """What tells an item of such a list from the others: its keys, with their defaults, or itself."""
    if not node.list_keys:
        return json.dumps(item, sort_keys=True)
    return json.dumps(_keys(node, item), sort_keys=True)


def _keys(node: Node, item: Any) -> dict[str, Any]:
    return {name: item[name] for name in node.list_keys or () if isinstance(item, dict) and name in item}


def repeated(node: Node, value: Any, path: str = "") -> list[Fault]:
    """Every item that is there again, the first time that it is, or that has no keys, in a value and all within it."""
    found: list[Fault] = []
    _walk(node, value, path, found)
    return found


def _walk(node: Node, value: Any, path: str, found: list[Fault]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in node.properties:
                _walk(node.properties[name], item, f"{path}.{name}" if path else name, found)
            elif node.additional is not None:
                _walk(node.additional, item, f"{path}[{name}]", found)
    elif isinstance(value, list) and node.items is not None:
        if node.list_keys is not None:
            _compare(node, value, path, found)
        for at, item in enumerate(value):
            _walk(node.items, item, f"{path}[{at}]", found)


def _compare(node: Node, items: Sequence[Any], path: str, found: list[Fault]) -> None:
    seen: set[str] = set()
    told: set[str] = set()
    for at, item in enumerate(items):
        if node.list_keys and item is not None and not isinstance(item, dict):
            found.append(faults.invalid(f"{path}[{at}]", item, "must be an object for an array of list-type map"))
            return
        key = item_key(node, item)
        if key in seen and key not in told:
            found.append(faults.duplicate(f"{path}[{at}]", _keys(node, item) if node.list_keys else item))
            told.add(key)
        seen.add(key)
