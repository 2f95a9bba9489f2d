"""The status, apart from the spec: who tells how it is cannot change what is wanted, nor the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.bodies import CONFIGS, NODES, POOLS, lease, leases, made, node, pool, version

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Serving",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_what_is_wanted_cannot_be_changed_through_it(talk: Talk, name: str) -> None:
    """A write to /status leaves spec and labels as they are, whatever it says of them."""
    made(talk, POOLS, pool(name, {"a": "b"}))
    path = f"{POOLS}/{name}"
    patch = {"metadata": {"labels": {"c": "d"}}, "spec": {"perNodeHostBits": 4}, "status": {"conditions": [READY]}}
    told = talk.patch(f"{path}/status", patch).granted()
    assert told["spec"]["perNodeHostBits"] == 8
    assert told["metadata"]["labels"] == {"a": "b"}
    assert told["status"]["conditions"] == [READY]
    assert talk.get(path).granted() == told
    assert talk.get(f"{path}/status").granted() == told


def test_it_cannot_be_changed_through_the_object(talk: Talk, name: str) -> None:
    """A person who applies a manifest with an old status in it does no harm."""
    body = pool(name)
    body["status"] = {"conditions": [READY]}
    assert "status" not in made(talk, POOLS, body)
    path = f"{POOLS}/{name}"
    talk.patch(f"{path}/status", {"status": {"conditions": [READY]}}).granted()
    kept = talk.patch(path, {"status": {"conditions": []}, "metadata": {"labels": {"a": "b"}}}).granted()
    assert kept["status"]["conditions"] == [READY]
    del kept["status"]
    assert talk.replace(path, kept).granted()["status"]["conditions"] == [READY]


def test_replacing_it(talk: Talk, name: str) -> None:
    """PUT on /status, with the version that was read, as for the object itself."""
    body = made(talk, POOLS, pool(name))
    path = f"{POOLS}/{name}/status"
    body["status"] = {"conditions": [READY]}
    told = talk.replace(path, body).granted()
    assert told["status"]["conditions"] == [READY]
    assert version(told) > version(body)
    talk.replace(path, body).refused(409, "Conflict")


def test_it_is_checked(talk: Talk, name: str) -> None:
    """The schema holds for it as well."""
    made(talk, POOLS, pool(name))
    reply = talk.patch(f"{POOLS}/{name}/status", {"status": {"conditions": "none"}})
    reply.refused(422, "Invalid", "status.conditions: Invalid value:")


def test_nodes_have_one(talk: Talk, name: str) -> None:
    """A kubelet writes its node's status, and cannot touch podCIDRs through it."""
    made(talk, NODES, node(name))
    path = f"{NODES}/{name}"
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    patch = {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}, "status": {"addresses": addresses}}
    told = talk.patch(f"{path}/status", patch).granted()
    assert "podCIDR" not in told["spec"]
    assert told["status"]["addresses"] == addresses
    kept = talk.patch(path, {"status": {"addresses": []}}).granted()
    assert kept["status"]["addresses"] == addresses


def test_new_nodes_bring_theirs(talk: Talk, name: str) -> None:
    """A kubelet that registers tells its status at once."""
    body = node(name)
    body["status"] = {"capacity": {"pods": "110"}}
    assert made(talk, NODES, body)["status"]["capacity"] == {"pods": "110"}


def test_what_has_none(talk: Talk, name: str, namespace: str) -> None:
    """A Lease and a ClusterCIDR of which there is no status answer differently."""
    made(talk, leases(namespace), lease(name))
    assert talk.get(f"{leases(namespace)}/{name}/status").code == 404
    assert talk.patch(f"{leases(namespace)}/{name}/status", {}).code == 404


@pytest.mark.parametrize("path", [NODES, POOLS, CONFIGS])
def test_of_what_is_not_there(talk: Talk, name: str, path: str) -> None:
    """A controller that tells of a pool which is gone learns so."""
    talk.patch(f"{path}/{name}/status", {"status": {}}).refused(404, "NotFound", f'"{name}" not found')
