"""The repair loop, on an API server in memory, in simulated time (B8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cidrella.core.address import Address
from tests.kube.simulated import simulate
from tests.serviceip.fakecluster import FakeCluster, desk_at, held, until
from tests.serviceip.store import SMALL
from tests.serviceip.test_desk import FLAG, give

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.kube.errors import KubeError

ROUND = 60.0


def grant(offset: int, service: str, write: str = "maker.1", **fields: object) -> dict[str, object]:
    """What an object remembers of a grant."""
    return {"address": str(SMALL.address(offset)), "service": service, "write": write, **fields}


def before_write(number: int, act: Callable[[], None]) -> Callable[[str, bool], KubeError | None]:
    """Do something right before the write of that number is carried out, counted from 1."""
    left = [number]

    def fault(method: str, done: bool) -> None:
        if method == "PUT" and not done:
            left[0] -= 1
            if left[0] == 0:
                act()

    return fault


def test_nobody_has_it_for_three_rounds() -> None:
    """B8: what no Service has is freed in the third round, and not before."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8, 9))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.9 * ROUND)
            assert held(cluster) == ["10.96.0.9", "10.96.0.10"]
            await asyncio.sleep(0.2 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            assert cluster.events == []

    simulate(scenario())


def test_a_service_in_between_clears_the_strikes() -> None:
    """B8: three rounds in a row: a Service that has it in one of them makes the count begin anew."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(0.5 * ROUND)  # one strike
            # It is remembered as another's, so that its end is no reason to free it.
            cluster.store.edit(SMALL, recent=[grant(8, "x/y")])
            cluster.service("a/b", "10.96.0.9")
            await asyncio.sleep(ROUND)  # none
            cluster.services.delete("a/b")
            await asyncio.sleep(2 * ROUND)  # two
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_what_is_missing_is_put_back() -> None:
    """B8: the address of a Service that the books lack is put back in the first round, and told on the Service."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.9"]
            (event,) = cluster.events
            assert event["reason"] == "ClusterIPNotAllocated"
            uid = cluster.services.objects["a/b"]["metadata"]["uid"]
            assert event["regarding"] == {
                "apiVersion": "v1",
                "kind": "Service",
                "namespace": "a",
                "name": "b",
                "uid": uid,
            }
            assert "10.96.0.9" in event["note"]
            await asyncio.sleep(5 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            assert len(cluster.events) == 1

    simulate(scenario())


def test_what_cannot_be_mended_is_told() -> None:
    """B8: one address of two Services, one in no range, one that is none: events; and nothing is revoked."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/one", "10.96.0.9")
        cluster.service("a/two", "10.96.0.9")
        cluster.service("a/out", "10.5.0.1")
        cluster.service("a/bad", "10.96.0.900")
        before = dict(cluster.services.objects)
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(4 * ROUND)
            told = {(each["regarding"]["name"], each["reason"]) for each in cluster.events}
            assert told == {
                ("two", "ClusterIPAlreadyAllocated"),
                ("out", "ClusterIPOutOfRange"),
                ("bad", "ClusterIPNotValid"),
            }
            assert len(cluster.events) == 3, "said again and again, they are one event each"
            assert any("a/one" in each["note"] for each in cluster.events)
            assert cluster.services.objects == before
            assert held(cluster) == ["10.96.0.9"]

    simulate(scenario())


def test_a_range_that_cannot_be_read_is_left_out() -> None:
    """B8: of Services whose range has no usable object, nobody says that they are out of range."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        cluster.service("a/b", "fd00::5")
        async with desk_at(cluster, FLAG, "fd00::/122", ready=False, settle=1000.0):
            await asyncio.sleep(3 * ROUND)
            assert cluster.events == []

    simulate(scenario())


def test_what_others_gave_is_spared() -> None:
    """B8: an address that has an IPAddress object is in use: no strikes. They begin when that is gone."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.addresses.put("10.96.0.9", spec={})
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(5 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            cluster.addresses.delete("10.96.0.9")
            await asyncio.sleep(1.9 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(2 * ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_one_given_anew_begins_anew() -> None:
    """B6, B8: an address that was freed and given to another between two rounds does not inherit strikes."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,), recent=[grant(8, "a/b", "w.1")])
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.5 * ROUND)  # two strikes
            cluster.store.edit(SMALL, recent=[grant(8, "a/c", "w.2")])
            await asyncio.sleep(2 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_one_given_while_the_round_is_under_way() -> None:
    """B6: an address that was given to another after it was read is not freed by the plan made from what was read."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,), recent=[grant(8, "a/b", "w.1")])
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.5 * ROUND)
            news = {"recent": [grant(8, "a/c", "w.2")], "writes": ["w.2"]}
            cluster.fault = before_write(1, lambda: cluster.store.edit(SMALL, **news))
            await asyncio.sleep(ROUND)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(3 * ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_a_service_that_comes_while_the_round_is_under_way() -> None:
    """B8: nothing is freed that a Service has, or the API server itself has given, by the time of the write."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8, 9, 10, 20), recent=[grant(20, "a/known")])
        cluster.service("a/known", "10.96.0.21")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.5 * ROUND)

            def comes() -> None:
                cluster.service("a/b", "10.96.0.9")
                cluster.addresses.put("10.96.0.10", spec={})
                cluster.overtake()

            cluster.fault = before_write(1, comes)
            await asyncio.sleep(ROUND)
            assert held(cluster) == ["10.96.0.9", "10.96.0.10", "10.96.0.21"]
            assert cluster.events == [], "nothing had to be put back"

    simulate(scenario())


