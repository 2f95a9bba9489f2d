"""What goes wrong in allocators that people run today, provoked on a real API server. Each test fails on that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.real.rbac import controller_account
from tests.real.site import FINALIZER, POOL_ANNOTATION, POOLS, condition, eventually
from tests.testenv.client import ApiError
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.site import Site
    from tests.testenv.api import Api

FINALIZED = {"finalizers": ["example.com/still-here"]}


@pytest.fixture(scope="module")
def account(cluster: Api) -> Path:
    """The controller's kubeconfig, made once."""
    return controller_account(cluster)


def test_node_that_is_slow_to_go(site: Site, account: Path) -> None:
    """N8, pitfall 1: a node that finalizers keep keeps its block, with or without a restart; one without gets none."""
    site.create_pool("one-block", ipv4="10.1.0.0/24")
    site.create_node("going", metadata=FINALIZED)
    first = site.replica(kubeconfig=account).start()
    site.wait_served("going")
    site.admin.delete(f"{NODES}/going")
    site.create_node("next")
    site.wait_event("CIDRNotAvailable", "next")
    first.stop()
    site.create_node("empty-handed", metadata=FINALIZED)
    site.admin.delete(f"{NODES}/empty-handed")
    site.replica(kubeconfig=account).start()
    pool = site.wait_pool("one-block", lambda pool: bool(condition(pool, "Active")))
    assert condition(pool, "Active")["reason"] == "CIDRExhausted"
    assert pool["status"]["ipv4"] == {"capacity": 1, "allocated": 1, "free": 0}
    assert site.blocks("next") == []
    site.admin.patch(f"{NODES}/going", {"metadata": {"finalizers": None}})
    assert site.wait_served("next") == {"next": ["10.1.0.0/24"]}
    site.admin.delete(f"{NODES}/next")
    eventually(lambda: site.pool("one-block")["status"]["free"] == 1)
    assert site.blocks("empty-handed") == []
    assert site.events(name="empty-handed") == []


def test_restart_between_cause_and_effect(site: Site, account: Path) -> None:
    """N2, P2, F3, pitfall 3, pitfall 4: relabelled nodes and terminating pools are after a restart what they were."""
    site.create_pool("left", ipv4="10.1.0.0/23", labels={"pool": "left"})
    site.create_pool("going", ipv4="10.2.0.0/16", labels={"pool": "going"})
    site.create_node("moved", {"pool": "left"})
    site.create_node("stays", {"pool": "going"})
    first = site.replica(kubeconfig=account).start()
    assert site.wait_served("moved", "stays")["moved"] == ["10.1.0.0/24"]
    site.admin.patch(f"{NODES}/moved", {"metadata": {"labels": {"pool": "elsewhere"}}})
    site.admin.patch(f"{NODES}/stays", {"metadata": {"labels": {"pool": "elsewhere"}}})
    site.admin.delete(f"{POOLS}/going")
    first.stop()
    site.replica(kubeconfig=account).start()
    site.create_node("new", {"pool": "left"})
    assert site.wait_served("new") == {"new": ["10.1.1.0/24"]}
    site.wait_pool("left", lambda pool: pool.get("status", {}).get("nodes") == 2)
    pool = site.wait_pool("going", lambda pool: bool(condition(pool, "Terminating")))
    assert condition(pool, "Terminating")["reason"] == "CIDRInUse"
    assert pool["metadata"]["finalizers"] == [FINALIZER]
    site.admin.delete(f"{NODES}/stays")
    site.wait_gone(POOLS, "going")


