"""The heartbeat Lease on a simulated clock: several may write it, and no failure stops its writer (F6)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from structlog.testing import capture_logs

from cidrella.kube.campaign import Verb
from cidrella.kube.election import ElectionSettings
from cidrella.kube.errors import ApiError
from cidrella.kube.heartbeat import Heartbeat
from cidrella.model.lease import micro_time
from tests.kube.lease_store import LeaseStore, StoreClient
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import Coroutine

SETTINGS = ElectionSettings()
CANNOT = "cannot write the heartbeat Lease; cidrella release and cidrella explain do not find this controller"


class Writer:
    """A heartbeat that runs, with a client of its own."""

    def __init__(self, store: LeaseStore, identity: str) -> None:
        loop = asyncio.get_running_loop()
        self.client = StoreClient(store)
        self.heartbeat = Heartbeat(self.client.as_client(), identity, SETTINGS, clock=loop.time, wall=loop.time)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.heartbeat.run())

    async def end(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def kill(self) -> None:
        """End it without another request."""
        self.client.away = True
        with capture_logs():
            await self.end()


def logged(scenario: Coroutine[Any, Any, None]) -> list[str]:
    """What was logged meanwhile."""
    with capture_logs() as lines:
        simulate(scenario)
    return [line["event"] for line in lines]


def test_written_renewed_and_released() -> None:
    """F6: created at the start, renewed at the usual period, and released at the end."""

    async def scenario() -> None:
        store = LeaseStore()
        writer = Writer(store, "a")
        writer.start()
        await writer.heartbeat.attempted.wait()
        assert (store.lease.holder, store.lease.terms.lease_duration_seconds) == ("a", 15)
        first = store.lease.terms.renew_time
        await asyncio.sleep(300)
        assert first == micro_time(1000.01)
        assert store.lease.terms.renew_time > micro_time(1297.0)  # type: ignore[operator] # it is there
        assert 120 < store.version < 155
        assert writer.client.asked.count(Verb.READ) == 1
        await writer.end()
        assert (store.lease.terms.holder_identity, store.lease.terms.lease_duration_seconds) == ("", 1)

    assert logged(scenario()) == []


def test_another_writer_is_left_its_lease() -> None:
    """F6: of two writers the one that ends leaves the Lease, which the other goes on to renew; the last releases it."""

    async def scenario() -> None:
        store = LeaseStore()
        first, second = Writer(store, "a"), Writer(store, "b")
        for each in (first, second):
            each.start()
        await asyncio.sleep(60)
        seen = set()
        for _ in range(100):
            await asyncio.sleep(0.5)
            seen.add(store.lease.holder)
        assert seen == {"a", "b"}
        while store.lease.holder != "a":
            await asyncio.sleep(0.01)
        await first.end()
        assert store.lease.holder == "a", "b runs, and the Lease has to say that a controller does"
        await asyncio.sleep(3)
        assert store.lease.holder == "b"
        await asyncio.sleep(30)
        await second.end()
        assert store.lease.terms.holder_identity == ""

    assert logged(scenario()) == []


def test_lease_of_a_killed_process_is_taken_over() -> None:
    """F6: the Lease names the process that runs, at once; nobody waits for it to expire."""

    async def scenario() -> None:
        store = LeaseStore()
        first, second = Writer(store, "a"), Writer(store, "b")
        first.start()
        await asyncio.sleep(10)
        await first.kill()
        assert store.lease.holder == "a"
        second.start()
        await second.heartbeat.attempted.wait()
        assert store.lease.holder == "b"
        await asyncio.sleep(SETTINGS.lease_duration + 1)
        await second.end()
        assert store.lease.terms.holder_identity == ""

    assert logged(scenario()) == []


def test_deleted_and_edited_leases_are_written_again() -> None:
    """F6: what people do to the Lease is undone by the next renewal, and is no failure."""

    async def scenario() -> None:
        store = LeaseStore()
        writer = Writer(store, "a")
        writer.start()
        await asyncio.sleep(10)
        store.delete()
        await asyncio.sleep(3)
        assert store.lease.holder == "a"
        store.edit(holderIdentity="x")
        await asyncio.sleep(3)
        assert store.lease.holder == "a"
        await writer.end()

    assert logged(scenario()) == []


def test_ends_while_a_write_is_under_way() -> None:
    """F6: a renewal whose reply is lost to the end is no reason to leave the Lease behind."""

    async def scenario() -> None:
        store = LeaseStore()
        writer = Writer(store, "a")
        writer.start()
        await asyncio.sleep(10)
        version, writer.client.latency_of_replies = store.version, 0.5
        while store.version == version:
            await asyncio.sleep(0.01)
        writer.client.latency_of_replies = 0.0
        await writer.end()
        assert store.lease.terms.holder_identity == ""

    assert logged(scenario()) == []


def test_failures_are_logged_once_and_stop_nothing() -> None:
    """F6: whatever the API server does, the heartbeat goes on, and logs each kind of failure once, and their end."""

    async def scenario() -> None:
        store = LeaseStore()
        writer = Writer(store, "a")
        writer.client.refusal = ApiError(403, "Forbidden", "not you")
        writer.start()
        await writer.heartbeat.attempted.wait()
        await asyncio.sleep(300)
        assert store.data is None
        writer.client.away = True
        await asyncio.sleep(300)
        writer.client.refusal, writer.client.away = None, False
        await asyncio.sleep(10)
        assert store.lease.holder == "a"
        await writer.end()

    assert logged(scenario()) == [CANNOT, CANNOT, "wrote the heartbeat Lease again"]


def test_requests_without_an_answer_are_given_up() -> None:
    """F6: a server that does not answer holds up the start for seconds, and the end for two."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        writer = Writer(LeaseStore(), "a")
        writer.client.hangs = True
        began = loop.time()
        writer.start()
        await writer.heartbeat.attempted.wait()
        assert loop.time() - began <= SETTINGS.renew_deadline / 2 + 0.1
        writer.client.hangs = False
        await asyncio.sleep(10)
        writer.client.hangs = True
        ending = loop.time()
        await writer.end()
        assert loop.time() - ending <= 2.1

    expected = "cannot release the heartbeat Lease; it expires by itself"
    assert logged(scenario()) == [CANNOT, "wrote the heartbeat Lease again", expected]


def test_nothing_to_release() -> None:
    """F6: a process that never wrote the Lease ends without a word about it."""

    async def scenario() -> None:
        writer = Writer(LeaseStore(), "a")
        writer.client.away = True
        writer.start()
        await asyncio.sleep(60)
        asked = len(writer.client.asked)
        await writer.end()
        assert len(writer.client.asked) == asked

    assert logged(scenario()) == [CANNOT]
