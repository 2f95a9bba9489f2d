"""Creating, replacing and patching objects: what is refused, what the server decides, and what is stored."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.meta import metadata
from cidrella.apiserver.words.statuses import StatusError
from tests.apiserver.asking import (
    CRDS,
    LEASES,
    MERGE,
    METADATA,
    NAMESPACES,
    NODES,
    STEPS,
    STRATEGIC,
    WIDGETS,
    api,
    crd,
    lease,
    node,
    widget,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Json = dict[str, Any]
    Meanwhile = Callable[[], Awaitable[object]]

SERVICES = "/api/v1/namespaces/default/services"


class TestCreating:
    """POST."""

    def test_what_the_server_decides(self) -> None:
        """A new object has a uid, a time and a version, whatever the client says about them."""
        with api() as ask:
            sent = node("a", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", selfLink="x")
            made = ask("POST", NODES, sent).granted(201)
            assert len(made["metadata"]["uid"]) == 36
            assert made["metadata"]["creationTimestamp"] > "2020"
            assert made["metadata"]["resourceVersion"] == str(ask.store.version)
            assert ask("GET", f"{NODES}/a").granted() == made

    def test_one_of_its_name(self) -> None:
        """There is only one object of a name; one that is about to go still has it."""
        with api() as ask:
            ask.make(NODES, node("a", finalizers=["example.com/x"]))
            assert ask("POST", NODES, node("a")).refused(409, "AlreadyExists") == 'nodes "a" already exists'
            ask("DELETE", f"{NODES}/a")
            again = ask("POST", NODES, node("a")).refused(409, "AlreadyExists")
            assert again == 'object is being deleted: nodes "a" already exists'
            beginning = ask("POST", NODES, node("a", generateName="a-"))
            assert beginning.refused(409, "AlreadyExists").startswith(f"{again}, the server was not able to generate")
            assert beginning.body["details"]["retryAfterSeconds"] == 1

    def test_generated_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another name is made up where one is taken, and after some of them it is given up."""
        tried = iter(["gen-a", "gen-a", "gen-b", *["gen-a"] * 8])
        monkeypatch.setattr(metadata, "generated_name", lambda *_: next(tried))
        with api() as ask:
            sent = lease("", generateName="gen-")
            del sent["metadata"]["name"]
            assert (ask.make(LEASES, sent))["metadata"]["name"] == "gen-a"
            assert (ask.make(LEASES, sent))["metadata"]["name"] == "gen-b"
            assert "not able to generate a unique name" in ask("POST", LEASES, sent).refused(409, "AlreadyExists")

    def test_where_it_is_put(self) -> None:
        """The namespace has to be there, and to be the one that the object names."""
        with api() as ask:
            elsewhere = LEASES.replace("default", "nowhere")
            assert ask("POST", elsewhere, lease("a")).refused(404, "NotFound") == 'namespaces "nowhere" not found'
            refused = ask("POST", LEASES, lease("a", namespace="nowhere")).refused(400, "BadRequest")
            assert "does not match the namespace sent" in refused
            assert ask("POST", "/apis/coordination.k8s.io/v1/leases", lease("a")).code == 405

    def test_a_version(self) -> None:
        """A new object cannot have a version yet; a dry run shows whatever it has."""
        with api() as ask:
            told = ask("POST", NODES, node("a", resourceVersion="7"))
            assert told.refused(500) == "resourceVersion should not be set on objects to be created"
            for version in ("7", "0", "x"):
                shown = ask("POST", f"{NODES}?dryRun=All", node("a", resourceVersion=version)).granted(201)
                assert shown["metadata"]["resourceVersion"] == version

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"{nope", "couldn't get version/kind; json parse error: invalid character 'n' looking for beginning"),
            (b"[]", "json: cannot unmarshal array into Go value of type struct"),
            (b'{"kind": 1}', "json: cannot unmarshal number into Go struct field .kind of type string"),
            (b'{"kind": "Lease"}', 'no kind "Lease" is registered for version "v1"'),
            (b'{"kind": "Namespace"}', "converting (v1.Namespace) to (core.Node): unknown conversion"),
            (
                b'{"spec": {"podCIDRs": "x"}}',
                "json: cannot unmarshal string into Go struct field NodeSpec.spec.podCIDRs",
            ),
            (
                b'{"metadata": {"labels": {"a": 1}}}',
                "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels",
            ),
        ],
    )
    def test_what_is_no_node(self, body: bytes, message: str) -> None:
        """What cannot be read is a request that makes no sense, in the words of the real server."""
        with api() as ask:
            assert message in ask("POST", NODES, body).refused(400, "BadRequest")

    @pytest.mark.parametrize(
        ("sent", "code", "message"),
        [
            ({"kind": ""}, 400, "Object 'Kind' is missing"),
            (
                {"kind": "Gadget"},
                422,
                'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget',
            ),
            ({"apiVersion": "v1"}, 400, "the API version in the data (v1) does not match the expected API version"),
            ({"apiVersion": None}, 400, ".apiVersion accessor error"),
            ({"spec": {"size": "x"}}, 422, "spec.size in body must be of type integer"),
        ],
    )
    def test_what_is_no_custom_object(self, sent: Json, code: int, message: str) -> None:
        """Of custom resources, most of that is told of the object, and nothing is filled in that says what it is."""
        with api() as ask:
            ask.make(CRDS, crd(size={"type": "integer"}))
            reply = ask("POST", WIDGETS, widget("a") | sent)
            assert (reply.code, message in reply.message) == (code, True), reply.text

    def test_another_form(self) -> None:
        """YAML is read; what is neither it nor JSON is not."""
        with api() as ask:
            yaml = b"metadata:\n  name: a\n  annotations: {when: 2001-01-01}\n"
            made = ask("POST", NODES, yaml, media="application/yaml").granted(201)
            assert made["metadata"]["annotations"] == {"when": "2001-01-01"}
            assert "yaml: " in ask("POST", NODES, b"a: [", media="application/yaml").refused(400, "BadRequest")
            for media in ("text/plain", "application/cbor"):
                ask("POST", NODES, node("b"), media=media).refused(415, "UnsupportedMediaType")

    def test_unknown_fields(self) -> None:
        """They are dropped with a warning, also where the object is refused; or are an error; or nothing is said."""
        sent = b'{"metadata": {"name": "a", "name": "a", "x": 1}, "spec": {"y": 1}, "z": 1}'
        all_of_them = [
            'duplicate field "metadata.name"',
            *(f'unknown field "{each}"' for each in ("metadata.x", "spec.y", "z")),
        ]
        with api() as ask:
            strict = ask("POST", f"{NODES}?fieldValidation=Strict", sent).refused(400, "BadRequest")
            assert strict.endswith(f"strict decoding error: {', '.join(all_of_them)}")
            assert ask("POST", f"{NODES}?fieldValidation=Ignore&dryRun=All", sent).warnings == []
            first, second = ask("POST", NODES, sent), ask("POST", NODES, sent)
            assert (first.code, second.code) == (201, 409)
            assert first.warnings == second.warnings == all_of_them
            assert first.body["spec"].keys() == {"taints"}

    def test_options(self) -> None:
        """A dry run stores nothing; what is no option is refused as one."""
        with api() as ask:
            before = ask.store.version
            assert "resourceVersion" not in ask("POST", f"{NODES}?dryRun=All", node("a")).granted(201)["metadata"]
            assert ask.store.version == before
            refused = ask("POST", f"{NODES}?dryRun=Some&fieldValidation=Some", node("a")).refused(422, "Invalid")
            assert refused.startswith('CreateOptions.meta.k8s.io "" is invalid: [dryRun: Unsupported value: ["Some"]')
            ask.make(NODES, node("a"))
            ask("POST", f"{NODES}?dryRun=All", node("a")).refused(409, "AlreadyExists")


