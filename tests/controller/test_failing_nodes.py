"""Nodes whose PATCH fails: what becomes of them, and that no other node waits for them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from cidrella.controller.intents import MOST, Intent, decode
from cidrella.controller.no_cidr_reason import NoCidrReason
from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from tests.controller.fakes import FakeClient, Office
from tests.core.build import node, nodes, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

REFUSED = ApiError(403, "Forbidden", "denied by a policy")
REFUSALS = [REFUSED, ApiError(404, "", "denied by a webhook"), ApiError(422, "Invalid", "denied by a policy")]
FAILED = ApiError(500, "InternalError", "failed calling webhook")
WEBHOOK_429 = ApiError(429, "TooManyRequests", "later", retry_after=0.01)


async def _recorded() -> bool:
    return True


@asynccontextmanager
async def serving(
    error: KubeError | None, *, lease: bool = True, inherited: tuple[Intent, ...] = ()
) -> AsyncIterator[tuple[Office, FakeClient]]:
    """Nodes being served, where a PATCH for a node whose name begins with "bad" fails so; without an error it hangs."""

    async def answer(path: str) -> None:
        if "/bad" in path:
            if error is None:
                await asyncio.Event().wait()
            else:
                raise error

    fake = FakeClient(answer)
    office = Office(fake, _recorded if lease else None)
    office.cluster.add_pool(spec("p", "10.0.0.0/8 /24"))
    for each in inherited:
        office.see(node(each.uid.removeprefix("uid of "), uid=each.uid))
    office.allocation.resume(inherited)
    office.duty.take_up()
    running = asyncio.ensure_future(office.allocation.run())
    try:
        yield office, fake
    finally:
        running.cancel()
        office.allocation.suspend()
        await asyncio.sleep(0)
    assert office.failures == []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


def names_sent(fake: FakeClient) -> set[str]:
    return {path.split("/")[-1].partition("?")[0] for path, _ in fake.sent}


def show(office: Office, name: str, fake: FakeClient) -> None:
    """The watch shows a node with what was sent to it."""
    cidrs = next(body["spec"]["podCIDRs"] for path, body in fake.sent if f"/{name}?" in path)
    office.see(node(name, has=cidrs[0]))


@pytest.mark.parametrize("lease", [True, False])
@pytest.mark.parametrize("error", [None, FAILED, NoAnswerError("lost"), *REFUSALS, WEBHOOK_429])
@pytest.mark.parametrize("bad", [6, MOST + 8])
def test_good_nodes_are_served_beside_bad_ones(error: KubeError | None, bad: int, lease: bool) -> None:
    """N4, promise 6: once bad nodes were tried, however many there are, good nodes are served.

    Those whose PATCH hangs were inherited: so many first attempts would take their time.
    """

    async def scenario() -> None:
        inherited: tuple[Intent, ...] = ()
        if error is None:
            inherited = tuple(
                Intent(f"uid of bad{number}", "p", (Prefix.parse(f"10.{number // 256}.{number % 256}.0/24"),))
                for number in range(bad)
            )
        async with serving(error, lease=lease, inherited=inherited) as (office, fake):
            for each in nodes(0 if error is None else bad, name="bad"):
                office.see(each)
            await until(lambda: error is None or len(names_sent(fake)) == bad)
            for each in nodes(300, name="good"):
                office.see(each)
            await until(lambda: sum(name.startswith("good") for name in names_sent(fake)) == 300)
            for number in range(300):
                show(office, f"good{number}", fake)
            assert office.limit.limit >= 4
            counts = office.allocation.without_cidr()
            reason = NoCidrReason.REFUSED if error in REFUSALS else NoCidrReason.UNKNOWN_OUTCOME
            assert counts[reason][0] == bad
            assert sum(some for some, _ in counts.values()) == bad
            if error not in REFUSALS and lease:
                assert len(decode(office.intents.text() or "")) == bad

    asyncio.run(scenario())


@pytest.mark.parametrize("lease", [True, False])
def test_first_attempts_that_hang_leave_their_slots(lease: bool) -> None:
    """N4, promise 6: new nodes whose PATCH hangs, more than there are slots, do not keep others waiting so long."""

    async def scenario() -> None:
        async with serving(None, lease=lease) as (office, fake):
            for each in nodes(30, name="bad"):
                office.see(each)
            for each in nodes(50, name="good"):
                office.see(each)
            await until(lambda: len(names_sent(fake)) == 80)
            await until(lambda: office.limit.in_flight == 30)
        await until(lambda: office.limit.in_flight == 0)

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [FAILED, NoAnswerError("lost"), WEBHOOK_429, ApiError(408, "", "", is_status=False)])
def test_what_is_unknown_is_sent_again_as_it_was(error: KubeError) -> None:
    """N9: a write of unknown outcome keeps its block and its record, and a refusal afterwards frees neither."""

    async def scenario() -> None:
        async with serving(error) as (office, fake):
            office.see(node("bad"))
            await until(lambda: len(fake.sent) >= 2)

            async def refuse(_: str) -> None:
                raise REFUSED

            fake.answer = refuse
            before = len(fake.sent)
            await until(lambda: len(fake.sent) >= before + 2)
            assert {body["spec"]["podCIDR"] for _, body in fake.sent} == {"10.0.0.0/24"}
            assert office.cluster.is_reserved("bad", "uid of bad")
            assert len(decode(office.intents.text() or "")) == 1
            assert office.allocation.without_cidr()[NoCidrReason.UNKNOWN_OUTCOME][0] == 1

    asyncio.run(scenario())


def test_retry_after_is_kept() -> None:
    """N9: after a 429 of the API server the same block is sent again when its Retry-After is over, and not before."""

    async def scenario() -> None:
        error = ApiError(429, "", "Too many requests, please try again later.", 0.5, is_status=False)
        times: list[float] = []

        async def answer(_: str) -> None:
            times.append(asyncio.get_running_loop().time())
            if len(times) == 1:
                raise error

        async with serving(None) as (office, fake):
            fake.answer = answer
            office.see(node("n"))
            await until(lambda: len(times) == 2)
            assert times[1] - times[0] >= 0.5
            assert len({body["spec"]["podCIDR"] for _, body in fake.sent}) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [None, REFUSED, FAILED])
@pytest.mark.parametrize("lease", [True, False])
def test_a_node_registered_anew_waits_for_no_turn_of_the_one_before(error: KubeError | None, lease: bool) -> None:
    """N8, promise 6: a node that is deleted and created again is served, whatever waits for a turn under its name."""

    async def scenario() -> None:
        inherited = tuple(
            Intent(f"uid of bad{number}", "p", (Prefix.parse(f"10.0.{number}.0/24"),)) for number in range(100)
        )
        async with serving(error, lease=lease, inherited=inherited) as (office, fake):
            await until(lambda: len(fake.sent) >= 4)

            async def hang_unless_new(_: str) -> None:
                if "new" not in fake.sent[-1][1]["metadata"]["uid"]:
                    await asyncio.Event().wait()

            fake.answer = hang_unless_new
            await asyncio.sleep(0.3)
            hanging = set(office.allocation._writes)
            for number in range(100):
                if f"bad{number}" not in hanging:
                    office.lose(f"bad{number}")
                    office.see(node(f"bad{number}", uid=f"new {number}"))
            anew = 100 - len(hanging)
            await until(lambda: sum("new" in body["metadata"]["uid"] for _, body in fake.sent) >= anew)
            await until(lambda: office.allocation.queue.in_hand == len(hanging) > 0)

    asyncio.run(scenario())


def test_nothing_waits_for_room_of_nodes_that_went() -> None:
    """Where the record is full, nodes that come and go leave nothing behind."""

    async def scenario() -> None:
        async with serving(FAILED) as (office, _):
            office.cluster.remove_pool("p")
            office.cluster.add_pool(spec("p" * 250, "10.0.0.0/8 /24"))
            for each in nodes(1000, name="bad"):
                office.see(each)
            await until(lambda: office.intents.full and office.allocation.queue.ready == 0)
            recorded = {each.uid for each in decode(office.intents.text() or "")}
            for each in nodes(1000, name="bad"):
                if each.uid not in recorded:
                    office.lose(each.name)
            assert len(office.nodes) == len(recorded) < 1000
            await until(lambda: len(office.allocation.queue) <= len(recorded))
            assert not any(office.allocation._backlogs)

    asyncio.run(scenario())


def test_events_of_failures() -> None:
    """A refusal is told at once, an unknown outcome when it was so three times in a row."""

    async def scenario() -> None:
        async with serving(REFUSED) as (office, fake):
            office.see(node("bad"))
            await until(lambda: bool(office.findings.failed))
            assert office.findings.failed[0] == ("bad", f"the API server refused it: {REFUSED}")
        async with serving(FAILED) as (office, fake):
            office.see(node("bad"))
            await until(lambda: bool(office.findings.failed))
            assert len(fake.sent) >= 3
            assert office.findings.failed[0] == ("bad", f"the outcome of 3 attempts is unknown: {FAILED}")

    asyncio.run(scenario())


def test_nothing_is_kept_of_nodes_that_went() -> None:
    """Failures are forgotten with their node."""

    async def scenario() -> None:
        async with serving(REFUSED) as (office, fake):
            office.see(node("bad"))
            await until(lambda: bool(fake.sent))
            office.lose("bad")
            await asyncio.sleep(0)
            assert not office.allocation.refused
            assert not office.allocation._failures
            assert not office.allocation.pending

    asyncio.run(scenario())


def test_reasons() -> None:
    """O1: a node without podCIDRs is counted under the one reason that tells what to do."""

    async def scenario() -> None:
        async with serving(None) as (office, _):
            office.cluster.remove_pool("p")
            office.cluster.add_pool(spec("one", "10.0.0.0/24 /24", where="size=small"))
            office.see(node("small", "size=small", has="10.0.0.0/24"))
            office.see(node("full", "size=small"))
            office.see(node("unmatched"))
            office.see(node("going", terminating=True))
            await until(lambda: len(office.allocation.waiting) == 2)
            found = {reason: counts[0] for reason, counts in office.allocation.without_cidr().items() if counts[0]}
            assert found == {NoCidrReason.FULL: 1, NoCidrReason.NO_MATCHING_POOL: 1, NoCidrReason.TERMINATING: 1}
            office.cluster.hold(node("full", "size=small"), "one", (Prefix.parse("10.0.0.0/24"),))
            assert office.allocation.without_cidr()[NoCidrReason.HELD][0] == 1
            office.now += 61
            assert sum(long for _, long in office.allocation.without_cidr().values()) == 3

    asyncio.run(scenario())


def test_a_full_record() -> None:
    """Promise 6 has a limit: where the record has no more room, nodes wait, are counted so, and are served later."""

    async def scenario() -> None:
        async with serving(FAILED) as (office, fake):
            office.cluster.remove_pool("p")
            office.cluster.add_pool(spec("p" * 250, "10.0.0.0/8 /24"))
            for each in nodes(1000, name="bad"):
                office.see(each)
            await until(lambda: office.intents.full)
            office.see(node("good"))
            await until(lambda: office.allocation.queue.ready == 0)
            counts = office.allocation.without_cidr()
            assert counts[NoCidrReason.RECORD_FULL][0] > 0
            assert office.intents.size <= 240_000
            for name in [name for name in office.nodes if name.startswith("bad")]:
                office.lose(name)
            await until(lambda: "good" in names_sent(fake))

    asyncio.run(scenario())


def test_a_large_record_is_written_less_often() -> None:
    """Above 64 KB a record is written every 250 ms at most, with all nodes that came meanwhile."""

    async def scenario() -> None:
        async with serving(FAILED) as (office, fake):
            office.cluster.remove_pool("p")
            office.cluster.add_pool(spec("p" * 250, "10.0.0.0/8 /24"))
            for each in nodes(300, name="bad"):
                office.see(each)
            await until(lambda: len(names_sent(fake)) == 300)
            assert office.intents.size > 64 << 10
            times: list[float] = []

            async def record() -> bool:
                times.append(asyncio.get_running_loop().time())
                return True

            office.intents._record = record
            for each in nodes(20, name="good"):
                office.see(each)
                await asyncio.sleep(0.05)
            await until(lambda: sum(name.startswith("good") for name in names_sent(fake)) == 20)
            assert all(after - before >= 0.24 for before, after in pairwise(times))
            assert len(times) >= 2

    asyncio.run(scenario())
