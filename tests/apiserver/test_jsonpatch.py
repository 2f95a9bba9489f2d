"""JSON patches: what each operation does, and which patches are refused, and how."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.patches.jsonpatch import json_patch, unknown_fields
from cidrella.apiserver.words.statuses import StatusError

Json = dict[str, Any]

TARGET: Json = {"labels": {"a": "b", "x/y": "z", "t~": "u"}, "list": ["k", "l", "m"], "flag": True, "none": None}
REJECTED = "the server rejected our request due to an error in our request"


def applied(*operations: Any, target: Any = TARGET) -> Any:
    return json_patch(target, list(operations))


def add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("operation", "at", "result"),
    [
        (add("/labels/q", "v"), "labels", {"a": "b", "x/y": "z", "t~": "u", "q": "v"}),
        (add("/labels/a", "v"), "labels", {"a": "v", "x/y": "z", "t~": "u"}),
        ({"op": "add", "path": "/labels/a"}, "labels", {"a": None, "x/y": "z", "t~": "u"}),
        (add("/labels/x~1y", "v"), "labels", {"a": "b", "x/y": "v", "t~": "u"}),
        (add("/labels/t~0", "v"), "labels", {"a": "b", "x/y": "z", "t~": "v"}),
        (add("/list/0", "n"), "list", ["n", "k", "l", "m"]),
        (add("/list/3", "n"), "list", ["k", "l", "m", "n"]),
        (add("/list/-", "n"), "list", ["k", "l", "m", "n"]),
        (add("/list/-1", "n"), "list", ["k", "l", "m", "n"]),
        (add("/list/-4", "n"), "list", ["n", "k", "l", "m"]),
        (add("/list/+1", "n"), "list", ["k", "n", "l", "m"]),
        ({"op": "remove", "path": "/labels/a"}, "labels", {"x/y": "z", "t~": "u"}),
        ({"op": "remove", "path": "/list/1"}, "list", ["k", "m"]),
        ({"op": "remove", "path": "/list/-1"}, "list", ["k", "l"]),
        ({"op": "remove", "path": "/list/01"}, "list", ["k", "m"]),
        ({"op": "replace", "path": "/list/1", "value": "n"}, "list", ["k", "n", "m"]),
        ({"op": "replace", "path": "/labels/new", "value": 1}, "labels", {"a": "b", "x/y": "z", "t~": "u", "new": 1}),
        ({"op": "move", "from": "/labels/a", "path": "/labels/b"}, "labels", {"b": "b", "x/y": "z", "t~": "u"}),
        ({"op": "move", "from": "/list/0", "path": "/list/1"}, "list", ["l", "k", "m"]),
        ({"op": "move", "from": "/list/0", "path": "/list/-"}, "list", ["l", "m", "k"]),
        ({"op": "copy", "from": "/labels/a", "path": "/list/0"}, "list", ["b", "k", "l", "m"]),
        ({"op": "copy", "from": "/labels/nope", "path": "/list/0"}, "list", [None, "k", "l", "m"]),
    ],
)
def test_operations(operation: Json, at: str, result: Any) -> None:
    """Each operation does what the real server does, where that is more than the RFC allows too."""
    assert applied(operation)[at] == result


def test_the_whole() -> None:
    """The empty path is the whole object, for `replace` and `test`; what is before the first slash is not looked at."""
    assert applied({"op": "replace", "path": "", "value": {"a": 1}}) == {"a": 1}
    assert applied({"op": "test", "path": "", "value": TARGET}) == TARGET
    assert applied(add("anything/labels/q", "v"))["labels"]["q"] == "v"


def test_copies_are_apart() -> None:
    """What was copied, and what a patch brought, does not change with what it was copied from."""
    copied = {"op": "copy", "from": "/labels", "path": "/copy"}
    result = applied(copied, add("/copy/a", "changed"))
    assert result["labels"]["a"] == "b"
    brought: Json = {"x": []}
    assert applied(add("/new", brought), add("/new/x/-", 1), target={})["new"] == {"x": [1]}
    assert brought == {"x": []}


@pytest.mark.parametrize(
    "operation",
    [
        {},
        None,
        {"op": "add"},
        {"op": "ADD", "path": "/labels/a", "value": 1},
        {"op": "spin", "path": "/labels/a"},
        add("labels", 1),
        add("", 1),
        add("/nope/a", 1),
        add("/none/a", 1),
        add("/flag/a", 1),
        add("/list/4", 1),
        add("/list/-5", 1),
        add("/list/x", 1),
        add("/list/", 1),
        add("/list/" + "9" * 5000, 1),
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/labels/nope"},
        {"op": "remove", "path": "/nope/a"},
        {"op": "remove", "path": "/list/3"},
        {"op": "remove", "path": "/list/-"},
        {"op": "replace", "path": "", "value": 3},
        {"op": "replace", "path": "/nope/a", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "move", "path": "/labels/b"},
        {"op": "move", "from": "/labels/nope", "path": "/labels/b"},
        {"op": "move", "from": "/labels", "path": "/labels/b"},
        {"op": "copy", "path": "/labels/b"},
        {"op": "copy", "from": "/nope/a", "path": "/labels/b"},
        {"op": "test", "path": "/labels/a", "value": "c"},
        {"op": "test", "path": "/labels/nope", "value": "c"},
        {"op": "test", "path": "/nope/a"},
        {"op": "test", "path": "/labels", "value": {"a": "b"}},
        {"op": "test", "path": "/flag", "value": 1},
        {"op": "test", "path": "/list/9", "value": "k"},
    ],
)
def test_what_does_not_apply(operation: Any) -> None:
    """A patch that does not fit is refused without saying why."""
    with pytest.raises(StatusError) as refusal:
        applied(operation)
    status = refusal.value.status()
    assert (status["code"], status["reason"], status["message"], status["details"]) == (422, "Invalid", REJECTED, {})


@pytest.mark.parametrize(
    ("path", "value"),
    [("/labels/a", "b"), ("/list", ["k", "l", "m"]), ("/list/-1", "m"), ("/nope", None), ("/none", None)],
)
def test_tests_that_hold(path: str, value: Any) -> None:
    """A test that holds changes nothing; what is not there is null."""
    assert applied({"op": "test", "path": path, "value": value}) == TARGET


def test_numbers_are_told_apart() -> None:
    """1, 1.0 and true are different JSON."""
    for found, other in ((1, 1.0), (1, True), (0, False)):
        with pytest.raises(StatusError):
            applied({"op": "test", "path": "/a", "value": other}, target={"a": found})
        with pytest.raises(StatusError):
            applied({"op": "test", "path": "/a", "value": [{"b": other}]}, target={"a": [{"b": found}]})


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({}, "object into Go value of type []handlers.jsonPatchOp"),
        ([3], "number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 3}], "number into Go struct field jsonPatchOp.op of type string"),
        ([{"op": "add", "path": []}], "array into Go struct field jsonPatchOp.path of type string"),
        ([{"op": "move", "from": True}], "bool into Go struct field jsonPatchOp.from of type string"),
    ],
)
def test_no_patch(patch: Any, told: str) -> None:
    """What is no list of operations is a bad request."""
    with pytest.raises(StatusError) as refusal:
        json_patch(TARGET, patch)
    wanted = f"error decoding patch: json: cannot unmarshal {told}"
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (400, "BadRequest", wanted)


def test_nothing_to_do() -> None:
    """Null is a patch without operations."""
    assert json_patch(TARGET, None) == json_patch(TARGET, []) == TARGET


def test_limits() -> None:
    """A patch has at most 10,000 operations, and copies at most 3 MiB."""
    assert applied(*[add("/a", 1)] * 10_000, target={}) == {"a": 1}
    with pytest.raises(StatusError) as refusal:
        applied(*[add("/a", 1)] * 10_001, target={})
    told = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (413, "RequestEntityTooLarge", told)
    copy = {"op": "copy", "from": "/a", "path": "/b"}
    third = "x" * (1024 * 1024 - 2)  # with its quotes, a MiB
    assert applied(*[copy] * 3, target={"a": third})["b"] == third
    with pytest.raises(StatusError):
        applied(*[copy] * 3, target={"a": third + "x"})


def test_unknown_fields() -> None:
    """What operations have beyond their own fields is named, with the operation's number."""
    assert unknown_fields([add("/a", 1), {"op": "add", "foo": 1, "from": "", "bar": 2}, None]) == ["[1].foo", "[1].bar"]
    assert unknown_fields(None) == []


@given(
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])},
            optional={
                "path": st.text("/ab0-~1", max_size=6),
                "from": st.text("/ab0-~1", max_size=6),
                "value": st.none() | st.integers(0, 1) | st.lists(st.integers(0, 1)),
            },
        ),
        max_size=4,
    )
)
def test_whatever_is_sent(patch: list[Json]) -> None:
    """Any patch is applied or refused in the real server's words, and the target stays as it is."""
    target: Json = {"a": {"b": [0, 1]}, "b": [{"a": 1}]}
    before = deepcopy(target)
    told = REJECTED
    try:
        json_patch(target, patch)
    except StatusError as refusal:
        told = refusal.message
    assert (target, told) == (before, REJECTED)
