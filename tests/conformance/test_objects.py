"""What every object has, whatever its kind: an identity, times, a generation, and versions that only grow."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.conformance.bodies import NODES, POOLS, lease, leases, made, node, pool, version

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_an_identity_of_its_own(talk: Talk, name: str) -> None:
    """A controller tells an object from another of the same name that came after it by the uid."""
    first = made(talk, NODES, node(name))["metadata"]
    talk.delete(f"{NODES}/{name}").granted()
    second = made(talk, NODES, node(name))["metadata"]
    assert UUID.fullmatch(first["uid"])
    assert UUID.fullmatch(second["uid"])
    assert first["uid"] != second["uid"]


def test_when_it_was_made(talk: Talk, name: str) -> None:
    """Ages are counted from creationTimestamp: whole seconds of UTC, as long as the object lives."""
    before = datetime.now(UTC).replace(microsecond=0)
    metadata = made(talk, POOLS, pool(name))["metadata"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    told = datetime.fromisoformat(metadata["creationTimestamp"])
    assert before <= told <= datetime.now(UTC)
    changed = talk.patch(f"{POOLS}/{name}", {"metadata": {"labels": {"a": "b"}}}).granted()
    assert changed["metadata"]["creationTimestamp"] == metadata["creationTimestamp"]


@pytest.mark.parametrize(
    "claimed",
    [
        {"uid": "11111111-1111-4111-8111-111111111111"},
        {"creationTimestamp": "2001-01-01T00:00:00Z"},
        {"generation": 7},
        {"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5},
    ],
    ids=lambda claimed: next(iter(claimed)),
)
def test_what_the_server_decides(talk: Talk, name: str, claimed: dict[str, object]) -> None:
    """What is copied from another cluster, metadata and all, is a new object nevertheless."""
    body = pool(name)
    body["metadata"] |= claimed
    metadata = made(talk, POOLS, body)["metadata"]
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata
    assert "deletionGracePeriodSeconds" not in metadata
    assert metadata["uid"] != claimed.get("uid")
    assert datetime.now(UTC) - datetime.fromisoformat(metadata["creationTimestamp"]) < timedelta(minutes=1)


def test_a_version_cannot_be_claimed(talk: Talk, name: str) -> None:
    """What has a version is not new: somebody meant to replace it."""
    body = node(name)
    body["metadata"]["resourceVersion"] = "1"
    talk.create(NODES, body).refused(500, "", "resourceVersion should not be set on objects to be created")


def test_versions_grow_over_all_kinds(talk: Talk, name: str, namespace: str) -> None:
    """A cache that compares two versions of an object, or of a list and a change, takes the larger for the newer."""
    seen = [
        version(made(talk, NODES, node(name))),
        version(made(talk, POOLS, pool(name))),
        version(made(talk, leases(namespace), lease(name))),
        version(talk.patch(f"{NODES}/{name}", {"metadata": {"labels": {"a": "b"}}}).granted()),
        version(talk.patch(f"{POOLS}/{name}", {"metadata": {"labels": {"a": "b"}}}).granted()),
    ]
    assert seen == sorted(set(seen))
    listed = talk.get(NODES).granted()
    assert version(listed) >= seen[-1]


def test_reading_does_not_make_versions(talk: Talk, name: str) -> None:
    """An object has the version of its last change, whoever reads it and however."""
    told = made(talk, NODES, node(name))
    assert talk.get(f"{NODES}/{name}").granted() == told
    (listed,) = talk.get(NODES, fieldSelector=f"metadata.name={name}").granted()["items"]
    assert listed == {key: value for key, value in told.items() if key not in {"kind", "apiVersion"}}


def test_generation_counts_changes_of_the_spec(talk: Talk, name: str) -> None:
    """A controller that observed generation 2 has seen the spec as it is, whatever else changed."""
    path = f"{POOLS}/{name}"
    assert made(talk, POOLS, pool(name))["metadata"]["generation"] == 1
    labelled = talk.patch(path, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}).granted()
    assert labelled["metadata"]["generation"] == 1
    told = talk.patch(f"{path}/status", {"status": {"conditions": []}}).granted()
    assert told["metadata"]["generation"] == 1
    guarded = talk.patch(path, {"metadata": {"finalizers": ["example.com/f"]}}).granted()
    assert guarded["metadata"]["generation"] == 1
    claimed = talk.patch(path, {"metadata": {"generation": 9}}).granted()
    assert claimed["metadata"]["generation"] == 1
    going = talk.delete(path).granted()
    assert going["metadata"]["generation"] == 2
    talk.patch(path, {"metadata": {"finalizers": None}}).granted()


def test_generation_grows_with_the_spec(talk: Talk, name: str) -> None:
    """Every change of what a Config may change counts."""
    path = "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs"
    body = {
        "apiVersion": "networking.x-k8s.io/v1alpha1",
        "kind": "ClusterCIDRConfig",
        "metadata": {"name": name},
        "spec": {"cidr": "10.0.0.0/16", "perNodeMaskSize": 24},
    }
    assert made(talk, path, body)["metadata"]["generation"] == 1
    for number, zone in enumerate(("a", "b"), 2):
        spec = {"nodeSelector": {"matchLabels": {"zone": zone}}}
        assert talk.patch(f"{path}/{name}", {"spec": spec}).granted()["metadata"]["generation"] == number
    assert talk.patch(f"{path}/{name}", {"spec": spec}).granted()["metadata"]["generation"] == 3


def test_kinds_without_a_generation(talk: Talk, name: str, namespace: str) -> None:
    """Nodes and Leases never had one: a client that looks for it finds nothing to compare."""
    assert "generation" not in made(talk, NODES, node(name))["metadata"]
    changed = talk.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}}).granted()
    assert "generation" not in changed["metadata"]
    assert "generation" not in made(talk, leases(namespace), lease(name))["metadata"]


def test_twice_the_same_name(talk: Talk, name: str) -> None:
    """Two replicas that create the same object: one of them learns that it was not the first."""
    made(talk, POOLS, pool(name))
    refused = talk.create(POOLS, pool(name)).refused(
        409, "AlreadyExists", f'clustercidrs.networking.x-k8s.io "{name}" already exists'
    )
    assert refused.body["details"] == {"name": name, "group": "networking.x-k8s.io", "kind": "clustercidrs"}


def test_what_is_not_there(talk: Talk, name: str) -> None:
    """A client that reads NotFound, with the name and the kind, knows that the object is gone."""
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        reply = talk(method, f"{NODES}/{name}", body, content_type=kind)
        reply.refused(404, "NotFound", f'nodes "{name}" not found')
        assert reply.body["details"] == {"name": name, "kind": "nodes"}
    talk.get(f"{POOLS}/{name}").refused(404, "NotFound", f'clustercidrs.networking.x-k8s.io "{name}" not found')


def test_what_is_not_served(talk: Talk) -> None:
    """A client that reads NotFound without a name knows that the kind is not there."""
    for path in ("/apis/networking.x-k8s.io/v1/nothings", "/apis/example.org/v7/things", "/api/v1/nothings/a"):
        reply = talk.get(path)
        assert reply.code == 404
        assert "nothing" not in reply.text


def test_names_that_are_made_up(talk: Talk, name: str, namespace: str) -> None:
    """Whoever makes many says how their names begin."""
    body = lease("")
    body["metadata"] = {"generateName": f"{name}-"}
    found = {made(talk, leases(namespace), body)["metadata"]["name"] for _ in range(5)}
    assert len(found) == 5
    assert all(re.fullmatch(rf"{name}-[bcdfghjklmnpqrstvwxz2456789]{{5}}", each) for each in found)
    kept = talk.get(f"{leases(namespace)}/{found.pop()}").granted()
    assert kept["metadata"]["generateName"] == f"{name}-"


def test_a_name_is_preferred_to_the_beginning_of_one(talk: Talk, name: str, namespace: str) -> None:
    """With both, the name counts."""
    body = lease(name)
    body["metadata"]["generateName"] = "other-"
    assert made(talk, leases(namespace), body)["metadata"]["name"] == name


def test_long_beginnings_of_names(talk: Talk, namespace: str) -> None:
    """What is made up fits into 63 characters, as many kinds ask for."""
    body = lease("")
    body["metadata"] = {"generateName": "x" * 70}
    found = made(talk, leases(namespace), body)["metadata"]["name"]
    assert len(found) == 63
    assert found.startswith("x" * 58)


@pytest.mark.parametrize(
    "wrong",
    ["UPPER", "under_score", "a/b", "-a", "a-", "ü", "a" * 254, "a b", ".", ".."],
    ids=["upper", "underscore", "slash", "begins", "ends", "letter", "long", "space", "dot", "dots"],
)
@pytest.mark.parametrize("kind", ["nodes", "pools"])
def test_wrong_names(talk: Talk, kind: str, wrong: str) -> None:
    """Names are parts of paths, and mostly of domain names."""
    path, body = (NODES, node(wrong)) if kind == "nodes" else (POOLS, pool(wrong))
    reply = talk.create(path, body).refused(422, "Invalid", "metadata.name: Invalid value:")
    assert ("FieldValueInvalid", "metadata.name") in reply.causes


@pytest.mark.parametrize("kind", ["nodes", "pools"])
def test_no_name_at_all(talk: Talk, kind: str) -> None:
    """Somebody forgot it."""
    path, body = (NODES, node("")) if kind == "nodes" else (POOLS, pool(""))
    del body["metadata"]["name"]
    reply = talk.create(path, body).refused(422, "Invalid", "name or generateName is required")
    assert ("FieldValueRequired", "metadata.name") in reply.causes


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a": "not valid!"}}, "metadata.labels"),
        ({"labels": {"a/b/c": "x"}}, "metadata.labels"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"annotations": {"Not Valid": "x"}}, "metadata.annotations"),
        ({"finalizers": ["a b/c"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n"}]}, "metadata.ownerReferences"),
    ],
    ids=["label", "label-key", "long", "annotation", "finalizer", "owner"],
)
@pytest.mark.parametrize("kind", ["nodes", "pools"])
def test_wrong_metadata(talk: Talk, name: str, kind: str, metadata: dict[str, object], field: str) -> None:
    """What others select and act on has the form that they expect."""
    path, body = (NODES, node(name)) if kind == "nodes" else (POOLS, pool(name))
    body["metadata"] |= metadata
    reply = talk.create(path, body).refused(422, "Invalid", field)
    assert any(where.startswith(field) for _, where in reply.causes)


def test_a_finalizer_without_a_domain(talk: Talk, name: str) -> None:
    """On a Node it is refused; on what CRDs define it always was let through, with a warning."""
    body = node(name)
    body["metadata"]["finalizers"] = ["plain"]
    talk.create(NODES, body).refused(
        422, "Invalid", "name is neither a standard finalizer name nor is it fully qualified"
    )
    body = pool(name)
    body["metadata"]["finalizers"] = ["plain"]
    reply = talk.create(POOLS, body)
    assert reply.granted(201)["metadata"]["finalizers"] == ["plain"]
    assert len(reply.warnings) == 1
    assert reply.warnings[0].startswith('metadata.finalizers: "plain": prefer a domain-qualified finalizer name')
    talk.patch(f"{POOLS}/{name}", {"metadata": {"finalizers": None}}).granted()


def test_another_kind_than_the_path_says(talk: Talk, name: str) -> None:
    """A manifest sent to the wrong place is noticed."""
    talk.create(NODES, pool(name)).refused(400, "BadRequest")
    talk.create(POOLS, node(name)).refused(400, "BadRequest")
    wrong_version = pool(name)
    wrong_version["apiVersion"] = "networking.x-k8s.io/v1alpha1"
    talk.create(POOLS, wrong_version).refused(400, "BadRequest")


def test_another_namespace_than_the_path_says(talk: Talk, name: str, namespace: str) -> None:
    """A manifest sent to the wrong namespace is noticed."""
    body = lease(name)
    body["metadata"]["namespace"] = "default"
    talk.create(leases(namespace), body).refused(
        400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"
    )


def test_the_namespace_comes_from_the_path(talk: Talk, name: str, namespace: str) -> None:
    """It may be left out of the object."""
    assert made(talk, leases(namespace), lease(name))["metadata"]["namespace"] == namespace


@pytest.mark.parametrize("text", ["{", "[]", '"text"', ""], ids=["half", "list", "text", "nothing"])
def test_no_object_at_all(talk: Talk, text: str) -> None:
    """What is not an object of this kind is refused, and harms nobody."""
    reply = talk.create(NODES, text)
    assert reply.code == 400
    assert reply.reason == "BadRequest"


def test_an_unknown_form(talk: Talk, name: str) -> None:
    """A body in a form that the server does not read says so, and lists those that it does."""
    reply = talk("POST", NODES, "name=x", content_type="application/x-www-form-urlencoded")
    reply.refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
    manifest = f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n"
    assert talk("POST", NODES, manifest, content_type="application/yaml").granted(201)["metadata"]["name"] == name


def test_what_cannot_be_done(talk: Talk, name: str) -> None:
    """A verb that a path does not know."""
    assert talk("POST", f"{NODES}/{name}", node(name)).code == 405
    assert talk("PUT", NODES, node(name)).code == 405
