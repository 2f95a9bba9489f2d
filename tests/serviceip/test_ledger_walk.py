"""Random schedules: many writers of one object, a network that delays and loses, and a repairer. Time is simulated."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cidrella.core.prefix import Family
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.serviceip.allocator import Allocator, Given, Want
from cidrella.serviceip.errors import FullError, TakenError
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, Store, StoreClient, make_ledger

if TYPE_CHECKING:
    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.state import State

ROUND = 60.0
"""Seconds between two rounds of the repairer: much longer than anybody waits for an address."""


class Odds(NamedTuple):
    """How likely things are to happen to a request."""

    before: float
    """It is lost on its way there."""
    after: float
    """Its reply is lost."""
    late: float
    """Its sender gives it up, and it arrives later."""
    refused: float
    """The server has too much to do."""
    cancelled: float
    """An allocation is cancelled by whoever asked for it."""


CALM = Odds(0, 0, 0, 0, 0)
ROUGH = Odds(0.04, 0.04, 0.04, 0.02, 0.1)


class Network(StoreClient):
    """What happens to requests is drawn."""

    def __init__(self, store: Store, rng: random.Random, odds: Odds) -> None:
        super().__init__(store)
        self._rng = rng
        self.odds = odds
        self.latency = lambda: rng.expovariate(500)
        self.fault = self._drawn

    async def request(self, method: str, path: str, **rest: Any) -> bytes:
        body = rest.get("body")
        if body is not None and self._rng.random() < self.odds.late:
            asyncio.get_running_loop().call_later(self._rng.expovariate(1), self._arrive, method, path, body)
            raise NoAnswerError("given up")
        return await super().request(method, path, **rest)

    def _arrive(self, method: str, path: str, body: bytes) -> None:
        try:
            self.store.do(method, path, body)
        except ApiError as error:
            assert error.code == 409  # noqa: PT017 -- that is what the version is for

    def _drawn(self, method: str, done: bool) -> KubeError | None:
        if self._rng.random() < (self.odds.after if done else self.odds.before):
            return self._rng.choice([NoAnswerError("lost"), ApiError(500, "InternalError", "etcd is away")])
        if not done and method != "GET" and self._rng.random() < self.odds.refused:
            return ApiError(429, "TooManyRequests", "later", 1.0)
        return None


class Walk:
    """Writers who take and give back, and what each was told."""

    def __init__(self, seed: int, odds: Odds) -> None:
        self.rng = random.Random(seed)
        self.store = Store()
        self.store.make(SMALL)
        self.odds = odds
        self.networks: list[Network] = []
        self.has: dict[str, Given] = {}
        """The addresses that somebody was told are theirs."""
        self.failures: list[Exception] = []
        self.full = 0
        self.reused = 0
        self.seen: set[str] = set()

    def ledger(self, name: str) -> Ledger:
        """A ledger of another process."""
        self.networks.append(Network(self.store, self.rng, self.odds))
        return make_ledger(self.networks[-1], identity=name, rng=random.Random(self.rng.random()))

    async def writer(self, name: str, turns: int) -> None:
        """Several Services at once, each created and deleted again and again."""
        ledger = self.ledger(name)
        allocator = Allocator(lambda: [ledger], below=self.rng.randrange)
        await asyncio.gather(*(self._service(allocator, f"{name}/{number}", turns) for number in range(3)))
        await ledger.finish(600)

    async def _service(self, allocator: Allocator, service: str, turns: int) -> None:
        mine: list[Given] = []
        for _ in range(turns):
            await asyncio.sleep(self.rng.expovariate(20))
            if mine and self.rng.random() < 0.4:
                given = mine.pop(self.rng.randrange(len(mine)))
                del self.has[str(given.address)]
                await allocator.release([given])
            else:
                mine += await self._take(allocator, service)

    async def _take(self, allocator: Allocator, service: str) -> list[Given]:
        address = SMALL.address(self.rng.randrange(SMALL.usable)) if self.rng.random() < 0.2 else None
        before = self.store.version
        asked = asyncio.ensure_future(allocator.allocate(service, [Want(Family.IPV4, address)]))
        if self.rng.random() < self.odds.cancelled:
            asyncio.get_running_loop().call_later(self.rng.expovariate(100), asked.cancel)
        try:
            given = list((await asked).given)
        except asyncio.CancelledError:
            return []
        except TakenError:
            return []
        except FullError as error:
            self._check_full(before, error)
            return []
        for each in given:
            text = str(each.address)
            assert text not in self.has or self._again(text, service), f"{text} was given twice"
            self.reused += text in self.seen
            self.seen.add(text)
            if text in self.has:
                return []
            self.has[text] = each
        return given

    def _again(self, address: str, service: str) -> bool:
        """A Service may name an address that it has."""
        recent = self.store.recent(SMALL)
        return any(each.address == address and each.service == service and each.again for each in recent)

    def _check_full(self, before: int, error: FullError) -> None:
        """It was full at some time since we asked."""
        self.full += 1
        if not any(count == SMALL.usable for version, count in self.store.counts if version >= before):
            self.failures.append(error)

    async def repairer(self) -> None:
        """Rounds, as in earnest: what nobody has in three rounds in a row is freed."""
        ledger = self.ledger("repairer")
        strikes: dict[int, int] = {}
        while True:
            await asyncio.sleep(ROUND)
            read = await ledger.refresh()
            held = {SMALL.offset(each.address) for each in self.has.values()}
            strikes = {each: strikes.get(each, 0) + 1 for each in read.bitmap if each not in held}
            due = [each for each, count in strikes.items() if count >= 3]
            await ledger.change(partial(_free, read=read, due=due), once=True)


def _free(state: State, read: State, due: list[int]) -> None:
    for offset in due:
        if state.unmoved(offset, read):
            state.free(offset, "term-1")


@pytest.mark.parametrize("seed", range(8))
def test_walk(seed: int) -> None:
    """B6: no address is given to two, whatever is lost; who is told that there is none was told the truth (B3).

    After the repairer's rounds nothing is lost either: what is given is what somebody has, and the rest can be had.
    """

    async def scenario() -> None:
        walk = Walk(seed, ROUGH)
        repairing = asyncio.create_task(walk.repairer())
        await asyncio.gather(*(walk.writer(f"w{number}", 30) for number in range(8)))
        assert walk.failures == []
        assert {str(each.address) for each in walk.has.values()} <= _texts(walk.store)
        for network in walk.networks:
            network.odds = CALM
        await asyncio.sleep(5 * ROUND)
        assert {str(each.address) for each in walk.has.values()} == _texts(walk.store)
        repairing.cancel()
        assert walk.full, "the range was never full: this shows nothing"
        assert walk.reused, "no address was given again: this shows nothing"
        free = SMALL.usable - len(walk.has)
        ledger = walk.ledger("last")
        allocator = Allocator(lambda: [ledger])
        wants = [allocator.allocate("last/one", [Want(Family.IPV4)]) for _ in range(free)]
        given = {each.given[0].address for each in await asyncio.gather(*wants)}
        assert len(given) == free

    simulate(scenario())


def _texts(store: Store) -> set[str]:
    return {str(SMALL.address(offset)) for offset in store.held(SMALL)}
