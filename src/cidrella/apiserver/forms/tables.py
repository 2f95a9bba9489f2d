"""Tables (`meta.k8s.io/v1`), which `kubectl get` asks for: the columns of a resource, and a row for each object."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms.jsonpath import json_path
from cidrella.apiserver.resource import Column
from cidrella.apiserver.words.faults import invalid
from cidrella.apiserver.words.statuses import bad_request
from cidrella.apiserver.words.times import parse_time
from cidrella.apiserver.words.wording import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.apiserver.resource import Resource

    Json = dict[str, Any]

GROUP_VERSION: Final = "meta.k8s.io/v1"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400

_NAME: Final = Column(
    "Name", lambda obj: obj["metadata"].get("name", ""), format="name", description="The object's name."
)


def table(
    resource: Resource,
    objects: Iterable[Json],
    now: datetime,
    list_meta: Json,
    include: str = "",
) -> Json:
    """The table of a list of objects, or of one, whose version `list_meta` then has.

    `include` says what a row has of its object: `Metadata` (as if empty), `Object` or `None`. In a watch only the first
    event has columnDefinitions; in others they are null. Raises `StatusError`.
    """
    if include not in ("", "Metadata", "Object", "None"):
        fault = invalid("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {fault}")
    columns = _columns(resource)
    return {
        "kind": "Table",
        "apiVersion": GROUP_VERSION,
        "metadata": list_meta,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [
            {"cells": [_cell(column, obj, now) for column in columns], "object": _included(obj, include)}
            for obj in objects
        ],
    }


def partial_metadata(obj: Json) -> Json:
    """Of an object no more than its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": GROUP_VERSION, "metadata": obj["metadata"]}


def printer_column(definition: Json) -> Column:
    """The column that an entry of a CRD's `additionalPrinterColumns` asks for. Raises `JsonPathError`."""
    path: str = definition["jsonPath"]
    find = json_path(path)
    show = _SHOWN[definition["type"]]

    def value(obj: Json) -> Any:
        found = find(obj)
        return show(found[0]) if found else None

    return Column(
        definition["name"],
        value,
        definition["type"],
        definition.get("format", ""),
        definition.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        definition.get("priority", 0),
    )


def duration(seconds: float) -> str:
    """An age as kubectl prints it, with two figures that count, or three.

    >>> [duration(each) for each in (5, 119, 184, 3600 * 47, 3600 * 50, 86400 * 400)]
    ['5s', '119s', '3m4s', '47h', '2d2h', '400d']
    """
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else "<invalid>"  # clocks differ by so much
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    for unit, name, part, part_name, fine, limit in _SCALE:
        if whole < limit:
            rest = whole % unit // part
            return f"{whole // unit}{name}" + (f"{rest}{part_name}" if rest and whole < fine else "")
    return f"{whole // _YEAR}y"


# Each unit with the next smaller one, up to when that is told too, and up to when the unit itself is.
_SCALE: Final = (
    (_MINUTE, "m", 1, "s", 10 * _MINUTE, 3 * _HOUR),
    (_HOUR, "h", _MINUTE, "m", 8 * _HOUR, 2 * _DAY),
    (_DAY, "d", _HOUR, "h", 8 * _DAY, 2 * _YEAR),
    (_YEAR, "y", _DAY, "d", 8 * _YEAR, 8 * _YEAR),
)


def _columns(resource: Resource) -> tuple[Column, ...]:
    columns = resource.columns or (_AGE,)
    return columns if any(column.name == _NAME.name for column in columns) else (_NAME, *columns)


def _definition(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Json, now: datetime) -> Any:
    value = column.value(obj)
    return duration((now - value).total_seconds()) if isinstance(value, datetime) else value


def _included(obj: Json, include: str) -> Json | None:
    if include == "None":
        return None
    return obj if include == "Object" else partial_metadata(obj)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case dict() | list():
            return as_json(_in_order(value))
        case _:
            return as_json(value)


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _integer(value: Any) -> int | None:
    return int(value) if _is_number(value) else None


def _number(value: Any) -> float | None:
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> datetime | str | None:
    """A point in time, of which the table shows how long ago it is."""
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return "<unknown>"
    try:
        return parse_time(value)
    except ValueError:
        return "<invalid>"


_SHOWN: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
_AGE: Final = printer_column(
    {
        "name": "Age",
        "type": "date",
        "description": "How long ago the object was created.",
        "jsonPath": ".metadata.creationTimestamp",
    }
)
