"""No block is given to two nodes, though a leader was paused or killed with writes on the wire: pitfall 27."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from cidrella.app.running import UNSAFE
from tests.real.behind import NODE_PATCH, behind_proxy
from tests.real.site import LEASE, POOLS, SHORT_LEASE, UNINITIALIZED, eventually
from tests.real.test_leading import leader_and_standby, leads
from tests.testenv.audit import requests
from tests.testenv.faults import delay
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, realistic_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.behind import Behind
    from tests.real.site import Replica, Site
    from tests.testenv.fault_script import Rule

RETRY_PERIOD = 0.5
LATE = 7.0
"""Seconds that a PATCH is on its way: more than the lease, and what it takes to lead and to give, together."""
HELD_BACK = [{"key": UNINITIALIZED, "effect": "NoSchedule"}]


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site whose replicas are behind a proxy."""
    with behind_proxy(site) as made:
        yield made


def intents(site: Site) -> list[list[str]]:
    """What the Lease says may yet be written: of each node the uid, the pool and the blocks."""
    text = site.admin.get(LEASE)["metadata"].get("annotations", {}).get("cidrella.dev/intents", "[]")
    return list(json.loads(text))


def paused_with_a_write_on_the_wire(behind: Behind) -> tuple[Replica, Replica, Rule]:
    """A leader that sends a node its block, and is paused before that arrives; its standby; the write."""
    site = behind.site
    late = behind.proxy.add(delay(LATE, even_if_gone=True), method="PATCH", path=NODE_PATCH, nth=1)
    leader, standby = leader_and_standby(behind.run(*SHORT_LEASE), behind.run(*SHORT_LEASE))
    site.create_node("held-back", taints=HELD_BACK)
    site.create_node("slow")
    behind.proxy.wait_for(lambda entry: entry.rule is late)
    leader.process.pause()
    return leader, standby, late


def arrived(behind: Behind, late: Rule) -> int | None:
    """Wait until the write has arrived; how it was answered."""
    (entry,) = behind.proxy.wait_for(lambda entry: entry.rule is late and entry.status is not None, timeout=2 * LATE)
    return entry.status


def overtaken(behind: Behind) -> None:
    """The only block is on its way to one node, when a successor that does not know would give it to another."""
    site = behind.site
    site.create_pool("pool", ipv4="10.1.0.0/24")
    leader, standby, late = paused_with_a_write_on_the_wire(behind)
    site.admin.patch(f"{NODES}/held-back", {"spec": {"taints": None}})
    eventually(lambda: leads(standby))
    arrived(behind, late)
    site.wait_served("slow")
    leader.process.resume()


def test_a_paused_leader_with_a_write_on_the_wire(behind: Behind) -> None:
    """Pitfall 27, A1, F5: the successor finds in the Lease what was sent, and gives it to nobody else."""
    site = behind.site
    overtaken(behind)
    assert site.blocks("slow") == ["10.1.0.0/24"]
    site.wait_event("CIDRNotAvailable", "held-back")
    assert site.blocks("held-back") == []
    eventually(lambda: intents(site) == [])
    assert_no_overlap(site.admin.items(NODES))


def test_without_intents_it_is_given_twice(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 27: the same without the record gives one block to two nodes: what the tests here show, they can."""
    monkeypatch.setenv(UNSAFE, "1")
    overtaken(behind)
    with pytest.raises(AssertionError, match=r"10\.1\.0\.0/24"):
        assert_no_overlap(behind.site.admin.items(NODES))


def test_a_pool_that_goes_meanwhile(behind: Behind) -> None:
    """Pitfall 27, P2, S6: what is on the wire from a pool that is being deleted is sent by nobody, and held until then.

    The node is given a block of another pool. The deleted one goes as soon as that is seen.
    """
    site = behind.site
    site.create_pool("first", ipv4="10.1.0.0/24")
    site.create_pool("second", ipv4="10.2.0.0/23")
    leader, standby, late = paused_with_a_write_on_the_wire(behind)
    assert [entry[1:] for entry in intents(site)] == [["first", "10.1.0.0/24"]]
    site.admin.delete(f"{POOLS}/first")
    eventually(lambda: leads(standby))
    assert site.wait_served("slow") == {"slow": ["10.2.0.0/24"]}
    site.wait_gone(POOLS, "first", 5)
    eventually(lambda: intents(site) == [])
    leader.process.resume()
    assert arrived(behind, late) == 422
    assert site.blocks("slow") == ["10.2.0.0/24"]


def test_killed_in_the_middle(behind: Behind) -> None:
    """Pitfall 27, F5: a leader that dies while it serves hundreds leaves nothing that its successor does not finish."""
    site = behind.site
    site.create_pool("pool", ipv4="10.4.0.0/14")
    names = [f"n{number:03}" for number in range(400)]
    behind.proxy.add(delay(0.2, even_if_gone=True), method="PATCH", path=NODE_PATCH)
    leader, standby = leader_and_standby(behind.run(*SHORT_LEASE), behind.run(*SHORT_LEASE))
    create_nodes(site.admin, names, realistic_node)
    behind.proxy.wait_for(lambda entry: entry.method == "PATCH" and entry.path.startswith(NODES), count=50)
    leader.process.kill()
    left = intents(site)
    assert len({uid for uid, *_ in left}) == len(left) > 50
    site.wait_served(*names)
    assert leads(standby)
    eventually(lambda: intents(site) == [])
    assert_no_overlap(site.admin.items(NODES))


def test_what_it_costs(site: Site) -> None:
    """Pitfall 27, A9: hundreds of nodes take a Lease write for each hundred of them at most, beside the renewals."""
    names = [f"n{number:03}" for number in range(600)]
    create_nodes(site.admin, names, realistic_node)
    site.run()
    before, began = lease_writes(site), time.monotonic()
    site.create_pool("pool", ipv4="10.4.0.0/14")
    site.wait_served(*names)
    renewals = (time.monotonic() - began) / RETRY_PERIOD
    assert lease_writes(site) - before <= renewals + 1 + len(names) / 100
    eventually(lambda: intents(site) == [])


def lease_writes(site: Site) -> int:
    """How often the Lease was written to."""
    found = requests(site.cluster.audit_log)
    return sum(each.resource == "leases" and each.name == "cidrella" and each.verb == "patch" for each in found)
