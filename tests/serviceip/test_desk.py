"""A whole desk on an API server in memory, in simulated time."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from cidrella.core.address import Address
from cidrella.core.bands import ServiceRange
from cidrella.core.prefix import Family, Prefix
from cidrella.serviceip.allocator import Want
from cidrella.serviceip.desk import Desk, DeskSettings
from cidrella.serviceip.errors import OutOfRangeError, TakenError
from tests.kube.simulated import simulate
from tests.serviceip.fakecluster import FakeCluster, desk_at, held, until
from tests.serviceip.store import SMALL, SMALL_IPV6

FLAG = "10.96.0.0/26"
OTHER = ServiceRange.of(Prefix.parse("10.97.0.0/26"))


async def give(desk: Desk, service: str, address: str = "") -> str:
    """Have an address, a named one or any; its text."""
    wanted = Address.parse(address) if address else None
    transaction = await desk.allocator.allocate(service, [Want(Family.IPV4, wanted)])
    await transaction.commit()
    return str(transaction.given[0].address)


def test_from_nothing() -> None:
    """B5: where there was none, the object of a range is made from the Services; then addresses are given."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.service("default/kubernetes", "10.96.0.1")
        cluster.service("a/headless")
        cluster.service("a/elsewhere", "10.50.0.1", "fd00::5")
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with desk_at(cluster, FLAG, "fd00::/122") as desk:
            assert 5 <= loop.time() - began < 8, "Services that are on their way are waited for"
            assert held(cluster) == ["10.96.0.1"]
            assert held(cluster, SMALL_IPV6) == ["fd00::5"]
            assert desk.families == (Family.IPV4, Family.IPV6)
            assert desk.holder(Address.parse("10.96.0.1")) == "default/kubernetes"
            assert desk.holder(Address.parse("10.96.0.2")) == ""
            given = await give(desk, "a/b")
            assert given in held(cluster)
            made = cluster.store.objects["10.96.0.0-26"]
            assert made["range"] == FLAG
            assert made["repairer"].startswith("me/")
            assert cluster.reasons("10.96.0.0-26") == ["RangeAllocationRebuilt"]

    simulate(scenario())


def test_what_readiness_says() -> None:
    """O2: a replica is not ready before its lists are in and every range has its object, and says what is missing."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.installed = False
        async with desk_at(cluster, ready=False) as desk:
            assert "Services are not listed yet" in desk.readiness()
            await asyncio.sleep(10)
            assert desk.readiness() == ["the RangeAllocation CRD is not installed"]
            cluster.installed = True
            await asyncio.sleep(10)
            assert desk.readiness() == [
                "there is no range of Services: neither a ServiceCIDR nor --service-cluster-ip-range"
            ]
            cluster.cidr("kubernetes", FLAG)
            await asyncio.sleep(1)
            assert desk.readiness() == ["there is no RangeAllocation 10.96.0.0-26"]
            await until(lambda: not desk.readiness())
            cluster.away = True
            await until(desk.readiness)
            assert "RangeAllocations are out of reach" in desk.readiness()[0]
            cluster.away = False
            await until(lambda: not desk.readiness())

    simulate(scenario())


def test_without_the_apis_of_newer_servers() -> None:
    """A server without ServiceCIDRs and IPAddresses is served by the flag alone."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.cidrs.served = cluster.addresses.served = False
        with capture_logs() as logs:
            async with desk_at(cluster, FLAG) as desk:
                assert await give(desk, "a/b", "10.96.0.9") == "10.96.0.9"
        assert [each for each in logs if each["log_level"] in {"warning", "error"}] == []

    simulate(scenario())


def test_a_range_that_comes_later_is_used() -> None:
    """B3: a ServiceCIDR that is added is drawn from when the first range has nothing left; nobody waits for it."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.cidr("kubernetes", FLAG)
        async with desk_at(cluster) as desk:
            cluster.cidr("more", str(OTHER.cidr))
            await asyncio.sleep(0.1)
            first = {await give(desk, f"a/s{number}") for number in range(10)}
            assert first == set(held(cluster)), "while the object of the new range is made, the old one gives"
            assert desk.readiness() == []
            await until(lambda: len(desk._books.giving()) == 2)
            for number in range(10, 46 + 45):
                await give(desk, f"a/s{number}")
            assert len(held(cluster)) == 46, "its dynamic band"
            assert len(held(cluster, OTHER)) == 45

    simulate(scenario())


def test_a_range_on_its_way_out_gives_nothing() -> None:
    """A ServiceCIDR that is being deleted gives nothing new, and what it gave is still released."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.cidr("kubernetes", FLAG)
        cluster.cidr("more", str(OTHER.cidr))
        async with desk_at(cluster) as desk:
            await until(lambda: len(desk._books.giving()) == 2)
            assert await give(desk, "a/b", "10.97.0.9") == "10.97.0.9"
            cluster.service("a/b", "10.97.0.9")
            cluster.cidr("more", str(OTHER.cidr), deletionTimestamp="2026-02-01T00:00:00Z")
            await asyncio.sleep(0.1)
            with pytest.raises(OutOfRangeError):
                await give(desk, "a/c", "10.97.0.10")
            cluster.services.delete("a/b")
            await asyncio.sleep(0.1)
            assert held(cluster, OTHER) == []
            cluster.cidrs.delete("more")
            await asyncio.sleep(0.1)
            assert [str(each.range.cidr) for each in desk.ranges.known] == [FLAG]
            assert len(desk.foreign._views) == 1
            assert "10.97.0.0-26" in cluster.store.objects, "its books are not for us to throw away"

    simulate(scenario())


