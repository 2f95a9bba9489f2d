"""What is served, and how it is found: paths, groups, versions, and what discovery tells of them."""

from __future__ import annotations

import pytest

from cidrella.apiserver.registry import Registry
from cidrella.apiserver.resource import Resource, Strategy
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.serving.paths import Target, parse
from tests.apiserver.asking import CRDS, MERGE, api, crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def resource(group: str, version: str, plural: str, *, custom: bool = True) -> Resource:
    return Resource(
        group, version, plural, plural.capitalize(), True, Schema({"type": "object"}), Strategy(), custom=custom
    )


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/nodes", Target("", "v1", "nodes")),
        ("/api/v1/nodes/", Target("", "v1", "nodes")),
        ("/api/v1/nodes/a/status", Target("", "v1", "nodes", "", "a", "status")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/x", Target("", "v1", "namespaces", "", "x")),
        ("/api/v1/namespaces/x/status", Target("", "v1", "namespaces", "", "x", "status")),
        ("/api/v1/namespaces/x/services", Target("", "v1", "services", "x")),
        ("/apis/g/v1/namespaces/x/things/a/b/c", Target("g", "v1", "things", "x", "a", "b/c")),
        ("/apis/g/v1", None),
        ("/api/v1//nodes", None),
        ("/apis", None),
        ("/healthz", None),
    ],
)
def test_paths(path: str, target: Target | None) -> None:
    """What a path names."""
    assert parse(path) == target


class TestRegistry:
    """What is served now."""

    def test_order_of_versions(self) -> None:
        """Stable ones first, newer ones first, what is no version last."""
        versions = ["v1", "v10", "v2", "v2beta1", "v2beta2", "v1alpha1", "other", "another"]
        registry = Registry([])
        registry.serve("x", [resource("g", each, "things") for each in versions], 1)
        assert registry.versions("g") == ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "another", "other"]
        assert registry.versions("nowhere") == []

    def test_coming_and_going(self) -> None:
        """A definition brings its resources, replaces them, and takes them away; what is built in stays."""
        registry = Registry([resource("g", "v1", "things", custom=False)])
        editions = [registry.edition]
        both = [resource("g", "v1", "things"), resource("h", "v1", "others")]
        for since, resources in enumerate((both, both[1:], [])):
            registry.serve("x", resources, since)
            editions.append(registry.edition)
            found = registry.find("g", "v1", "things")
            assert found is not None
            assert not found.resource.custom
        registry.withdraw("x")
        editions.append(registry.edition)
        assert editions == sorted(set(editions))
        assert registry.groups() == ["g"]
        registry.withdraw("x")
        assert registry.edition == editions[-1]

    def test_who_made_a_group(self) -> None:
        """A group is a custom one if nothing in it is built in."""
        registry = Registry([resource("g", "v1", "things", custom=False)])
        registry.serve("x", [resource("g", "v1", "others"), resource("h", "v1", "others")], 1)
        assert (registry.is_custom("g"), registry.is_custom("h")) == (False, True)


