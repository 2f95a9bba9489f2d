"""ClusterCIDRConfig on a real API server: KEP-2594's examples, order, selectors that change, deletion, restarts."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from cidrella.controller.release import find_guarded, release_all
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from tests.real.site import CONFIGS, FINALIZER, POOL_ANNOTATION, POOLS, condition, eventually
from tests.testenv.audit import requests
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.controller.release import Guarded, Released
    from tests.real.site import Replica, Site
    from tests.testenv.client import Json

USER = "system:serviceaccount:kube-system:cidrella"
AT_ONCE = 20.0
"""Seconds. A machine with time to spare takes a tenth of a second; this is for one that has none for a while."""
_KUBECTL = 0.05
"""Seconds from one object of a file to the next."""
TRIES = 5
"""How often in a row a machine may be too slow for what has to follow within a moment."""
_SETTLED = 2.0
"""Seconds after which nodes wait no longer for what may belong to a config."""
_SET = "node_ipam_controller_multicidrset"


def pools_of(site: Site, node: str) -> str:
    """The pools that a node's annotation names."""
    return str(site.node(node)["metadata"]["annotations"][POOL_ANNOTATION])


def serve(site: Site, name: str, labels: dict[str, str] | None = None) -> tuple[list[str], str]:
    """A new node: its blocks, and from where it has them."""
    site.create_node(name, labels)
    return site.wait_served(name)[name], pools_of(site, name)


def select(site: Site, name: str, selector: Json | None) -> Json:
    """Write another selector into a config."""
    return site.admin.patch(f"{CONFIGS}/{name}", {"spec": {"nodeSelector": selector}})


def restarted(site: Site, replica: Replica) -> Replica:
    """Another replica in the place of one."""
    replica.stop()
    return site.run()


def test_allocation_example(site: Site) -> None:
    """K3, K4, K5, P1, A1, O1: the example of KEP-2594, where ranges overlap and are shared with those of defaults.

    Of its two defaults, between which the proposal lets anybody choose, the one with the lower first address gives
    (`np4`), and the other when that one is gone. Nothing is given before the finalizer is stored.
    """
    replica = site.run()
    in_np1, in_np2 = ({"key": "np", "operator": "In", "values": [name]} for name in ("np1", "np2"))
    site.create_config("any-10", "10.0.0.0/8", 24)
    site.create_config("any-172", "172.16.0.0/14", 24)
    for name, cidr, wanted in (("np1", "10.0.0.0/8", in_np1), ("np2", "192.168.0.0/16", in_np2)):
        spec = {"cidr": cidr, "perNodeMaskSize": 26, "nodeSelector": {"matchExpressions": [wanted]}}
        body = {"apiVersion": "networking.x-k8s.io/v1alpha1", "kind": "ClusterCIDRConfig"}
        site.admin.create(CONFIGS, {**body, "metadata": {"name": name}, "spec": spec})
    site.create_config("np3-v4", "5.2.0.0/16", 20, {"np": "np3"})
    site.create_config("np3-v6", "fd12:3456:789a:1::/64", 112, {"np": "np3"})
    given = {name: serve(site, name, {"np": name}) for name in ("np1", "np2", "np3", "np4")}
    assert given == {
        "np1": (["10.0.0.0/26"], "ccc/np1"),
        "np2": (["192.168.0.0/26"], "ccc/np2"),
        "np3": (["5.2.0.0/20", "fd12:3456:789a:1::/112"], "ccc/np3-v4,ccc/np3-v6"),
        "np4": (["10.0.1.0/24"], "ccc/any-10"),
    }
    assert site.node("np3")["spec"]["podCIDR"] == "5.2.0.0/20"
    for each in site.admin.items(CONFIGS):
        name = each["metadata"]["name"]
        users = int(name != "any-172")
        pool = site.wait_config(name, partial(used_by, users))
        assert (condition(pool, "Active")["status"], condition(pool, "Active")["reason"]) == ("True", "Allocatable")
        assert pool["metadata"]["finalizers"] == [FINALIZER]
        assert not condition(pool, "Terminating")
    assert site.config("np3-v4")["status"]["ipv4"] == {"capacity": 16, "allocated": 1, "free": 15}
    assert site.config("np3-v6")["status"]["ipv6"] == {"capacity": 2**48, "allocated": 1, "free": 2**48 - 1}
    assert replica.metric(f"{_SET}_cidrs_allocations_total", clusterCIDRName="ccc/np3-v6") == 1
    assert replica.metric(f"{_SET}_max_cidrs", clusterCIDRName="ccc/np3-v4", clusterCIDR="5.2.0.0/16") == 16
    assert guarded_first(site, "np3-v6", "np3")

    site.admin.delete(f"{CONFIGS}/any-10")
    site.wait_config("any-10", lambda pool: bool(condition(pool, "Terminating")))
    assert serve(site, "np5", {"np": "np5"}) == (["172.16.0.0/24"], "ccc/any-172")
    assert_no_overlap(site.admin.items(NODES))
    assert site.events() == []