class TestReplacing:
    """PUT."""

    def test_optimism(self) -> None:
        """A version that is not the latest is refused; none is needed for kinds that take none."""
        with api() as ask:
            made = ask.make(NODES, node("a"))
            ask("PUT", f"{NODES}/a", made | {"spec": {"unschedulable": True}}).granted()
            refused = ask("PUT", f"{NODES}/a", made).refused(409, "Conflict")
            assert refused.endswith("please apply your changes to the latest version and try again")
            assert ask("PUT", f"{NODES}/a", node("a")).granted()["spec"] == {}
            ask("PUT", f"{NODES}/a", node("a", resourceVersion="x")).refused(500)

    def test_a_version_is_asked_for(self) -> None:
        """Where clients have to say which state they replace, those who do not are told."""
        with api() as ask:
            ask.make(LEASES, lease("a"))
            refused = ask("PUT", f"{LEASES}/a", lease("a")).refused(422, "Invalid")
            assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in refused

    def test_another_object(self) -> None:
        """A name or uid that is not that of the object is refused."""
        with api() as ask:
            ask.make(NODES, node("a"))
            assert "(b) does not match the name on the URL (a)" in ask("PUT", f"{NODES}/a", node("b")).message
            assert "name must be provided" in ask("PUT", f"{NODES}/a", {"metadata": {}}).message
            stale = ask("PUT", f"{NODES}/a", node("a", uid="x")).refused(409, "Conflict")
            assert "Key: /registry/minions/a" in stale
            assert "Key: /minions/a" in ask("PUT", f"{NODES}/a?dryRun=All", node("a", uid="x")).message

    def test_what_is_not_there(self) -> None:
        """Some kinds are made by PUT, most are not."""
        with api() as ask:
            ask("PUT", f"{NODES}/a", node("a", uid="x")).refused(404, "NotFound")
            made = ask("PUT", f"{LEASES}/a", lease("a", resourceVersion="9")).granted(201)
            assert made["metadata"]["name"] == "a"

    def test_nothing_changed(self) -> None:
        """What is the same makes no new version, and nobody is told."""
        with api() as ask:
            made = ask.make(NODES, node("a", labels={"x": "y"}))
            before = ask.store.version
            assert ask("PUT", f"{NODES}/a", made).granted() == made
            assert ask("PATCH", f"{NODES}/a", {"metadata": {"labels": {"x": "y"}}}, media=MERGE).granted() == made
            assert ask.store.version == before

    def test_status_apart(self) -> None:
        """A write to the object leaves its status alone, and one to its status the rest."""
        with api() as ask:
            ask.make(CRDS, crd(size={"type": "integer"}))
            made = ask.make(WIDGETS, widget("a", {"size": 1}) | {"status": {"x": 1}})
            assert "status" not in made
            both = made | {"spec": {"size": 2}, "status": {"x": 2}}
            first = ask("PUT", f"{WIDGETS}/a/status", both).granted()
            assert (first["spec"], first["status"], first["metadata"]["generation"]) == ({"size": 1}, {"x": 2}, 1)
            both["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"]
            second = ask("PUT", f"{WIDGETS}/a", both | {"status": {"x": 3}}).granted()
            assert (second["spec"], second["status"], second["metadata"]["generation"]) == ({"size": 2}, {"x": 2}, 2)


