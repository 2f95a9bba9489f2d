"""The life of a pool on a real API server: guarded, counted, deleted, invalid, and gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.real.rbac import apply_deploy, controller_account
from tests.real.site import FINALIZER, FOREIGN_FINALIZER, POOL_ANNOTATION, POOLS, Site, condition, eventually
from tests.testenv.audit import requests
from tests.testenv.client import ApiError
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, delete_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Json

USER = "system:serviceaccount:kube-system:cidrella"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustercidrs.networking.x-k8s.io"
AT_ONCE = 20.0
"""Seconds. A machine with time to spare takes a tenth of a second; this is for one that has none for a while."""
OTHERS = "example.com/keep"


@pytest.fixture(scope="module")
def account(cluster: Api) -> Path:
    """The controller's kubeconfig, made once."""
    return controller_account(cluster)


def test_from_the_first_node_to_the_last(
    site: Site, account: Path, kubectl: Kubectl, record_property: Callable[[str, object], None]
) -> None:
    """P1, P2, P4, P6, C5, pitfall 15: guarded before it gives; deleted, it names its nodes and goes with the last.

    That takes under a second, where the machine has the time, however long the pool was waiting for it. The finalizer
    of the other controller goes as ours does; anybody else's is left alone.
    """
    site.replica(kubeconfig=account).start()
    site.create_pool("used", ipv4="10.1.0.0/16", labels={"pool": "used"})
    site.create_pool("theirs", ipv4="10.2.0.0/16", labels={"pool": "theirs"}, finalizers=[FOREIGN_FINALIZER])
    site.create_pool("kept", ipv4="10.3.0.0/16", labels={"pool": "kept"}, finalizers=[OTHERS])
    site.create_pool("wide", ipv6="fd00::/16")
    site.create_node("n00", {"pool": "used"})
    site.create_node("taken-over", {"pool": "theirs"})
    site.wait_served("n00", "taken-over")
    assert _finalizer_came_first(site.cluster, "used", "n00")
    pool = site.wait_pool("used", lambda pool: pool.get("status", {}).get("nodes") == 1)
    active = condition(pool, "Active")
    assert (active["status"], active["reason"]) == ("True", "Allocatable")
    assert active["observedGeneration"] == pool["metadata"]["generation"]
    assert not condition(pool, "Terminating")

    names = [f"n{number:02}" for number in range(12)]
    for name in names[1:]:
        site.create_node(name, {"pool": "used"})
    site.wait_served(*names)
    pool = site.wait_pool("used", lambda pool: pool.get("status", {}).get("nodes") == 12)
    assert condition(pool, "Active") == active
    assert pool["status"]["ipv4"] == {"capacity": 256, "allocated": 12, "free": 244}
    site.wait_pool("wide", lambda pool: pool.get("status", {}).get("free") == 2**63 - 1)
    rows = {row.split()[0]: row.split() for row in kubectl("get", "cc").stdout.splitlines()}
    assert rows["NAME"][1:] == ["PERNODEHOSTBITS", "IPV4", "IPV6", "USED", "FREE", "ACTIVE", "AGE"]
    assert rows["used"][1:6] == ["8", "10.1.0.0/16", "12", "244", "True"]
    assert rows["wide"][1:6] == ["8", "fd00::/16", "0", str(2**63 - 1), "True"]

    for name in ("used", "theirs", "kept"):
        site.admin.delete(f"{POOLS}/{name}")
    pool = site.wait_pool("used", lambda pool: bool(condition(pool, "Terminating")))
    assert condition(pool, "Active")["reason"] == "Terminating"
    going = condition(pool, "Terminating")
    assert (going["status"], going["reason"]) == ("True", "CIDRInUse")
    assert all(name in going["message"] for name in names[:10])
    assert "2 more" in going["message"]
    assert not any(name in going["message"] for name in names[10:])
    pool = site.wait_pool("kept", lambda pool: pool["metadata"]["finalizers"] == [OTHERS])
    site.wait_pool("kept", lambda pool: condition(pool, "Terminating").get("reason") == "Releasing")
    site.admin.patch(f"{POOLS}/kept", {"metadata": {"finalizers": None}})
    site.admin.delete(f"{NODES}/taken-over")
    site.wait_gone(POOLS, "theirs")
    delete_nodes(site.admin, names[1:])
    pool = site.wait_pool("used", lambda pool: pool.get("status", {}).get("nodes") == 1)
    assert condition(pool, "Terminating")["lastTransitionTime"] == going["lastTransitionTime"]
    began = time.monotonic()
    site.admin.delete(f"{NODES}/n00")
    site.wait_gone(POOLS, "used")
    took = time.monotonic() - began
    record_property("seconds from the last node's end to the pool's", round(took, 2))
    assert took < AT_ONCE
    assert {each["metadata"]["name"] for each in site.admin.items(POOLS)} == {"wide"}


