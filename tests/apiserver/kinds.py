"""Writing objects of built-in kinds as the server does, without it: read, prepared, and checked."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.kinds import builtins

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource

Json = dict[str, Any]

KINDS = {(each.group, each.plural): each for each in builtins()}
NAME = "x"


def kind(plural: str, group: str = "") -> Resource:
    """A kind."""
    return KINDS[group, plural]


def read(resource: Resource, **parts: Any) -> Json:
    """An object as it is read."""
    obj: Json = {"metadata": {"name": NAME}, **deepcopy(parts)}
    if resource.namespaced:
        obj["metadata"].setdefault("namespace", "default")
    trouble = resource.strategy.read(obj)
    assert not trouble, trouble
    return obj


def unread(resource: Resource, **parts: Any) -> str:
    """What keeps an object from being read."""
    return resource.strategy.read({"metadata": {"name": NAME}, **deepcopy(parts)})


def created(resource: Resource, **parts: Any) -> Json:
    """An object as it is stored. Nothing is wrong with it."""
    obj = read(resource, **parts)
    resource.strategy.prepare_create(obj)
    assert told(resource.strategy.validate_create(obj)) == []
    return obj


def refused(resource: Resource, **parts: Any) -> list[str]:
    """What is wrong with a new object."""
    obj = read(resource, **parts)
    resource.strategy.prepare_create(obj)
    return told(resource.strategy.validate_create(obj))


def updated(resource: Resource, old: Json, **parts: Any) -> tuple[Json, list[str]]:
    """An object after a write, of which the parts are given that are not as they were, and what is wrong with it."""
    new = {**deepcopy(old), **deepcopy(parts)}
    trouble = resource.strategy.read(new)
    assert not trouble, trouble
    resource.strategy.prepare_update(new, old)
    return new, told(resource.strategy.validate_update(new, old))


def with_status(resource: Resource, old: Json, **parts: Any) -> tuple[Json, list[str]]:
    """Likewise, after a write to its status."""
    new = {**deepcopy(old), **deepcopy(parts)}
    trouble = resource.strategy.read(new)
    assert not trouble, trouble
    resource.strategy.prepare_status(new, old)
    return new, told(resource.strategy.validate_update(new, old))


def row(resource: Resource, obj: Json) -> list[Any]:
    """What `kubectl get` shows of it, but for the columns that say how long ago something was."""
    cells = [column.value(obj) for column in resource.columns]
    return [cell if isinstance(cell, str | int) else cell.isoformat() for cell in cells]


def told(faults: list[Any]) -> list[str]:
    """Faults, in words."""
    return [str(fault) for fault in faults]