class TestPatching:
    """PATCH."""

    @pytest.mark.parametrize(
        ("media", "patch"),
        [
            (MERGE, {"metadata": {"labels": {"a": "1", "b": None}}}),
            (STRATEGIC, {"metadata": {"labels": {"a": "1", "b": None}}}),
            (
                STEPS,
                [
                    {"op": "add", "path": "/metadata/labels/a", "value": "1"},
                    {"op": "remove", "path": "/metadata/labels/b"},
                ],
            ),
        ],
    )
    def test_three_ways(self, media: str, patch: object) -> None:
        """The same change, said in three ways; the answer may be the metadata alone."""
        with api() as ask:
            made = ask.make(NODES, node("a", labels={"b": "2", "c": "3"}))
            changed = ask("PATCH", f"{NODES}/a", patch, media=media, accept=METADATA).granted()
            assert changed["kind"] == "PartialObjectMetadata"
            assert changed["metadata"]["labels"] == {"a": "1", "c": "3"}
            stored = ask("GET", f"{NODES}/a").granted()
            assert stored["metadata"] == changed["metadata"]
            assert {**stored, "metadata": {}} == {**made, "metadata": {}}

    def test_ways_there_are_not(self) -> None:
        """Others are refused; custom resources know two of the three."""
        with api() as ask:
            ask.make(CRDS, crd())
            for media in ("application/apply-patch+yaml", "application/json"):
                assert ask("PATCH", f"{NODES}/a", {}, media=media).message == "415: Unsupported Media Type"
            for media in (STRATEGIC, "application/apply-patch+yaml"):
                refused = ask("PATCH", f"{WIDGETS}/a", {}, media=media).refused(415, "UnsupportedMediaType")
                assert STEPS in refused

    def test_what_makes_no_sense(self) -> None:
        """What is no patch, or makes no object of the kind, is refused, and shown."""
        with api() as ask:
            ask.make(NODES, node("a"))
            at = f"{NODES}/a"
            assert ask("PATCH", at, b"[", media=STEPS).refused(400, "BadRequest").startswith("error decoding patch")
            assert "cannot unmarshal array" in ask("PATCH", at, b"[]", media=MERGE).refused(400, "BadRequest")
            typed = ask("PATCH", at, {"spec": {"unschedulable": 1}}, media=MERGE).refused(422, "Invalid")
            assert typed.startswith(
                ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"kind\\":\\"Node\\"'
            )
            other = ask("PATCH", at, {"kind": "Lease"}, media=MERGE).refused(422, "Invalid")
            assert other.endswith(
                'no kind "Lease" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'
            )
            strict = ask("PATCH", f"{at}?fieldValidation=Strict", {"spec": {"x": [True, None]}}, media=STRATEGIC)
            assert '"map[spec:map[x:[true <nil>]]]": strict decoding error' in strict.refused(422, "Invalid")
            strange = [{"op": "test", "path": "/kind", "value": "Node", "x": 1}]
            assert ask("PATCH", at, strange, media=STEPS).warnings == ['json patch unknown field "[0].x"']
            ask("PATCH", f"{at}?fieldValidation=Strict", strange, media=STEPS).refused(422, "Invalid")
            ask("PATCH", f"{NODES}/b", b"[", media=STEPS).refused(404, "NotFound")

    def test_kind_and_version_stay(self) -> None:
        """A custom object cannot become something else."""
        with api() as ask:
            ask.make(CRDS, crd())
            ask.make(WIDGETS, widget("a"))
            for patch, message in (
                ({"kind": "X"}, 'X.example.com "a" is invalid: kind: Invalid value: "X": must be Widget'),
                (
                    {"apiVersion": "v9"},
                    'Widget "a" is invalid: apiVersion: Invalid value: "v9": must be example.com/v1',
                ),
            ):
                assert ask("PATCH", f"{WIDGETS}/a", patch, media=MERGE).refused(422, "Invalid") == message
            missing = ask("PATCH", f"{WIDGETS}/a", {"kind": None}, media=MERGE).refused(422, "Invalid")
            assert "Object 'Kind' is missing" in missing

    def test_told_once(self) -> None:
        """Of an event that changes, what is wrong with its metadata is told once, of others twice."""
        with api() as ask:
            events = "/api/v1/namespaces/default/events"
            ask.make(events, {"metadata": {"name": "a"}, "involvedObject": {"namespace": "default"}})
            ask.make(LEASES, lease("a"))
            for path, fields in ((events, ["metadata.uid"]), (LEASES, ["metadata.uid"] * 2)):
                refused = ask("PATCH", f"{path}/a", {"metadata": {"uid": "x"}}, media=MERGE)
                assert [each["field"] for each in refused.body["details"]["causes"]] == fields

    def test_another_kind_and_more(self) -> None:
        """What else is wrong with a custom object of another kind: metadata and rules, but not types and bounds."""
        with api() as ask:
            rule = {"rule": "self.size > 1", "message": "too small"}
            definition = crd(size={"type": "integer", "minimum": 2})
            root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            root["properties"]["spec"]["x-kubernetes-validations"] = [rule]
            ask.make(CRDS, definition)
            ask("PUT", f"{WIDGETS}/a", {**widget("a"), "kind": "X"}).refused(404, "NotFound")
            ask.make(WIDGETS, widget("a", {"size": 2}))
            stale = {"kind": "X", "metadata": {"resourceVersion": "1"}}
            ask("PATCH", f"{WIDGETS}/a", stale, media=MERGE).refused(409, "Conflict")
            ask("PATCH", f"{WIDGETS}/a/status", {"kind": "X"}, media=MERGE).granted()
            wrong = {"kind": "X", "metadata": {"uid": "x"}, "spec": {"size": 1}}
            refused = ask("PATCH", f"{WIDGETS}/a", wrong, media=MERGE)
            refused.refused(422, "Invalid")
            assert [each["field"] for each in refused.body["details"]["causes"]] == ["metadata.uid", "kind", "spec"]

    def test_the_name_stays(self) -> None:
        """A patch that takes it away is refused, whatever else it changes."""
        with api() as ask:
            ask.make(CRDS, crd())
            ask.make(WIDGETS, widget("a"))
            for patch in ({"metadata": {"name": None}}, {"metadata": {"name": None}, "kind": "x"}):
                message = ask("PATCH", f"{WIDGETS}/a", patch, media=MERGE).refused(400, "BadRequest")
                assert message.endswith("(a based on URL) was undeterminable: name must be provided")

    def test_versions(self) -> None:
        """A patch that names a version is for that version; one that takes it away is for none."""
        with api() as ask:
            ask.make(LEASES, lease("a"))
            named = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
            ask("PATCH", f"{LEASES}/a", named, media=MERGE).refused(409, "Conflict")
            none = {"metadata": {"resourceVersion": None}}
            ask("PATCH", f"{LEASES}/a", none, media=MERGE).refused(422, "Invalid")


