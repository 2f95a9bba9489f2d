"""Strategic merge patches: how lists are merged and ordered, what directives do, and what kubectl sends.

What each comes to is what a real API server answered to the same patch.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.patches.mergepatch import merge_patch
from cidrella.apiserver.patches.strategicpatch import strategic_patch
from cidrella.apiserver.words.statuses import StatusError

Json = dict[str, Any]

MERGED = {"x-kubernetes-patch-strategy": "merge"}
SCHEMA: Json = {
    "properties": {
        "metadata": {
            "properties": {
                "labels": {"additionalProperties": {"type": "string"}},
                "finalizers": {"items": {"type": "string"}, **MERGED},
                "owners": {
                    "items": {"properties": {"uses": {"items": {"type": "string"}, **MERGED}}},
                    "x-kubernetes-patch-merge-key": "uid",
                    **MERGED,
                },
            }
        },
        "spec": {
            "properties": {
                "taints": {"items": {"type": "object"}},
                "ports": {
                    "items": {"type": "object"},
                    "x-kubernetes-patch-merge-key": "port",
                    "x-kubernetes-patch-strategy": "merge",
                },
                "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            }
        },
    }
}


def patched(target: Json, patch: Any) -> Json:
    before = deepcopy((target, patch))
    result = strategic_patch(target, patch, SCHEMA)
    assert (target, patch) == before, "a patch changes neither of what it is given"
    return result


def finalizers(current: list[str], **patch: Any) -> Any:
    return patched({"metadata": {"finalizers": current}}, {"metadata": patch})["metadata"].get("finalizers")


def owners(current: str, patch: list[Any], order: str | None = None) -> str:
    """The uids, each one letter, of what becomes of owners."""
    changes: Json = {"owners": patch}
    if order is not None:
        changes["$setElementOrder/owners"] = [{"uid": uid} for uid in order]
    target = {"metadata": {"owners": [{"uid": uid} for uid in current]}}
    return "".join(each["uid"] for each in patched(target, {"metadata": changes})["metadata"]["owners"])


def refused(target: Json, patch: Any) -> tuple[int, str, str]:
    with pytest.raises(StatusError) as refusal:
        patched(target, patch)
    return refusal.value.code, refusal.value.reason, refusal.value.message


class TestObjects:
    """Objects in objects."""

    def test_members(self) -> None:
        """Members are replaced, added, merged, and taken away by null; a null for what is not there says nothing."""
        target = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": 1}}
        patch = {"metadata": {"labels": {"a": None, "b": "3", "c": "4", "d": None}}, "spec": None, "kind": "K"}
        assert patched(target, patch) == {"metadata": {"labels": {"b": "3", "c": "4"}}, "kind": "K"}

    def test_replace_and_delete(self) -> None:
        """`$patch` replaces an object, or empties it."""
        target = {"metadata": {"labels": {"a": "1"}, "name": "n"}}
        replaced = patched(target, {"metadata": {"labels": {"$patch": "replace", "b": "2"}}})
        assert replaced == {"metadata": {"labels": {"b": "2"}, "name": "n"}}
        assert patched(target, {"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}
        assert patched(target, {"$patch": "delete"}) == {}

    def test_replaced_by_schema(self) -> None:
        """An object that the schema does not merge is replaced."""
        assert patched({"spec": {"whole": {"a": 1}}}, {"spec": {"whole": {"b": 2}}})["spec"]["whole"] == {"b": 2}

    def test_retained(self) -> None:
        """`$retainKeys` names all that stays; the patch brings nothing else."""
        target = {"metadata": {"labels": {"a": "1", "b": "2"}}}
        patch: Json = {"metadata": {"labels": {"$retainKeys": ["b", "c"], "c": "3", "a": None}}}
        assert patched(target, patch)["metadata"]["labels"] == {"b": "2", "c": "3"}
        patch = {"metadata": {"labels": {"$retainKeys": ["c"], "c": "3"}}}
        assert patched(target, patch)["metadata"]["labels"] == {"c": "3"}
        told = (400, "BadRequest", "invalid patch format of retainKeys")
        assert refused(target, {"metadata": {"labels": {"$retainKeys": ["b"], "c": "3"}}}) == told
        assert refused(target, {"metadata": {"labels": {"$retainKeys": "b"}}}) == told

    def test_what_is_new(self) -> None:
        """Where there was nothing, or something else, the patch is taken without nulls and without directives."""
        patch = {"new": {"a": None, "b": {"$patch": "delete"}, "c": [{"d": None}, {"$patch": "replace"}, None]}}
        assert patched({}, patch) == {"new": {"c": [{}, None]}}
        assert patched({"new": 3}, {"new": {"$patch": "delete"}}) == {}
        assert patched({"new": {"a": 1}}, {"new": [1]}) == {"new": [1]}

    def test_nothing(self) -> None:
        """Null is no patch at all; anything else that is no object is a bad request."""
        assert patched({"a": 1}, None) == {"a": 1}
        told = "json: cannot unmarshal array into Go value of type map[string]interface {}"
        assert refused({}, []) == (400, "BadRequest", told)

    def test_unknown_directive(self) -> None:
        """Only `replace` and `delete` are known in objects."""
        target: Json = {"metadata": {"labels": {}}}
        told = (500, "", "unknown patch type: merge in map: map[$patch:merge x:y]")
        assert refused(target, {"metadata": {"labels": {"$patch": "merge", "x": "y"}}}) == told


class TestValues:
    """Lists of plain values that are merged."""

    def test_merged(self) -> None:
        """What is new comes in front; what is named again is in the patch's order, after what was before it."""
        assert finalizers(["a", "b", "c"], finalizers=["d"]) == ["d", "a", "b", "c"]
        assert finalizers(["a", "b", "c"], finalizers=["c", "d", "a"]) == ["b", "c", "d", "a"]
        assert finalizers(["a"], finalizers=[]) == ["a"]
        assert finalizers([], finalizers=[]) == []
        assert finalizers(["a"], finalizers=None) is None

    def test_deleted(self) -> None:
        """`$deleteFromPrimitiveList` takes values out; of null all, of what is no list none."""
        assert finalizers(["a", "b", "c"], **{"$deleteFromPrimitiveList/finalizers": ["b", "x"]}) == ["a", "c"]
        assert finalizers(["a"], **{"$deleteFromPrimitiveList/finalizers": None}) is None
        assert finalizers(["a"], **{"$deleteFromPrimitiveList/finalizers": "a"}) == ["a"]
        assert patched({"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}) == {
            "metadata": {}
        }

    def test_ordered(self) -> None:
        """`$setElementOrder` says what order those that it names come in, with or without others."""
        order = "$setElementOrder/finalizers"
        assert finalizers(["a", "b", "c"], **{order: ["c", "b", "a"]}) == ["c", "b", "a"]
        assert finalizers(["a", "b", "c"], **{order: ["c", "d"], "finalizers": ["d"]}) == ["a", "b", "c", "d"]
        assert patched({"metadata": {}}, {"metadata": {order: ["c"]}}) == {"metadata": {}}

    def test_mixed_values(self) -> None:
        """Values of different types are not merged, nor are lists of lists."""
        target = {"metadata": {"finalizers": ["a", "b"]}}
        told = "list element types are not identical: [[a b] [1 <nil>]]"
        assert refused(target, {"metadata": {"finalizers": [1, None]}}) == (500, "", told)
        nested = {"metadata": {"finalizers": [["a"]]}}
        told = "the server rejected our request due to an error in our request"
        assert refused(nested, nested) == (422, "Invalid", told)

    def test_other_lists_are_replaced(self) -> None:
        """A list that the schema does not merge is replaced, whatever is in it."""
        target = {"spec": {"taints": [{"key": "a"}]}}
        assert patched(target, {"spec": {"taints": [{"key": "b", "value": None}]}}) == {
            "spec": {"taints": [{"key": "b", "value": None}]}
        }


class TestItems:
    """Lists of objects that are merged by a key."""

    def test_merged_by_key(self) -> None:
        """An item with a known key is merged into the one there is, by its own schema; one with a new key is added."""
        target = {"metadata": {"owners": [{"uid": "a", "x": 1, "uses": ["p"]}, {"uid": "b"}]}}
        patch = {"metadata": {"owners": [{"uid": "a", "x": None, "uses": ["q"]}, {"uid": "c", "y": None}]}}
        assert patched(target, patch)["metadata"]["owners"] == [
            {"uid": "a", "uses": ["q", "p"]},
            {"uid": "c", "y": None},
            {"uid": "b"},
        ]

    def test_deleted_and_replaced(self) -> None:
        """`$patch` in an item deletes the one with its key, or leaves only the patch's own items."""
        assert owners("ab", [{"uid": "a", "$patch": "delete"}]) == "b"
        assert owners("ab", [{"uid": "x", "$patch": "delete"}]) == "ab"
        assert owners("ab", [{"$patch": "replace"}, {"uid": "c"}, {"uid": "d"}]) == "cd"
        assert owners("ab", [{"$patch": "replace"}]) == ""
        assert owners("ab", [{"$patch": "replace"}, {"uid": "c"}], "c") == "c"

    def test_ordered(self) -> None:
        """Items come in the order that the patch gives; those it does not name stay before what they were before."""
        assert owners("ab", [], "ba") == "ba"
        assert owners("ab", [{"uid": "c"}], "bca") == "bca"
        assert owners("sab", [{"uid": "c"}], "cab") == "csab"
        assert owners("a", [{"uid": "b"}], "") == "ab"
        assert owners("ab", [{"uid": "d"}, {"uid": "b"}, {"uid": "c"}], "") == "cabd"
        assert owners("sxa", [{"uid": "c"}, {"uid": "x", "$patch": "delete"}], "ca") == "sca"

    def test_same_keys(self) -> None:
        """Where several items have a key, the first is merged, and all of them are together."""
        target = {"spec": {"ports": [{"port": 80, "n": "t"}, {"port": 81}, {"port": 80, "n": "u"}]}}
        assert patched(target, {"spec": {"ports": [{"port": 81, "x": 1}]}})["spec"]["ports"] == [
            {"port": 80, "n": "t"},
            {"port": 80, "n": "u"},
            {"port": 81, "x": 1},
        ]
        assert patched(target, {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}})["spec"]["ports"] == [
            {"port": 81}
        ]

    @pytest.mark.parametrize(
        ("patch", "told"),
        [
            ([{"x": "y"}], "map: map[x:y] does not contain declared merge key: uid"),
            ([{"$patch": "delete"}], "map: map[$patch:delete] does not contain declared merge key: uid"),
            ([{"uid": "a", "$patch": "merge"}], "merging lists cannot yet be specified in the patch"),
            ([{"uid": "a", "$patch": "spin"}], "unknown patch type: spin in map: map[$patch:spin uid:a]"),
            (["x"], "list element types are not identical: [[map[uid:a]] [x]]"),
        ],
    )
    def test_refused(self, patch: list[Any], told: str) -> None:
        """What cannot be merged is refused, as a fault of the server."""
        target = {"metadata": {"owners": [{"uid": "a"}]}}
        assert refused(target, {"metadata": {"owners": patch}}) == (500, "", told)


