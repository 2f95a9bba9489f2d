"""Merge patches: the cases of RFC 7386, its laws, and where the real server goes beyond them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cidrella.apiserver.patches.mergepatch import merge_patch
from cidrella.apiserver.words.statuses import StatusError

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
PATCH: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), PLAIN)
PATCHES = st.dictionaries(st.sampled_from("abc"), PATCH)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "b"}, {"a": {"c": None}}, {"a": {}}),
    ],
)
def test_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    """Members are replaced, added, merged where both are objects, and taken away by null."""
    assert merge_patch(target, patch) == result


def test_nulls_in_lists() -> None:
    """Members of objects within lists that are null are left out too; items that are null stay."""
    assert merge_patch({"a": 1}, {"a": [{"b": None, "c": 2}, None]}) == {"a": [{"c": 2}, None]}
    assert merge_patch({}, {"a": {"b": [{"c": None}]}}) == {"a": {"b": [{}]}}


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (3, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ],
)
def test_no_patch(patch: Any, told: str) -> None:
    """What is no object is no patch of one."""
    with pytest.raises(StatusError) as refusal:
        merge_patch({}, patch)
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (400, "BadRequest", told)


def test_a_list_in_place_of_an_object() -> None:
    """Nulls within a list that replaces an object stay; json-patch, Kubernetes' library, removes all others."""
    assert merge_patch({"a": {}}, {"a": [{"b": None}]}) == {"a": [{"b": None}]}


@given(OBJECT, PATCHES)
@example({"a": {}}, {"a": [{"b": None}]})
def test_repeating_a_patch_changes_nothing(target: Any, patch: Any) -> None:
    """A patch changes neither of its arguments, and has no further effect once it has been applied twice.

    Once is not enough where a list replaces an object: the second time it replaces a list, and loses its nulls.
    """
    before = deepcopy((target, patch))
    twice = merge_patch(merge_patch(target, patch), patch)
    assert merge_patch(twice, patch) == twice
    assert (target, patch) == before


def difference(old: Any, new: Any) -> Any:
    """The patch that makes one object of another."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for name, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(name), dict):
            patch[name] = difference(old[name], value)
        elif name not in old or old[name] != value:
            patch[name] = value
    return patch


@given(OBJECT, OBJECT)
def test_any_object_is_reached(old: Any, new: Any) -> None:
    """From any object without nulls to any other there is a patch."""
    assert merge_patch(old, difference(old, new)) == new
