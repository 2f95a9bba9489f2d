"""Replacing and patching: nobody's change is lost unseen, and what did not change is not written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import NODES, POOLS, lease, leases, made, node, pool, version
from tests.conformance.talking import JSON, JSON_PATCH, MERGE, STRATEGIC

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class TestReplacing:
    """PUT: the whole object, as somebody read it and changed it."""

    def test_what_was_read_and_changed(self, talk: Talk, name: str) -> None:
        """The usual way of a controller: read, change, write back."""
        body = made(talk, NODES, node(name, {"old": "1"}))
        body["metadata"]["labels"] = {"new": "2"}
        replaced = talk.replace(f"{NODES}/{name}", body).granted()
        assert replaced["metadata"]["labels"] == {"new": "2"}
        assert version(replaced) > version(body)
        assert talk.get(f"{NODES}/{name}").granted() == replaced

    def test_somebody_was_faster(self, talk: Talk, name: str) -> None:
        """Of two who read the same version, the second to write is told, and nothing of the first is lost."""
        mine = made(talk, NODES, node(name))
        theirs = deepcopy(mine)
        theirs["metadata"]["labels"] = {"theirs": "1"}
        kept = talk.replace(f"{NODES}/{name}", theirs).granted()
        mine["metadata"]["labels"] = {"mine": "1"}
        refused = talk.replace(f"{NODES}/{name}", mine).refused(409, "Conflict", MODIFIED, f'nodes "{name}"')
        assert refused.body["details"] == {"name": name, "kind": "nodes"}
        assert talk.get(f"{NODES}/{name}").granted() == kept

    def test_without_a_version(self, talk: Talk, name: str, namespace: str) -> None:
        """A Node may be replaced by whoever does not care; a Lease and a pool never."""
        made(talk, NODES, node(name))
        assert talk.replace(f"{NODES}/{name}", node(name, {"a": "b"})).granted()["metadata"]["labels"] == {"a": "b"}
        for path, body in ((POOLS, pool(name)), (leases(namespace), lease(name))):
            made(talk, path, body)
            reply = talk.replace(f"{path}/{name}", body)
            reply.refused(422, "Invalid", "metadata.resourceVersion: Invalid value:", "must be specified for an update")

    def test_what_is_not_there(self, talk: Talk, name: str) -> None:
        """Replacing is no way to create."""
        talk.replace(f"{NODES}/{name}", node(name)).refused(404, "NotFound", f'nodes "{name}" not found')
        talk.replace(f"{POOLS}/{name}", pool(name)).refused(404, "NotFound")

    def test_another_uid(self, talk: Talk, name: str) -> None:
        """An object of the same name that came after is not the one that was meant."""
        old = made(talk, NODES, node(name))
        talk.delete(f"{NODES}/{name}").granted()
        new = made(talk, NODES, node(name))
        del old["metadata"]["resourceVersion"]
        refused = talk.replace(f"{NODES}/{name}", old).refused(409, "Conflict")
        told = f"UID in precondition: {old['metadata']['uid']}, UID in object meta: {new['metadata']['uid']}"
        assert told in refused.message

    def test_another_name(self, talk: Talk, name: str) -> None:
        """The object and the path name the same."""
        made(talk, NODES, node(name))
        reply = talk.replace(f"{NODES}/{name}", node("other"))
        reply.refused(400, "BadRequest", f"the name of the object (other) does not match the name on the URL ({name})")

    def test_nothing_changed(self, talk: Talk, name: str) -> None:
        """What is written as it is makes no version, and wakes nobody."""
        for path, body in ((NODES, node(name)), (POOLS, pool(name))):
            before = made(talk, path, body)
            assert talk.replace(f"{path}/{name}", before).granted() == before
            assert talk.patch(f"{path}/{name}", {"metadata": {"name": name}}).granted() == before

    @pytest.mark.parametrize("field", ["uid", "creationTimestamp"])
    def test_fields_that_are_left_out(self, talk: Talk, name: str, field: str) -> None:
        """What the server decided stays, though a client that replaces does not send it."""
        before = made(talk, NODES, node(name))
        body = deepcopy(before)
        body["metadata"]["labels"] = {"a": "b"}
        del body["metadata"][field]
        after = talk.replace(f"{NODES}/{name}", body).granted()
        assert after["metadata"][field] == before["metadata"][field]

    def test_the_beginning_of_a_lease_of_many(self, talk: Talk, name: str, namespace: str) -> None:
        """Of many who write at once from the same version, one succeeds: elections stand on this."""
        body = made(talk, leases(namespace), lease(name))

        def take(holder: int) -> int:
            mine = deepcopy(body)
            mine["spec"] = {"holderIdentity": f"holder-{holder}"}
            return talk.replace(f"{leases(namespace)}/{name}", mine).code

        with ThreadPoolExecutor(8) as pool:
            codes = sorted(pool.map(take, range(16)))
        assert codes == [200] + [409] * 15


class TestMergePatch:
    """JSON merge patch: what is named is changed, null removes."""

    def test_fields(self, talk: Talk, name: str) -> None:
        """What is not named stays."""
        made(talk, NODES, node(name, {"stays": "1", "changes": "1", "goes": "1"}))
        patch = {"metadata": {"labels": {"changes": "2", "goes": None, "comes": "3"}}}
        patched = talk.patch(f"{NODES}/{name}", patch).granted()
        assert patched["metadata"]["labels"] == {"stays": "1", "changes": "2", "comes": "3"}

    def test_lists_are_replaced(self, talk: Talk, name: str) -> None:
        """A list is one value."""
        taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]
        made(talk, NODES, node(name, taints=taints))
        patched = talk.patch(f"{NODES}/{name}", {"spec": {"taints": taints[1:]}}).granted()
        assert patched["spec"]["taints"] == taints[1:]

    def test_with_a_version(self, talk: Talk, name: str) -> None:
        """A patch that names a version is for that one alone."""
        old = made(talk, POOLS, pool(name))["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": old, "labels": {"a": "b"}}}
        talk.patch(f"{POOLS}/{name}", patch).granted()
        patch["metadata"]["labels"] = {"a": "c"}
        talk.patch(f"{POOLS}/{name}", patch).refused(409, "Conflict", MODIFIED)

    def test_without_a_version_all_are_done(self, talk: Talk, name: str) -> None:
        """Patches that name no version do not meet: each of many at once is done."""
        made(talk, NODES, node(name))

        def label(number: int) -> int:
            return talk.patch(f"{NODES}/{name}", {"metadata": {"labels": {f"l-{number}": "x"}}}).code

        with ThreadPoolExecutor(4) as workers:
            codes = set(workers.map(label, range(12)))
        assert codes == {200}
        labels = talk.get(f"{NODES}/{name}").granted()["metadata"]["labels"]
        assert {f"l-{number}" for number in range(12)} <= labels.keys()

    @pytest.mark.parametrize("kind", ["nodes", "pools"])
    def test_uids_are_kept(self, talk: Talk, name: str, kind: str) -> None:
        """The controller sends a node's uid with its block, so that a namesake that came after is not given it."""
        path, body = (NODES, node(name)) if kind == "nodes" else (POOLS, pool(name))
        uid = made(talk, path, body)["metadata"]["uid"]
        talk.patch(f"{path}/{name}", {"metadata": {"uid": uid, "labels": {"a": "b"}}}).granted()
        reply = talk.patch(f"{path}/{name}", {"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}})
        reply.refused(422, "Invalid", "metadata.uid: Invalid value:", "field is immutable")

    @pytest.mark.parametrize("text", ["{", "[]", "5", ""], ids=["half", "list", "number", "nothing"])
    def test_no_patch_at_all(self, talk: Talk, name: str, text: str) -> None:
        """It has to be an object."""
        made(talk, POOLS, pool(name))
        assert talk.patch(f"{POOLS}/{name}", text).code == 400


class TestJsonPatch:
    """JSON patch: a list of steps, all or none."""

    def test_steps(self, talk: Talk, name: str) -> None:
        """Each of the six operations."""
        made(talk, NODES, node(name, {"a": "1", "b": "2", "c": "3"}))
        steps = [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/a", "value": "x"},
            {"op": "add", "path": "/metadata/labels/example.com~1d", "value": "4"},
            {"op": "remove", "path": "/metadata/labels/b"},
            {"op": "move", "from": "/metadata/labels/c", "path": "/metadata/labels/e"},
            {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/f"},
        ]
        patched = talk.patch(f"{NODES}/{name}", steps, JSON_PATCH).granted()
        assert patched["metadata"]["labels"] == {"a": "x", "example.com/d": "4", "e": "3", "f": "x"}

    def test_places_in_lists(self, talk: Talk, name: str) -> None:
        """By number, and `-` for the end."""
        one, two, three = ({"key": key, "effect": "NoSchedule"} for key in ("one", "two", "three"))
        made(talk, NODES, node(name, taints=[two]))
        steps = [
            {"op": "add", "path": "/spec/taints/0", "value": one},
            {"op": "add", "path": "/spec/taints/-", "value": three},
            {"op": "remove", "path": "/spec/taints/1"},
        ]
        path = f"{NODES}/{name}"
        before = talk.get(path).granted()["spec"]["taints"]
        assert talk.patch(path, steps, JSON_PATCH).granted()["spec"]["taints"] == [one, *before[1:], three]

    @pytest.mark.parametrize(
        "step",
        [
            {"op": "test", "path": "/metadata/name", "value": "other"},
            {"op": "remove", "path": "/metadata/labels/nothing"},
            {"op": "replace", "path": "/spec/nothing/x", "value": 1},
            {"op": "nonsense", "path": "/metadata/name"},
        ],
        ids=["test", "remove", "replace", "operation"],
    )
    def test_a_step_that_fails(self, talk: Talk, name: str, step: Json) -> None:
        """Nothing of the patch is done: a test is how a client asks for more than a version."""
        before = made(talk, POOLS, pool(name))
        steps = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, step]
        talk.patch(f"{POOLS}/{name}", steps, JSON_PATCH).refused(
            422, "Invalid", "the server rejected our request due to an error in our request"
        )
        assert talk.get(f"{POOLS}/{name}").granted() == before

    @pytest.mark.parametrize("text", ["{", "{}", "5"], ids=["half", "object", "number"])
    def test_no_patch_at_all(self, talk: Talk, name: str, text: str) -> None:
        """It has to be a list."""
        made(talk, POOLS, pool(name))
        talk.patch(f"{POOLS}/{name}", text, JSON_PATCH).refused(400, "BadRequest", "error decoding patch")


class TestStrategicPatch:
    """Strategic merge patch, which `kubectl patch` sends unless told otherwise: lists of things that have a key."""

    def test_conditions_by_their_type(self, talk: Talk, name: str) -> None:
        """A kubelet and others each have conditions of their own on a node, and do not take those of others away."""
        body = node(name)
        body["status"] = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "A", "status": "True"}]}
        made(talk, NODES, body)
        patch = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]}}
        patched = talk.patch(f"{NODES}/{name}/status", patch, STRATEGIC).granted()
        told = {each["type"]: each["status"] for each in patched["status"]["conditions"]}
        assert told == {"Ready": "True", "A": "False", "B": "True"}

    def test_one_of_them_goes(self, talk: Talk, name: str) -> None:
        """`$patch: delete` names what goes by its key."""
        body = node(name)
        body["status"] = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "A", "status": "True"}]}
        made(talk, NODES, body)
        patch = {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}
        patched = talk.patch(f"{NODES}/{name}/status", patch, STRATEGIC).granted()
        assert [each["type"] for each in patched["status"]["conditions"]] == ["Ready"]

    def test_lists_of_values_are_joined(self, talk: Talk, name: str) -> None:
        """As the podCIDRs of a node: the same patch twice changes nothing."""
        made(talk, NODES, node(name))
        patch = {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}
        first = talk.patch(f"{NODES}/{name}", patch, STRATEGIC).granted()
        assert first["spec"]["podCIDRs"] == ["10.9.0.0/24"]
        assert talk.patch(f"{NODES}/{name}", patch, STRATEGIC).granted() == first

    def test_lists_without_a_key_are_replaced(self, talk: Talk, name: str) -> None:
        """Taints have none, so that they come as a whole."""
        one, two = ({"key": key, "effect": "NoSchedule"} for key in ("one", "two"))
        made(talk, NODES, node(name, taints=[one]))
        patched = talk.patch(f"{NODES}/{name}", {"spec": {"taints": [two]}}, STRATEGIC).granted()
        assert patched["spec"]["taints"] == [two]

    def test_a_map_as_a_whole(self, talk: Talk, name: str) -> None:
        """`$patch: replace`: nothing of what was there stays."""
        made(talk, NODES, node(name, {"a": "1", "b": "2"}))
        patch = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
        assert talk.patch(f"{NODES}/{name}", patch, STRATEGIC).granted()["metadata"]["labels"] == {"c": "3"}

    def test_ports_by_their_number(self, talk: Talk, name: str, namespace: str) -> None:
        """Those of a Service are told apart by port."""
        path = f"/api/v1/namespaces/{namespace}/services"
        ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}}
        made(talk, path, body)
        patch = {"spec": {"ports": [{"port": 81, "targetPort": 8081}]}}
        patched = talk.patch(f"{path}/{name}", patch, STRATEGIC).granted()["spec"]["ports"]
        assert {each["name"]: each["targetPort"] for each in patched} == {"a": 80, "b": 8081}

    def test_not_of_what_a_crd_defines(self, talk: Talk, name: str) -> None:
        """Nobody told the server which lists have keys; kubectl sends a merge patch when it reads this."""
        made(talk, POOLS, pool(name))
        talk.patch(f"{POOLS}/{name}", {}, STRATEGIC).refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include",
        )