def used_by(users: int, pool: Json) -> bool:
    """Whether the status of a pool says that so many nodes use it."""
    return bool(pool.get("status", {}).get("nodes") == users)


def guarded_first(site: Site, config: str, node: str) -> bool:
    """Whether a config was guarded before a node was given its blocks."""
    uids = {site.config(config)["metadata"]["uid"], site.node(node)["metadata"]["uid"]}
    asked = (each for each in requests(site.cluster.audit_log) if each.user == USER and each.verb == "patch")
    bodies = ((each.resource, (each.body or {}).get("metadata", {})) for each in asked if not each.subresource)
    written = [resource for resource, metadata in bodies if metadata.get("uid") in uids]
    return written[:2] == ["clustercidrconfigs", "nodes"]


def test_delete_in_use_example(site: Site) -> None:
    """K5, P2, P4: the other example of KEP-2594: in use and deleted, a config says so, names its nodes, and stays.

    It gives nothing any more, a restart in between changes nothing, and it goes with the last of its nodes.
    """
    replica = site.run()
    site.create_config("pods", "10.1.0.0/16", 24)
    site.create_config("unused", "10.2.0.0/16", 24, {"np": "nobody"})
    assert [serve(site, name)[0] for name in ("node1", "node2")] == [["10.1.0.0/24"], ["10.1.1.0/24"]]
    site.wait_config("unused", lambda pool: condition(pool, "Active").get("status") == "True")
    for name in ("pods", "unused"):
        site.admin.delete(f"{CONFIGS}/{name}")
    site.wait_gone(CONFIGS, "unused", AT_ONCE)
    pool = site.wait_config("pods", lambda pool: bool(condition(pool, "Terminating")))
    assert pool["metadata"]["finalizers"] == [FINALIZER]
    shown = [{key: each[key] for key in ("type", "status", "reason", "message")} for each in conditions(pool)]
    assert shown == [
        {
            "type": "Active",
            "status": "False",
            "reason": "Terminating",
            "message": "It is being deleted, and gives nothing any more.",
        },
        {
            "type": "Terminating",
            "status": "True",
            "reason": "CIDRInUse",
            "message": "It goes when these nodes are gone: node1, node2.",
        },
    ]
    assert {each["observedGeneration"] for each in conditions(pool)} == {pool["metadata"]["generation"]}
    site.create_node("node3")
    site.wait_event("CIDRNotAvailable", "node3")
    site.admin.delete(f"{NODES}/node1")
    site.wait_config("pods", lambda pool: condition(pool, "Terminating")["message"].endswith("gone: node2."))
    restarted(site, replica)
    site.create_config("more", "10.1.0.0/16", 24)
    assert site.wait_served("node3") == {"node3": ["10.1.0.0/24"]}
    assert condition(site.config("pods"), "Terminating")["reason"] == "CIDRInUse"
    site.admin.delete(f"{NODES}/node2")
    site.wait_gone(CONFIGS, "pods", AT_ONCE)


def conditions(pool: Json) -> list[Json]:
    """The conditions of a pool, by type."""
    return sorted(pool["status"]["conditions"], key=lambda each: str(each["type"]))


