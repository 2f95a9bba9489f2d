"""Addresses for a Service: drawn or named, of one family or both, all or nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from cidrella.core.bands import Band, ServiceRange
from cidrella.core.prefix import Family, Prefix
from cidrella.kube.errors import ApiError, NoAnswerError
from cidrella.serviceip.allocator import MOST_IDLE, Allocator, Given, Want
from cidrella.serviceip.errors import FullError, NoRangeError, OutOfRangeError, Refusal, TakenError
from cidrella.serviceip.metrics import Metrics
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, SMALL_IPV6, Store, StoreClient, address, make_ledger, next_writes

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cidrella.serviceip.ledger import Ledger

IPV4, IPV6 = Want(Family.IPV4), Want(Family.IPV6)
OTHER = ServiceRange.of(Prefix.parse("10.97.0.0/26"))
STATIC = range(SMALL.static)
DYNAMIC = range(SMALL.static, SMALL.usable)


class Desk:
    """Ranges in a store, and an allocator that always draws the first free address."""

    def __init__(self, *ranges: ServiceRange, foreign: dict[int, str] | None = None) -> None:
        self.store = Store()
        self.clients = {each: StoreClient(self.store) for each in ranges or (SMALL,)}
        self.ledgers: list[Ledger] = []
        for each, client in self.clients.items():
            self.store.make(each)
            self.ledgers.append(make_ledger(client, each, foreign={} if foreign is None else foreign))
        self.registry = CollectorRegistry()
        metrics = Metrics(self.registry, lambda: self.ledgers)
        self.allocator = Allocator(lambda: self.ledgers, below=lambda _: 0, metrics=metrics)

    def fill(self, service_range: ServiceRange, held: Any) -> None:
        """Give these addresses of a range to others."""
        self.store.make(service_range, tuple(held))

    async def take(self, *wants: Want, service: str = "default/web") -> tuple[str, ...]:
        """What a Service is given."""
        return tuple(str(each.address) for each in (await self.allocator.allocate(service, wants)).given)

    def sample(self, name: str, cidr: str = "10.96.0.0/26", **labels: str) -> float | None:
        """The value of a series."""
        return self.registry.get_sample_value(f"cidrella_clusterip_allocator_{name}", {"cidr": cidr, **labels})


def static(text: str) -> Want:
    """A want of this very address."""
    return Want(address(text).family, address(text))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """In simulated time."""
    simulate(scenario)


class TestRefusedAgainAndAgain:
    """A Service that is given an address, is refused for some other reason, and comes again."""

    def test_another_each_time_but_not_for_ever(self) -> None:
        """B3: it gets another address each time, up to a bound; then those that it had, in turn. Others get on."""

        async def scenario() -> None:
            desk = Desk()
            desk.allocator = Allocator(lambda: desk.ledgers, below=lambda _: 0, idle=lambda _: True)
            first = [(await desk.take(IPV4))[0] for _ in range(MOST_IDLE)]
            assert len(set(first)) == MOST_IDLE
            assert [(await desk.take(IPV4))[0] for _ in range(2 * MOST_IDLE)] == 2 * first
            assert (await desk.take(IPV4, service="default/other"))[0] not in first

        run(scenario())

    def test_what_a_service_has_is_not_idle(self) -> None:
        """B3: addresses that Services have, or that others have by now, are not given again."""

        async def scenario() -> None:
            foreign: dict[int, str] = {}
            desk = Desk(foreign=foreign)
            held: set[str] = set()
            desk.allocator = Allocator(lambda: desk.ledgers, below=lambda _: 0, idle=lambda each: str(each) not in held)
            first = [(await desk.take(IPV4))[0] for _ in range(MOST_IDLE)]
            foreign[DYNAMIC[0]] = "default/other"
            assert (await desk.take(IPV4))[0] == first[1]
            held.add(first[5])
            assert (await desk.take(IPV4))[0] not in first

        run(scenario())


class TestDynamic:
    """Addresses that are drawn."""

    def test_upper_band_then_lower(self) -> None:
        """B3: the dynamic band, then the static one, then an error that says so."""

        async def scenario() -> None:
            desk = Desk()
            desk.fill(SMALL, DYNAMIC[1:])
            assert await desk.take(IPV4) == (str(SMALL.address(DYNAMIC[0])),)
            given = (await desk.allocator.allocate("default/web", [IPV4])).given[0]
            assert (str(given.address), given.band, str(given.cidr)) == ("10.96.0.1", Band.STATIC, "10.96.0.0/26")
            desk.fill(SMALL, range(SMALL.usable))
            with pytest.raises(FullError, match=r"^no address is free in 10\.96\.0\.0/26$"):
                await desk.take(IPV4)

        run(scenario())

    def test_start_is_random(self) -> None:
        """B3: the search begins where the random source says, within the band."""

        async def scenario() -> None:
            desk = Desk()
            asked = []

            def below(size: int) -> int:
                asked.append(size)
                return 7

            allocator = Allocator(lambda: desk.ledgers, below=below)
            given = (await allocator.allocate("default/web", [IPV4])).given
            assert given[0].address == SMALL.address(DYNAMIC[7])
            assert asked == [len(DYNAMIC)]

        run(scenario())

    def test_several_ranges(self) -> None:
        """B3: the dynamic bands of all ranges in order, then the static ones in order."""

        async def scenario() -> None:
            desk = Desk(SMALL, OTHER)
            desk.fill(SMALL, DYNAMIC[1:])
            desk.fill(OTHER, DYNAMIC[1:])
            taken = [(await desk.take(IPV4))[0] for _ in range(3)]
            assert taken == ["10.96.0.17", "10.97.0.17", "10.96.0.1"]
            desk.fill(SMALL, range(SMALL.usable))
            assert await desk.take(IPV4) == ("10.97.0.1",)
            desk.fill(OTHER, range(SMALL.usable))
            with pytest.raises(FullError, match=r"in 10\.96\.0\.0/26, 10\.97\.0\.0/26$"):
                await desk.take(IPV4)

        run(scenario())

    def test_foreign(self) -> None:
        """Addresses that the API server's allocator gave are not drawn, though their bits are clear."""

        async def scenario() -> None:
            desk = Desk(foreign={DYNAMIC[0]: "default/theirs"})
            assert await desk.take(IPV4) == (str(SMALL.address(DYNAMIC[1])),)
            desk.fill(SMALL, [each for each in range(SMALL.usable) if each != DYNAMIC[0]])
            with pytest.raises(FullError):
                await desk.take(IPV4)

        run(scenario())

    def test_no_range(self) -> None:
        """A family without a range is told so, whether or not the address is named."""

        async def scenario() -> None:
            desk = Desk()
            for want in (IPV6, static("fd00::1")):
                with pytest.raises(NoRangeError, match="no IPv6 range"):
                    await desk.take(want)

        run(scenario())


