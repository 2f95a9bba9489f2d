"""Nodes that wait for their cloud provider: how long, what ends it, and what is told (N10)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.controller.fakes import FakeClient, Office
from tests.core.build import node, nodes, part, spec
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cidrella.core.decision import Node

FALLBACK = spec("fallback", "10.0.0.0/16 /24")
ZONE_A = spec("zone-a", "10.1.0.0/24 /24", where="zone=a")


async def _taken(_: str) -> None:
    """Answer that a write took effect."""


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(seconds: float = 60.0) -> AsyncIterator[Office]:
    """Serve nodes from a fallback and a pool with a selector."""
    office = Office(FakeClient(_taken), cloud_provider_wait=seconds)
    office.cluster.add_pool(FALLBACK)
    office.cluster.add_pool(ZONE_A)
    office.allocation.wake()  # so that it knows of no opening that is yet to come
    office.duty.take_up()
    running = asyncio.ensure_future(office.allocation.run())
    yield office
    running.cancel()
    assert office.failures == []


def tainted(name: str, labels: str = "") -> Node:
    """Write down a node that its cloud provider has not initialised."""
    return node(name, labels, uninitialized=True)


def sent(office: Office) -> dict[str, str]:
    """What was sent to each node."""
    client = office.client.sent
    return {path.split("/")[-1].split("?")[0]: body["spec"]["podCIDR"] for path, body in client}


def test_waits_and_is_told_once() -> None:
    """N10: however often the node is looked at, one event tells; it counts as waiting for its cloud provider alone."""

    async def scenario() -> None:
        async with serving() as office:
            office.see(tainted("a"))
            await _settle()
            await asyncio.sleep(30.0)
            office.see(tainted("a", "other=label"))
            await _settle()
            assert sent(office) == {}
            assert office.findings.told == ["a"]
            assert set(office.allocation.waiting_for_cloud) == {"a"}
            assert not office.allocation.waiting
            assert office.allocation.may_wait_for_cloud("a")

    simulate(scenario())


def test_time_is_over() -> None:
    """N10: 60 s after this process first saw the node, it is served from the pools that match, by itself."""

    async def scenario() -> None:
        async with serving() as office:
            office.see(tainted("a"))
            await asyncio.sleep(30.0)
            office.see(tainted("a", "other=label"))
            await asyncio.sleep(29.9)
            assert sent(office) == {}
            await asyncio.sleep(0.2)
            assert sent(office) == {"a": "10.0.0.0/24"}
            assert not office.allocation.waiting_for_cloud
            assert not office.allocation.may_wait_for_cloud("a")
            assert office.findings.told == ["a"]

    simulate(scenario())


def test_nothing_matches_when_its_time_is_over() -> None:
    """N4, N10: then the node waits as any other for which there is no pool."""

    async def scenario() -> None:
        async with serving() as office:
            office.cluster.remove_pool("fallback")
            office.see(tainted("a"))
            await _settle()
            assert set(office.allocation.waiting_for_cloud) == {"a"}
            await asyncio.sleep(60.1)
            assert not office.allocation.waiting_for_cloud
            assert office.allocation.waiting.keys() == {"a"}

    simulate(scenario())


def test_a_standby_counts_the_time() -> None:
    """N10, F5: a replica that begins to lead counts from its own first sight of a node."""

    async def scenario() -> None:
        async with serving() as office:
            office.duty.lay_down()
            office.allocation.suspend()
            office.see(tainted("early"))
            await asyncio.sleep(60.1)
            office.see(tainted("late"))
            assert not office.allocation.waiting_for_cloud
            office.allocation.resume()
            office.duty.take_up()
            await _settle()
            assert sent(office) == {"early": "10.0.0.0/24"}
            assert set(office.allocation.waiting_for_cloud) == {"late"}
            office.allocation.suspend()
            assert not office.allocation.waiting_for_cloud

    simulate(scenario())


def test_another_node_of_the_same_name() -> None:
    """N8, N10: its time begins anew, and it is told again."""

    async def scenario() -> None:
        async with serving() as office:
            office.see(tainted("a"))
            await asyncio.sleep(50.0)
            office.lose("a")
            assert not office.allocation.waiting_for_cloud
            office.see(replace(tainted("a"), uid="another"))
            await asyncio.sleep(50.0)
            assert sent(office) == {}
            assert office.findings.told == ["a", "a"]

    simulate(scenario())


def test_taint_removed() -> None:
    """N10: with its labels the node gets a block of the pool that they select, at once."""

    async def scenario() -> None:
        async with serving() as office:
            office.see(tainted("a"))
            await _settle()
            office.see(node("a", "zone=a"))
            await _settle()
            assert sent(office) == {"a": "10.1.0.0/24"}

    simulate(scenario())


def test_pool_becomes_full() -> None:
    """N10: all nodes that wait for it are served at once, by whatever it was that filled it."""

    async def scenario() -> None:
        async with serving() as office:
            for name in ("a", "b", "c"):
                office.see(tainted(name))
            await _settle()
            assert len(office.allocation.waiting_for_cloud) == 3
            office.see(node("last", "zone=a", has="10.1.0.0/24"))
            office.allocation.wake()
            await _settle()
            assert sorted(sent(office)) == ["a", "b", "c"]

    simulate(scenario())


def test_pool_becomes_full_within_one_batch() -> None:
    """N10: a node that is decided on together with the one that takes the last block does not wait for it."""

    async def scenario() -> None:
        async with serving() as office:
            office.see(tainted("a"))
            office.see(node("b", "zone=a"))
            office.see(tainted("c"))
            await _settle()
            assert sent(office) == {"a": "10.0.1.0/24", "b": "10.1.0.0/24", "c": "10.0.0.0/24"}
            assert office.findings.told == []

    simulate(scenario())


def test_pool_is_deleted() -> None:
    """N10, S6: those that wait for it are served at once, unless there is another to wait for."""

    async def scenario() -> None:
        async with serving() as office:
            office.cluster.add_pool(spec("zone-b", "10.2.0.0/23 /24", where="zone=b"))
            office.see(tainted("a"))
            office.see(tainted("b", "zone=b"))
            await _settle()
            office.cluster.change_pool(replace(ZONE_A, terminating=True))
            office.allocation.wake()
            await _settle()
            assert sent(office) == {"b": "10.2.0.0/24"}
            assert set(office.allocation.waiting_for_cloud) == {"a"}
            office.cluster.remove_pool("zone-b")
            office.allocation.wake()
            await _settle()
            assert sent(office)["a"] == "10.0.0.0/24"

    simulate(scenario())


def test_pool_selects_other_nodes() -> None:
    """N10, K2: a node is served when the pool that it waits for matches it as it is."""

    async def scenario() -> None:
        async with serving() as office:
            written = part("config", "10.3.0.0/16 /24", "rack=1")
            office.cluster.remove_pool("zone-a")
            office.cluster.add_pool(written)
            office.see(tainted("a", "rack=2"))
            office.see(tainted("b"))
            await _settle()
            assert len(office.allocation.waiting_for_cloud) == 2
            office.cluster.change_pool(replace(written, selector=part("config", "10.3.0.0/16 /24", "rack").selector))
            office.allocation.wake()
            await _settle()
            assert sent(office) == {"a": "10.3.0.0/24"}

    simulate(scenario())


def test_no_waiting() -> None:
    """N10: where the time is 0, no node waits."""

    async def scenario() -> None:
        async with serving(0.0) as office:
            for each in nodes(2):
                office.see(replace(each, uninitialized=True))
            await _settle()
            assert sorted(sent(office)) == ["n0", "n1"]
            assert office.findings.told == []

    simulate(scenario())