@pytest.mark.parametrize("form", [MERGE, JSON_PATCH, STRATEGIC])
def test_a_patch_that_makes_it_invalid(talk: Talk, name: str, form: str) -> None:
    """What a patch makes of an object is held to the same rules as any object."""
    made(talk, NODES, node(name))
    patch: object = {"metadata": {"labels": {"a": "not valid!"}}}
    if form == JSON_PATCH:
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "not valid!"}}]
    talk.patch(f"{NODES}/{name}", patch, form).refused(422, "Invalid", "metadata.labels: Invalid value:")


def test_a_patch_without_saying_of_which_form(talk: Talk, name: str) -> None:
    """Plain JSON is none of the forms of patches."""
    made(talk, NODES, node(name))
    talk.patch(f"{NODES}/{name}", {}, JSON).refused(415, "UnsupportedMediaType")


class TestDryRun:
    """All is checked, and nothing is done."""

    def test_create(self, talk: Talk, name: str) -> None:
        """The object comes back as it would be stored, and is not there."""
        body = talk.create(POOLS, pool(name), dryRun="All").granted(201)
        assert body["metadata"]["uid"]
        assert body["metadata"]["generation"] == 1
        assert "resourceVersion" not in body["metadata"]
        talk.get(f"{POOLS}/{name}").refused(404, "NotFound")

    def test_refusals(self, talk: Talk, name: str) -> None:
        """What would be refused is refused."""
        made(talk, POOLS, pool(name))
        talk.create(POOLS, pool(name), dryRun="All").refused(409, "AlreadyExists")
        talk.create(POOLS, pool(f"{name}-2", ipv4="nonsense"), dryRun="All").refused(422, "Invalid")
        body = pool(name)
        body["metadata"]["resourceVersion"] = "1"
        talk.replace(f"{POOLS}/{name}", body, dryRun="All").refused(409, "Conflict")

    def test_changes(self, talk: Talk, name: str) -> None:
        """Replacing, patching and deleting leave it as it is."""
        before = made(talk, NODES, node(name))
        body = deepcopy(before)
        body["metadata"]["labels"] = {"a": "b"}
        path = f"{NODES}/{name}"
        assert talk.replace(path, body, dryRun="All").granted()["metadata"]["labels"] == {"a": "b"}
        patched = talk.patch(path, {"metadata": {"labels": {"c": "d"}}}, dryRun="All").granted()
        assert patched["metadata"]["labels"] == {"c": "d"}
        assert talk.delete(path, dryRun="All").granted()["status"] == "Success"
        assert talk.delete(NODES, dryRun="All", labelSelector=f"x={name}").granted()["items"] == []
        assert talk.get(path).granted() == before

    def test_another_word(self, talk: Talk, name: str) -> None:
        """There is one kind of dry run."""
        talk.create(NODES, node(name), dryRun="Some").refused(422, "Invalid", "dryRun: Unsupported value")
        talk.get(f"{NODES}/{name}").refused(404, "NotFound")