def test_sizes_and_pools_over_the_same_range(site: Site, account: Path) -> None:
    """A1, A6, A8, P3, P6, pitfall 2, pitfall 16, pitfall 17: pools over one range never give what another has given.

    A pool knows at once what nodes held before it came; a node counts once, and what it frees is free for all of them.
    """
    site.create_node("early", podCIDR="10.1.0.0/24", podCIDRs=["10.1.0.0/24"])
    site.replica(kubeconfig=account).start()
    site.create_pool("fine", ipv4="10.1.0.0/21", labels={"size": "fine"})
    site.create_node("fine-1", {"size": "fine"})
    assert site.wait_served("fine-1") == {"fine-1": ["10.1.1.0/24"]}
    site.create_pool("coarse", ipv4="10.1.0.0/21", perNodeHostBits=9, labels={"size": "coarse"})
    site.create_node("coarse-1", {"size": "coarse"})
    assert site.wait_served("coarse-1") == {"coarse-1": ["10.1.2.0/23"]}
    site.create_pool("finest", ipv4="10.1.0.0/21", perNodeHostBits=6, labels={"size": "finest"})
    site.create_node("finest-1", {"size": "finest"})
    site.create_node("fine-2", {"size": "fine"})
    site.wait_served("finest-1", "fine-2")
    assert_no_overlap(site.admin.items(NODES))
    nodes = {"fine": 3, "coarse": 1, "finest": 1}
    for name, count in nodes.items():
        eventually(lambda name=name, count=count: site.pool(name).get("status", {}).get("nodes") == count)  # type: ignore[misc]
    # 8 blocks of 256: early, fine-1, two of coarse-1, one that finest-1 has a part of, fine-2.
    eventually(lambda: site.pool("fine")["status"]["ipv4"] == {"capacity": 8, "allocated": 3, "free": 2})
    for name in ("early", "fine-1", "coarse-1", "finest-1", "fine-2"):
        site.admin.delete(f"{NODES}/{name}")
    for name, capacity in (("fine", 8), ("coarse", 4), ("finest", 32)):
        whole = {"capacity": capacity, "allocated": 0, "free": capacity}
        eventually(lambda name=name, whole=whole: site.pool(name)["status"]["ipv4"] == whole)  # type: ignore[misc]


def test_defaults(site: Site, account: Path) -> None:
    """S2, S3, S5, S6, pitfall 5, pitfall 23: among defaults the order holds, by number and not by text.

    One that is terminating gives nothing.
    """
    for name, spec in (
        ("larger", {"ipv4": "10.1.0.0/16"}),
        ("ten", {"ipv4": "10.10.0.0/24"}),
        ("two", {"ipv4": "10.2.0.0/24"}),
        ("more-bits", {"ipv4": "10.0.0.0/23", "perNodeHostBits": 9}),
        ("selected", {"ipv4": "10.30.0.0/16", "labels": {"pool": "selected"}}),
    ):
        site.create_pool(name, **spec)
    site.replica(kubeconfig=account).start()
    order = []
    for number, labels in enumerate([{"pool": "selected"}, {}, {}, {}, {}]):
        site.create_node(f"n{number}", labels)
        site.wait_served(f"n{number}")
        order.append(site.node(f"n{number}")["metadata"]["annotations"][POOL_ANNOTATION])
    assert order == ["selected", "two", "ten", "more-bits", "larger"]
    site.admin.delete(f"{POOLS}/larger")
    site.wait_pool("larger", lambda pool: condition(pool, "Active").get("reason") == "Terminating")
    site.create_node("late")
    site.wait_event("CIDRNotAvailable", "late")
    assert site.blocks("late") == []