class TestStatic:
    """Addresses that are named."""

    def test_either_band(self) -> None:
        """B4: exactly the one asked for, in whichever band and range."""

        async def scenario() -> None:
            desk = Desk(SMALL, OTHER)
            for text in ("10.96.0.1", "10.96.0.62", "10.97.0.20"):
                assert await desk.take(static(text)) == (text,)

        run(scenario())

    @pytest.mark.parametrize("text", ["10.96.0.0", "10.96.0.63", "10.96.0.64", "10.1.0.1"])
    def test_out_of_range(self, text: str) -> None:
        """B4: the first and the last address, and any other that is no usable one, are out of range."""

        async def scenario() -> None:
            with pytest.raises(OutOfRangeError, match=rf"{text} is not one of .* 10\.96\.0\.0/26 can give"):
                await Desk().take(static(text))

        run(scenario())

    def test_taken(self) -> None:
        """B4: what somebody has is taken, and the error says who, if that is known."""

        async def scenario() -> None:
            desk = Desk(foreign={9: "default/theirs"})
            await desk.take(static("10.96.0.5"), service="default/other")
            with pytest.raises(TakenError, match=r"10\.96\.0\.5 is taken by default/other"):
                await desk.take(static("10.96.0.5"))
            with pytest.raises(TakenError, match=r"10\.96\.0\.10 is taken by default/theirs"):
                await desk.take(static("10.96.0.10"))

        run(scenario())

    def test_different_errors(self) -> None:
        """B4: taken and out of range are different errors, by a word that programs can tell apart as well."""
        assert len({each.reason for each in (TakenError, OutOfRangeError, FullError, NoRangeError)}) == 4
        assert not issubclass(TakenError, OutOfRangeError)

    def test_again(self) -> None:
        """A Service that was refused for another reason gets the address that it was given just before."""

        async def scenario() -> None:
            desk = Desk(foreign={9: "default/web"})
            for text in ("10.96.0.5", "10.96.0.10"):
                assert await desk.take(static(text)) == (text,)
                assert await desk.take(static(text)) == (text,)

        run(scenario())


