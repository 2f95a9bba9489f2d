"""What the watch on Services shows goes into the books at once, if the repairer hears of it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from cidrella.kube.errors import KubeError, NoAnswerError
from tests.kube.simulated import simulate
from tests.serviceip.fakecluster import FakeCluster, desk_at, held
from tests.serviceip.store import SMALL
from tests.serviceip.test_desk import FLAG, give
from tests.serviceip.test_repairer import ROUND, before_write, grant

MOMENT = 0.2


def test_a_service_that_is_gone_frees_its_address() -> None:
    """B7, B8: the end of a Service, or its change to a kind without an address, frees what it had, in a moment."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as desk:
            for name in ("a/b", "a/c"):
                cluster.service(name, await give(desk, name))
            await asyncio.sleep(1)
            cluster.services.delete("a/b")
            await asyncio.sleep(MOMENT)
            assert held(cluster) == [cluster.services.objects["a/c"]["spec"]["clusterIP"]]
            cluster.service("a/c", type="ExternalName")
            await asyncio.sleep(MOMENT)
            assert held(cluster) == []
            assert cluster.events == []

    simulate(scenario())


def test_many_go_in_few_writes() -> None:
    """Services that go together are freed together."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, tuple(range(60)))
        for offset in range(60):
            cluster.service(f"a/s{offset}", str(SMALL.address(offset)))
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            writes = cluster.store.writes
            for offset in range(60):
                cluster.services.delete(f"a/s{offset}")
            await asyncio.sleep(MOMENT)
            assert held(cluster) == []
            assert cluster.store.writes - writes <= 3

    simulate(scenario())


@pytest.mark.parametrize(
    ("remembered", "freed"),
    [
        (None, True),
        (grant(8, "a/b"), True),
        (grant(8, "a/b", again=True), False),
        (grant(8, "a/c"), False),
        (grant(8, "a/*0123"), True),
        (grant(8, "a/c-*0123"), False),
    ],
)
def test_what_is_remembered_of_a_grant(remembered: dict[str, object] | None, freed: bool) -> None:
    """B6: the end of a Service frees no address that was given to another, or again to one of its name.

    A Service that had no name yet when it was given its address is known by the beginning of it.
    """

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            if remembered:
                cluster.store.edit(SMALL, recent=[remembered])
            cluster.services.delete("a/b")
            await asyncio.sleep(MOMENT)
            assert held(cluster) == ([] if freed else ["10.96.0.9"])
            await asyncio.sleep(4 * ROUND)
            assert held(cluster) == [], "the rounds free it"

    simulate(scenario())


def test_an_address_that_another_service_has() -> None:
    """B8: of two Services with one address, the end of the first frees nothing."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        cluster.service("a/c", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            cluster.services.delete("a/b")
            await asyncio.sleep(5 * ROUND)
            assert held(cluster) == ["10.96.0.9"]

    simulate(scenario())


def test_an_address_that_changes_hands() -> None:
    """B8: what another Service has by the time of the write is not freed."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)

            def comes() -> None:
                cluster.service("a/c", "10.96.0.9")
                cluster.overtake()

            cluster.fault = before_write(1, comes)
            cluster.services.delete("a/b")
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.9"]
            assert cluster.events == [], "nothing had to be put back"

    simulate(scenario())


def test_an_outcome_that_nobody_knows() -> None:
    """B6: where nobody can tell whether an address was freed, it is not freed again: it may be another's by now."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        taken = cluster.store.objects["10.96.0.0-26"]["data"]
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)

            def lost(method: str, done: bool) -> KubeError | None:
                if method != "PUT" or not done:
                    return None
                cluster.fault = lambda _method, _done: None
                assert held(cluster) == []
                cluster.store.edit(SMALL, data=taken, writes=[f"another.{number}" for number in range(64)])
                return NoAnswerError("the reply was lost")

            cluster.fault = lost
            cluster.services.delete("a/b")
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.9"]

    simulate(scenario())


def test_a_service_that_comes_with_an_address() -> None:
    """B8: an address that the API server's own allocator gave is put back at once, and told; one of ours is not."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as desk, desk_at(cluster, FLAG, identity="other") as other:
            await asyncio.sleep(1)
            cluster.service("a/b", "10.96.0.9")
            await asyncio.sleep(MOMENT)
            assert held(cluster) == ["10.96.0.9"]
            for number, each in enumerate((desk, other)):
                cluster.service(f"a/s{number}", await give(each, f"a/s{number}"))
            await asyncio.sleep(2)
            assert {each["regarding"]["name"] for each in cluster.events} == {"b"}
            assert set(cluster.reasons()) == {"ClusterIPNotAllocated"}

    simulate(scenario())


def test_a_write_that_is_overtaken() -> None:
    """B6: a repairer that was replaced before its write arrived frees nothing, and does not try again."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            cluster.fault = before_write(1, lambda: cluster.store.edit(SMALL, repairer="another/1"))
            cluster.services.delete("a/b")
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.9"]

    simulate(scenario())


def test_an_outage_is_left_to_the_rounds() -> None:
    """B8: what cannot be written now is said once, and freed by the rounds."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            cluster.away = True
            with capture_logs() as logs:
                cluster.services.delete("a/b")
                await asyncio.sleep(20)
            cluster.away = False
            assert [each["event"] for each in logs].count("what changed among the Services is left to the rounds") == 1
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(4 * ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_old_news_is_no_reason() -> None:
    """B6: what could not be freed for as long as a round takes may be another's by then, and is left to the rounds."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG, repair_interval=3.0):
            await asyncio.sleep(1)
            cluster.away = True
            cluster.services.delete("a/b")
            await asyncio.sleep(4)  # less than a request bears with an outage
            cluster.overtake()
            cluster.away = False
            await asyncio.sleep(1.5)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(9)
            assert held(cluster) == []

    simulate(scenario())
