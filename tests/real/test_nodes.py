"""Nodes on a real API server: which pool serves them, what they wait for, and what is found on them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.rbac import controller_account
from tests.real.site import POOL_ANNOTATION, SERVICE_CIDRS, condition, eventually
from tests.testenv.audit import writes
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.real.site import Site
    from tests.testenv.api import Api
    from tests.testenv.client import Json

USER = "system:serviceaccount:kube-system:cidrella"
SLOW = 10.0
"""Seconds. What has waited for so long is next tried, by its own clock alone, in half of that or later: most of it."""
AT_ONCE = 20.0
"""Seconds. A machine with time to spare takes a tenth of a second; this is for one that has none for a while."""


@pytest.fixture(scope="module")
def account(cluster: Api) -> Path:
    """The controller's kubeconfig, made once."""
    return controller_account(cluster)


def test_which_pool_a_node_gets(site: Site, account: Path) -> None:
    """S1, S2, S7, pitfall 8: terms are ORed, requirements ANDed, fields are no labels, defaults come last.

    Single-stack nodes of either family and dual-stack ones live side by side.
    """
    pools: dict[str, Any] = {
        "either": [
            {"matchExpressions": [_in("zone", "a")]},
            {"matchExpressions": [_in("zone", "b"), _in("tier", "x")]},
        ],
        "field": [{"matchFields": [_in("metadata.name", "chosen")]}],
        "greater": [{"matchExpressions": [{"key": "cpu", "operator": "Gt", "values": ["8"]}]}],
        "less": [{"matchExpressions": [{"key": "cpu", "operator": "Lt", "values": ["3"]}]}],
        "exists": [{"matchExpressions": [_bare("gpu", "Exists"), _bare("old", "DoesNotExist")]}],
        "not-in": [
            {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x", "y"]}, _bare("ssd", "Exists")]}
        ],
        "nothing": [{}],
    }
    for number, (name, terms) in enumerate(pools.items()):
        site.create_pool(name, ipv4=f"10.{number}.0.0/16", nodeSelector={"nodeSelectorTerms": terms})
    site.create_pool("six", ipv6="fd00:6::/64", labels={"stack": "six"})
    site.create_pool("dual", ipv4="10.100.0.0/16", ipv6="fd00:100::/64", labels={"stack": "dual"})
    site.create_pool("one-block", ipv4="10.101.0.0/24", labels={"small": "yes"})
    site.create_pool("default", ipv4="10.200.0.0/16")
    nodes: dict[str, tuple[dict[str, str], str]] = {
        "zone-a": ({"zone": "a"}, "either"),
        "zone-b-x": ({"zone": "b", "tier": "x"}, "either"),
        "zone-b-only": ({"zone": "b"}, "default"),
        "chosen": ({}, "field"),
        "not-chosen": ({"metadata.name": "chosen"}, "default"),
        "many-cores": ({"cpu": "10"}, "greater"),
        "eight-cores": ({"cpu": "8"}, "default"),
        "few-cores": ({"cpu": "2"}, "less"),
        "no-number": ({"cpu": "many"}, "default"),
        "gpu": ({"gpu": ""}, "exists"),
        "old-gpu": ({"gpu": "", "old": ""}, "default"),
        "ssd": ({"ssd": ""}, "not-in"),
        "ssd-y": ({"ssd": "", "tier": "y"}, "default"),
        "six": ({"stack": "six"}, "six"),
        "dual": ({"stack": "dual"}, "dual"),
    }
    for name, (labels, _) in nodes.items():
        site.create_node(name, labels)
    site.replica(kubeconfig=account).start()
    given = site.wait_served(*nodes)
    assert {name: _pool_of(site, name) for name in nodes} == {name: pool for name, (_, pool) in nodes.items()}
    assert given["six"] == ["fd00:6::/120"]
    assert given["dual"] == ["10.100.0.0/24", "fd00:100::/120"]
    for name in ("small-1", "small-2"):
        site.create_node(name, {"small": "yes"})
        site.wait_served(name)
    assert [_pool_of(site, name) for name in ("small-1", "small-2")] == ["one-block", "default"]
    assert_no_overlap(site.admin.items(NODES))


def test_waiting_nodes_are_served_at_once(
    site: Site, account: Path, record_property: Callable[[str, object], None]
) -> None:
    """N4, P6: what waits is told so, once, and is served as soon as a label, room or a pool allows it.

    A pool that is added serves the nodes that wait for it in under a second, where the machine has the time.
    """
    site.create_pool("full", ipv4="10.1.0.0/24", labels={"pool": "full"})
    site.create_pool("roomy", ipv4="10.2.0.0/16", labels={"pool": "roomy"})
    site.create_node("holder", {"pool": "full"})
    replica = site.replica(kubeconfig=account).start()
    site.wait_served("holder")
    waiting_since = time.monotonic()
    for number in range(20):
        site.create_node(f"poolless-{number}", {"pool": "later"})
    site.create_node("for-room", {"pool": "full"})
    site.create_node("for-label")
    for name in ("for-room", "for-label", "poolless-0"):
        assert site.wait_event("CIDRNotAvailable", name)["type"] == "Warning"
    eventually(lambda: replica.metric("cidrella_nodes_waiting") == 22, explain=lambda: replica.process.tail(5))
    site.admin.patch(f"{NODES}/for-label", {"metadata": {"labels": {"pool": "roomy"}}})
    took = {"labels changed": eventually(lambda: bool(site.blocks("for-label")))}
    site.admin.delete(f"{NODES}/holder")
    took["room appeared"] = eventually(lambda: site.blocks("for-room") == ["10.1.0.0/24"])
    names = [f"poolless-{number}" for number in range(20)]
    time.sleep(max(0.0, waiting_since + SLOW - time.monotonic()))
    site.create_pool("later", ipv4="10.3.0.0/16", labels={"pool": "later"})
    took["pool added"] = eventually(lambda: all(each["spec"].get("podCIDRs") for each in site.admin.items(NODES)))
    record_property("allocated after", {what: f"{seconds:.2f} s" for what, seconds in took.items()})
    assert max(took.values()) < SLOW / 2
    assert {_pool_of(site, name) for name in names} == {"later"}
    assert len(site.events("CIDRNotAvailable", "poolless-0")) == 1


def test_service_ranges_are_not_given(site: Site, account: Path) -> None:
    """A7, pitfall 12: ranges of Services, by flag or by object, early or late, are nobody's until they go.

    One over a block that is held revokes nothing and is told on the node.
    """
    replica = site.replica("--service-cluster-ip-range=10.1.0.0/24,fd00:1::/112", kubeconfig=account).start()
    site.create_pool("pods", ipv4="10.1.0.0/22", ipv6="fd00:1::/96")
    site.wait_pool("pods", lambda pool: pool.get("status", {}).get("free") == 3)
    _service_cidr(site, "extra", "10.1.1.0/24")
    site.wait_pool("pods", lambda pool: pool["status"]["free"] == 2)
    site.create_node("first")
    assert site.wait_served("first")["first"][0] == "10.1.2.0/24"
    assert site.blocks("first")[1] == "fd00:1::1:0/120"
    _service_cidr(site, "over-first", "10.1.2.128/25")
    event = site.wait_event("CIDRConflict", "first")
    assert "over-first" in event["note"]
    assert "10.1.2.128/25" in event["note"]
    site.create_node("second")
    assert site.wait_served("second")["second"][0] == "10.1.3.0/24"
    site.create_node("third")
    site.wait_event("CIDRNotAvailable", "third")
    pool = site.wait_pool("pods", lambda pool: condition(pool, "Active").get("reason") == "CIDRExhausted")
    assert pool["status"]["ipv4"] == {"capacity": 4, "allocated": 2, "free": 0}
    site.admin.delete(f"{SERVICE_CIDRS}/over-first")
    site.admin.delete(f"{SERVICE_CIDRS}/extra")
    assert site.wait_served("third", seconds=AT_ONCE)["third"][0] == "10.1.1.0/24"
    eventually(lambda: replica.metric("cidrella_conflicts") == 0)
    # The API server's own ServiceCIDR is 10.96.0.0/16.
    site.create_pool("around", ipv4="10.96.0.0/15", perNodeHostBits=16, labels={"pool": "around"})
    site.create_node("beside", {"pool": "around"})
    assert site.wait_served("beside") == {"beside": ["10.97.0.0/16"]}
    assert site.blocks("first")[0] == "10.1.2.0/24"


def test_what_is_found_on_nodes(site: Site, account: Path) -> None:
    """N1, N2, N5, N6, pitfall 10, pitfall 20: whatever nodes already have is kept, counted, and told of.

    Blocks that two nodes hold are told on both and free when neither is there; those of no pool are told once for each
    node.
    """
    site.create_pool("pods", ipv4="10.1.0.0/20", ipv6="fd00:1::/112")
    _holder(site, "twin-1", "10.1.0.0/24")
    _holder(site, "twin-2", "10.1.0.0/23", "fd00:1::/120")
    _holder(site, "foreign", "192.168.7.0/24")
    replica = site.replica(kubeconfig=account).start()
    site.create_node("fresh")
    assert site.wait_served("fresh") == {"fresh": ["10.1.2.0/24", "fd00:1::100/120"]}
    assert "twin-2" in site.wait_event("CIDRConflict", "twin-1")["note"]
    assert "twin-1" in site.wait_event("CIDRConflict", "twin-2")["note"]
    assert "192.168.7.0/24" in site.wait_event("CIDRUntracked", "foreign")["note"]
    eventually(lambda: replica.metric("cidrella_conflicts") == 2)
    for number in range(3):
        site.admin.patch(f"{NODES}/foreign", {"metadata": {"labels": {"changed": str(number)}}})
    site.admin.delete(f"{NODES}/twin-2")
    eventually(lambda: replica.metric("cidrella_conflicts") == 0)
    site.create_node("after-twin-2")
    assert site.wait_served("after-twin-2")["after-twin-2"][0] == "10.1.3.0/24"
    pool = site.wait_pool("pods", lambda pool: pool.get("status", {}).get("nodes") == 3)
    assert pool["status"]["ipv4"] == {"capacity": 16, "allocated": 3, "free": 13}
    site.admin.delete(f"{NODES}/twin-1")
    pool = site.wait_pool("pods", lambda pool: pool["status"]["nodes"] == 2)
    assert pool["status"]["ipv4"] == {"capacity": 16, "allocated": 2, "free": 14}
    (told,) = site.events("CIDRUntracked", "foreign")
    assert "series" not in told
    uid = site.node("foreign")["metadata"]["uid"]
    site.admin.delete(f"{NODES}/foreign")
    _holder(site, "foreign", "192.168.7.0/24")
    eventually(lambda: {each["regarding"]["uid"] for each in site.events("CIDRUntracked", "foreign")} > {uid})
    held = {"twin-1", "twin-2", "foreign"}
    assert not [each for each in writes(site.cluster.audit_log, USER, "nodes") if each.name in held]
    assert replica.process.ended is None


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _bare(key: str, operator: str) -> Json:
    return {"key": key, "operator": operator}


def _pool_of(site: Site, name: str) -> str:
    return str(site.node(name)["metadata"]["annotations"][POOL_ANNOTATION])


def _holder(site: Site, name: str, *cidrs: str) -> None:
    """A node that has blocks already."""
    site.create_node(name, podCIDR=cidrs[0], podCIDRs=list(cidrs))


def _service_cidr(site: Site, name: str, *cidrs: str) -> None:
    site.admin.create(
        SERVICE_CIDRS,
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": name},
            "spec": {"cidrs": list(cidrs)},
        },
    )