def test_status_under_churn(site: Site, account: Path) -> None:
    """P5, P4, A8: pools that share their space are written to once a second at most, and end with the truth.

    No status contradicts itself on the way there.
    """
    pools = {"a": {"ipv4": "10.1.0.0/16"}, "b": {"ipv4": "10.1.0.0/16"}, "c": {"ipv4": "10.1.0.0/17"}}
    for name, spec in pools.items():
        site.create_pool(name, labels={"pool": name}, **spec)
    site.replica(kubeconfig=account).start()
    began = time.monotonic()
    for generation in range(6):
        names = [f"{pool}-{generation}-{number}" for pool in pools for number in range(4)]
        create_nodes(site.admin, names, lambda name: _node(name, {"pool": name[0]}))
        site.wait_served(*names)
        delete_nodes(site.admin, [name for name in names if not name.endswith("0")])
    for name in pools:
        site.wait_pool(name, lambda pool: pool.get("status", {}).get("nodes") == 6)
    for name in pools:
        told = _status_writes(site, name)
        churned = time.monotonic() - began
        assert 1 <= len(told) <= churned + 4, f"{name}: {len(told)} while nodes came and went for {churned:.1f} s"
        for status in told:
            assert (condition({"status": status}, "Active")["status"] == "True") == (status["free"] > 0)
    blocks = {block for each in site.admin.items(NODES) for block in each["spec"]["podCIDRs"]}
    inside = [block for block in blocks if int(block.split(".")[2]) < 128]
    assert site.pool("a")["status"]["ipv4"] == {"capacity": 256, "allocated": 6, "free": 256 - len(blocks)}
    assert site.pool("c")["status"]["ipv4"] == {"capacity": 128, "allocated": 6, "free": 128 - len(inside)}
    written = {name: _status_writes(site, name) for name in pools}
    time.sleep(1.0)
    assert {name: _status_writes(site, name) for name in pools} == written, "nothing changed, and yet it was written"