def test_a_watch_that_is_behind() -> None:
    """B8: a round goes by a list that is newer than what it read, not by what the watch has told so far."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as desk:
            await asyncio.sleep(0.5 * ROUND)
            cluster.services.mute = True
            given = await give(desk, "a/b")
            cluster.service("a/b", given)
            cluster.service("a/c", "10.96.0.9")
            await asyncio.sleep(ROUND)
            assert held(cluster) == sorted(["10.96.0.9", given], key=Address.parse)
            await asyncio.sleep(4 * ROUND)
            assert held(cluster) == sorted(["10.96.0.9", given], key=Address.parse)

    simulate(scenario())


def test_what_another_has_put_back() -> None:
    """B8: only who puts an address back tells of it."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        full = cluster.store.objects["10.96.0.0-26"]["data"]
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(0.5 * ROUND)
            cluster.store.edit(SMALL, data="")
            cluster.fault = before_write(1, lambda: cluster.overtake(data=full))
            await asyncio.sleep(ROUND)
            assert held(cluster) == ["10.96.0.9"]
            assert cluster.events == []

    simulate(scenario())


def test_a_new_term_begins_without_strikes() -> None:
    """B8: who leads again knows nothing of what happened meanwhile, and counts from none."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        async with desk_at(cluster, FLAG) as desk:
            await asyncio.sleep(1.5 * ROUND)
            desk._stopped_leading()
            await asyncio.sleep(1)
            desk._began_to_lead()
            await asyncio.sleep(1.9 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(0.2 * ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_an_address_given_again() -> None:
    """B8: `again` ends when a list shows a Service with the address; from then on its end frees it."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8, 9), recent=[grant(8, "a/b", again=True), grant(9, "a/c", again=True)])
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1)
            assert [each.service for each in cluster.store.recent(SMALL)] == ["a/c"]
            cluster.services.delete("a/b")
            await asyncio.sleep(1)
            assert held(cluster) == ["10.96.0.10"]
            await asyncio.sleep(3 * ROUND)
            assert held(cluster) == [], "nobody came for it in three rounds"
            assert "recent" not in cluster.store.objects["10.96.0.0-26"]

    simulate(scenario())


def test_an_address_given_once_more() -> None:
    """B8: what was given again after it was read is remembered, whatever the list showed."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(0.5 * ROUND)
            cluster.store.edit(SMALL, recent=[grant(8, "a/b", "w.1", again=True)])
            later = [grant(8, "a/b", "w.2", again=True)]
            cluster.fault = before_write(1, lambda: cluster.overtake(recent=later))
            await asyncio.sleep(ROUND)
            assert [each.write for each in cluster.store.recent(SMALL)] == ["w.2"]

    simulate(scenario())


def test_a_repairer_that_was_replaced_frees_nothing() -> None:
    """B6, B8: a plan whose repairer finds another's term in the object is dropped; one that leads takes up its own."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.5 * ROUND)
            cluster.fault = before_write(1, lambda: cluster.store.edit(SMALL, repairer="another/1"))
            await asyncio.sleep(0.9 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            assert cluster.store.objects["10.96.0.0-26"]["repairer"] == "another/1"
            await asyncio.sleep(0.2 * ROUND)
            await until(lambda: held(cluster) == [])
            assert cluster.store.objects["10.96.0.0-26"]["repairer"].startswith("me/")

    simulate(scenario())


def test_an_outage_does_not_end_the_rounds() -> None:
    """B8: what cannot be done while the API is away is done in a later round."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        async with desk_at(cluster, FLAG):
            await asyncio.sleep(1.5 * ROUND)
            cluster.away = True
            await asyncio.sleep(2 * ROUND)
            assert held(cluster) == ["10.96.0.9"]
            cluster.away = False
            await asyncio.sleep(3 * ROUND)
            assert held(cluster) == []

    simulate(scenario())


def test_rounds_beside_busy_givers() -> None:
    """B6, B8: while others give and take all the time, what leaked is freed and what is in use is not."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (0, 1, 2))
        async with desk_at(cluster, FLAG, repair_interval=2.0) as desk, desk_at(cluster, FLAG, identity="b") as other:
            end = asyncio.get_running_loop().time() + 10
            number = 0
            while asyncio.get_running_loop().time() < end:
                number += 1
                name = f"a/s{number}"
                given = await give(desk if number % 2 else other, name)
                await asyncio.sleep(0.005)
                assert desk.holder(Address.parse(given)) == ""
                cluster.service(name, given)
                if number > 20:
                    cluster.services.delete(f"a/s{number - 20}")
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)
            now = {each["spec"]["clusterIP"] for each in cluster.services.objects.values()}
            assert set(held(cluster)) == now
            assert len(now) == 20
            assert cluster.reasons() == []

    simulate(scenario())
