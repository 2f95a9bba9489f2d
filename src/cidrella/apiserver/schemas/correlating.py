"""What a part of an object was before: rules on changes ask for it, and what was wrong already is let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cidrella.apiserver.schemas.listtypes import item_key
from cidrella.apiserver.schemas.structural import NOTHING

if TYPE_CHECKING:
    from cidrella.apiserver.schemas.structural import Node


def within(node: Node, old: Any, part: Any) -> Any:
    """What a property (by name), or an item of a list, was in the old value; `NOTHING` where that cannot be said.

    Items are told apart by their keys, so it can be said only in lists that have some.
    """
    if isinstance(old, dict) and isinstance(part, str):
        return old.get(part, NOTHING)
    if isinstance(old, list) and node.list_keys:
        wanted = item_key(node, part)
        return next((each for each in old if item_key(node, each) == wanted), NOTHING)
    return NOTHING


def same_as(value: Any, old: Any) -> bool:
    """Whether nothing changed."""
    return old is not NOTHING and bool(value == old)