def test_a_selector_that_changes(site: Site) -> None:
    """K2, P4, N2: whom a config now selects is served at once; whom it no longer selects keeps the block, and counts.

    So it does after a restart. The conditions tell which selector they were made from, also where one is only
    written in another way.
    """
    replica = site.run()
    site.create_config("four", "10.1.0.0/22", 24, {"team": "a"})
    assert serve(site, "a0", {"team": "a"}) == (["10.1.0.0/24"], "ccc/four")
    for name in ("b0", "b1"):
        site.create_node(name, {"team": "b"})
        site.wait_event("CIDRNotAvailable", name)
    changed = select(site, "four", {"matchLabels": {"team": "b"}})
    assert changed["metadata"]["generation"] == 2
    given = site.wait_served("b0", "b1", seconds=AT_ONCE)
    assert sorted(given.values()) == [["10.1.1.0/24"], ["10.1.2.0/24"]]
    site.create_node("a1", {"team": "a"})
    site.wait_event("CIDRNotAvailable", "a1")
    assert site.blocks("a0") == ["10.1.0.0/24"]
    pool = site.wait_config("four", lambda pool: up_to_date(pool) and pool["status"]["nodes"] == 3)
    assert pool["status"]["ipv4"] == {"capacity": 4, "allocated": 3, "free": 1}
    active = condition(pool, "Active")
    assert (active["status"], active["reason"], active["observedGeneration"]) == ("True", "Allocatable", 2)

    replica = restarted(site, replica)
    expression = {"key": "team", "operator": "In", "values": ["b"]}
    select(site, "four", {"matchLabels": None, "matchExpressions": [expression]})
    pool = site.wait_config("four", up_to_date)
    assert (pool["metadata"]["generation"], pool["status"]["nodes"]) == (3, 3)
    assert condition(pool, "Active")["lastTransitionTime"] == active["lastTransitionTime"]
    select(site, "four", None)
    assert site.wait_served("a1", seconds=AT_ONCE) == {"a1": ["10.1.3.0/24"]}
    pool = site.wait_config("four", lambda pool: up_to_date(pool) and pool["status"]["nodes"] == 4)
    assert condition(pool, "Active")["reason"] == "CIDRExhausted"
    assert [pools_of(site, name) for name in ("a0", "b0", "b1", "a1")] == ["ccc/four"] * 4


def up_to_date(pool: Json) -> bool:
    """Whether every condition of a pool is about its spec as it is."""
    generations = {each["observedGeneration"] for each in pool.get("status", {}).get("conditions", [])}
    return generations == {pool["metadata"]["generation"]}


def test_a_family_that_no_longer_applies(site: Site) -> None:
    """K2, K3: a node waits while one of its families is full; it is served as soon as that family is not for it."""
    site.run()
    site.create_config("four", "10.1.0.0/16", 24)
    site.create_config("six", "fd00:1::/64", 64)
    assert serve(site, "first") == (["10.1.0.0/24", "fd00:1::/64"], "ccc/four,ccc/six")
    site.create_node("second")
    assert "ccc/six" in site.wait_event("CIDRNotAvailable", "second")["note"]
    assert site.blocks("second") == []
    select(site, "six", {"matchLabels": {"stack": "dual"}})
    assert site.wait_served("second", seconds=AT_ONCE) == {"second": ["10.1.1.0/24"]}
    assert pools_of(site, "second") == "ccc/four"
    pool = site.wait_config("six", up_to_date)
    assert (condition(pool, "Active")["reason"], pool["status"]["nodes"]) == ("CIDRExhausted", 1)


def at_last(attempt: Callable[[str], bool]) -> None:
    """Try until it comes out as it should: what has to follow within a moment may be late on a busy machine.

    Each attempt has a name of its own, for its objects.
    """
    assert any(attempt(f"t{number}") for number in range(1, TRIES + 1)), f"not once in {TRIES} times"


def test_two_that_are_deleted_one_after_the_other(site: Site) -> None:
    """K3, N4: a node that waits for a full family does not get the other when both configs are being deleted."""
    site.run()

    def attempt(team: str) -> bool:
        place = team[1:]
        four, six = f"four-{team}", f"six-{team}"
        site.create_config(four, f"10.{place}.0.0/28", 28, {"team": team})
        site.create_config(six, f"fd00:{place}::/112", 120, {"team": team})
        blocks = [f"10.{place}.0.0/28", f"fd00:{place}::/120"]
        assert serve(site, f"first-{team}", {"team": team}) == (blocks, f"ccc/{four},ccc/{six}")
        site.create_node(f"second-{team}", {"team": team})
        site.wait_event("CIDRNotAvailable", f"second-{team}")
        for name in (four, six):
            site.admin.delete(f"{CONFIGS}/{name}")
            time.sleep(_KUBECTL)
        for name in (four, six):
            site.wait_config(name, lambda pool: bool(condition(pool, "Terminating")))
        time.sleep(_SETTLED)
        return site.blocks(f"second-{team}") == []

    at_last(attempt)