class TestOrderFaults:
    """What is wrong with an order."""

    @pytest.mark.parametrize(
        ("patch", "told"),
        [
            (
                {"$setElementOrder/finalizers": ["c"], "finalizers": ["d"]},
                "The order in patch list:\n[d]\n doesn't match $setElementOrder list:\n[c]\n",
            ),
            (
                {"$setElementOrder/owners": [{"uid": "a"}], "owners": [{"uid": "a"}, {"$patch": "replace"}]},
                "The order in patch list:\n[map[uid:a] map[$patch:replace]]\n"
                " doesn't match $setElementOrder list:\n[map[uid:a]]\n",
            ),
            ({"$setElementOrder/finalizers": "x"}, "expected a []interface {}, but received a string"),
            ({"$setElementOrder/finalizers": 3}, "expected a []interface {}, but received a int64"),
            ({"$setElementOrder/finalizers": 1.5}, "expected a []interface {}, but received a float64"),
            (
                {"$setElementOrder/owners": [[]], "owners": [{"uid": "a"}]},
                "expected a map[string]interface {}, but received a []interface {}",
            ),
            ({"$setElementOrder/finalizers": {}}, "expected a []interface {}, but received a map[string]interface {}"),
            (
                {"$setElementOrder/finalizers": ["a"], "finalizers": None},
                "expected a []interface {}, but received a %!s(<nil>)",
            ),
            ({"$setElementOrder/empty": ["a"], "empty": []}, "no elements in any of the given slices"),
        ],
    )
    def test_refused(self, patch: Json, told: str) -> None:
        """An order that does not fit what the patch brings is refused."""
        assert refused({"metadata": {"finalizers": ["a"]}}, {"metadata": patch}) == (500, "", told)

    def test_form(self) -> None:
        """A directive names its list after a slash."""
        for name, form in (
            ("$setElementOrder", "setElementOrder list"),
            ("$setElementOrderX/a", "setElementOrder list"),
            ("$deleteFromPrimitiveList", "primitive list"),
        ):
            assert refused({}, {name: []}) == (400, "BadRequest", f"invalid patch format of {form}")

    def test_items_between(self) -> None:
        """The items of a patch stand in the order with others between them, and those that delete need not."""
        patch = [{"uid": "b"}, {"uid": "x", "$patch": "delete"}, {"uid": "d"}]
        assert owners("axb", patch, "abcd") == "abd"


