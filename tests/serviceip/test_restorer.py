"""Objects of ranges that are missing or make no sense, made anew from the Services (B5)."""

from __future__ import annotations

import asyncio
import base64

import pytest

from cidrella.serviceip.errors import UnusableError
from tests.kube.simulated import simulate
from tests.serviceip.fakecluster import FakeCluster, desk_at, held, until
from tests.serviceip.store import SMALL
from tests.serviceip.test_desk import FLAG, give
from tests.serviceip.test_repairer import grant

NAME = "10.96.0.0-26"


def bits(number: int, size: int = 8) -> str:
    return base64.b64encode(number.to_bytes(size)).decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": bits(1, 9)}, "has 9 bytes"),
        ({"data": bits(1 << 63)}, "has the bit of offset 63 set"),
        ({"range": "10.97.0.0/26"}, "of another range"),
        ({"range": "rubbish"}, "rubbish"),
        ({"data": "no base64"}, "data"),
    ],
)
def test_a_corrupt_object(fields: dict[str, object], words: str) -> None:
    """B5: nothing is given from it; an event says what is wrong; after a while it is rebuilt from the Services."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (0, 8))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG) as desk:
            uid = cluster.store.objects[NAME]["metadata"]["uid"]
            await asyncio.sleep(1)
            cluster.store.edit(SMALL, **fields)
            broken = dict(cluster.store.objects[NAME])
            with pytest.raises(UnusableError, match="corrupt"):
                await give(desk, "a/c", "10.96.0.30")
            await until(desk.readiness)
            assert words in desk.readiness()[0]
            await asyncio.sleep(1)
            (event,) = cluster.events
            assert (event["reason"], event["type"]) == ("RangeAllocationCorrupt", "Warning")
            assert words in event["note"]
            assert event["regarding"]["uid"] == uid
            await asyncio.sleep(2)
            assert cluster.store.objects[NAME] == broken, "Services that are on their way come first"
            cluster.service("a/late", "10.96.0.20")
            await until(lambda: not desk.readiness())
            assert held(cluster) == ["10.96.0.9", "10.96.0.20"]
            assert cluster.store.objects[NAME]["metadata"]["uid"] == uid
            await asyncio.sleep(1)
            assert cluster.reasons() == ["RangeAllocationCorrupt", "RangeAllocationRebuilt"]
            assert await give(desk, "a/c", "10.96.0.30")

    simulate(scenario())


def test_what_a_corrupt_object_remembers() -> None:
    """B5: what was given of late, by what can be read of it, stays given: its Service may be about to be stored."""

    async def scenario() -> None:
        cluster = FakeCluster()
        recent = [grant(4, "a/c"), {"address": "10.99.0.1", "service": "a/d", "write": "w"}]
        cluster.store.make(SMALL, (), data=bits(1, 9), recent=recent)
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG):
            assert held(cluster) == ["10.96.0.5", "10.96.0.9"]

    simulate(scenario())


def test_a_lost_object() -> None:
    """B5: an object that somebody deletes is made anew; who is being given an address meanwhile is refused."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8, 9))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG) as desk:
            await asyncio.sleep(1)
            cluster.store.delete(SMALL)
            with pytest.raises(UnusableError, match="there is no RangeAllocation"):
                await give(desk, "a/c", "10.96.0.30")
            await until(desk.readiness)
            await until(lambda: not desk.readiness())
            assert held(cluster) == ["10.96.0.9"]
            await asyncio.sleep(1)
            assert cluster.reasons(NAME) == ["RangeAllocationRebuilt"]

    simulate(scenario())


@pytest.mark.parametrize("mended", [True, False])
def test_one_that_somebody_works_on(mended: bool) -> None:
    """B5: an object that is written again begins its time anew; one that was mended by hand is left as it is."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (7, 8))
        sound = cluster.store.objects[NAME]["data"]
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG) as desk:
            await asyncio.sleep(1)
            for number in range(1, 4):
                cluster.store.edit(SMALL, data=bits(number, 9))
                await asyncio.sleep(4)
                assert cluster.store.objects[NAME]["data"] == bits(number, 9)
            if mended:
                cluster.store.edit(SMALL, data=sound)
            await until(lambda: not desk.readiness())
            assert held(cluster) == (["10.96.0.8", "10.96.0.9"] if mended else ["10.96.0.9"])
            await asyncio.sleep(1)
            assert ("RangeAllocationRebuilt" in cluster.reasons()) != mended

    simulate(scenario())


def test_what_it_is_made_from() -> None:
    """B5: an object is made from a list that was begun when it could not be used, whatever the watch has told."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG, repair_interval=1000.0) as desk:
            await asyncio.sleep(1)
            cluster.services.mute = True
            cluster.services.delete("a/b")
            cluster.service("a/c", "10.96.0.10")
            cluster.store.delete(SMALL)
            await until(desk.readiness)
            await until(lambda: not desk.readiness())
            assert held(cluster) == ["10.96.0.10"]

    simulate(scenario())


def test_only_the_repairer_makes_them() -> None:
    """B6: a replica that does not lead sees that an object cannot be used, and leaves it."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as desk:
            desk._stopped_leading()
            cluster.store.edit(SMALL, data=bits(1, 9))
            await asyncio.sleep(60)
            assert "corrupt" in desk.readiness()[0]
            assert cluster.store.objects[NAME]["data"] == bits(1, 9)
            assert cluster.events == []
            desk._began_to_lead()
            await until(lambda: not desk.readiness())
            await asyncio.sleep(1)
            assert cluster.reasons() == ["RangeAllocationCorrupt", "RangeAllocationRebuilt"]

    simulate(scenario())


def test_a_range_that_is_given_up() -> None:
    """B5: of the object of a range that is not used any more, nobody speaks."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.cidr("kubernetes", FLAG)
        cluster.cidr("more", "10.97.0.0/26")
        async with desk_at(cluster, settle=30.0) as desk:
            cluster.store.delete(SMALL)
            await until(desk.readiness)
            cluster.cidrs.delete("kubernetes")
            await asyncio.sleep(1)
            assert not desk._restorer.faults
            assert desk.readiness() == []

    simulate(scenario())


def test_a_replica_that_is_faster() -> None:
    """B5: one that finds that another has made the object uses it as it is."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG) as desk, desk_at(cluster, FLAG, identity="other") as other:
            assert held(cluster) == ["10.96.0.9"]
            assert await give(desk, "a/c", "10.96.0.30")
            assert await give(other, "a/d", "10.96.0.31")
            assert len(cluster.reasons(NAME)) == 1

    simulate(scenario())
