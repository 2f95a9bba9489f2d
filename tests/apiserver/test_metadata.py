"""The rules for metadata: at creation, on updates, and what the server decides by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.meta import metadata
from cidrella.apiserver.words.naming import label_faults
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource

Json = dict[str, Any]

NOW = datetime(2024, 5, 6, 7, 8, 9, 999_999, UTC)
LETTERS = set("bcdfghjklmnpqrstvwxz2456789")


def told(faults: list[Any]) -> list[str]:
    return [str(fault) for fault in faults]


def at_creation(namespaced: bool = False, **fields: Any) -> list[str]:
    return told(metadata.create_faults({"name": "n", **fields}, namespaced=namespaced))


def on_update(old: Json | None = None, **fields: Any) -> list[str]:
    before = {"name": "n", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z", **(old or {})}
    new = {"name": "n", **fields}
    metadata.keep(new, before)
    return told(metadata.update_faults(new, before, namespaced=False))


def owner(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "u"} | fields


class TestFilling:
    """What the server writes into metadata of new objects."""

    def test_fill(self) -> None:
        """A new object gets a uid and the time in whole seconds; what it brings of either, or of deletion, goes."""
        found = {
            "name": "n",
            "uid": "mine",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2020-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 5,
        }
        metadata.fill(found, NOW, Random(1))
        assert found == {"name": "n", "uid": found["uid"], "creationTimestamp": "2024-05-06T07:08:09Z"}
        assert UUID(str(found["uid"])).version == 4

    def test_generated_names(self) -> None:
        """A name is generated only where there is none, from what it begins with; no name is longer than a label."""
        found: Json = {"generateName": "web-"}
        metadata.fill(found, NOW, Random(1))
        assert found["name"].startswith("web-")
        assert len(found["name"]) == 9
        kept: Json = {"generateName": "web-", "name": "mine"}
        metadata.fill(kept, NOW, Random(1))
        assert kept["name"] == "mine"
        assert len(metadata.generated_name("a" * 300, Random(1))) == 63

    @given(st.integers())
    def test_generated_letters(self, seed: int) -> None:
        """The five letters that are added are of Kubernetes' alphabet, which spells nothing."""
        name = metadata.generated_name("x", Random(seed))
        assert len(name) == 6
        assert set(name[1:]) <= LETTERS

    def test_namespace_of_the_request(self) -> None:
        """The request's namespace is the object's; another one is refused, and one without any drops it silently."""
        unnamed: Json = {}
        same, scoped = {"namespace": "a"}, {"namespace": "b"}
        metadata.put_in_namespace(unnamed, "a")
        metadata.put_in_namespace(same, "a")
        metadata.put_in_namespace(scoped, "")
        assert (unnamed, same, scoped) == ({"namespace": "a"}, {"namespace": "a"}, {})
        with pytest.raises(StatusError) as refusal:
            metadata.put_in_namespace({"namespace": "b"}, "a")
        assert refusal.value.code == 400
        wanted = "the namespace of the provided object does not match the namespace sent on the request"
        assert refusal.value.message == wanted

    def test_repeated_owners(self) -> None:
        """An owner reference that is there already is left out, and the client is told whose it was."""
        found = {"ownerReferences": [owner(), owner(), owner(name="p"), owner(uid="v"), owner(uid="v"), owner()]}
        (warning,) = metadata.drop_repeated_owners(found)
        assert found["ownerReferences"] == [owner(), owner(name="p"), owner(uid="v")]
        assert warning.startswith(".metadata.ownerReferences contains duplicate entries; ")
        assert warning.endswith("duplicate UID(s) observed: u, v, u")
        assert metadata.drop_repeated_owners(found) == []
        (warning,) = metadata.drop_repeated_owners({"ownerReferences": [owner(), owner()]}, patched=True)
        assert "entries after mutating admission happens; " in warning


