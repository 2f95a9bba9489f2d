"""Reading metadata: its types, its zero values, and what a decoder says of anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.meta.objectmeta import DecodeError, read

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ("name", "labels", "finalizers", "ownerReferences", "generation", "creationTimestamp", "foo", "managedFields")


def test_fields_are_kept_in_order() -> None:
    """Every field that has something to say stays, in the order in which the real server writes them."""
    metadata = {
        "finalizers": ["x.io/a"],
        "annotations": {"a": "b"},
        "labels": {"c": "d"},
        "deletionTimestamp": "2020-01-01T01:00:00+01:00",
        "creationTimestamp": "2020-01-01T00:00:00.5Z",
        "deletionGracePeriodSeconds": 0,
        "generation": 3,
        "resourceVersion": "5",
        "uid": "u",
        "namespace": "ns",
        "generateName": "g",
        "name": "n",
        "ownerReferences": [{"uid": "u", "name": "o", "kind": "Node", "apiVersion": "v1", "controller": False}],
    }
    found, unknown = read(metadata)
    assert unknown == []
    assert list(found) == [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    ]
    assert found["creationTimestamp"] == found["deletionTimestamp"] == "2020-01-01T00:00:00Z"
    assert found["deletionGracePeriodSeconds"] == 0
    assert found["ownerReferences"][0]["controller"] is False


def test_what_says_nothing_goes() -> None:
    """Nulls, empty values, and what only the server writes are not kept; null in a list or map is an empty value."""
    metadata = {
        "name": "",
        "generation": 0,
        "annotations": {},
        "uid": None,
        "selfLink": "/x",
        "managedFields": [{"manager": "m"}],
        "labels": {"a": None},
        "finalizers": [None],
        "ownerReferences": [None, {"uid": "u"}],
    }
    assert read(metadata)[0] == {
        "labels": {"a": ""},
        "ownerReferences": [
            {"apiVersion": "", "kind": "", "name": "", "uid": ""},
            {"apiVersion": "", "kind": "", "name": "", "uid": "u"},
        ],
        "finalizers": [""],
    }
    assert read(None) == ({}, [])


def test_unknown_fields() -> None:
    """A field that metadata does not have is left out and named by its path."""
    found, unknown = read({"foo": 1, "name": "n", "ownerReferences": [{}, {"bar": 2, "uid": "u"}]}, kind="Node")
    assert unknown == ["metadata.foo", "metadata.ownerReferences[1].bar"]
    assert "foo" not in found
    assert "bar" not in found["ownerReferences"][1]


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"labels": {"a": 1}}, "number into Go struct field ObjectMeta.{}labels of type string"),
        ({"labels": []}, "array into Go struct field ObjectMeta.{}labels of type map[string]string"),
        ({"annotations": {"a": True}}, "bool into Go struct field ObjectMeta.{}annotations of type string"),
        ({"name": {}}, "object into Go struct field ObjectMeta.{}name of type string"),
        ({"uid": 3}, "number into Go struct field ObjectMeta.{}uid of type types.UID"),
        ({"finalizers": "x"}, "string into Go struct field ObjectMeta.{}finalizers of type []string"),
        ({"finalizers": [1]}, "number into Go struct field ObjectMeta.{}finalizers of type string"),
        (
            {"ownerReferences": {}},
            "object into Go struct field ObjectMeta.{}ownerReferences of type []v1.OwnerReference",
        ),
        (
            {"ownerReferences": [{"uid": 3}]},
            "number into Go struct field OwnerReference.{}ownerReferences.uid of type types.UID",
        ),
        (
            {"ownerReferences": [{"controller": "true"}]},
            "string into Go struct field OwnerReference.{}ownerReferences.controller of type bool",
        ),
        (
            {"managedFields": [1]},
            "number into Go struct field ObjectMeta.{}managedFields of type v1.ManagedFieldsEntry",
        ),
        ({"generation": "x"}, "string into Go struct field ObjectMeta.{}generation of type int64"),
        ({"generation": True}, "bool into Go struct field ObjectMeta.{}generation of type int64"),
        ({"generation": 1.5}, "number 1.5 into Go struct field ObjectMeta.{}generation of type int64"),
        ({"generation": 1 << 63}, f"number {1 << 63} into Go struct field ObjectMeta.{{}}generation of type int64"),
        ({"creationTimestamp": 4}, "number into Go struct field ObjectMeta.{}creationTimestamp of type string"),
    ],
)
def test_wrong_types(metadata: Any, told: str) -> None:
    """A value of another type is refused, with the Go type it should have had; built-ins are named from their root."""
    for kind, prefix in (("Node", "metadata."), ("", "")):
        with pytest.raises(DecodeError) as refusal:
            read(metadata, kind=kind)
        assert str(refusal.value) == f"json: cannot unmarshal {told.format(prefix)}"


def test_metadata_itself() -> None:
    """Metadata that is no object is named as part of its kind, or, of a custom resource, by its type alone."""
    with pytest.raises(DecodeError, match=r"array into Go struct field Node\.metadata of type v1\.ObjectMeta$"):
        read([], kind="Node")
    with pytest.raises(DecodeError, match=r"string into Go value of type v1\.ObjectMeta$"):
        read("x")


def test_whole_numbers() -> None:
    """1.0 is an integer in a custom resource, and none in a built-in."""
    assert read({"generation": 1.0})[0] == {"generation": 1}
    with pytest.raises(DecodeError, match=r"number 1\.0 into"):
        read({"generation": 1.0}, kind="Node")


def test_which_fault_is_told() -> None:
    """The first in the document, or in the alphabet for a custom resource; a time that cannot be read before others."""
    metadata: dict[str, Any] = {"labels": 3, "annotations": 4}
    with pytest.raises(DecodeError, match="labels"):
        read(metadata, kind="Node")
    with pytest.raises(DecodeError, match="annotations"):
        read(metadata)
    with pytest.raises(DecodeError, match="parsing time"):
        read(metadata | {"creationTimestamp": "x"}, kind="Node")


@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING), st.sampled_from(["Node", ""]))
def test_whatever_is_sent(metadata: dict[str, Any], kind: str) -> None:
    """Anything at all is either refused or read, and what was read is read again as the same."""
    try:
        found, _ = read(metadata, kind=kind)
    except DecodeError:
        return
    assert read(found, kind=kind) == (found, [])