class TestTransaction:
    """All or nothing, until it is committed."""

    def test_both_families(self) -> None:
        """B9: one of each, in the order wanted, asked for at the same time."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await desk.take(IPV6, static("10.96.0.5")) == ("fd00::11", "10.96.0.5")
            assert loop.time() - began < 0.005

        run(scenario())

    @pytest.mark.parametrize("wants", [(IPV4, IPV6), (IPV6, IPV4)])
    def test_one_fails(self, wants: tuple[Want, ...]) -> None:
        """B9: if one family cannot give, the other keeps nothing."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            desk.fill(SMALL_IPV6, range(SMALL_IPV6.usable))
            with pytest.raises(FullError):
                await desk.take(*wants)
            assert desk.store.held(SMALL) == set()

        run(scenario())

    def test_api_away_for_one(self) -> None:
        """B9: likewise if one family's object cannot be written."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            desk.clients[SMALL_IPV6].away = True
            with pytest.raises(NoAnswerError):
                await desk.take(IPV4, IPV6)
            assert desk.store.held(SMALL) == set()

        run(scenario())

    def test_cannot_be_given_back(self) -> None:
        """B9: what cannot be given back stays for the repairer, and the error is the one that came first."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            desk.fill(SMALL_IPV6, range(SMALL_IPV6.usable))
            refused = ApiError(403, "Forbidden", "not you")
            desk.clients[SMALL].fault = next_writes(None, refused, done=False)
            with pytest.raises(FullError):
                await desk.take(IPV4, IPV6)
            assert len(desk.store.held(SMALL)) == 1

        run(scenario())

    def test_revert_and_commit(self) -> None:
        """B9: what is reverted is free again, once; what is committed stays."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            kept = await desk.allocator.allocate("default/kept", [IPV4, IPV6])
            left = await desk.allocator.allocate("default/left", [IPV4, IPV6])
            await kept.commit()
            await kept.revert()
            await left.revert()
            taken = await desk.allocator.allocate("default/next", [IPV4])
            assert taken.given[0].address == left.given[0].address
            await left.revert()
            assert len(desk.store.held(SMALL)) == 2
            assert len(desk.store.held(SMALL_IPV6)) == 1

        run(scenario())

    @pytest.mark.parametrize("after", [0.0005, 0.0015, 0.0025, 0.0035, 0.0045, 0.006])
    def test_cancelled(self, after: float) -> None:
        """B9: whoever is cancelled, at any time, keeps nothing: not of the one family that was there first either."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            desk.clients[SMALL_IPV6].latency = lambda: 0.002
            asked = asyncio.create_task(desk.allocator.allocate("default/web", [IPV4, IPV6]))
            await asyncio.sleep(after)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            for ledger in desk.ledgers:
                await ledger.finish(10)
            assert (desk.store.held(SMALL), desk.store.held(SMALL_IPV6)) == (set(), set())

        run(scenario())