class TestKubectl:
    """Patches that kubectl sent."""

    def test_apply(self) -> None:
        """`kubectl apply` after a port went, one lost its target and one came, and labels and finalizers changed."""
        target: Json = {
            "metadata": {"labels": {"a": "b"}, "finalizers": ["x.io/a"]},
            "spec": {
                "ports": [
                    {"name": "a", "port": 80, "protocol": "TCP", "targetPort": 80},
                    {"name": "b", "port": 81, "protocol": "TCP", "targetPort": 8081},
                ],
            },
        }
        patch: Json = {
            "metadata": {
                "$deleteFromPrimitiveList/finalizers": ["x.io/a"],
                "$setElementOrder/finalizers": ["x.io/b"],
                "finalizers": ["x.io/b"],
                "labels": {"a": None, "c": "d"},
            },
            "spec": {
                "$setElementOrder/ports": [{"port": 81}, {"port": 82}],
                "ports": [
                    {"port": 81, "targetPort": None},
                    {"name": "c", "port": 82},
                    {"$patch": "delete", "port": 80},
                ],
            },
        }
        assert patched(target, patch) == {
            "metadata": {"labels": {"c": "d"}, "finalizers": ["x.io/b"]},
            "spec": {"ports": [{"name": "b", "port": 81, "protocol": "TCP"}, {"name": "c", "port": 82}]},
        }

    def test_edit(self) -> None:
        """`kubectl edit` after the target of a port changed and the last finalizer went."""
        target = {"metadata": {"finalizers": ["x.io/b"]}, "spec": {"ports": [{"port": 81}, {"port": 82, "name": "c"}]}}
        patch: Json = {
            "metadata": {"finalizers": None},
            "spec": {
                "$setElementOrder/ports": [{"port": 81}, {"port": 82}],
                "ports": [{"port": 82, "targetPort": 99}],
            },
        }
        assert patched(target, patch) == {
            "metadata": {},
            "spec": {"ports": [{"port": 81}, {"port": 82, "name": "c", "targetPort": 99}]},
        }

    def test_taint(self) -> None:
        """`kubectl taint` sends all taints, of which a list is made anew."""
        target = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
        taints = [{"key": "b", "effect": "NoSchedule", "value": "v"}, {"key": "a", "effect": "NoSchedule"}]
        assert patched(target, {"spec": {"taints": taints}}) == {"spec": {"taints": taints}}


