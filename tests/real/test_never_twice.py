"""No block is given to two nodes, though a leader was paused or killed with writes on the wire: pitfall 27."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

import pytest

from tests.real.behind import NODE_PATCH, OnTheWire, behind_proxy
from tests.real.site import HOLD_BACK, LEASE, POOLS, SHORT_LEASE, condition, eventually
from tests.real.test_leading import leader_and_standby, leads
from tests.testenv.audit import requests
from tests.testenv.faults import hold
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, realistic_node
from tests.testenv.without_intents import WITHOUT_INTENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.real.behind import Behind
    from tests.real.site import Replica, Site


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site whose replicas are behind a proxy."""
    with behind_proxy(site) as made:
        yield made


def intents(site: Site) -> list[list[str]]:
    """What the Lease says may yet be written: of each node the uid, the pool and the blocks."""
    text = site.admin.get(LEASE)["metadata"].get("annotations", {}).get("cidrella.dev/intents", "[]")
    return list(json.loads(text))


def paused_with_a_write_on_the_wire(behind: Behind) -> tuple[Replica, Replica, OnTheWire]:
    """A leader that sends a node its block, and is paused before that arrives; its standby; the write."""
    site = behind.site
    on_the_wire = OnTheWire(behind)
    flags = (*SHORT_LEASE, HOLD_BACK)
    leader, standby = leader_and_standby(behind.run(*flags), behind.run(*flags))
    site.create_held_back("held-back")
    site.create_node("slow")
    on_the_wire.wait()
    leader.process.pause()
    return leader, standby, on_the_wire


def overtaken(behind: Behind, until: Callable[[], object]) -> None:
    """The only block is on its way to one node, when a successor that does not know would give it to another."""
    site = behind.site
    site.create_pool("pool", ipv4="10.1.0.0/24")
    leader, standby, on_the_wire = paused_with_a_write_on_the_wire(behind)
    site.admin.patch(f"{NODES}/held-back", {"spec": {"taints": None}})
    eventually(lambda: leads(standby))
    until()
    on_the_wire.arrive()
    site.wait_served("slow")
    leader.process.resume()


def test_a_paused_leader_with_a_write_on_the_wire(behind: Behind) -> None:
    """Pitfall 27, A1, F5: the successor finds in the Lease what was sent, and gives it to nobody else."""
    site = behind.site
    overtaken(behind, lambda: site.wait_event("CIDRNotAvailable", "held-back"))
    assert site.blocks("slow") == ["10.1.0.0/24"]
    assert site.blocks("held-back") == []
    eventually(lambda: intents(site) == [])
    assert_no_overlap(site.admin.items(NODES))


def test_without_intents_it_is_given_twice(behind: Behind) -> None:
    """Pitfall 27: the same without the record gives one block to two nodes: what the tests here show, they can."""
    overtaken(replace(behind, program=WITHOUT_INTENTS), lambda: behind.site.wait_served("held-back"))
    with pytest.raises(AssertionError, match=r"10\.1\.0\.0/24"):
        assert_no_overlap(behind.site.admin.items(NODES))


def test_a_pool_that_goes_meanwhile(behind: Behind) -> None:
    """Pitfall 27, P2, S6: what is on the wire from a pool that is being deleted is sent by nobody, and held until then.

    The node is given a block of another pool. The deleted one says what keeps it, and goes as soon as that is seen.
    """
    site = behind.site
    let_go = Event()
    behind.proxy.add(hold(let_go), method="PATCH", path=NODE_PATCH, nth=2)
    site.create_pool("first", ipv4="10.1.0.0/24")
    site.create_pool("second", ipv4="10.2.0.0/23")
    leader, standby, on_the_wire = paused_with_a_write_on_the_wire(behind)
    assert [entry[1:] for entry in intents(site)] == [["first", "10.1.0.0/24"]]
    site.admin.delete(f"{POOLS}/first")
    eventually(lambda: leads(standby))
    eventually(lambda: len(intents(site)) == 2)
    assert sorted(entry[1:] for entry in intents(site)) == [["first", "10.1.0.0/24"], ["second", "10.2.0.0/24"]]
    kept = site.wait_pool("first", lambda pool: condition(pool, "Terminating").get("reason") == "CIDRInUse")
    assert "slow (10.1.0.0/24 may yet be written)" in condition(kept, "Terminating")["message"]
    let_go.set()
    assert site.wait_served("slow") == {"slow": ["10.2.0.0/24"]}
    site.wait_gone(POOLS, "first")
    eventually(lambda: intents(site) == [])
    leader.process.resume()
    assert on_the_wire.arrive() == 422
    assert site.blocks("slow") == ["10.2.0.0/24"]


