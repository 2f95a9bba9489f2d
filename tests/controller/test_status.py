"""What a pool's status says, condition by condition."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from cidrella.controller.status import StatusWriter, pool_status
from cidrella.core.cluster import Cluster
from cidrella.core.prefix import Prefix
from cidrella.kube.duty import Duty
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS
from cidrella.model.objects import Condition, ObjectMeta, PoolStatus
from cidrella.model.reading import SeenPool
from tests.controller.fakes import FakeClient
from tests.core.build import node, nodes, spec

if TYPE_CHECKING:
    from cidrella.core.pool import PoolSpec

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"


def status(written: PoolSpec, *, users: int = 0, before: PoolStatus | None = None, now: str = NOW) -> PoolStatus:
    """The status of a pool that was used before it became what it is now."""
    cluster = Cluster()
    cluster.add_pool(replace(written, terminating=False))
    cluster.decide_many(nodes(users))
    cluster.remove_pool(written.name)
    cluster.add_pool(written)
    seen = SeenPool(ObjectMeta(name=written.name, uid="u", generation=4), written, before, CLUSTER_CIDR)
    return pool_status(cluster, seen, now)


def told(given: PoolStatus) -> list[tuple[str, str, str]]:
    return [(each.type, each.status, each.reason) for each in given.conditions]


@pytest.mark.parametrize(
    ("written", "users", "conditions"),
    [
        (spec("p", "10.0.0.0/24 /28"), 1, [("Active", "True", "Allocatable")]),
        (spec("p", "10.0.0.0/27 /28"), 2, [("Active", "False", "CIDRExhausted")]),
        (
            spec("p", "10.0.0.0/24 /28", terminating=True),
            1,
            [("Active", "False", "Terminating"), ("Terminating", "True", "CIDRInUse")],
        ),
        (
            spec("p", "10.0.0.0/24 /28", terminating=True),
            0,
            [("Active", "False", "Terminating"), ("Terminating", "True", "Releasing")],
        ),
        (spec("p", problem="it is wrong"), 0, [("Active", "False", "Invalid")]),
    ],
)
def test_conditions(written: PoolSpec, users: int, conditions: list[tuple[str, str, str]]) -> None:
    """P4: each state has its conditions, for the generation that was looked at."""
    given = status(written, users=users)
    assert told(given) == conditions
    assert {each.observed_generation for each in given.conditions} == {4}
    assert {each.last_transition_time for each in given.conditions} == {NOW}


def test_counts() -> None:
    """A8, P4: the counts of each family, the nodes, and the free blocks of the family that has fewer."""
    given = status(spec("p", "10.0.0.0/24 /28", "fd00::/16 /120"), users=3)
    assert given.ipv4 is not None
    assert (given.ipv4.capacity, given.ipv4.allocated, given.ipv4.free) == (16, 3, 13)
    assert given.ipv6 is not None
    assert given.ipv6.capacity == 2**63 - 1
    assert (given.nodes, given.free) == (3, 13)


def test_the_message_names_ten_nodes() -> None:
    """P4: of many nodes that keep a pool, ten are named and the rest are counted."""
    given = status(spec("p", "10.0.0.0/24 /28", terminating=True), users=12)
    message = given.conditions[1].message
    assert message.count(", ") == 9
    assert message.endswith(" and 2 more.")


def test_the_message_tells_of_what_may_yet_be_written() -> None:
    """P4, pitfall 27: a pool that is kept by what may yet land on a node says so, and how else that can end."""
    written = spec("p", "10.0.0.0/24 /28", terminating=True)
    cluster = Cluster()
    cluster.add_pool(written)
    cluster.hold(node("a"), "p", [Prefix.parse("10.0.0.16/28")])
    seen = SeenPool(ObjectMeta(name="p", uid="u"), written, None, CLUSTER_CIDR)
    message = pool_status(cluster, seen, NOW).conditions[1].message
    assert "nodes are gone: a (10.0.0.16/28 may yet be written)." in message
    assert message.endswith("also ends when that node has podCIDRs, of whatever pool.")


def test_a_condition_keeps_its_time() -> None:
    """P4: the time of a condition is that of its last change of status; others' conditions are left alone."""
    foreign = Condition(type="Theirs", status="True")
    first = status(spec("p", "10.0.0.0/24 /28"), users=1)
    before = msgspec.structs.replace(first, conditions=[*first.conditions, foreign])
    same = status(spec("p", "10.0.0.0/24 /28"), users=2, before=before, now=LATER)
    assert [each.last_transition_time for each in same.conditions] == [NOW, None]
    assert same.conditions[1] == foreign
    full = status(spec("p", "10.0.0.0/27 /28"), users=2, before=before, now=LATER)
    assert full.conditions[0].last_transition_time == LATER


def test_a_long_problem_is_cut() -> None:
    """C4: what is wrong with an object may be longer than a message can be."""
    given = status(spec("p", problem="x" * 5000))
    assert len(given.conditions[0].message) == 1024