def test_two_selectors_that_change_one_after_the_other(site: Site) -> None:
    """K2, K3: a node that two configs come to select has both families, and at once."""
    site.run()
    site.create_config("four", "10.1.0.0/16", 28, {"team": "a"})
    site.create_config("six", "fd00:1::/104", 120, {"team": "a"})

    def attempt(team: str) -> bool:
        site.create_node(team, {"team": team})
        site.wait_event("CIDRNotAvailable", team)
        time.sleep(_SETTLED)
        for name in ("four", "six"):
            select(site, name, {"matchLabels": {"team": team}})
            time.sleep(_KUBECTL)
        return len(site.wait_served(team, seconds=AT_ONCE)[team]) == 2

    at_last(attempt)


def test_others_that_come_in_the_moment_of_one(site: Site) -> None:
    """K3: two configs that come late in the moment in which nodes wait for what belongs to a third are together."""
    site.run()

    def attempt(team: str) -> bool:
        site.create_node(team, {"team": team})
        site.wait_event("CIDRNotAvailable", team)
        site.create_config(f"other-{team}", "10.9.0.0/24", 28, {"team": "nobody"})
        time.sleep(0.85)
        site.create_config(f"four-{team}", "10.1.0.0/24", 28, {"team": team})
        time.sleep(0.3)
        site.create_config(f"six-{team}", "fd00:1::/112", 120, {"team": team})
        return len(site.wait_served(team, seconds=AT_ONCE)[team]) == 2

    at_last(attempt)


def test_which_kind_is_tried_first(site: Site) -> None:
    """K3, S2, N4: matching pools, matching configs, default pools, default configs, the full ones falling through.

    All of them share one range, and no address is given twice. When all are full, a node waits for any of them.
    """
    site.create_pool("matching", ipv4="10.1.0.0/28", perNodeHostBits=4, labels={"np": "x"})
    site.create_config("matching-v4", "10.1.0.0/27", 28, {"np": "x"})
    site.create_config("matching-v6", "fd00:1::/112", 112, {"np": "x"})
    site.create_pool("default", ipv4="10.1.0.0/26", ipv6="fd00:1::/108", perNodeHostBits=4, perNodeHostBitsIPv6=16)
    site.create_config("default-v4", "10.1.0.0/25", 28)
    site.create_config("default-v6", "fd00:2::/112", 112)
    site.run()
    labels = {"np": "x"}
    assert serve(site, "n0", labels) == (["10.1.0.0/28"], "matching")
    assert serve(site, "n1", labels) == (["10.1.0.16/28", "fd00:1::/112"], "ccc/matching-v4,ccc/matching-v6")
    # Both families of the matching configs are full, and there is a matching one of neither that could go with another.
    for number in (2, 3):
        cidrs = [f"10.1.0.{16 * number}/28", f"fd00:1::{number - 1}:0/112"]
        assert serve(site, f"n{number}", labels) == (cidrs, "default")
    assert serve(site, "n4", labels) == (["10.1.0.64/28", "fd00:2::/112"], "ccc/default-v4,ccc/default-v6")
    site.create_node("n5", labels)
    note = site.wait_event("CIDRNotAvailable", "n5")["note"]
    for name in ("matching", "default", "ccc/default-v6"):
        assert name in note
    assert site.blocks("n5") == []
    site.create_config("more-v6", "fd00:3::/112", 112)
    assert site.wait_served("n5", seconds=AT_ONCE) == {"n5": ["10.1.0.80/28", "fd00:3::/112"]}
    assert_no_overlap(site.admin.items(NODES))


