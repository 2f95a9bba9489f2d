"""The part of JSONPath that CRDs use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.forms.jsonpath import JsonPathError, field_reader, json_path

OBJECT: dict[str, Any] = {
    "text": "x",
    "none": None,
    "number": 5,
    "list": ["a", "b", "c"],
    "nested": [[1, 2], [3]],
    "map": {"a.b": 1, "a": {"b": 2}, "x/y": "z", "it's": 4},
    "items": [
        {"name": "n1", "type": "A", "n": 1, "ok": True},
        {"name": "n2", "type": "B", "n": 2, "deep": {"x": "1"}},
        {"other": 3},
    ],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", [OBJECT]),
        (".text", ["x"]),
        (".none", [None]),
        (".nope", []),
        (".nope.further[0]", []),
        (".text.further", []),
        ("['text']", ["x"]),
        ('.map["x/y"]', ["z"]),
        (".map.x/y", ["z"]),
        (r".map.a\.b", [1]),
        (r".map['a\.b']", [1]),
        (".map['a.b']", [2]),
        (".list[0]", ["a"]),
        (".list[-1]", ["c"]),
        (".list[-3]", ["a"]),
        (".list[-4]", []),
        (".list[3]", []),
        (".text[0]", []),
        (".list[*]", ["a", "b", "c"]),
        (".nested[*][*]", [1, 2, 3]),
        (".map.a[*]", [2]),
        (".text[*]", []),
        (".items[*].name", ["n1", "n2"]),
        ('.items[?(@.type=="B")].name', ["n2"]),
        (".items[?(@.type == 'A')].name", ["n1"]),
        ('.items[?(@.type!="A")].name', ["n2"]),
        (".items[?(@.n>1)].name", ["n2"]),
        (".items[?(@.n>=1)].name", ["n1", "n2"]),
        (".items[?(@.n<1.5)].name", ["n1"]),
        (".items[?(@.n<=1)].name", ["n1"]),
        (".items[?(@.ok==true)].name", ["n1"]),
        ('.items[?(@.deep.x=="1")].name', ["n2"]),
        (".items[?(@.ok!=false)].name", ["n1"]),
        ('.items[?(@.n=="1")].name', []),
        (".items[?(@.type>1)].name", []),
        (".items[?(@.n<true)].name", []),
        (".items[?(@.name)].n", [1, 2]),
        ('.text[?(@.type=="A")]', []),
        (".number[?(@.type)]", []),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    """A path leads to all that is there, in order, and to nothing where there is nothing."""
    assert json_path(path)(OBJECT) == found


@pytest.mark.parametrize(
    "path",
    [
        "text",
        ".",
        "..text",
        ".list[0:1]",
        ".list[0,1]",
        ".map.*",
        ".a[",
        ".a[x]",
        ".a[?(@.b==c)]",
        ".a[?(@.b==')]",
        ".a[?(1==1)]",
    ],
)
def test_unreadable(path: str) -> None:
    """What is no path, or of a kind that is left out, is refused."""
    with pytest.raises(JsonPathError):
        json_path(path)


def test_fields() -> None:
    """A field is compared by its text: as in JSON, and empty where there is none."""
    obj = {"spec": {"color": "red", "size": 3, "ready": False, "none": None}}
    texts = [field_reader(f".spec.{name}")(obj) for name in ("color", "size", "ready", "none", "nope")]
    assert texts == ["red", "3", "false", "", ""]


@given(st.lists(st.text("ab./[]'*", min_size=1, max_size=3), min_size=1, max_size=3))
def test_names_with_escapes(names: list[str]) -> None:
    """A name with dots in it is reached where they have a backslash before them."""
    value: Any = "found"
    for name in reversed(names):
        value = {name: value}
    path = "".join("." + "".join(f"\\{letter}" for letter in name) for name in names)
    assert json_path(path)(value) == ["found"]
