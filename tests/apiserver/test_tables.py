"""Tables: columns, cells, ages, and what a row has of its object."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.forms.jsonpath import JsonPathError
from cidrella.apiserver.forms.tables import duration, partial_metadata, printer_column, table
from cidrella.apiserver.resource import Column
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource

Json = dict[str, Any]

NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
THING: Json = {
    "kind": "Thing",
    "metadata": {"name": "t", "creationTimestamp": "2024-05-06T07:05:05Z"},
    "spec": {"a": 1},
}
TYPES = ("string", "integer", "number", "boolean", "date")


def resource(*columns: Column) -> Resource:
    return cast("Resource", SimpleNamespace(columns=columns))


def cell(kind: str, value: Any, path: str = ".v") -> Any:
    column = printer_column({"name": "c", "type": kind, "jsonPath": path})
    made = table(resource(column), [{"metadata": {}, "v": value}], NOW, {})
    return made["rows"][0]["cells"][1]


def test_table_of_objects() -> None:
    """A table has a kind, the list's metadata, its columns in full, and a row for each object."""
    made = table(resource(), [THING], NOW, {"resourceVersion": "5", "continue": "x"})
    assert {name: made[name] for name in ("kind", "apiVersion", "metadata")} == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "5", "continue": "x"},
    }
    name, age = made["columnDefinitions"]
    assert (name["name"], name["type"], name["format"], name["priority"]) == ("Name", "string", "name", 0)
    assert (age["name"], age["type"], age["format"], age["priority"]) == ("Age", "date", "", 0)
    assert made["rows"] == [{"cells": ["t", "3m4s"], "object": partial_metadata(THING)}]
    assert partial_metadata(THING) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": THING["metadata"],
    }


def test_nothing_to_show() -> None:
    """A table of nothing has its columns; that of a bookmark, which has next to no metadata, has a row of nothing."""
    assert table(resource(), [], NOW, {})["rows"] == []
    bookmark = {"metadata": {"resourceVersion": "7"}}
    assert table(resource(), [bookmark], NOW, {})["rows"][0]["cells"] == ["", None]


def test_included_objects() -> None:
    """A row has the metadata of its object, all of it, or nothing, as asked for; anything else is refused."""
    for include, wanted in (("Metadata", partial_metadata(THING)), ("Object", THING), ("None", None)):
        assert table(resource(), [THING], NOW, {}, include)["rows"][0]["object"] == wanted
    with pytest.raises(StatusError) as refusal:
        table(resource(), [THING], NOW, {}, "Some")
    assert (refusal.value.code, refusal.value.reason) == (400, "BadRequest")
    assert refusal.value.message == (
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": must be 'Metadata', "
        "'Object', 'None', or empty"
    )


def test_columns_of_a_kind() -> None:
    """Columns come after the name, unless one of them is the name; a point in time is shown as an age."""
    born = Column("Born", lambda _: NOW - timedelta(days=3, hours=2), priority=1, description="how long ago")
    name = Column("Name", lambda obj: obj["metadata"]["name"].upper(), format="name")
    assert table(resource(born), [THING], NOW, {})["rows"][0]["cells"] == ["t", "3d2h"]
    made = table(resource(born, name), [THING], NOW, {})
    assert [each["name"] for each in made["columnDefinitions"]] == ["Born", "Name"]
    assert made["rows"][0]["cells"] == ["3d2h", "T"]
    assert made["columnDefinitions"][0] == {
        "name": "Born",
        "type": "string",
        "format": "",
        "description": "how long ago",
        "priority": 1,
    }


@pytest.mark.parametrize(
    ("value", "cells"),
    [
        ("text", ["text", None, None, None, "<invalid>"]),
        (42, ["42", 42, 42, None, None]),
        (1.5, ["1.5", 1, 1.5, None, None]),
        (1.0, ["1", 1, 1, None, None]),
        (-3, ["-3", -3, -3, None, None]),
        (True, ["true", None, None, True, None]),
        (None, ["<no value>", None, None, None, None]),
        (["x", {"b": 1, "a": "<"}], ['["x",{"a":"\\u003c","b":1}]', None, None, None, None]),
        ({"b": 1, "a": [2]}, ['{"a":[2],"b":1}', None, None, None, None]),
        ("2024-05-06T07:08:04Z", ["2024-05-06T07:08:04Z", None, None, None, "5s"]),
        ("2024-05-06T09:08:04+02:00", ["2024-05-06T09:08:04+02:00", None, None, None, "5s"]),
        ("2024-05-06T07:09:09Z", ["2024-05-06T07:09:09Z", None, None, None, "<invalid>"]),
        ("", ["", None, None, None, "<unknown>"]),
        ("null", ["null", None, None, None, "<unknown>"]),
    ],
)
def test_cells_of_custom_resources(value: Any, cells: list[Any]) -> None:
    """A value is shown by the type of its column, and not at all where it is of another."""
    assert [cell(kind, value) for kind in TYPES] == cells


def test_missing_and_many() -> None:
    """Nothing is shown of what is not there, and of many values the first."""
    assert [cell(kind, 1, ".nope") for kind in TYPES] == [None] * 5
    assert cell("string", [3, 2], ".v[*]") == "3"


def test_printer_columns() -> None:
    """A column is described as its CRD does, or by its path; a path that cannot be read is refused."""
    plain = printer_column({"name": "c", "type": "string", "jsonPath": ".a"})
    assert (plain.description, plain.format, plain.priority) == (
        "Custom resource definition column (in JSONPath format): .a",
        "",
        0,
    )
    full = {"name": "c", "type": "integer", "jsonPath": ".a", "description": "d", "format": "int32", "priority": 1}
    column = printer_column(full)
    assert (column.type, column.description, column.format, column.priority) == ("integer", "d", "int32", 1)
    with pytest.raises(JsonPathError):
        printer_column({"name": "c", "type": "string", "jsonPath": "..a"})


MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (10 * MINUTE + 1, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + DAY, "8y"),
        (100 * YEAR, "100y"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    """Ages are as kubectl prints them, to both sides of where the unit changes."""
    assert duration(seconds) == shown


UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}


@given(st.integers(0, 20 * YEAR))
def test_durations_are_about_right(seconds: int) -> None:
    """What is shown is never more than the age, and less by at most an eighth."""
    shown, total, digits = duration(seconds), 0, ""
    for letter in shown:
        if letter.isdigit():
            digits += letter
        else:
            total, digits = total + int(digits) * UNITS[letter], ""
    assert total <= seconds <= total * 1.125