def test_a_range_that_moved() -> None:
    """B5: where the books of an overlapping range are stored, nothing is used or overwritten until they are gone."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (3, 4))
        before = dict(cluster.store.objects)
        cluster.service("a/b", "10.96.0.9")
        with capture_logs() as logs:
            async with desk_at(cluster, "10.96.0.0/24", ready=False) as desk:
                await asyncio.sleep(200)
                (words,) = desk.readiness()
                assert words.startswith("10.96.0.0/24 of --service-cluster-ip-range is not used")
                assert "kubectl delete rangeallocation 10.96.0.0-26" in words
                assert cluster.store.objects == before
                assert [each["why"] in words for each in logs if each["log_level"] == "error"] == [True]
                assert cluster.events == [], "nothing is said of Services whose range is not looked at"
                cluster.store.delete(SMALL)
                await until(lambda: not desk.readiness())
                wide = ServiceRange.of(Prefix.parse("10.96.0.0/24"))
                assert held(cluster, wide) == ["10.96.0.9"]

    simulate(scenario())


def test_what_others_gave_is_not_given() -> None:
    """An address that has an IPAddress object is taken, also in a range that comes later, until that object is gone."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.addresses.put("10.96.0.9", spec={"parentRef": {"resource": "services", "namespace": "x", "name": "y"}})
        cluster.addresses.put("10.97.0.9", spec={"parentRef": {"resource": "services", "namespace": "x", "name": "z"}})
        cluster.cidr("kubernetes", FLAG)
        async with desk_at(cluster) as desk:
            with pytest.raises(TakenError, match="x/y"):
                await give(desk, "a/b", "10.96.0.9")
            cluster.cidr("more", str(OTHER.cidr))
            await until(lambda: len(desk._books.giving()) == 2)
            with pytest.raises(TakenError, match="x/z"):
                await give(desk, "a/b", "10.97.0.9")
            cluster.addresses.delete("10.96.0.9")
            await asyncio.sleep(0.1)
            assert await give(desk, "a/b", "10.96.0.9") == "10.96.0.9"

    simulate(scenario())


def test_gauges_follow_others() -> None:
    """B10: a replica that gives nothing itself sees what others give within seconds."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as busy, desk_at(cluster, FLAG, identity="other") as idle:
            for number in range(5):
                await give(busy, f"a/s{number}")
            await asyncio.sleep(6)
            (ledger,) = idle._books.ledgers()
            assert ledger.state is not None
            assert ledger.state.bitmap.count == 5

    simulate(scenario())


def test_whether_a_service_exists() -> None:
    """What the watch does not show is not there; what it shows is asked for."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.service("a/b", "10.96.0.9")
        async with desk_at(cluster, FLAG) as desk:
            assert await desk.exists("a/b")
            assert not await desk.exists("a/c")
            del cluster.services.objects["a/b"]  # the watch has not said so yet
            assert not await desk.exists("a/b")

    simulate(scenario())


def test_waiting_for_an_address_to_be_let_go() -> None:
    """B4: a Service that is deleted and made anew with its address gets it as soon as the release is written."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL, (8,))
        cluster.service("a/b", "10.96.0.9")
        address = Address.parse("10.96.0.9")
        loop = asyncio.get_running_loop()
        async with desk_at(cluster, FLAG) as desk:
            assert not await desk.wait_free(address, 2.0)
            loop.call_later(0.5, cluster.services.delete, "a/b")
            began = loop.time()
            assert await desk.wait_free(address, 2.0)
            assert 0.5 <= loop.time() - began < 0.7
            assert await give(desk, "a/b", "10.96.0.9") == "10.96.0.9"

    simulate(scenario())


def test_without_bands() -> None:
    """B11: where bands are switched off, all of a range is drawn from."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG, banded=False) as desk:
            assert desk.ranges.known[0].range.static == 0
            given = {await give(desk, f"a/s{number}") for number in range(46)}
            assert given & {str(SMALL.address(offset)) for offset in range(16)}

    simulate(scenario())


def test_writes_under_way_come_home() -> None:
    """B6: a desk that is told to end lets a write that is on its way be answered."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        async with desk_at(cluster, FLAG) as desk:
            await asyncio.sleep(1)
            cluster.latency = lambda: 0.4
            giving = asyncio.create_task(give(desk, "a/b"))
            await asyncio.sleep(0.01)
        assert giving.done()
        assert held(cluster) == [giving.result()]

    simulate(scenario())


def test_what_goes_wrong_ends_it() -> None:
    """A mistake in a part is not swallowed: the desk ends with it."""

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.store.make(SMALL)
        desk = Desk(cluster.client, DeskSettings((SMALL.cidr,), "me", None), CollectorRegistry())
        running = asyncio.create_task(desk.run())
        await until(lambda: not desk.readiness())
        del cluster._collections  # the next request meets a mistake
        with pytest.raises(AttributeError, match="_collections"):
            await running

    simulate(scenario())