class TestDiscovery:
    """What clients are told of it."""

    def test_step_by_step(self) -> None:
        """Groups, a group, a version."""
        with api() as ask:
            assert ask("GET", "/api").body["versions"] == ["v1"]
            groups = ask("GET", "/apis").body["groups"]
            assert {"coordination.k8s.io", "apiextensions.k8s.io"} <= {each["name"] for each in groups}
            group = ask("GET", "/apis/coordination.k8s.io").body
            assert group["preferredVersion"] == {"groupVersion": "coordination.k8s.io/v1", "version": "v1"}
            listed = {each["name"]: each for each in ask("GET", "/api/v1").body["resources"]}
            assert listed["nodes"]["shortNames"] == ["no"]
            assert listed["nodes/status"]["verbs"] == ["get", "patch", "update"]
            assert listed["nodes"]["namespaced"] is False
            assert ask("GET", "/apis/nowhere").text == b"404 page not found\n"
            ask("GET", "/api/v2").refused(404, "NotFound")

    def test_all_at_once(self) -> None:
        """As kubectl asks first, also where it would rather have another form; older forms are not known."""
        with api() as ask:
            reply = ask("GET", "/apis", accept=f"{AGGREGATED},application/json")
            assert reply.media == AGGREGATED
            leases = {each["metadata"]["name"]: each for each in reply.body["items"]}["coordination.k8s.io"]
            (found,) = leases["versions"][0]["resources"]
            assert (found["resource"], found["scope"], found["responseKind"]["kind"]) == (
                "leases",
                "Namespaced",
                "Lease",
            )
            (core,) = ask("GET", "/api", accept=AGGREGATED).body["items"]
            nodes = next(each for each in core["versions"][0]["resources"] if each["resource"] == "nodes")
            assert nodes["subresources"][0]["subresource"] == "status"
            older = AGGREGATED.replace("v2", "v2beta1")
            assert ask("GET", "/apis", accept=f"{older},application/json").body["kind"] == "APIGroupList"

    def test_it_follows(self) -> None:
        """A definition is told of at once, and no longer when it is gone."""
        with api() as ask:
            before = ask("GET", "/apis").text
            ask.make(CRDS, crd())
            assert "example.com" in [each["name"] for each in ask("GET", "/apis").body["groups"]]
            ask("DELETE", f"{CRDS}/widgets.example.com").granted()
            ask.wait(lambda: not ask.holdings.registry.of("widgets.example.com"))
            assert ask("GET", "/apis").text == before


class TestOpenApi:
    """The description that kubectl explains by."""

    def test_index(self) -> None:
        """A document for each version of each group, whose address changes with what is in it."""
        with api() as ask:
            ask.make(CRDS, crd())
            index = ask("GET", "/openapi/v3").body["paths"]
            assert {"api/v1", "apis/example.com/v1"} <= index.keys()
            first = index["apis/example.com/v1"]["serverRelativeURL"]
            assert first.startswith("/openapi/v3/apis/example.com/v1?hash=")
            changed = crd(size={"type": "integer"})["spec"]
            ask("PATCH", f"{CRDS}/widgets.example.com", {"spec": changed}, media=MERGE).granted()
            assert ask("GET", "/openapi/v3").body["paths"]["apis/example.com/v1"]["serverRelativeURL"] != first
            assert ask("GET", "/openapi/v3/apis/nowhere/v1").code == 404
            assert ask("GET", "/openapi/v2").media.endswith("+protobuf")

    def test_document(self) -> None:
        """Kinds by group, version and kind; named parts by themselves; and that the server validates fields."""
        with api() as ask:
            document = ask("GET", "/openapi/v3/api/v1").body
            schemas = document["components"]["schemas"]
            found = schemas["io.k8s.api.core.v1.Node"]
            assert found["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Node"}]
            spec = found["properties"]["spec"]["allOf"][0]["$ref"].removeprefix("#/components/schemas/")
            assert "podCIDRs" in schemas[spec]["properties"]
            assert "finalizers" in schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
            patch = document["paths"]["/api/v1/nodes/{name}"]["patch"]
            assert {"fieldValidation", "dryRun"} <= {each["name"] for each in patch["parameters"]}
            assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Node"}
            assert "post" in document["paths"]["/api/v1/namespaces/{namespace}/services"]
            assert "post" not in document["paths"]["/api/v1/services"]

    def test_custom_kinds(self) -> None:
        """As their definition has them, with what every object has."""
        with api() as ask:
            ask.make(CRDS, crd(size={"type": "integer", "description": "How large."}))
            schemas = ask("GET", "/openapi/v3/apis/example.com/v1").body["components"]["schemas"]
            properties = schemas["com.example.v1.Widget"]["properties"]
            assert {"apiVersion", "kind", "metadata", "spec", "status"} == properties.keys()
            assert properties["spec"]["properties"]["size"]["description"] == "How large."
