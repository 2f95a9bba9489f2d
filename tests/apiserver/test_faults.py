"""The words of faults, and of values within them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver import faults

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
    assert faults.quoted(text) == quoted


@given(VALUES)
def test_json_is_read_back(value: Any) -> None:
    """Whatever is escaped, the JSON is that of the value, compact, and has nothing that HTML would act on."""
    text = faults.as_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


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
    assert faults.as_go(value) == printed


def test_kinds_of_json() -> None:
    """A decoded value is called what it was in JSON; true is no number."""
    values: list[Any] = [True, 1, 1.5, "x", [], {}]
    assert [faults.json_kind(each) for each in values] == ["bool", "number", "number", "string", "array", "object"]


def test_makers() -> None:
    """Each kind of fault has its reason and its words, with the value in quotes where it is a text, else as JSON."""
    made = [
        faults.invalid("a", "x", "must be y"),
        faults.invalid("a", -4, "must be more"),
        faults.invalid("a", [{"b": True}], "no"),
        faults.required("a", "say it"),
        faults.required("a"),
        faults.forbidden("a", "never"),
        faults.duplicate("a[1]", "x"),
        faults.not_supported("a", "x", ["y", "z"]),
        faults.not_supported("a", "x", []),
        faults.too_long("a", 5),
    ]
    assert [(fault.reason, str(fault)) for fault in made] == [
        ("FieldValueInvalid", 'a: Invalid value: "x": must be y'),
        ("FieldValueInvalid", "a: Invalid value: -4: must be more"),
        ("FieldValueInvalid", 'a: Invalid value: [{"b":true}]: no'),
        ("FieldValueRequired", "a: Required value: say it"),
        ("FieldValueRequired", "a: Required value"),
        ("FieldValueForbidden", "a: Forbidden: never"),
        ("FieldValueDuplicate", 'a[1]: Duplicate value: "x"'),
        ("FieldValueNotSupported", 'a: Unsupported value: "x": supported values: "y", "z"'),
        ("FieldValueNotSupported", 'a: Unsupported value: "x"'),
        ("FieldValueTooLong", "a: Too long: may not be more than 5 bytes"),
    ]