def test_families(site: Site, account: Path) -> None:
    """S4, S7, C2, A3, pitfall 6, pitfall 7, pitfall 11: one family's trouble is not the other's, and sizes may differ.

    A dual-stack pool with one full family leaks nothing of the other at any retry; IPv6 blocks meet IPv4-only pools
    and the other way round; an IPv6 block may be a /64, of a range as large as there are.
    """
    site.create_node("six-in-four", podCIDR="fd00:9::/120", podCIDRs=["fd00:9::/120"])
    site.create_node("four-in-six", {"stack": "x"}, podCIDR="10.7.0.0/24", podCIDRs=["10.7.0.0/24"])
    site.create_pool("four", ipv4="10.4.0.0/16", labels={"stack": "four"})
    site.create_pool("six", ipv6="fd00:6::/64", labels={"stack": "six"})
    site.create_pool("uneven", ipv4="10.1.0.0/22", ipv6="fd00:1::/120", labels={"stack": "dual"})
    site.create_pool("wide", ipv4="10.3.0.0/16", ipv6="fc00::/16", perNodeHostBitsIPv6=64, labels={"stack": "wide"})
    replica = site.replica(kubeconfig=account).start()
    for name, stack in (("d1", "dual"), ("w1", "wide"), ("f1", "four"), ("s1", "six"), ("w2", "wide")):
        site.create_node(name, {"stack": stack})
        site.wait_served(name)
    given = {name: site.blocks(name) for name in ("d1", "w1", "w2", "f1", "s1")}
    assert given == {
        "d1": ["10.1.0.0/24", "fd00:1::/120"],
        "w1": ["10.3.0.0/24", "fc00::/64"],
        "w2": ["10.3.1.0/24", "fc00:0:0:1::/64"],
        "f1": ["10.4.0.0/24"],
        "s1": ["fd00:6::/120"],
    }
    site.create_node("d2", {"stack": "dual"})
    assert "IPv6" in site.wait_event("CIDRNotAvailable", "d2")["note"]
    for number in range(4):
        site.admin.patch(f"{NODES}/d2", {"metadata": {"labels": {"try": str(number)}}})
        time.sleep(0.1)
    pool = site.wait_pool("uneven", lambda pool: condition(pool, "Active").get("reason") == "CIDRExhausted")
    assert pool["status"]["ipv4"] == {"capacity": 4, "allocated": 1, "free": 3}
    assert pool["status"]["ipv6"] == {"capacity": 1, "allocated": 1, "free": 0}
    assert "/120" in condition(pool, "Active")["message"]
    site.admin.delete(f"{NODES}/d1")
    assert site.wait_served("d2") == {"d2": ["10.1.1.0/24", "fd00:1::/120"]}
    assert replica.process.ended is None


def test_invalid_and_changed_pools_are_refused(site: Site, account: Path) -> None:
    """C1, C2, C3, C4, pitfall 13, pitfall 14: the API server itself refuses them, with a running controller or none."""
    del account
    for spec in (
        {"ipv4": "10.1.0.1/16"},
        {"ipv4": "10.1.0.0/16", "perNodeHostBits": 3},
        {"ipv4": "10.1.0.0/24", "perNodeHostBits": 9},
        {},
    ):
        with pytest.raises(ApiError, match="422"):
            site.create_pool("invalid", **spec)
    site.create_pool("whole", ipv4="10.1.0.0/16", labels={"a": "b"})
    site.create_pool("bare", ipv4="10.2.0.0/16")
    for name, change in (
        ("whole", {"nodeSelector": None}),
        ("whole", {"ipv4": "10.3.0.0/16"}),
        ("whole", {"perNodeHostBits": 9}),
        ("bare", {"nodeSelector": {"nodeSelectorTerms": []}}),
        ("bare", {"ipv6": "fd00::/64"}),
        ("bare", {"perNodeHostBitsIPv6": 64}),
    ):
        with pytest.raises(ApiError, match="create another ClusterCIDR"):
            site.admin.patch(f"{POOLS}/{name}", {"spec": change})


def test_came_and_went_while_nobody_looked(site: Site, account: Path) -> None:
    """N8, A8: a node that came and went, or was replaced, between two looks of the controller leaves nothing behind."""
    site.create_pool("pods", ipv4="10.1.0.0/22")
    site.create_node("replaced", podCIDR="10.1.0.0/24", podCIDRs=["10.1.0.0/24"])
    replica = site.replica("--leader-elect=false", kubeconfig=account).start()
    site.wait_pool("pods", lambda pool: pool.get("status", {}).get("free") == 3)
    replica.process.pause()
    site.create_node("short-lived", podCIDR="10.1.1.0/24", podCIDRs=["10.1.1.0/24"])
    site.admin.delete(f"{NODES}/short-lived")
    site.admin.patch(f"{NODES}/replaced", {"metadata": {"labels": {"some": "change"}}})
    site.admin.delete(f"{NODES}/replaced")
    site.create_node("replaced")
    site.create_pool("passing", ipv4="10.2.0.0/16")
    site.admin.delete(f"{POOLS}/passing")
    replica.process.resume()
    site.wait_served("replaced")
    eventually(lambda: site.pool("pods")["status"]["ipv4"] == {"capacity": 4, "allocated": 1, "free": 3})
    for number in range(3):
        site.create_node(f"n{number}")
    site.wait_served("n0", "n1", "n2")
    assert_no_overlap(site.admin.items(NODES))
    assert replica.process.ended is None