class _Addresses:
    """Gives every Service the same address, and remembers what became of it. Others may write in the meantime."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.meanwhile: Meanwhile | None = None

    async def admit(self, new: Json, _: Json | None, *, dry_run: bool) -> _Addresses:
        if "refuse" in new["metadata"].get("labels", {}):
            raise StatusError(422, "Invalid", "no address")
        self.said.append("dry run" if dry_run else "given")
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        new["spec"].setdefault("clusterIP", "10.0.0.1")
        new["spec"].setdefault("clusterIPs", ["10.0.0.1"])
        new["spec"].setdefault("ipFamilies", ["IPv4"])
        new["spec"].setdefault("ipFamilyPolicy", "SingleStack")
        return self

    async def commit(self) -> None:
        self.said.append("kept")

    async def revert(self) -> None:
        self.said.append("given back")


def service(name: str, **metadata_: object) -> Json:
    return {"metadata": {"name": name, **metadata_}, "spec": {"ports": [{"port": 80}]}}


class TestAddresses:
    """Services, which get addresses before they are stored."""

    def test_without_anybody_to_give_them(self) -> None:
        """While there is nobody, Services are refused for now."""
        with api() as ask:
            ask("POST", SERVICES, service("a")).refused(503, "ServiceUnavailable")

    def test_kept_or_given_back(self) -> None:
        """An address is kept with the Service that is stored, and given back with one that is not."""
        with api() as ask:
            ask.holdings.addresses = giving = _Addresses()  # type: ignore[assignment]
            made = ask.make(SERVICES, service("a"))
            assert made["spec"]["clusterIP"] == "10.0.0.1"
            assert giving.said == ["given", "kept"]
            giving.said.clear()
            ask("POST", SERVICES, service("B")).refused(422, "Invalid")
            assert giving.said == ["given", "given back"]
            giving.said.clear()
            ask("POST", SERVICES, service("a")).refused(409, "AlreadyExists")
            assert giving.said == ["dry run", "given back"]
            giving.said.clear()
            ask("POST", f"{SERVICES}?dryRun=All", service("b")).granted(201)
            ask("PATCH", f"{SERVICES}/a/status", {"status": {}}, media=MERGE).granted()
            assert giving.said == ["dry run", "kept"]
            assert ask("POST", SERVICES, service("c", labels={"refuse": ""})).message == "no address"

    def test_others_are_faster(self) -> None:
        """Who is overtaken while an address is found tries again with what is there now, unless a version was named."""
        with api() as ask:
            ask.holdings.addresses = giving = _Addresses()  # type: ignore[assignment]
            ask.make(SERVICES, service("a"))

            def label(value: str) -> None:
                """Somebody does, while the next address is found."""
                patch = {"metadata": {"labels": {"x": value}}}
                giving.meanwhile = lambda: ask.asking("PATCH", f"{SERVICES}/a", patch, media=MERGE)

            label("1")
            patched = ask("PATCH", f"{SERVICES}/a", {"metadata": {"annotations": {"a": "b"}}}, media=MERGE).granted()
            assert patched["metadata"]["labels"] == {"x": "1"}
            label("2")
            ask("PUT", f"{SERVICES}/a", service("a")).granted()
            version = ask("GET", f"{SERVICES}/a").granted()["metadata"]["resourceVersion"]
            label("3")
            named = service("a", resourceVersion=version, annotations={"c": "d"})
            ask("PUT", f"{SERVICES}/a", named).refused(409, "Conflict")
            version = ask("GET", f"{SERVICES}/a").granted()["metadata"]["resourceVersion"]
            label("4")
            patch = {"metadata": {"resourceVersion": version, "annotations": {"c": "d"}}}
            ask("PATCH", f"{SERVICES}/a", patch, media=MERGE).refused(409, "Conflict")

    def test_a_namespace_that_goes_meanwhile(self) -> None:
        """No Service is stored in a namespace that went while its address was found, and the address is given back."""
        with api() as ask:
            ask.holdings.addresses = giving = _Addresses()  # type: ignore[assignment]
            ask.make(NAMESPACES, {"metadata": {"name": "brief"}})
            there = "/api/v1/namespaces/brief/services"
            giving.meanwhile = lambda: ask.asking("DELETE", f"{NAMESPACES}/brief")
            reply = ask("POST", there, service("a"))
            assert reply.code in {403, 404}
            assert giving.said == ["given", "given back"]
            ask.wait(lambda: ask.store.get("namespaces", "brief") is None)
            assert ask.store.entries("services", "brief") == []


class TestTooMuch:
    """What is small as it is sent, and would be large as it is read."""

    def test_aliases(self) -> None:
        """A few lines of YAML that stand for gigabytes are refused as they are."""
        lines = ["a: &a [x, x]"]
        for name, before in pairwise("abcdefghijkl"):
            lines.append(f"{name if name != 'a' else 'z'}: &{before} [{', '.join(['*' + name] * 9)}]")
        with api() as ask:
            told = ask("POST", NODES, "\n".join(lines).encode(), media="application/yaml").refused(400, "BadRequest")
            assert "aliases" in told

    @pytest.mark.parametrize("media", [MERGE, STRATEGIC, STEPS])
    def test_deep_patches(self, media: str) -> None:
        """A patch that nests deeper than can be followed is refused, and changes nothing."""
        deep: Any = 1
        for _ in range(800):
            deep = {"a": deep}
        patch = [{"op": "add", "path": "/metadata/labels", "value": deep}] if media == STEPS else {"metadata": deep}
        with api() as ask:
            made = ask.make(NODES, node("a"))
            assert ask("PATCH", f"{NODES}/a", patch, media=media).code in {200, 400, 422}
            assert ask("GET", f"{NODES}/a").granted() == made

    def test_long_numbers(self) -> None:
        """A number of thousands of digits is no reason to fail."""
        with api() as ask:
            body = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","generation":' + b"9" * 5000 + b"}}"
            ask("POST", NODES, body).refused(400, "BadRequest")