OBJECT: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.integers(0, 2) | st.text("xy", max_size=1),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner) | st.lists(inner, max_size=2),
        max_leaves=5,
    ),
)


@given(OBJECT, OBJECT)
def test_as_merge_patches(target: Json, patch: Json) -> None:
    """Where no schema says otherwise and no directive is given, both kinds of patch do the same."""
    assert strategic_patch(target, patch, {}) == merge_patch(target, patch)


VALUES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(VALUES, VALUES)
def test_merged_values(current: list[str], patch: list[str]) -> None:
    """Merged values are those of both, once each; those of the patch, and the others, keep their order."""
    merged = finalizers(current, finalizers=patch)
    assert sorted(merged) == sorted({*current, *patch})
    assert [each for each in merged if each in patch] == patch
    assert [each for each in merged if each not in patch] == [each for each in current if each not in patch]


@given(VALUES, VALUES, VALUES)
def test_wanted_order(current: list[str], wanted: list[str], gone: list[str]) -> None:
    """What `kubectl apply` sends for a list of objects leads to the wanted items, in order, with others kept."""
    patch: list[Json] = [{"uid": uid} for uid in wanted]
    patch += [{"uid": uid, "$patch": "delete"} for uid in gone if uid not in wanted]
    result = owners("".join(current), patch, "".join(wanted)) if current or patch else ""
    assert [each for each in result if each in wanted] == wanted
    assert set(result) == (set(current) - set(gone)) | set(wanted)


DIRECTIVES = [
    "finalizers",
    "owners",
    "labels",
    "$patch",
    "$retainKeys",
    "$setElementOrder/owners",
    "uid",
    "$setElementOrder",
]
DIRECTIVES += ["$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers", "$deleteFromPrimitiveList/owners"]
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 1, 1.5, "a", "b", "delete", "replace", "merge"]),
    lambda inner: st.dictionaries(st.sampled_from(DIRECTIVES), inner) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(DIRECTIVES), ANYTHING))
def test_whatever_is_sent(patch: Json) -> None:
    """Any patch at all is applied or refused; what it is applied to stays as it is."""
    target: Json = {
        "metadata": {"finalizers": ["a", "c"], "owners": [{"uid": "a"}, {"uid": "b"}], "labels": {"x": "y"}}
    }
    before = deepcopy((target, patch))
    with suppress(StatusError):
        strategic_patch(target, {"metadata": patch}, SCHEMA)
    assert (target, patch) == before