def test_what_counts_towards_which_pool(site: Site, account: Path) -> None:
    """P3, P7, N2, F3: a restart changes no count; a pool that is torn away leaves its nodes their blocks, and quiet."""
    site.create_pool("older", ipv4="10.1.0.0/20", labels={"pool": "older"})
    time.sleep(1.1)  # creation times have whole seconds, and the older pool counts
    site.create_pool("younger", ipv4="10.1.0.0/16", labels={"pool": "younger"})
    site.create_pool("coarse", ipv4="10.1.0.0/16", perNodeHostBits=10, labels={"pool": "coarse"})
    annotated = {"metadata": {"annotations": {POOL_ANNOTATION: "younger"}}}
    _hold(site, "says-younger", "10.1.0.0/24", **annotated)
    _hold(site, "says-nothing", "10.1.1.0/24")
    _hold(site, "by-size", "10.1.4.0/22")
    _hold(site, "outside-older", "10.1.64.0/24")
    _hold(site, "says-nonsense", "10.1.2.0/24", metadata={"annotations": {POOL_ANNOTATION: "nobody"}})
    expected = {"older": 2, "younger": 2, "coarse": 1}
    first = site.replica(kubeconfig=account).start()
    eventually(lambda: {each["metadata"]["name"]: _nodes(each) for each in site.admin.items(POOLS)} == expected)
    before = {name: site.pool(name)["status"] for name in expected}
    site.admin.patch(f"{NODES}/says-nothing", {"metadata": {"labels": {"pool": "younger"}}})
    first.stop()
    second = site.replica(kubeconfig=account).start()
    site.create_node("fresh", {"pool": "coarse"})
    assert site.wait_served("fresh") == {"fresh": ["10.1.8.0/22"]}
    pool = site.wait_pool("coarse", lambda pool: pool.get("status", {}).get("nodes") == 2)
    assert pool["status"]["ipv4"] == {"capacity": 64, "allocated": 2, "free": 60}
    for name in ("older", "younger"):
        assert site.pool(name)["status"]["nodes"] == before[name]["nodes"]
        assert condition(site.pool(name), "Active") == condition({"status": before[name]}, "Active")

    site.admin.delete(f"{POOLS}/younger")
    site.admin.patch(f"{POOLS}/younger", {"metadata": {"finalizers": None}})
    site.wait_gone(POOLS, "younger")
    site.wait_pool("older", lambda pool: pool.get("status", {}).get("nodes") == 3)
    site.wait_pool("coarse", lambda pool: pool.get("status", {}).get("nodes") == 3)
    site.create_pool("younger", ipv4="10.1.0.0/17", labels={"pool": "younger"})
    site.create_node("next", {"pool": "younger"})
    assert site.wait_served("next") == {"next": ["10.1.3.0/24"]}
    assert_no_overlap(site.admin.items(NODES))
    assert site.events() == []
    assert second.process.ended is None


