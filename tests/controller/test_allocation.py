"""Serving nodes: what becomes of names, slots and reservations, whatever becomes of the writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cidrella.controller.intents import BATCH
from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError, NoAnswerError
from cidrella.model.objects import POOL_ANNOTATION
from tests.controller.fakes import FakeClient, Office
from tests.core.build import node, nodes, spec


async def _hang(_: str) -> None:
    await asyncio.Event().wait()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_write_cancelled_before_it_began() -> None:
    """N8, N9: a node that is gone before its write has begun leaves neither its name in hand nor its slot taken."""

    async def scenario() -> None:
        office = Office(FakeClient(_hang))
        office.cluster.add_pool(spec("all", "10.0.0.0/16 /24"))
        for each in nodes(3):
            office.see(each)
        names = await office.allocation.queue.take(3)
        office.duty.take_up()
        assert all(map(office.allocation._hand_on, office.allocation._serve(names)))
        sending = asyncio.ensure_future(office.allocation._empty_outbox())
        while office.limit.in_flight < 3:  # then comes the moment between sending and the first step of a write
            await asyncio.sleep(0)
        for name in names:
            office.lose(name)
        await _settle()
        assert office.limit.in_flight == 0
        assert office.allocation.queue.in_hand == 0
        assert await office.allocation.finish(0)
        assert office.failures == []
        sending.cancel()

    asyncio.run(scenario())


def test_an_error_that_nobody_foresaw_is_told() -> None:
    """A bug in a write ends the controller loudly, and not that one node alone, for ever and silently."""

    async def scenario() -> None:
        async def broken(_: str) -> None:
            raise KeyError("oops")

        office = Office(FakeClient(broken))
        office.cluster.add_pool(spec("all", "10.0.0.0/16 /24"))
        office.duty.take_up()
        running = asyncio.ensure_future(office.allocation.run())
        office.see(node("n"))
        await _settle()
        assert [type(each) for each in office.failures] == [KeyError]
        running.cancel()

    asyncio.run(scenario())


def test_a_refusal_while_the_node_changes() -> None:
    """N9: a name that is tried again at once after a refusal is known to be under way while it is."""

    async def scenario() -> None:
        refusals = iter([ApiError(403, "Forbidden", "no")])

        async def refuse_once(path: str) -> None:
            await asyncio.sleep(0)
            for refusal in refusals:
                raise refusal
            await _hang(path)

        fake = FakeClient(refuse_once)
        office = Office(fake)
        office.cluster.add_pool(spec("all", "10.0.0.0/16 /24"))
        office.duty.take_up()
        running = asyncio.ensure_future(office.allocation.run())
        office.see(node("n"))
        await asyncio.sleep(0)
        office.see(node("n", "size=big"))
        while len(fake.sent) < 2:
            await asyncio.sleep(0.01)
        assert not await office.allocation.finish(0)
        running.cancel()
        office.allocation.suspend()
        await _settle()

    asyncio.run(scenario())


def test_leading_again() -> None:
    """N9, F5: what was sent before is sent again, unless another has it, or its pool is gone or going."""

    async def scenario() -> None:
        async def lost(_: str) -> None:
            raise NoAnswerError("lost")

        for what, resent in (("nothing", True), ("pool gone", False), ("pool going", False), ("given away", False)):
            fake = FakeClient(lost)
            office = Office(fake)
            office.cluster.add_pool(spec("p", "10.0.0.0/24 /24"))
            office.duty.take_up()
            running = asyncio.ensure_future(office.allocation.run())
            office.see(node("n"))
            await _settle()
            office.duty.lay_down()
            office.allocation.suspend()
            assert not await office.allocation.finish(0)
            if what == "pool gone":
                office.cluster.remove_pool("p")
            if what == "pool going":
                office.cluster.change_pool(spec("p", "10.0.0.0/24 /24", terminating=True))
            if what == "given away":
                office.see(node("other", has="10.0.0.0/24"))
            office.allocation.resume()
            assert office.cluster.is_reserved("n", "uid of n") == resent, what
            fake.sent.clear()
            office.duty.take_up()
            await asyncio.sleep(0.3)
            assert bool(fake.sent) == resent, what
            running.cancel()

    asyncio.run(scenario())


def test_leading_again_with_half_of_the_pools() -> None:
    """N9, K3: of a node that was to get a block of each of two pools, all is given up if one of them is gone."""

    async def scenario() -> None:
        async def lost(_: str) -> None:
            raise NoAnswerError("lost")

        pools = [spec("ccc/v4", "10.0.0.0/24 /24"), spec("ccc/v6", "fd00::/64 /64")]
        fake = FakeClient(lost)
        office = Office(fake)
        for each in pools:
            office.cluster.add_pool(replace(each, composed=True))
        office.duty.take_up()
        running = asyncio.ensure_future(office.allocation.run())
        office.see(node("n"))
        await _settle()
        (body,) = (body for _, body in fake.sent)
        assert body["spec"]["podCIDRs"] == ["10.0.0.0/24", "fd00::/64"]
        assert body["metadata"]["annotations"] == {POOL_ANNOTATION: "ccc/v4,ccc/v6"}
        office.duty.lay_down()
        office.allocation.suspend()
        office.cluster.remove_pool("ccc/v6")
        office.allocation.resume()
        assert not office.cluster.holds("n")
        running.cancel()

    asyncio.run(scenario())


def test_nodes_that_wait_do_not_stop_the_world() -> None:
    """N4, A9: however many wait and are tried in vain, others get their turn in between."""

    async def scenario() -> None:
        office = Office(FakeClient(_hang))
        office.duty.take_up()
        for each in nodes(2000):
            office.see(each)
        running = asyncio.ensure_future(office.allocation.run())
        turns = 0
        while len(office.allocation.waiting) < 2000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 2000 // BATCH
        running.cancel()

    asyncio.run(scenario())


def test_a_standby_keeps_nothing_of_what_went() -> None:
    """F5: where nobody takes names, those of nodes that are served by another, or gone, are not kept for ever."""

    async def scenario() -> None:
        office = Office(FakeClient(_hang))
        served, gone, wants = nodes(3)
        for each in (served, gone, wants):
            office.see(each)
        office.see(replace(served, pod_cidrs=("10.0.0.0/24",)))
        office.lose(gone.name)
        assert len(office.allocation.queue) == 1
        assert await office.allocation.queue.take(3) == [wants.name]

    asyncio.run(scenario())


def test_what_others_took_is_not_sent_again() -> None:
    """N6, N9, A7: without a Lease too, what was sent in vain and was taken by others is held, and another one given."""

    async def scenario() -> None:
        async def lose(_: str) -> None:
            raise NoAnswerError("lost")

        fake = FakeClient(lose)
        office = Office(fake)
        office.cluster.add_pool(spec("all", "10.0.0.0/16 /24"))
        office.duty.take_up()
        running = asyncio.ensure_future(office.allocation.run())
        office.see(node("n"))
        await _settle()
        before = len(fake.sent)
        assert before
        office.cluster.add_service_range(Prefix.parse("10.0.0.0/24"), "services")
        async with asyncio.timeout(60):
            while len(fake.sent) == before:
                await asyncio.sleep(0.01)
        assert [body["spec"]["podCIDRs"] for _, body in fake.sent[before:]] == [["10.0.1.0/24"]]
        assert office.cluster.holds_count == 1
        running.cancel()

    asyncio.run(scenario())
