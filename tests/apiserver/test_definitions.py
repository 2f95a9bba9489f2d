"""Custom resources: with a definition comes what is served, with a change of it another form, and all goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.apiserver.customs import customs
from cidrella.apiserver.schemas.schema import SchemaError
from tests.apiserver.asking import CRDS, MERGE, NODES, WIDGETS, api, crd, widget

if TYPE_CHECKING:
    import pytest

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def test_served_at_once() -> None:
    """A definition is answered as it was sent, established a moment later, and its kind is there at once."""
    with api() as ask:
        made = ask.make(CRDS, crd())
        assert made["status"]["conditions"] is None
        stored = ask("GET", f"{CRDS}/widgets.example.com").granted()
        assert {each["type"]: each["status"] for each in stored["status"]["conditions"]} == {
            "NamesAccepted": "True",
            "Established": "True",
        }
        assert ask("GET", WIDGETS).names == []


def test_other_names() -> None:
    """The name follows from what is defined. Another one, or a beginning, is told before the rest of metadata."""
    with api() as ask:
        owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": ""}
        metadata = {"name": "x", "generateName": "y-", "ownerReferences": [owner]}
        refused = ask("POST", CRDS, {**crd(), "metadata": metadata})
        refused.refused(422, "Invalid")
        fields = ["metadata.generateName", "metadata.name", "metadata.ownerReferences.uid"]
        assert [each["field"] for each in refused.body["details"]["causes"]] == fields
        nameless = ask("POST", CRDS, {**crd(), "metadata": {}}).refused(422, "Invalid")
        assert nameless.endswith('"" is invalid: metadata.name: Required value: name or generateName is required')


def test_served_after_a_restart() -> None:
    """What is stored is served again; what cannot be served is left out, and said."""
    with api() as ask:
        ask.make(CRDS, crd())
        ask.make(WIDGETS, widget("a"))
    with api(ask.store) as again:
        assert again("GET", WIDGETS).names == ["a"]


def test_one_that_cannot_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that an earlier release took and this one cannot use does not keep the rest from being served."""
    with api() as ask:
        ask.make(CRDS, crd())

    def unusable(_: object) -> None:
        raise SchemaError([])

    monkeypatch.setattr(customs, "resources_of", unusable)
    with api(ask.store) as again:
        assert again("GET", WIDGETS).code == 404
        assert again("GET", NODES).code == 200


def test_a_field_that_comes_and_one_that_goes() -> None:
    """Objects that were stored before are read as the definition has it now, and stay as they are until written."""
    with api() as ask:
        ask.make(CRDS, crd(size={"type": "integer"}))
        ask.make(WIDGETS, widget("a", {"size": 1}))
        path = f"{CRDS}/widgets.example.com"
        changed = crd(color={"type": "string", "default": "red"})["spec"]["versions"]
        ask("PATCH", path, {"spec": {"versions": changed}}, media=MERGE).granted()
        assert ask("GET", f"{WIDGETS}/a").body["spec"] == {"color": "red"}
        assert ask("GET", WIDGETS).body["items"][0]["spec"] == {"color": "red"}
        ask("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"x": "y"}}}, media=MERGE).granted()
        ask("PATCH", path, {"metadata": {"labels": {"x": "y"}}}, media=MERGE).granted()
        entry = ask.store.get("widgets.example.com", "default/a")
        assert entry is not None
        assert entry.read()["spec"] == {"color": "red"}


def test_several_versions() -> None:
    """One object, in every version that is served, under the apiVersion that it is asked for."""
    with api() as ask:
        definition = crd()
        (first,) = definition["spec"]["versions"]
        definition["spec"]["versions"].append({**first, "name": "v2", "storage": False})
        ask.make(CRDS, definition)
        ask.make(WIDGETS, widget("a"))
        newer = WIDGETS.replace("/v1/", "/v2/")
        assert ask("GET", f"{newer}/a").body["apiVersion"] == "example.com/v2"
        assert ask("GET", newer).body["items"][0]["apiVersion"] == "example.com/v2"
        ask("PATCH", f"{newer}/a", {"metadata": {"labels": {"x": "y"}}}, media=MERGE).granted()
        assert ask("GET", f"{WIDGETS}/a").body["apiVersion"] == "example.com/v1"
        assert ask("GET", "/apis/example.com").body["preferredVersion"]["version"] == "v2"


def test_names_that_are_taken() -> None:
    """A definition whose names another one has is not served, and says why."""
    with api() as ask:
        ask.make(CRDS, crd())
        other = crd("gadgets")
        other["spec"]["names"]["kind"] = "Widget"
        ask.make(CRDS, other)
        conditions = ask("GET", f"{CRDS}/gadgets.example.com").body["status"]["conditions"]
        assert {each["type"]: each["status"] for each in conditions} == {
            "NamesAccepted": "False",
            "Established": "False",
        }
        assert ask("GET", WIDGETS.replace("widgets", "gadgets")).code == 404


def test_its_end() -> None:
    """Its objects go first; meanwhile none can be made; what has a finalizer is waited for."""
    with api() as ask:
        ask.make(CRDS, crd())
        ask.make(WIDGETS, widget("a"))
        ask.make(WIDGETS, widget("b", finalizers=["example.com/x"]))
        marked = ask("DELETE", f"{CRDS}/widgets.example.com").granted()
        assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        refused = ask("POST", WIDGETS, widget("c")).refused(403, "Forbidden")
        assert refused.endswith("create not allowed while custom resource definition is terminating")
        ask.wait(lambda: len(ask.store.entries("widgets.example.com")) == 1)
        ask.rest(0.25)
        verbs = ask("GET", "/apis/example.com/v1").body["resources"][0]["verbs"]
        assert verbs == ["delete", "deletecollection", "get", "list", "watch"]
        ask("PATCH", f"{WIDGETS}/b", {"metadata": {"finalizers": None}}, media=MERGE).granted()
        ask.wait(lambda: not ask.store.entries(STORAGE))
        assert ask("GET", WIDGETS).code == 404
        assert ask("GET", "/apis/example.com/v1").code == 404


def test_finalizers_of_others() -> None:
    """A definition that somebody else holds stays, without its objects, until they let go."""
    with api() as ask:
        definition = crd()
        definition["metadata"]["finalizers"] = ["example.com/mine"]
        ask.make(CRDS, definition)
        ask("DELETE", f"{CRDS}/widgets.example.com").granted()
        path = f"{CRDS}/widgets.example.com"
        ask.wait(lambda: b"customresourcecleanup" not in ask.store.entries(STORAGE)[0].body)
        ask("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE).granted()
        ask("GET", path).refused(404, "NotFound")