class TestUnknownFields:
    """fieldValidation: what becomes of fields that the kind does not have."""

    @pytest.mark.parametrize("kind", ["nodes", "pools"])
    def test_dropped_with_a_warning(self, talk: Talk, name: str, kind: str) -> None:
        """Unless told otherwise: a typo is told, and the object is made."""
        path, body = (NODES, node(name, nonsense=1)) if kind == "nodes" else (POOLS, pool(name, nonsense=1))
        for query in ({}, {"fieldValidation": "Warn"}):
            reply = talk.create(path, body, **query)
            assert "nonsense" not in reply.granted(201)["spec"]
            assert reply.warnings == ['unknown field "spec.nonsense"']
            talk.delete(f"{path}/{name}").granted()

    @pytest.mark.parametrize("kind", ["nodes", "pools"])
    def test_dropped(self, talk: Talk, name: str, kind: str) -> None:
        """As it was before there were warnings."""
        path, body = (NODES, node(name, nonsense=1)) if kind == "nodes" else (POOLS, pool(name, nonsense=1))
        reply = talk.create(path, body, fieldValidation="Ignore")
        assert "nonsense" not in reply.granted(201)["spec"]
        assert reply.warnings == []

    @pytest.mark.parametrize("kind", ["nodes", "pools"])
    def test_refused(self, talk: Talk, name: str, kind: str) -> None:
        """As kubectl asks for: the typo is not let in."""
        path, body = (NODES, node(name, nonsense=1)) if kind == "nodes" else (POOLS, pool(name, nonsense=1))
        reply = talk.create(path, body, fieldValidation="Strict")
        reply.refused(400, "BadRequest", 'strict decoding error: unknown field "spec.nonsense"')
        talk.get(f"{path}/{name}").refused(404, "NotFound")

    def test_in_patches(self, talk: Talk, name: str) -> None:
        """A patch that brings one is judged likewise."""
        made(talk, NODES, node(name))
        reply = talk.patch(f"{NODES}/{name}", {"spec": {"nonsense": 1}}, fieldValidation="Strict")
        assert reply.code in {400, 422}
        assert 'unknown field "spec.nonsense"' in reply.message
        reply = talk.patch(f"{NODES}/{name}", {"spec": {"nonsense": 1}})
        reply.granted()
        assert reply.warnings == ['unknown field "spec.nonsense"']

    def test_twice_the_same_field(self, talk: Talk, name: str) -> None:
        """JSON that says a field twice says one thing too many."""
        text = f'{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}"}}, "spec": {{}}, "spec": {{}}}}'
        talk.create(NODES, text, fieldValidation="Strict").refused(400, "BadRequest", 'duplicate field "spec"')

    def test_another_word(self, talk: Talk, name: str) -> None:
        """There are three."""
        reply = talk.create(NODES, node(name), fieldValidation="Perhaps")
        reply.refused(422, "Invalid", "fieldValidation: Unsupported value")
