"""The one way to change the object of a range: compare and swap, together with whoever else waits."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from cidrella.serviceip.errors import CorruptAllocationError, MissingAllocationError, TakenError
from cidrella.serviceip.ledger import GROUP
from cidrella.serviceip.state import State
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, Store, StoreClient, give, make_ledger


def release(offset: int, write: str) -> Any:
    """An edit that gives an address back."""
    return lambda state: state.release(offset, write)


class Bench:
    """A store with the object of a range, and ledgers on it, each with a client of its own."""

    def __init__(self, held: tuple[int, ...] = (), **fields: object) -> None:
        self.store = Store()
        self.store.make(SMALL, held, **fields)
        self.one, self.two = StoreClient(self.store), StoreClient(self.store)
        self.first = make_ledger(self.one, identity="first", rng=random.Random(1))
        self.second = make_ledger(self.two, identity="second", rng=random.Random(2))

    @property
    def held(self) -> set[int]:
        """What the store says is given."""
        return self.store.held(SMALL)


class TestGroupCommit:
    """One write at a time, with all that is wanted by then."""

    def test_those_who_wait_go_together(self) -> None:
        """Requests that come while a write is in flight go out in one."""

        async def scenario() -> None:
            bench = Bench()
            first = asyncio.create_task(bench.first.change(give("default/a", 0)))
            await asyncio.sleep(0.003)
            assert bench.one.asked == ["GET", "PUT"], "in flight"
            rest = [bench.first.change(give("default/b", offset)) for offset in range(1, 30)]
            writes = await asyncio.gather(first, *rest)
            assert writes == ["first.1", *["first.2"] * 29]
            assert bench.one.asked == ["GET", "PUT", "PUT"], "what it wrote itself it need not read"
            assert bench.held == set(range(30))

        simulate(scenario())

    def test_at_most_so_many(self) -> None:
        """A write serves no more than the object remembers."""

        async def scenario() -> None:
            bench = Bench()
            edits = [partial(State.appoint, term=f"term-{number}") for number in range(GROUP + 1)]
            await asyncio.gather(*(bench.first.change(edit) for edit in edits))
            assert bench.one.asked == ["GET", "PUT", "PUT"]

        simulate(scenario())

    def test_one_refused_among_others(self) -> None:
        """B4: who asks for what another in the same write gets is refused, and the others are served."""

        async def scenario() -> None:
            bench = Bench()
            asked = [give("default/a", 0), give("default/b", 0), give("default/c", 1)]
            results = await asyncio.gather(*map(bench.first.change, asked), return_exceptions=True)
            assert results[::2] == ["first.1"] * 2
            assert str(results[1]) == "10.96.0.1 is taken by default/a"

        simulate(scenario())

    def test_mistake_of_one(self) -> None:
        """An edit that fails in a way nobody foresaw fails alone."""

        async def scenario() -> None:
            bench = Bench()
            bad = bench.first.change(lambda _: 1 // 0)
            good = bench.first.change(give("default/a", 0))
            results = await asyncio.gather(bad, good, return_exceptions=True)
            assert isinstance(results[0], ZeroDivisionError)
            assert bench.held == {0}

        simulate(scenario())


class TestRaces:
    """Many writers, and every change a compare and swap."""

    def test_lost(self) -> None:
        """B6: who loses reads and tries again; nobody is told, and nothing is overwritten."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.change(give("default/a", 0))
            await bench.second.change(give("default/b", 1))
            await bench.first.change(give("default/c", 2))
            assert bench.held == {0, 1, 2}
            assert bench.one.asked == ["GET", "PUT", "PUT", "GET", "PUT"]

        simulate(scenario())

    def test_same_address(self) -> None:
        """B4, B6: of two who want one address, one gets it, and the other hears who has it."""

        async def scenario() -> None:
            bench = Bench()
            results = await asyncio.gather(
                bench.first.change(give("default/a", 0)),
                bench.second.change(give("default/b", 0)),
                return_exceptions=True,
            )
            refused = [each for each in results if isinstance(each, TakenError)]
            assert len(refused) == 1
            assert refused[0].by in {"default/a", "default/b"}

        simulate(scenario())

    def test_refusal_is_fresh(self) -> None:
        """B4: nobody is refused because of what was so when we last looked."""

        async def scenario() -> None:
            bench = Bench()
            write = await bench.first.change(give("default/a", 0))
            await bench.second.change(release(0, write))
            await bench.first.change(give("default/b", 0))
            with pytest.raises(TakenError):
                await bench.second.change(give("default/c", 0))

        simulate(scenario())

    def test_nothing_to_do_is_fresh(self) -> None:
        """B7: what seems to be free already was looked at: it may have been given since, by another."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.refresh()
            write = await bench.second.change(give("default/a", 0))
            await bench.first.change(release(0, write))
            assert bench.held == set()
            asked = len(bench.one.asked)
            await bench.first.change(release(0, write))
            assert bench.one.asked[asked:] == ["GET"], "nothing is written for what changes nothing"

        simulate(scenario())

    def test_asked_during_a_read(self) -> None:
        """A read that was under way when somebody asked is too old for them."""

        async def scenario() -> None:
            bench = Bench(held=(0,))
            early = asyncio.create_task(bench.first.refresh())
            await asyncio.sleep(0.0015)
            bench.store.edit(SMALL, data="")
            late = asyncio.create_task(bench.first.refresh())
            await early
            assert (await late).bitmap.count == 0

        simulate(scenario())

    def test_nobody_starves(self) -> None:
        """B6: of 32 that write all the time, each gets its turn within the time of a few hundred requests."""

        async def scenario() -> float:
            store = Store()
            store.make(SMALL)
            loop = asyncio.get_running_loop()
            longest = 0.0

            async def writer(number: int) -> None:
                nonlocal longest
                ledger = make_ledger(StoreClient(store), identity=f"w{number}", rng=random.Random(number))
                for turn in range(15):
                    began = loop.time()
                    await ledger.change(partial(State.appoint, term=f"{number}.{turn}"))
                    longest = max(longest, loop.time() - began)

            await asyncio.gather(*map(writer, range(32)))
            assert store.writes == 32 * 15
            return longest

        assert simulate(scenario()) < 2.0


class TestWhoNoLongerWaits:
    """Requests that are cancelled lose nothing and double nothing."""

    def test_before_it_was_sent(self) -> None:
        """What nobody wants any more is not written."""

        async def scenario() -> None:
            bench = Bench()
            asked = asyncio.create_task(bench.first.change(give("default/a", 0), undo=_take_back))
            await asyncio.sleep(0.0015)
            asked.cancel()
            await bench.first.finish(1)
            assert asked.cancelled()
            assert bench.one.asked == ["GET"]

        simulate(scenario())

    @pytest.mark.parametrize("others", [True, False])
    def test_while_it_is_written(self, *, others: bool) -> None:
        """The write goes on, for those who wait with it; the part of the one who left is taken back."""

        async def scenario() -> None:
            bench = Bench()
            asked = asyncio.create_task(bench.first.change(give("default/a", 0), undo=_take_back))
            rest = [asyncio.create_task(bench.first.change(give("default/b", 1)))] if others else []
            await asyncio.sleep(0.003)
            assert bench.one.asked == ["GET", "PUT"]
            asked.cancel()
            await asyncio.gather(*rest)
            await bench.first.finish(1)
            assert bench.one.asked == ["GET", "PUT", "PUT"]
            assert bench.held == ({1} if others else set())

        simulate(scenario())

    def test_when_it_was_just_written(self) -> None:
        """One who is cancelled when the result is there, and before they see it, has not got it."""

        async def scenario() -> None:
            bench = Bench()
            loop = asyncio.get_running_loop()
            asked = asyncio.create_task(bench.first.change(give("default/a", 0), undo=_take_back))
            settle = bench.first._settle

            def settle_and_cancel(outcomes: Any) -> None:
                settle(outcomes)
                asked.cancel()
                bench.first._settle = settle  # type: ignore[method-assign]

            bench.first._settle = settle_and_cancel  # type: ignore[method-assign]
            with pytest.raises(asyncio.CancelledError):
                await asked
            await bench.first.finish(1)
            assert bench.held == set()
            assert loop.time() < 1001

        simulate(scenario())

    def test_cannot_be_taken_back(self) -> None:
        """If the API goes away just then it stays for the repairer; nobody hangs."""

        async def scenario() -> None:
            bench = Bench()
            asked = asyncio.create_task(bench.first.change(give("default/a", 0), undo=_take_back))
            await asyncio.sleep(0.0035)
            asked.cancel()
            await asyncio.sleep(0.0006)
            bench.one.away = True
            await bench.first.finish(60)
            assert bench.first._worker is None
            assert bench.held == {0}

        simulate(scenario())


class TestUnusable:
    """An object that is not there, or makes no sense, is refused, and left as it is."""

    def test_missing(self) -> None:
        """Without its object a range gives nothing."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.refresh()
            bench.store.delete(SMALL)
            with pytest.raises(MissingAllocationError, match=r"no RangeAllocation 10\.96\.0\.0-26"):
                await bench.first.change(give("default/a", 0))
            with pytest.raises(MissingAllocationError):
                await bench.first.refresh()
            assert bench.store.objects == {}

        simulate(scenario())

    def test_corrupt(self) -> None:
        """Nothing is overwritten; whoever waits is told; when it is mended, it goes on."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.refresh()
            bench.store.edit(SMALL, range="10.97.0.0/26")
            both = [bench.first.change(give("default/a", 0)), bench.first.refresh()]
            results = await asyncio.gather(*both, return_exceptions=True)
            assert [type(each) for each in results] == [CorruptAllocationError] * 2
            assert bench.store.objects["10.96.0.0-26"]["range"] == "10.97.0.0/26"
            bench.store.edit(SMALL, range="10.96.0.0/26")
            await bench.first.change(give("default/a", 0))

        simulate(scenario())

    def test_mended_meanwhile(self) -> None:
        """Who asks after it was mended is served, though a read is under way that began before."""

        async def scenario() -> None:
            bench = Bench(range="10.97.0.0/26")
            early = asyncio.create_task(bench.first.refresh())
            await asyncio.sleep(0.0015)
            bench.store.edit(SMALL, range="10.96.0.0/26")
            late = asyncio.create_task(bench.first.change(give("default/a", 0)))
            with pytest.raises(CorruptAllocationError):
                await early
            await late
            assert bench.held == {0}

        simulate(scenario())

    def test_establish_missing(self) -> None:
        """B5: it is made from what Services have; of two who do, one is told that the other was faster."""

        async def scenario() -> None:
            bench = Bench()
            bench.store.delete(SMALL)
            both = [each.establish((3, 4), "term-2", "") for each in (bench.first, bench.second)]
            assert sorted(await asyncio.gather(*both)) == [False, True]
            state = await bench.first.refresh()
            assert (set(state.bitmap), state.repairer, len(state.writes)) == ({3, 4}, "term-2", 1)
            await bench.second.change(give("default/a", 0))

        simulate(scenario())

    def test_establish_corrupt(self) -> None:
        """B5: one that makes no sense is replaced, but not one that is newer; what was given of late stays given."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.change(give("default/a", 7))
            bench.store.edit(SMALL, data="AAAAAAAAAAAA")
            with pytest.raises(CorruptAllocationError) as caught:
                await bench.first.refresh()
            bench.store.edit(SMALL, repairer="term-9")
            assert not await bench.first.establish((3,), "term-2", caught.value.version)
            with pytest.raises(CorruptAllocationError) as caught:
                await bench.first.refresh()
            assert await bench.first.establish((3,), "term-2", caught.value.version)
            state = await bench.second.refresh()
            assert (set(state.bitmap), state.repairer) == ({3, 7}, "term-2")
            assert state.recent[7].service == "default/a"
            assert state.metadata.labels == {"kept": "yes"}

        simulate(scenario())

    def test_establish_unreadable(self) -> None:
        """One of which nothing can be read is replaced as well."""

        async def scenario() -> None:
            bench = Bench(data="no base64!")
            with pytest.raises(CorruptAllocationError) as caught:
                await bench.first.refresh()
            assert await bench.first.establish((3,), "term-2", caught.value.version)
            assert bench.held == {3}

        simulate(scenario())


def test_peek() -> None:
    """B7: a dry run is told what would be, from the newest state, and writes nothing."""

    async def scenario() -> None:
        bench = Bench()
        await bench.first.refresh()
        await bench.second.change(give("default/a", 0))
        with pytest.raises(TakenError):
            await bench.first.peek(give("default/b", 0))
        await bench.first.peek(give("default/b", 1))
        assert bench.one.asked == ["GET", "GET", "GET"]
        state = bench.first.state
        assert state is not None
        assert set(state.bitmap) == bench.held == {0}

    simulate(scenario())


def _take_back(state: State, write: str) -> None:
    state.release(0, write)
