"""Values and texts within messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.words import wording

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('a "b" \\', r'"a \"b\" \\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("é €", '"é €"'),
        ("\u2028\u00a0", r'"\u2028\u00a0"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_quoted(text: str, quoted: str) -> None:
    """Texts are quoted as Go quotes them: what can be printed as it is, the rest with its escapes."""
    assert wording.quoted(text) == quoted


@given(VALUES)
def test_json_is_read_back(value: Any) -> None:
    """Whatever is escaped, the JSON is that of the value, compact, and has nothing that HTML would act on."""
    text = wording.as_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_numbers() -> None:
    """A number has a point only where something follows it, and an exponent only where it is huge."""
    assert wording.as_json([4.0, 1.5, {"a": -0.5, "b": 1e20}, 1e21, 1 << 70]) == (
        '[4,1.5,{"a":-0.5,"b":100000000000000000000},1e+21,1180591620717411303424]'
    )


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"b": {"c": "d e"}, "a": [1, True, None]}, "map[a:[1 true <nil>] b:map[c:d e]]"),
        ([], "[]"),
        ({}, "map[]"),
        ([["x"], ["y", "z"]], "[[x] [y z]]"),
    ],
)
def test_as_go(value: Any, printed: str) -> None:
    """Values are printed as Go prints maps, slices and what is in them."""
    assert wording.as_go(value) == printed


def test_kinds_of_json() -> None:
    """A decoded value is called what it was in JSON; true is no number."""
    values: list[Any] = [True, 1, 1.5, "x", [], {}, None]
    kinds = ["bool", "number", "number", "string", "array", "object", "null"]
    assert [wording.json_kind(each) for each in values] == kinds