class TestRelease:
    """Giving back, by what was given."""

    def test_long_ago(self) -> None:
        """B6, B7: who has an address gives it back, though its grant is forgotten; a late revert takes nothing back."""

        async def scenario() -> None:
            desk = Desk()
            reverted, released = [await desk.allocator.allocate("default/web", [IPV4]) for _ in range(2)]
            desk.store.edit(SMALL, recent="")
            await reverted.revert()
            assert len(desk.store.held(SMALL)) == 2
            await desk.allocator.release(released.given)
            assert desk.store.held(SMALL) == {SMALL.offset(reverted.given[0].address)}

        run(scenario())

    def test_no_error(self) -> None:
        """B7: what is not allocated, or out of range, or of no range, is no error."""

        async def scenario() -> None:
            desk = Desk()
            given = (await desk.allocator.allocate("default/web", [IPV4])).given
            await desk.allocator.release(given)
            await desk.allocator.release(given)
            await desk.allocator.release(
                [
                    Given(address("10.1.0.1"), "w.1", SMALL.cidr, Band.DYNAMIC),
                    Given(address("10.1.0.1"), "w.1", OTHER.cidr, Band.DYNAMIC),
                ]
            )
            assert desk.store.held(SMALL) == set()

        run(scenario())


class TestDryRun:
    """Asking without taking."""

    @pytest.mark.parametrize("want", [IPV4, static("10.96.0.5")])
    def test_changes_nothing(self, want: Want) -> None:
        """B7: it says what would be given, writes nothing, counts nothing, and there is nothing to revert."""

        async def scenario() -> None:
            desk = Desk()
            asked = await desk.allocator.allocate("default/web", [want], dry_run=True)
            assert len(asked.given) == 1
            await asked.revert()
            assert (desk.store.writes, desk.clients[SMALL].asked) == (0, ["GET"])
            assert desk.sample("allocation_total", scope=want.scope.value) == 0

        run(scenario())

    def test_refuses_as_in_earnest(self) -> None:
        """B7: what would be refused is, for the same reason; nothing of the other family is kept either."""

        async def scenario() -> None:
            desk = Desk(SMALL, SMALL_IPV6)
            desk.fill(SMALL, [*DYNAMIC, 4])
            for wants, error in (
                ((static("10.96.0.5"), IPV6), TakenError),
                ((static("10.1.0.1"), IPV6), OutOfRangeError),
            ):
                with pytest.raises(error):
                    await desk.allocator.allocate("default/web", wants, dry_run=True)
            assert desk.store.writes == 0
            assert desk.sample("allocation_errors_total", scope="static") == 0

        run(scenario())


class TestMetrics:
    """What dashboards show."""

    def test_counts(self) -> None:
        """B10: how full a range is, what was given and what failed, by how it was asked for."""

        async def scenario() -> None:
            desk = Desk(SMALL, OTHER)
            assert desk.sample("allocated_ips") is None, "nothing is known yet"
            assert desk.sample("allocation_total", scope="static") == 0
            await desk.take(IPV4)
            await desk.take(IPV4)
            await desk.take(static("10.96.0.5"))
            for bad in (static("10.96.0.5"), static("10.1.0.1")):
                with pytest.raises(Refusal):
                    await desk.take(bad, service="default/other")
            assert (desk.sample("allocated_ips"), desk.sample("available_ips")) == (3, 59)
            assert desk.sample("allocation_total", scope="dynamic") == 2
            assert desk.sample("allocation_total", scope="static") == 1
            assert desk.sample("allocation_errors_total", scope="static") == 2
            assert desk.sample("allocation_errors_total", scope="dynamic") == 0
            assert desk.sample("allocation_total", "10.97.0.0/26", scope="dynamic") == 0

        run(scenario())

    def test_go_with_the_range(self) -> None:
        """B10: nothing is said of a range that is gone."""

        async def scenario() -> None:
            desk = Desk()
            await desk.take(IPV4)
            desk.ledgers.clear()
            assert desk.sample("allocated_ips") is None
            assert desk.sample("allocation_total", scope="dynamic") is None

        run(scenario())
