"""Deleting: at once, or after those who have to do something first have done it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.conformance.bodies import NODES, POOLS, lease, leases, made, names, node, pool, version

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

GUARD = "example.com/guard"
OTHER = "example.com/other"


def guarded(name: str, *finalizers: str) -> dict[str, object]:
    """A pool with finalizers."""
    body = pool(name)
    body["metadata"]["finalizers"] = list(finalizers)
    return body


def test_at_once(talk: Talk, name: str) -> None:
    """Nobody has anything to do first: it is gone, and the reply names it."""
    uid = made(talk, POOLS, pool(name))["metadata"]["uid"]
    told = talk.delete(f"{POOLS}/{name}").granted()
    assert (told["kind"], told["status"]) == ("Status", "Success")
    assert told["details"] == {"name": name, "group": "networking.x-k8s.io", "kind": "clustercidrs", "uid": uid}
    talk.get(f"{POOLS}/{name}").refused(404, "NotFound")
    talk.delete(f"{POOLS}/{name}").refused(404, "NotFound")


def test_while_somebody_guards_it(talk: Talk, name: str) -> None:
    """With a finalizer it stays, marked, until that is taken off: how a controller gets to clean up."""
    path = f"{POOLS}/{name}"
    before = made(talk, POOLS, guarded(name, GUARD))
    marked = talk.delete(path).granted()
    assert marked["kind"] == "ClusterCIDR"
    metadata = marked["metadata"]
    assert datetime.now(UTC) - datetime.fromisoformat(metadata["deletionTimestamp"]) < timedelta(minutes=1)
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert version(marked) > version(before)
    assert talk.get(path).granted() == marked
    gone = talk.patch(path, {"metadata": {"finalizers": None}}).granted()
    assert gone["metadata"]["uid"] == metadata["uid"]
    talk.get(path).refused(404, "NotFound")


def test_twice(talk: Talk, name: str) -> None:
    """Deleting what is marked already changes nothing."""
    path = f"{POOLS}/{name}"
    made(talk, POOLS, guarded(name, GUARD))
    first = talk.delete(path).granted()
    assert talk.delete(path).granted() == first
    talk.patch(path, {"metadata": {"finalizers": None}}).granted()


def test_by_the_last_of_several(talk: Talk, name: str) -> None:
    """Each takes off its own, by PUT or by patch; the last one makes it go."""
    path = f"{POOLS}/{name}"
    made(talk, POOLS, guarded(name, GUARD, OTHER))
    body = talk.delete(path).granted()
    body["metadata"]["finalizers"] = [OTHER]
    kept = talk.replace(path, body).granted()
    assert kept["metadata"]["finalizers"] == [OTHER]
    del kept["metadata"]["finalizers"]
    talk.replace(path, kept).granted()
    talk.get(path).refused(404, "NotFound")


def test_no_more_guards_once_it_goes(talk: Talk, name: str) -> None:
    """Who comes too late is told: what is being deleted takes no new finalizers."""
    path = f"{POOLS}/{name}"
    made(talk, POOLS, guarded(name, GUARD))
    talk.delete(path).granted()
    reply = talk.patch(path, {"metadata": {"finalizers": [GUARD, OTHER]}})
    reply.refused(422, "Invalid", "no new finalizers can be added if the object is being deleted")
    talk.patch(path, {"metadata": {"finalizers": None}}).granted()


def test_it_can_be_changed_while_it_goes(talk: Talk, name: str) -> None:
    """Its status and its labels still tell what happens; the mark itself cannot be taken back."""
    path = f"{POOLS}/{name}"
    made(talk, POOLS, guarded(name, GUARD))
    marked = talk.delete(path).granted()
    changed = talk.patch(path, {"metadata": {"labels": {"a": "b"}, "deletionTimestamp": None}}).granted()
    assert changed["metadata"]["labels"] == {"a": "b"}
    assert changed["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    talk.patch(path, {"metadata": {"finalizers": None}}).granted()


def test_nodes_go_likewise(talk: Talk, name: str) -> None:
    """Built-in kinds are no different."""
    body = node(name)
    body["metadata"]["finalizers"] = [GUARD]
    made(talk, NODES, body)
    assert talk.delete(f"{NODES}/{name}").granted()["metadata"]["deletionTimestamp"]
    talk.create(NODES, node(name)).refused(409, "AlreadyExists")
    talk.patch(f"{NODES}/{name}", {"metadata": {"finalizers": []}}).granted()
    talk.get(f"{NODES}/{name}").refused(404, "NotFound")


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_only_if_it_is_the_one_meant(talk: Talk, name: str, field: str) -> None:
    """Preconditions: a controller that read an object deletes that one, or none."""
    path = f"{POOLS}/{name}"
    told = made(talk, POOLS, pool(name))["metadata"][field]
    other = "11111111-1111-4111-8111-111111111111" if field == "uid" else "1"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {field: other}}
    refused = talk.delete(path, options).refused(409, "Conflict", "the", "precondition")
    assert other in refused.message
    talk.get(path).granted()
    options["preconditions"] = {field: told}
    talk.delete(path, options).granted()


def test_what_becomes_of_what_it_owns(talk: Talk, name: str) -> None:
    """A client says what is to become of an object's dependants, as kubectl always does; the object goes at once."""
    made(talk, POOLS, pool(name))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    talk.delete(f"{POOLS}/{name}", options).granted()
    talk.get(f"{POOLS}/{name}").refused(404, "NotFound")


def test_many_at_once(talk: Talk, name: str, namespace: str) -> None:
    """A collection, or what a selector selects of it, goes at once; those that are guarded are marked."""
    path = leases(namespace)
    for number in range(4):
        body = lease(f"{name}-{number}")
        body["metadata"] |= {"labels": {"half": str(number // 2)}, "finalizers": [GUARD] if number == 1 else []}
        made(talk, path, body)
    told = talk.delete(path, labelSelector="half=0").granted()
    assert told["kind"] == "LeaseList"
    assert names(told) == [f"{name}-0", f"{name}-1"]
    assert names(talk.get(path).granted()) == [f"{name}-1", f"{name}-2", f"{name}-3"]
    talk.patch(f"{path}/{name}-1", {"metadata": {"finalizers": None}}).granted()
    talk.delete(path).granted()
    assert talk.get(path).granted()["items"] == []


def test_options_that_make_no_sense(talk: Talk, name: str) -> None:
    """They are refused, and the object stays."""
    path = f"{POOLS}/{name}"
    made(talk, POOLS, pool(name))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Perhaps"}
    talk.delete(path, options).refused(422, "Invalid", "propagationPolicy")
    talk.delete(path, "{").refused(400, "BadRequest")
    talk.get(path).granted()
