"""Who leads when replicas come, go, freeze and lose the API server: F5, on a real Lease of three seconds."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from tests.real.behind import NODE_PATCH, behind_proxy
from tests.real.site import LEASE, SHORT_LEASE, UNINITIALIZED, eventually
from tests.testenv.faults import cut, delay
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.site import Replica, Site

LEASE_SECONDS = 3.0


def leads(replica: Replica) -> bool:
    """Whether a replica says that it leads."""
    return replica.metric("cidrella_leader") == 1


def holder(site: Site) -> str:
    """Who holds the Lease."""
    return str(site.admin.get(LEASE)["spec"].get("holderIdentity", ""))


def leader_and_standby(one: Replica, two: Replica) -> tuple[Replica, Replica]:
    """The two, once one of them leads and both are ready."""
    eventually(lambda: leads(one) != leads(two))
    for replica in (one, two):
        replica.wait_ready()
    return (one, two) if leads(one) else (two, one)


def serve(site: Site, name: str) -> None:
    """A node comes, and is given blocks; no two nodes share any."""
    site.create_node(name)
    site.wait_served(name)
    assert_no_overlap(site.admin.items(NODES))


def test_replicas_come_and_go(site: Site, record_property: Callable[[str, object], None]) -> None:
    """F5, O2: one leads and the other is ready to; a leader that is told to end hands over, one that dies is replaced.

    A leader that was frozen beyond its lease leads no more when it wakes.
    """
    site.create_pool("pool", ipv4="10.1.0.0/16", ipv6="fd00:1::/112")
    one, two = site.run(), site.run()
    leader, standby = leader_and_standby(one, two)
    serve(site, "n1")

    began = time.monotonic()
    os.kill(leader.process.pid, signal.SIGTERM)
    eventually(lambda: leads(standby))
    told = time.monotonic() - began
    leader.stop()
    serve(site, "n2")
    assert standby.get("/readyz")[0] == 200

    leader.start()
    leader, standby = leader_and_standby(one, two)
    first = holder(site)
    began = time.monotonic()
    leader.process.kill()
    eventually(lambda: leads(standby))
    died = time.monotonic() - began
    assert holder(site) != first
    serve(site, "n3")

    leader.start()
    leader, standby = leader_and_standby(one, two)
    began = time.monotonic()
    leader.process.pause()
    eventually(lambda: leads(standby))
    frozen = time.monotonic() - began
    serve(site, "n4")
    leader.process.resume()
    eventually(lambda: leader.get("/readyz")[0] == 200)
    assert not leads(leader)
    assert leads(standby)
    assert any(line["event"] == "no longer leading" for line in leader.logged())
    serve(site, "n5")
    for how, seconds in (("told", told), ("killed", died), ("frozen", frozen)):
        record_property(f"seconds until the other leads, {how}", round(seconds, 2))
    assert told < 1
    assert min(died, frozen) > LEASE_SECONDS - 1
    assert max(died, frozen) < LEASE_SECONDS + 2


def test_the_api_server_is_away_for_longer_than_the_lease(site: Site) -> None:
    """F5, O6, pitfall 24: replicas outlive the outage, say so, lead no longer than they may, and one leads after.

    One that is started meanwhile ends in time when it is told to, and else waits like the others.
    """
    site.create_pool("pool", ipv4="10.1.0.0/16")
    one, two = site.run(), site.run()
    leader, _ = leader_and_standby(one, two)
    serve(site, "n1")
    pids = [one.process.pid, two.process.pid]

    site.cluster.apiserver.kill()
    killed = time.monotonic()
    for replica in (one, two):
        eventually(lambda replica=replica: replica.metric("cidrella_api_reachable") == 0)  # type: ignore[misc]
        eventually(lambda replica=replica: replica.get("/readyz")[0] == 503)  # type: ignore[misc]
        assert replica.get("/healthz")[0] == 200
    eventually(lambda: not leads(leader), LEASE_SECONDS + 2)
    code, why = leader.get("/readyz")
    assert code == 503
    assert "nodes cannot be followed" in why
    assert "the lease cannot be had" in why
    third, fourth = (site.replica().start(until_ready=False) for _ in range(2))
    eventually(lambda: third.get("/healthz")[0] == fourth.get("/healthz")[0] == 200)
    seconds, ended = fourth.terminate()
    assert ended == 0
    assert seconds < 5
    eventually(lambda: time.monotonic() - killed > LEASE_SECONDS + 1)
    assert not leads(one)
    assert not leads(two)

    site.cluster.apiserver.start()
    site.cluster.wait_ready()
    site.admin.close()
    eventually(lambda: any(map(leads, (one, two, third))))
    third.wait_ready()
    assert sum(map(leads, (one, two, third))) == 1
    assert pids == [one.process.pid, two.process.pid]
    assert one.process.ended is None
    assert two.process.ended is None
    for replica in (one, two, third):
        replica.wait_ready()
        assert replica.metric("cidrella_api_reachable") == 1
    serve(site, "n2")
    assert sum(map(leads, (one, two, third))) == 1


def test_a_write_that_lands_after_the_end(site: Site) -> None:
    """N9, F5, A1: a leader that ends with a block still under way says so in the lease, and hands over at once.

    The pool has one block. The leader sends it to one node, slowly; to its successor, another one would come first.
    """
    site.create_pool("pool", ipv4="10.1.0.0/24")
    with behind_proxy(site) as behind:
        late = behind.proxy.add(delay(3.5, even_if_gone=True), method="PATCH", path=NODE_PATCH, nth=1)
        leader, standby = leader_and_standby(behind.run(*SHORT_LEASE), behind.run(*SHORT_LEASE))
        taint = {"key": UNINITIALIZED, "effect": "NoSchedule"}
        site.create_node("held-back", taints=[taint])
        site.create_node("slow")
        behind.proxy.wait_for(lambda entry: entry.rule is late)
        site.admin.patch(f"{NODES}/held-back", {"spec": {"taints": None}})
        os.kill(leader.process.pid, signal.SIGTERM)
        assert eventually(lambda: leads(standby)) < 1
        leader.stop()
        assert site.wait_served("slow") == {"slow": ["10.1.0.0/24"]}
        site.wait_event("CIDRNotAvailable", "held-back")
        assert site.blocks("held-back") == []


def test_a_lease_lost_for_a_moment(site: Site) -> None:
    """N9, A1, F5: a leader that could not renew in time, and leads again, remembers the writes that may still land."""
    site.create_pool("pool", ipv4="10.1.0.0/24")
    with behind_proxy(site) as behind:
        late = behind.proxy.add(delay(7.0, even_if_gone=True), method="PATCH", path=NODE_PATCH, nth=1)
        replica = behind.run(*SHORT_LEASE)
        eventually(lambda: replica.metric("cidrella_leader") == 1)
        site.create_node("held-back", taints=[{"key": UNINITIALIZED, "effect": "NoSchedule"}])
        site.create_node("slow")
        behind.proxy.wait_for(lambda entry: entry.rule is late)
        away = behind.proxy.add(cut(), path="/leases/")
        eventually(lambda: replica.metric("cidrella_leader") == 0)
        site.admin.patch(f"{NODES}/held-back", {"spec": {"taints": None}})
        behind.proxy.remove(away)
        eventually(lambda: replica.metric("cidrella_leader") == 1)
        site.wait_served("slow")
        eventually(lambda: len(site.events("CIDRNotAvailable")) > 0)
        assert_no_overlap(site.admin.items(NODES))