def test_order_among_configs(site: Site) -> None:
    """K4: with a selector before without; then fewest addresses; then most labels; first address; name."""
    zone, both = {"zone": "z"}, {"zone": "z", "rack": "r"}
    for name, cidr, size, labels in (
        ("a-default", "10.1.0.0/28", 28, None),
        ("coarse", "10.2.0.0/25", 25, both),
        ("fine", "10.3.0.0/27", 27, zone),
        ("specific", "10.4.0.0/26", 26, both),
        ("b-low", "10.5.0.0/26", 26, zone),
        ("a-high", "10.6.0.0/26", 26, zone),
        ("a-twin", "10.7.0.0/26", 26, zone),
        ("b-twin", "10.7.0.0/25", 26, zone),
    ):
        site.create_config(name, cidr, size, labels)
    site.run()
    given = [serve(site, f"n{number}", both) for number in range(8)]
    order = ["fine", "specific", "b-low", "a-high", "a-twin", "b-twin", "coarse", "a-default"]
    assert [pool for _, pool in given] == [f"ccc/{name}" for name in order]
    assert_no_overlap(site.admin.items(NODES))


def test_restarts_keep_blocks_and_counts(site: Site) -> None:
    """P3, N2, F3, K5: what a node has counts towards the configs that its annotation names, for each block its own.

    Others would have a better claim to them without it: they are older, and their ranges contain the blocks as well. A
    config that is torn away leaves its node the blocks.
    """
    replica = site.run()
    site.create_config("a-old-v4", "10.1.0.0/16", 24, {"np": "nobody"})
    site.create_config("a-old-v6", "fd00:1::/48", 64, {"np": "nobody"})
    site.create_pool("a-pool", ipv4="10.1.0.0/16", labels={"np": "nobody"})
    site.create_config("young-v4", "10.1.0.0/20", 24)
    site.create_config("young-v6", "fd00:1::/52", 64)
    names = [f"n{number}" for number in range(4)]
    given = {name: serve(site, name) for name in names}
    assert {pools for _, pools in given.values()} == {"ccc/young-v4,ccc/young-v6"}
    expected = {"a-old-v4": 0, "a-old-v6": 0, "young-v4": 4, "young-v6": 4}

    def counted() -> dict[str, int]:
        return {each["metadata"]["name"]: each.get("status", {}).get("nodes", -1) for each in site.admin.items(CONFIGS)}

    eventually(lambda: counted() == expected, explain=lambda: str(counted()))
    site.wait_config("a-old-v4", lambda pool: pool["status"]["free"] == 256 - 4)
    site.wait_config("a-old-v6", lambda pool: pool["status"]["free"] == 2**16 - 4)
    before = {name: site.config(name)["status"] for name in expected}
    for _ in range(2):
        replica = restarted(site, replica)
        site.create_pool("touch", ipv4="10.9.0.0/24", labels={"np": "nobody"})
        site.wait_pool("touch", lambda pool: bool(pool.get("status")))
        site.admin.delete(f"{POOLS}/touch")
        site.wait_gone(POOLS, "touch")
        assert {name: site.config(name)["status"] for name in expected} == before
    assert {name: site.blocks(name) for name in names} == {name: blocks for name, (blocks, _) in given.items()}

    site.admin.delete(f"{CONFIGS}/young-v6")
    site.admin.patch(f"{CONFIGS}/young-v6", {"metadata": {"finalizers": None}})
    site.wait_gone(CONFIGS, "young-v6")
    del expected["young-v6"]
    expected["a-old-v6"] = 4
    eventually(lambda: counted() == expected, explain=lambda: str(counted()))
    assert serve(site, "n4") == (["10.1.4.0/24"], "ccc/young-v4")
    assert site.events() == []


def test_release(site: Site) -> None:
    """F6, K5, P7: finalizers are taken off configs as off any pool; the nodes of one that goes keep their blocks."""
    replica = site.run()
    site.create_config("four", "10.1.0.0/16", 24)
    site.create_pool("pods", ipv4="10.2.0.0/16", labels={"np": "nobody"})
    blocks, _ = serve(site, "n")
    site.wait_pool("pods", lambda pool: bool(pool["metadata"].get("finalizers")))
    site.admin.delete(f"{CONFIGS}/four")
    replica.stop()

    async def scenario() -> tuple[list[Guarded], list[Released]]:
        async with Client(load_access(str(site.cluster.kubeconfig))) as client:
            found = await find_guarded(client)
            return found, await release_all(client, found)

    found, done = asyncio.run(scenario())
    assert {each.name: each.vanishes for each in found} == {"pods": False, "ccc/four": True}
    assert [each.fault for each in done] == ["", ""]
    site.wait_gone(CONFIGS, "four")
    assert "finalizers" not in site.pool("pods")["metadata"]
    assert site.blocks("n") == blocks