def test_killed_in_the_middle(behind: Behind) -> None:
    """Pitfall 27, F5: a leader that dies while it serves hundreds leaves nothing that its successor does not finish.

    What the leader had on the wire arrives together with what its successor sends.
    """
    site = behind.site
    site.create_pool("pool", ipv4="10.4.0.0/14")
    names = [f"n{number:03}" for number in range(400)]
    let_go = Event()
    held = behind.proxy.add(hold(let_go), method="PATCH", path=NODE_PATCH, nth=range(51, 100_000))
    leader, standby = leader_and_standby(behind.run(*SHORT_LEASE), behind.run(*SHORT_LEASE))
    create_nodes(site.admin, names, realistic_node)
    behind.proxy.wait_for(lambda entry: entry.rule is held)
    leader.process.kill()
    left = intents(site)
    assert len({uid for uid, *_ in left}) == len(left) > 50
    before = held.hits
    eventually(lambda: leads(standby))
    eventually(lambda: held.hits > before)
    let_go.set()
    site.wait_served(*names)
    eventually(lambda: intents(site) == [])
    assert_no_overlap(site.admin.items(NODES))


def test_what_it_costs(site: Site) -> None:
    """Pitfall 27, A9: hundreds of nodes take a Lease write for each hundred of them at most, beside the renewals.

    There are as many as can be recorded at a time, and the lease is a long one: however slow the machine is, nobody
    waits for room, and nothing is recorded twice.
    """
    names = [f"n{number:03}" for number in range(500)]
    create_nodes(site.admin, names, realistic_node)
    replica = site.run("--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=90s")
    eventually(lambda: replica.metric("cidrella_nodes_waiting") == len(names))
    before = len(recorded(site))
    site.create_pool("pool", ipv4="10.4.0.0/14")
    site.wait_served(*names)
    eventually(lambda: intents(site) == [])
    texts = recorded(site)[before:]
    uids = [{uid for uid, *_ in json.loads(text or "[]")} for text in ("", *texts)]
    writes = sum(not after <= earlier for earlier, after in itertools.pairwise(uids))
    assert len(set().union(*uids)) == len(names)
    assert writes <= len(names) / 100


def recorded(site: Site) -> list[str]:
    """What the leader wrote into the Lease about what may be written, each time that it changed."""
    found = [each for each in requests(site.cluster.audit_log) if (each.resource, each.name) == ("leases", "cidrella")]
    bodies = [each.body for each in found if each.verb == "patch" and isinstance(each.body, dict)]
    notes = [each.get("metadata", {}).get("annotations", {}) for each in bodies]
    return [each["cidrella.dev/intents"] for each in notes if "cidrella.dev/intents" in each]


def test_what_cannot_be_read(site: Site) -> None:
    """Pitfall 27: who finds in the Lease what it cannot read says so, and gives nothing until that is mended."""
    site.create_pool("pool", ipv4="10.1.0.0/16")
    site.create_node("n")
    lease = {"metadata": {"name": "cidrella", "annotations": {"cidrella.dev/intents": "[[1,2]]"}}, "spec": {}}
    site.admin.create(LEASE.rpartition("/")[0], lease)
    replica = site.replica().start(until_ready=False)
    eventually(lambda: "cidrella.dev/intents cannot be read" in replica.get("/readyz")[1])
    assert replica.get("/readyz")[0] == 503
    assert "take the annotation away" in next(each["how"] for each in replica.logged() if each["level"] == "error")
    held = site.admin.get(LEASE)
    eventually(lambda: site.admin.get(LEASE)["spec"]["renewTime"] != held["spec"]["renewTime"])
    assert site.admin.get(LEASE)["metadata"]["annotations"] == held["metadata"]["annotations"]
    assert site.blocks("n") == []
    assert replica.metric("cidrella_leader") == 0
    site.admin.patch(LEASE, {"metadata": {"annotations": {"cidrella.dev/intents": None}}})
    assert site.wait_served("n") == {"n": ["10.1.0.0/24"]}
    replica.wait_ready()
