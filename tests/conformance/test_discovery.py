"""What a client can find out: which kinds there are, what they look like, and who answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conformance.talking import Reply, Talk

    Json = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
EVERY_VERB = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
KINDS: dict[tuple[str, str], Json] = {
    ("/api/v1", "nodes"): {"kind": "Node", "namespaced": False, "shortNames": ["no"], "status": True},
    ("/api/v1", "namespaces"): {
        "kind": "Namespace",
        "namespaced": False,
        "shortNames": ["ns"],
        "status": True,
        "verbs": EVERY_VERB - {"deletecollection"},
    },
    ("/api/v1", "services"): {"kind": "Service", "shortNames": ["svc"], "categories": ["all"], "status": True},
    ("/api/v1", "events"): {"kind": "Event", "shortNames": ["ev"]},
    ("/apis/events.k8s.io/v1", "events"): {"kind": "Event", "shortNames": ["ev"]},
    ("/apis/coordination.k8s.io/v1", "leases"): {"kind": "Lease"},
    ("/apis/networking.k8s.io/v1", "servicecidrs"): {"kind": "ServiceCIDR", "namespaced": False, "status": True},
    ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"): {
        "kind": "CustomResourceDefinition",
        "namespaced": False,
        "shortNames": ["crd", "crds"],
        "categories": ["api-extensions"],
        "status": True,
    },
    ("/apis/networking.x-k8s.io/v1", "clustercidrs"): {
        "kind": "ClusterCIDR",
        "namespaced": False,
        "shortNames": ["cc"],
        "status": True,
    },
    ("/apis/networking.x-k8s.io/v1alpha1", "clustercidrconfigs"): {
        "kind": "ClusterCIDRConfig",
        "namespaced": False,
        "shortNames": ["ccc"],
        "status": True,
    },
    ("/apis/cidrella.dev/v1alpha1", "rangeallocations"): {"kind": "RangeAllocation", "namespaced": False},
}


@pytest.mark.parametrize(("path", "plural"), KINDS, ids=lambda value: value.strip("/").replace("/", "-"))
def test_each_kind(talk: Talk, path: str, plural: str) -> None:
    """How it is called, whether it lies in namespaces, what can be done with it: kubectl goes by this."""
    expected = KINDS[path, plural]
    listed = talk.get(path).granted()
    assert listed["kind"] == "APIResourceList"
    assert listed["groupVersion"] == path.removeprefix("/api/").removeprefix("/apis/")
    found = {each["name"]: each for each in listed["resources"]}
    kind = found[plural]
    assert kind["kind"] == expected["kind"]
    assert kind["singularName"] == expected["kind"].lower()
    assert kind["namespaced"] == expected.get("namespaced", True)
    assert kind.get("shortNames", []) == expected.get("shortNames", [])
    assert kind.get("categories", []) == expected.get("categories", [])
    assert set(kind["verbs"]) == expected.get("verbs", EVERY_VERB)
    assert (f"{plural}/status" in found) == expected.get("status", False)
    if expected.get("status"):
        assert set(found[f"{plural}/status"]["verbs"]) == {"get", "patch", "update"}
        assert found[f"{plural}/status"]["kind"] == expected["kind"]


@pytest.mark.parametrize(("path", "plural"), KINDS, ids=lambda value: value.strip("/").replace("/", "-"))
def test_all_at_once(talk: Talk, path: str, plural: str) -> None:
    """The same in one document for all groups, which kubectl asks for first."""
    expected = KINDS[path, plural]
    _, root, *rest = path.split("/")
    group, version = rest if root == "apis" else ("", *rest)
    reply = talk("GET", f"/{root}", accept=f"{AGGREGATED},application/json")
    assert reply.headers["Content-Type"].startswith(AGGREGATED)
    found = reply.granted()
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    (entry,) = (each for each in found["items"] if each["metadata"].get("name", "") == group)
    (served,) = (each for each in entry["versions"] if each["version"] == version)
    (kind,) = (each for each in served["resources"] if each["resource"] == plural)
    assert kind["responseKind"]["kind"] == expected["kind"]
    assert kind["scope"] == ("Namespaced" if expected.get("namespaced", True) else "Cluster")
    assert kind["singularResource"] == expected["kind"].lower()
    assert kind.get("shortNames", []) == expected.get("shortNames", [])
    assert set(kind["verbs"]) == expected.get("verbs", EVERY_VERB)
    subresources = {each["subresource"] for each in kind.get("subresources", [])}
    assert ("status" in subresources) == expected.get("status", False)


def test_groups(talk: Talk) -> None:
    """Each group with its versions, the preferred one first."""
    listed = talk.get("/apis").granted()
    assert listed["kind"] == "APIGroupList"
    found = {each["name"]: each for each in listed["groups"]}
    ours = found["networking.x-k8s.io"]
    assert [each["version"] for each in ours["versions"]] == ["v1", "v1alpha1"]
    assert ours["preferredVersion"] == {"groupVersion": "networking.x-k8s.io/v1", "version": "v1"}
    assert {"events.k8s.io", "coordination.k8s.io", "apiextensions.k8s.io", "cidrella.dev"} <= found.keys()
    one = talk.get("/apis/networking.x-k8s.io").granted()
    assert one["kind"] == "APIGroup"
    assert one["versions"] == ours["versions"]
    core = talk.get("/api").granted()
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])


@pytest.mark.parametrize("path", ["/apis/nothing.example.com", "/apis/nothing.example.com/v1", "/api/v9", "/nothing"])
def test_what_is_not_served(talk: Talk, path: str) -> None:
    """A client that asks for a group that is not there is told, and goes on without."""
    assert talk.get(path).code == 404


def test_who_answers(talk: Talk) -> None:
    """The version, by which kubectl judges whether it fits."""
    told = talk.get("/version").granted()
    assert (told["major"], told["minor"]) == ("1", "36")
    assert told["gitVersion"].startswith("v1.36.")
    assert told["platform"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_how_it_is(talk: Talk, path: str) -> None:
    """Those who only look whether it runs."""
    reply = talk.get(path)
    assert (reply.code, reply.text) == (200, "ok")
    assert reply.headers["Content-Type"].startswith("text/plain")


class TestOpenApi:
    """What the kinds look like, for `kubectl explain` and for checking manifests."""

    @pytest.mark.parametrize(("path", "plural"), KINDS, ids=lambda value: value.strip("/").replace("/", "-"))
    def test_each_kind(self, talk: Talk, path: str, plural: str) -> None:
        """The schema of each is found by its group, version and kind, and each of its paths by its verbs."""
        kind = KINDS[path, plural]["kind"]
        document = self._document(talk, path)
        assert document["openapi"].startswith("3.")
        schema = self._schema(document, path, kind)
        assert {"apiVersion", "kind", "metadata"} <= schema["properties"].keys()
        where = f"{path}/{plural}"
        if KINDS[path, plural].get("namespaced", True):
            where = f"{path}/namespaces/{{namespace}}/{plural}"
        assert {"get", "post"} <= document["paths"][where].keys()
        assert {"get", "put", "patch", "delete"} <= document["paths"][f"{where}/{{name}}"].keys()
        *_, marked = document["paths"][where]["post"]["x-kubernetes-group-version-kind"].items()
        assert document["paths"][where]["post"]["x-kubernetes-action"] == "post"
        assert marked

    def test_all_references_lead_somewhere(self, talk: Talk) -> None:
        """A document is whole: what it refers to is in it."""
        for path in {path for path, _ in KINDS}:
            document = self._document(talk, path)
            named = {f"#/components/schemas/{each}" for each in document["components"]["schemas"]}
            assert set(_references(document)) <= named, path

    def test_what_a_crd_describes(self, talk: Talk) -> None:
        """Descriptions, types and bounds are those of the CRD."""
        schema = self._schema(
            self._document(talk, "/apis/networking.x-k8s.io/v1"), "/networking.x-k8s.io/v1", "ClusterCIDR"
        )
        bits = schema["properties"]["spec"]["properties"]["perNodeHostBits"]
        assert (bits["type"], bits["format"], bits["minimum"]) == ("integer", "int32", 4)
        assert "The size of a node's block" in bits["description"]

    def test_what_nodes_have(self, talk: Talk) -> None:
        """Their fields, though spread over several definitions."""
        document = self._document(talk, "/api/v1")
        spec = self._followed(document, self._schema(document, "/api/v1", "Node")["properties"]["spec"])
        assert spec["properties"]["podCIDRs"]["type"] == "array"
        assert spec["properties"]["podCIDR"]["type"] == "string"

    @staticmethod
    def _document(talk: Talk, path: str) -> Json:
        index: Reply = talk.get("/openapi/v3")
        url = index.granted()["paths"][path.removeprefix("/")]["serverRelativeURL"]
        assert url.startswith(f"/openapi/v3{path}?hash=")
        return talk.get(url).granted()

    @staticmethod
    def _schema(document: Json, path: str, kind: str) -> Json:
        group, _, version = path.removeprefix("/api/").removeprefix("/apis/").removeprefix("/").rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        found: list[Json] = [
            each
            for each in document["components"]["schemas"].values()
            if wanted in each.get("x-kubernetes-group-version-kind", [])
        ]
        assert len(found) == 1
        return found[0]

    @staticmethod
    def _followed(document: Json, schema: Json) -> Json:
        """A definition that is named where it is used."""
        reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", []) if "$ref" in each), "")
        if not reference:
            return schema
        found: Json = document["components"]["schemas"][reference.rpartition("/")[2]]
        return found


def _references(value: object) -> set[str]:
    """Every `$ref` in a document."""
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()
