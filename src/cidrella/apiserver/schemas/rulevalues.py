"""Values as rules see them: names that CEL can say, and the numbers that the schema means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.cel import NOT_A_WHOLE_NUMBER
from cidrella.apiserver.schemas.celtypes import escaped

if TYPE_CHECKING:
    from cidrella.apiserver.schemas.structural import Node

_INT64: Final = range(-(1 << 63), 1 << 63)


def as_cel(node: Node | None, value: Any, whole: list[float] | None) -> Any:
    """A value with fields as rules name them, and without those that are null.

    A number with a point where the schema says `integer` (8.0) is noted in `whole`; without that it becomes something
    that rules cannot do anything with.
    """
    match value:
        case dict():
            return _object(node, value, whole)
        case list():
            items = None if node is None else node.items
            return [as_cel(items, item, whole) for item in value]
        case bool():
            return value
        case float() if node is not None and node.type == "integer":
            if whole is None:
                return NOT_A_WHOLE_NUMBER
            whole.append(value)
        case int() if value not in _INT64 or (node is not None and node.type == "number"):
            return float(value)
    return value


def _object(node: Node | None, value: dict[str, Any], whole: list[float] | None) -> dict[str, Any]:
    if node is None:
        return {name: as_cel(None, item, whole) for name, item in value.items()}
    seen: dict[str, Any] = {}
    for name, item in value.items():
        if name in node.properties:
            if item is not None:
                seen[escaped(name) or name] = as_cel(node.properties[name], item, whole)
        else:
            seen[name] = as_cel(node.additional, item, whole)
    return seen