class TestCreation:
    """Faults of metadata of new objects."""

    def test_nothing_wrong(self) -> None:
        """Metadata that Kubernetes takes is taken."""
        assert not at_creation(
            generateName="web-",
            labels={"app": "x", "a.b/c": ""},
            annotations={"UPPER.case/Is_fine": "any thing"},
            finalizers=["plain", "x.io/a", "orphan"],
            ownerReferences=[owner(controller=True), owner(kind="Event", apiVersion="events.k8s.io/v1")],
            generation=1,
        )
        assert not at_creation(namespaced=True, namespace="default")

    def test_names(self) -> None:
        """A name is required and follows the rule of its kind; so does its beginning, but for a dash at the end."""
        assert at_creation(name="") == ["metadata.name: Required value: name or generateName is required"]
        assert at_creation(name="A")[0].startswith('metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain')
        assert at_creation(generateName="a_")[0].startswith('metadata.generateName: Invalid value: "a_": a lowercase')
        assert not at_creation(generateName="a-")
        assert not at_creation(generateName="A-")  # the letter before the dash is not looked at
        assert at_creation(generateName="-")
        assert told(metadata.create_faults({"name": "a.b"}, namespaced=False, name_faults=label_faults)) == [
            'metadata.name: Invalid value: "a.b": must not contain dots'
        ]

    def test_namespaces(self) -> None:
        """A namespace is required, or not allowed, as the kind has it."""
        assert at_creation(namespaced=True) == ["metadata.namespace: Required value"]
        assert at_creation(namespace="x") == ["metadata.namespace: Forbidden: not allowed on this type"]
        assert at_creation(namespaced=True, namespace="a.b") == [
            'metadata.namespace: Invalid value: "a.b": must not contain dots'
        ]

    def test_generation(self) -> None:
        """A generation is not negative."""
        assert at_creation(generation=-4) == [
            "metadata.generation: Invalid value: -4: must be greater than or equal to 0"
        ]

    def test_labels(self) -> None:
        """Keys and values of labels are told by what is wrong with each."""
        faults = at_creation(labels={"/a": "b", "c": "d e"})
        assert faults[0] == 'metadata.labels: Invalid value: "/a": prefix part must be non-empty'
        assert faults[1].startswith('metadata.labels: Invalid value: "d e": a valid label must be an empty string or')
        assert len(faults) == 2

    def test_annotations(self) -> None:
        """Keys of annotations are as those of labels, in any case; all together have at most 256 KiB."""
        assert at_creation(annotations={"/a": ""}) == [
            'metadata.annotations: Invalid value: "/a": prefix part must be non-empty'
        ]
        assert not at_creation(annotations={"a": "x" * (256 * 1024 - 1)})
        assert at_creation(annotations={"a": "x" * (256 * 1024)}) == [
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        ]
        assert at_creation(annotations={"a": "é" * (128 * 1024)})

    def test_owners(self) -> None:
        """An owner has all it is told by, is no Event, and only one of them controls."""
        field = "metadata.ownerReferences"
        assert at_creation(ownerReferences=[owner(apiVersion="", kind="", name="", uid="")]) == [
            f'{field}.apiVersion: Invalid value: "": version must not be empty',
            f'{field}.kind: Invalid value: "": must not be empty',
            f'{field}.name: Invalid value: "": must not be empty',
            f'{field}.uid: Invalid value: "": must not be empty',
        ]
        for version in ("a/b/c", "v1/", "/"):
            assert at_creation(ownerReferences=[owner(apiVersion=version)]) == [
                f'{field}.apiVersion: Invalid value: "{version}": version must not be empty'
            ]
        assert at_creation(ownerReferences=[owner(kind="Event")]) == [
            f'{field}: Invalid value: {{"apiVersion":"v1","kind":"Event","name":"o","uid":"u"}}: '
            "/v1, Kind=Event is disallowed from being an owner"
        ]
        two = [owner(controller=True), owner(name="p", controller=True)]
        (fault,) = at_creation(ownerReferences=two)
        assert fault.startswith(f'{field}: Invalid value: [{{"apiVersion":"v1","kind":"Node","name":"o","uid":"u",')
        assert fault.endswith(
            'Only one reference can have Controller set to true. Found "true" in references for Node/o and Node/p'
        )

    def test_finalizers(self) -> None:
        """Finalizers are qualified names, and two of Kubernetes' own exclude each other."""
        assert at_creation(finalizers=["/a"]) == [
            'metadata.finalizers: Invalid value: "/a": prefix part must be non-empty'
        ]
        assert at_creation(finalizers=["orphan", "foregroundDeletion"]) == [
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
            "finalizer orphan and foregroundDeletion cannot be both set"
        ]

    def test_finalizers_without_a_domain(self) -> None:
        """Built-in kinds refuse them, custom resources warn of those that are new."""
        found = {"finalizers": ["x.io/a", "plain", "kubernetes", "dotted.name"]}
        neither = "name is neither a standard finalizer name nor is it fully qualified"
        assert told(metadata.finalizer_faults(found)) == [
            f'metadata.finalizers[1]: Invalid value: "plain": {neither}',
            f'metadata.finalizers[3]: Invalid value: "dotted.name": {neither}',
        ]
        after = "to avoid accidental conflicts with other finalizer writers"
        assert metadata.finalizer_warnings(found) == [
            'metadata.finalizers: "dotted.name": prefer a domain-qualified finalizer name including a path (/) '
            + after,
            'metadata.finalizers: "plain": prefer a domain-qualified finalizer name ' + after,
        ]
        assert metadata.finalizer_warnings(found, found) == []