@pytest.fixture
def lax(server: type[Api], tmp_path: Path) -> Iterator[Site]:
    """A cluster of its own, whose ClusterCIDR CRD takes anything for a spec."""
    with server.temporary() as cluster:
        site = Site(cluster, tmp_path)
        controller_account(cluster)
        _install(site, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        yield site
        site.clean()


def test_pools_that_an_older_crd_let_in(lax: Site) -> None:
    """C4, P1, S6, pitfall 13: an invalid pool is not used, says why, is told of, is not guarded, and holds up nobody.

    Where the CRD has no status, none is written; one that drops fields is said to. Ours, put over the objects that
    are there, changes nothing about them.
    """
    site = lax
    invalid: dict[str, object] = {
        "host-bits-set": {"perNodeHostBits": 8, "ipv4": "10.1.0.1/16"},
        "too-many-bits": {"perNodeHostBits": 12, "ipv4": "10.1.0.0/24"},
        "too-few-bits": {"perNodeHostBits": 2, "ipv4": "10.1.0.0/16"},
        "no-range": {"perNodeHostBits": 8},
        "wrong-type": {"perNodeHostBits": "eight", "ipv4": ["10.1.0.0/16"]},
        "bad-operator": {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", "nodeSelector": _selector("a", "Near")},
    }
    for name, spec in invalid.items():
        _create_pool(site, name, spec)
    _create_pool(site, "no-spec", None)
    account = site.cluster.directory / "cidrella-account.kubeconfig"
    replica = site.replica(kubeconfig=account).start()
    for name in (*invalid, "no-spec"):
        pool = site.wait_pool(name, lambda pool: bool(condition(pool, "Active")))
        assert (condition(pool, "Active")["status"], condition(pool, "Active")["reason"]) == ("False", "Invalid")
        assert condition(pool, "Active")["message"]
        assert not pool["metadata"].get("finalizers")
        assert site.wait_event("Invalid", name)["regarding"]["kind"] == "ClusterCIDR"
    site.create_pool("valid", ipv4="10.9.0.0/16")
    site.create_node("first")
    assert site.wait_served("first") == {"first": ["10.9.0.0/24"]}
    # Nothing is immutable here: a pool in use turns invalid, and back.
    site.admin.patch(f"{POOLS}/valid", {"spec": {"ipv4": "nonsense"}})
    site.wait_pool("valid", lambda pool: condition(pool, "Active").get("reason") == "Invalid")
    site.create_node("second")
    site.wait_event("CIDRNotAvailable", "second")
    site.admin.patch(f"{POOLS}/valid", {"spec": {"ipv4": "10.9.0.0/16"}})
    assert site.wait_served("second") == {"second": ["10.9.1.0/24"]}
    site.admin.delete(f"{POOLS}/wrong-type")
    site.wait_gone(POOLS, "wrong-type")
    assert replica.process.ended is None
    replica.stop()

    anything = {"x-kubernetes-preserve-unknown-fields": True}
    known = dict.fromkeys(("perNodeHostBits", "ipv4", "ipv6", "nodeSelector"), anything)
    _install(site, {"type": "object", "properties": known}, status=False)
    _create_pool(site, "late", {"perNodeHostBits": 8, "ipv4": "10.1.0.9/16"})
    replica = site.replica(kubeconfig=account).start()
    site.create_node("third")
    assert site.wait_served("third") == {"third": ["10.9.2.0/24"]}
    said = [line for line in replica.logged() if "installed ClusterCIDR CRD" in line["event"]]
    assert any("perNodeHostBitsIPv6" in line.get("fields", []) for line in said)
    assert any("no status" in line["event"] for line in said)
    assert not [line for line in replica.logged() if "status cannot be written" in line["event"]]
    replica.stop()

    apply_deploy(site.cluster)
    eventually(lambda: not _accepted(site, {"perNodeHostBits": 2, "ipv4": "10.1.0.0/16"}))
    replica = site.replica(kubeconfig=account).start()
    site.wait_pool("late", lambda pool: condition(pool, "Active").get("reason") == "Invalid")
    site.create_node("fourth")
    assert site.wait_served("fourth") == {"fourth": ["10.9.3.0/24"]}
    site.admin.delete(f"{POOLS}/late")
    site.wait_gone(POOLS, "late")


def _install(site: Site, spec: Json, *, status: bool = True) -> None:
    """Put another schema of the spec into the CRD, and wait until the API server goes by it."""
    definition = site.admin.get(CRD)
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    schema.pop("x-kubernetes-validations", None)
    schema["properties"]["spec"] = spec
    if not status:
        version["subresources"] = {}
    site.admin.replace(CRD, definition)
    eventually(lambda: _accepted(site, {"perNodeHostBits": 1, "ipv4": "10.1.0.0/16"}))
    eventually(lambda: _has_status(site) == status)


def _accepted(site: Site, spec: Json) -> bool:
    try:
        _create_pool(site, "trial", spec, dryRun="All")
    except ApiError:
        return False
    return True


def _has_status(site: Site) -> bool:
    served = site.admin.get("/apis/networking.x-k8s.io/v1")["resources"]
    return "clustercidrs/status" in {each["name"] for each in served}


def _create_pool(site: Site, name: str, spec: object, **parameters: str) -> None:
    body = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": name}}
    site.admin.create(POOLS, body if spec is None else {**body, "spec": spec}, **parameters)


def _selector(key: str, operator: str) -> Json:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator}]}]}


def _node(name: str, labels: dict[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def _nodes(pool: Json) -> int:
    """How many nodes use a pool, by its status; -1 where it says nothing."""
    return int(pool.get("status", {}).get("nodes", -1))


def _hold(site: Site, name: str, cidr: str, metadata: Json | None = None) -> None:
    """A node that has a block already."""
    site.create_node(name, metadata=metadata, podCIDR=cidr, podCIDRs=[cidr])


def _finalizer_came_first(cluster: Api, pool: str, node: str) -> bool:
    """Whether a pool was guarded before a node was given its block."""
    asked = [each for each in requests(cluster.audit_log) if each.user == USER and each.verb == "patch"]
    written = [each.resource for each in asked if each.name in (pool, node) and each.subresource != "status"]
    guarded = [each for each in asked if each.name == pool and FINALIZER in str(each.body)]
    return written[:2] == ["clustercidrs", "nodes"] and bool(guarded)


def _status_writes(site: Site, pool: str) -> list[Json]:
    """What was written as the status of a pool, of this one and no other of its name."""
    uid = site.pool(pool)["metadata"]["uid"]
    asked = (each for each in requests(site.cluster.audit_log) if each.subresource == "status" and each.name == pool)
    return [each.body["status"] for each in asked if (each.body or {}).get("metadata", {}).get("uid") == uid]