def test_a_node_that_is_there_twice_counts_once() -> None:
    """A8: nodes are counted, not blocks."""
    cluster = Cluster()
    written = spec("p", "10.0.0.0/24 /28")
    cluster.add_pool(written)
    cluster.observe(node("n", has="10.0.0.0/28,10.0.0.16/28"))
    given = pool_status(cluster, SeenPool(ObjectMeta(name="p"), written, None, CLUSTER_CIDR), NOW)
    assert (given.nodes, given.ipv4 and given.ipv4.allocated) == (1, 2)


def test_what_others_wrote_while_they_led_is_put_right() -> None:
    """P4, F5: a replica that leads again writes what is true, also where that is what it wrote the last time."""

    async def scenario() -> None:
        async def answer(_: str) -> None:
            pass

        cluster, duty, fake = Cluster(), Duty(lambda: True), FakeClient(answer)
        written = spec("p", "10.0.0.0/24 /28")
        coming = replace(written, guarded=False)
        cluster.add_pool(coming)
        pools = {"p": SeenPool(ObjectMeta(name="p", uid="u"), coming, None, CLUSTER_CIDR)}
        writer = StatusWriter(fake.client, cluster, pools, duty, lambda: NOW)
        running = asyncio.ensure_future(writer.run())
        duty.take_up()
        writer.resume()
        await asyncio.sleep(0.1)
        assert fake.sent == []  # nothing is said of a pool that is about to be guarded
        cluster.change_pool(written)
        pools["p"] = pools["p"]._replace(spec=written)
        writer.touch()
        async with asyncio.timeout(10):
            while len(fake.sent) < 1:
                await asyncio.sleep(0.01)
            pools["p"] = pools["p"]._replace(status=PoolStatus(nodes=7))  # by another, who led meanwhile
            writer.resume()
            while len(fake.sent) < 2:
                await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(scenario())


def test_a_selector_that_is_written_in_another_way() -> None:
    """K2, P4: the status tells which generation it was made from, also where the pool means the same as before."""

    async def scenario() -> None:
        async def answer(_: str) -> None:
            pass

        cluster, duty, fake = Cluster(), Duty(lambda: True), FakeClient(answer)
        written = replace(spec("ccc/p", "10.0.0.0/24 /28"), composed=True)
        cluster.add_pool(written)
        seen = SeenPool(ObjectMeta(name="p", uid="u", generation=1), written, None, CLUSTER_CIDR_CONFIG)
        pools = {seen.name: seen}
        writer = StatusWriter(fake.client, cluster, pools, duty, lambda: NOW)
        running = asyncio.ensure_future(writer.run())
        duty.take_up()
        async with asyncio.timeout(10):
            for generation in (1, 2):
                metadata = msgspec.structs.replace(seen.metadata, generation=generation)
                pools[seen.name] = pools[seen.name]._replace(metadata=metadata)
                writer.touch()
                while len(fake.sent) < generation:
                    await asyncio.sleep(0.01)
                path, body = fake.sent[-1]
                assert path == f"{CLUSTER_CIDR_CONFIG.path}/p/status"
                assert body["status"]["conditions"][0]["observedGeneration"] == generation
                told = msgspec.convert(body["status"] | {"ipv6": None}, PoolStatus)
                pools[seen.name] = pools[seen.name]._replace(status=told)
                writer.touch()
                await asyncio.sleep(1.1)  # found to be true, and remembered as such
        running.cancel()

    asyncio.run(scenario())


def test_a_kind_whose_crd_has_no_status() -> None:
    """C4, K6: of one kind nothing is written, of the other everything; it is, once the CRD can hold it."""

    async def scenario() -> None:
        async def answer(_: str) -> None:
            pass

        cluster, duty, fake = Cluster(), Duty(lambda: True), FakeClient(answer)
        pools = {}
        for kind in POOL_KINDS:
            written = spec(kind.pool_name("p"), "10.0.0.0/24 /28")
            cluster.add_pool(written)
            pools[written.name] = SeenPool(ObjectMeta(name="p", uid="u"), written, None, kind)
        writer = StatusWriter(fake.client, cluster, pools, duty, lambda: NOW)
        running = asyncio.ensure_future(writer.run())
        writer.leave_out(frozenset({CLUSTER_CIDR_CONFIG}))
        duty.take_up()
        writer.touch()
        await asyncio.sleep(0.2)
        assert [path for path, _ in fake.sent] == [f"{CLUSTER_CIDR.path}/p/status"]
        writer.leave_out(frozenset())
        async with asyncio.timeout(10):
            while len(fake.sent) < 2:
                await asyncio.sleep(0.01)
        assert fake.sent[1][0] == f"{CLUSTER_CIDR_CONFIG.path}/p/status"
        running.cancel()

    asyncio.run(scenario())