class TestUpdate:
    """What an update keeps, and what it may not change."""

    def test_keep(self) -> None:
        """What the server decided stays, whatever is sent; what may go is gone if it is not sent."""
        old = {
            "name": "n",
            "uid": "u",
            "generation": 3,
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2021-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
            "labels": {"a": "b"},
        }
        new = {"name": "n", "generation": 55, "creationTimestamp": "2024-01-01T00:00:00Z", "selfLink": "/x"}
        metadata.keep(new, old)
        assert new == {name: value for name, value in old.items() if name != "labels"}

    def test_keep_invents_nothing(self) -> None:
        """A generation that the object never had is not kept from a request either."""
        new: Json = {"name": "n", "generation": 5}
        metadata.keep(new, {"name": "n", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"})
        assert new == {"name": "n", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}

    def test_immutable(self) -> None:
        """Fields that do not change are named twice, as the real server does in the causes."""
        immutable = "field is immutable"
        assert on_update(uid="v") == [f'metadata.uid: Invalid value: "v": {immutable}'] * 2
        assert (
            on_update(deletionGracePeriodSeconds=5)
            == [f"metadata.deletionGracePeriodSeconds: Invalid value: 5: {immutable}"] * 2
        )
        moment = "2020-01-01T00:00:00Z"
        assert (
            on_update(deletionTimestamp=moment)
            == [f'metadata.deletionTimestamp: Invalid value: "{moment}": {immutable}'] * 2
        )
        assert on_update() == []

    def test_new_finalizers_while_deleting(self) -> None:
        """An object that is being deleted gets no new finalizers, though it may keep and lose those it has."""
        going = {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["x.io/a", "x.io/b"]}
        assert on_update(going, finalizers=["x.io/b"]) == []
        assert on_update(going, finalizers=["x.io/d", "x.io/b", "x.io/c"])[0] == (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"x.io/c", "x.io/d"}'
        )
        assert on_update({"finalizers": []}, finalizers=["x.io/c"]) == []

    def test_other_rules_hold(self) -> None:
        """Labels, annotations and owners are looked at again, thrice; of names only what a path cannot hold."""
        assert len(on_update(labels={"/a": ""})) == 3
        assert len(on_update(annotations={"/a": ""})) == 3
        assert len(on_update(ownerReferences=[owner(name="")])) == 3
        assert len(on_update(finalizers=["/a"])) == 1
        assert on_update(generateName="A_") == []
        assert on_update(generateName="a/%") == [
            "metadata.generateName: Invalid value: \"a/%\": may not contain '/'",
            "metadata.generateName: Invalid value: \"a/%\": may not contain '%'",
        ]

    @pytest.mark.parametrize(
        ("plural", "group", "custom", "namespace", "key"),
        [
            ("nodes", "", False, "", "minions/n"),
            ("services", "", False, "ns", "services/specs/ns/n"),
            ("leases", "coordination.k8s.io", False, "ns", "leases/ns/n"),
            ("things", "x.io", True, "", "x.io/things/n"),
            ("customresourcedefinitions", "apiextensions.k8s.io", False, "", None),
        ],
    )
    def test_another_uid(self, plural: str, group: str, custom: bool, namespace: str, key: str | None) -> None:
        """A PUT that names another uid is a conflict; the message tells where the real server keeps the object."""
        resource = cast("Resource", SimpleNamespace(plural=plural, group=group, custom=custom))
        old = {"name": "n", "uid": "u"} | ({"namespace": namespace} if namespace else {})
        assert metadata.uid_conflict(resource, {"name": "n"}, old) is None
        assert metadata.uid_conflict(resource, {"name": "n", "uid": "u"}, old) is None
        refusal = metadata.uid_conflict(resource, {"name": "n", "uid": "v"}, old)
        assert refusal is not None
        assert (refusal.code, refusal.reason) == (409, "Conflict")
        assert refusal.message.endswith(
            f"Code: 4, Key: /registry/{key or f'{group}/{plural}/n'}, ResourceVersion: 0, AdditionalErrorMsg: "
            "Precondition failed: UID in precondition: v, UID in object meta: u"
        )
