"""The integration tests that KEP-2593 lists, on a real API server: allocate, release, delete, terminate, tie-break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.site import FINALIZER, POOL_ANNOTATION, POOLS, condition
from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from tests.real.site import Site


def test_allocate(site: Site) -> None:
    """N3, P1: a node gets one block of each family from the pool that is for it, and says from which."""
    site.run()
    site.create_pool("dual", ipv4="10.1.0.0/16", ipv6="fd00:1::/64", labels={"stack": "dual"})
    site.create_pool("single", ipv4="10.2.0.0/16")
    site.create_node("one", {"stack": "dual"})
    site.create_node("two")
    assert site.wait_served("one", "two") == {"one": ["10.1.0.0/24", "fd00:1::/120"], "two": ["10.2.0.0/24"]}
    node = site.node("one")
    assert node["spec"]["podCIDR"] == "10.1.0.0/24"
    assert node["metadata"]["annotations"][POOL_ANNOTATION] == "dual"
    assert site.pool("dual")["metadata"]["finalizers"] == [FINALIZER]


def test_release(site: Site) -> None:
    """N8, P5: the block of a node that is gone is free again, and the pool's status says so."""
    site.run()
    site.create_pool("one", ipv4="10.1.0.0/24")
    site.create_node("first")
    assert site.wait_served("first") == {"first": ["10.1.0.0/24"]}
    site.create_node("second")
    site.wait_event("CIDRNotAvailable", "second")
    site.wait_pool("one", lambda pool: condition(pool, "Active").get("reason") == "CIDRExhausted")
    site.admin.delete(f"{NODES}/first")
    assert site.wait_served("second") == {"second": ["10.1.0.0/24"]}


def test_delete(site: Site) -> None:
    """P2: a pool that no node uses goes as soon as it is deleted."""
    site.run()
    site.create_pool("unused", ipv4="10.1.0.0/16")
    site.wait_pool("unused", lambda pool: FINALIZER in pool["metadata"].get("finalizers", []))
    site.admin.delete(f"{POOLS}/unused")
    site.wait_gone(POOLS, "unused")


def test_terminate(site: Site) -> None:
    """P2, P4: a pool in use turns terminating, names its nodes, gives nothing, and goes with the last of them."""
    site.run()
    site.create_pool("going", ipv4="10.1.0.0/16")
    site.create_node("user")
    site.wait_served("user")
    site.admin.delete(f"{POOLS}/going")
    pool = site.wait_pool("going", lambda pool: bool(condition(pool, "Terminating")))
    assert condition(pool, "Terminating")["reason"] == "CIDRInUse"
    assert "user" in condition(pool, "Terminating")["message"]
    assert condition(pool, "Active")["reason"] == "Terminating"
    site.create_node("late")
    site.wait_event("CIDRNotAvailable", "late")
    assert site.blocks("late") == []
    site.admin.delete(f"{NODES}/user")
    site.wait_gone(POOLS, "going")


def test_tie_break(site: Site) -> None:
    """S3: of the pools that match, the more specific, then the smaller, then the one with fewer host bits gives."""
    for name, labels, spec in (
        ("specific", {"rack": "r1", "size": "big"}, {"ipv4": "10.1.0.0/16"}),
        ("smaller", {"size": "big"}, {"ipv4": "10.2.0.0/23"}),
        ("larger", {"size": "big"}, {"ipv4": "10.3.0.0/16"}),
        ("default", None, {"ipv4": "10.4.0.0/16"}),
    ):
        site.create_pool(name, labels=labels, **spec)
    site.run()
    given: dict[str, list[str]] = {}
    for number in range(6):
        labels = {"size": "big"} | ({"rack": "r1"} if number < 2 else {})
        site.create_node(f"n{number}", labels)
        given |= site.wait_served(f"n{number}")
    site.create_node("plain")
    given |= site.wait_served("plain")
    pools = [site.node(name)["metadata"]["annotations"][POOL_ANNOTATION] for name in given]
    assert pools == ["specific"] * 2 + ["smaller"] * 2 + ["larger"] * 2 + ["default"]
