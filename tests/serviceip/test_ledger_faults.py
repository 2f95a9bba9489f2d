"""Replies that get lost, and an API that is away: what is known afterwards, and what is done about the rest."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.kube.errors import ApiError, KubeError, MalformedReplyError, NoAnswerError
from cidrella.serviceip.ledger import PATIENCE
from cidrella.serviceip.shelf import REQUEST_SECONDS
from cidrella.serviceip.state import WRITES
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, Store, StoreClient, give, make_ledger, next_writes
from tests.serviceip.test_ledger import Bench, release

if TYPE_CHECKING:
    from cidrella.serviceip.state import State

LOST = NoAnswerError("the connection was lost")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
PAGE = MalformedReplyError("not JSON but text/html")


def page(code: int) -> ApiError:
    """A reply that is no `Status`: an intermediary may have sent it, and may forward the request later."""
    return ApiError(code, "", f"<html><h1>{code}</h1></html>", is_status=False)


def name_of(error: KubeError) -> str:
    """What a test with this error is called."""
    if not isinstance(error, ApiError):
        return type(error).__name__
    return f"{error.code}-{'Status' if error.is_status else 'page'}"


BUSY = ApiError(429, "", "Too many requests, please try again later.", 1.0, is_status=False)
DENIED = ApiError(429, "TooManyRequests", "the admission webhook has too much to do")
TIMED_OUT = ApiError(408, "Timeout", "request did not complete within the allotted timeout")
UNKNOWN = [LOST, BROKEN, PAGE, BUSY, DENIED, TIMED_OUT, *map(page, (307, 401, 403, 404, 408, 409, 502))]
"""Replies to a write that do not say whether it took effect, or will."""
RIVALS = [f"theirs.{number}" for number in range(WRITES)]
"""As many writes as the object remembers."""


class TestLostReplies:
    """A write whose reply is lost landed, or did not; that is found out."""

    @pytest.mark.parametrize("error", UNKNOWN, ids=name_of)
    def test_landed(self, error: KubeError) -> None:
        """B6: what landed is not done again."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(error, done=True)
            assert await bench.first.change(give("default/a", 0)) == "first.1"
            assert (bench.held, bench.store.writes) == ({0}, 1)

        simulate(scenario())

    @pytest.mark.parametrize("error", UNKNOWN, ids=name_of)
    def test_did_not_arrive(self, error: KubeError) -> None:
        """B6: what did not land is sent again, the very same, while its version stands."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(error, done=False)
            assert await bench.first.change(give("default/a", 0)) == "first.1"
            assert (bench.held, bench.store.writes) == ({0}, 1)

        simulate(scenario())

    @pytest.mark.parametrize("error", UNKNOWN, ids=name_of)
    def test_arrives_twice(self, error: KubeError) -> None:
        """B6: one that is late lands after it was given up, and the one that was sent again finds that out."""

        async def scenario() -> None:
            bench = Bench()
            late = Late(bench.store, error)
            ledger = make_ledger(late, identity="late", rng=random.Random(1))
            asked = asyncio.create_task(ledger.change(_first_free))
            await late.caught.wait()
            late.when_resent = True
            assert await asked == 0
            assert (bench.held, bench.store.writes) == ({0}, 1)
            assert late.asked == ["GET", "PUT", "GET", "PUT", "GET"]

        simulate(scenario())

    def test_lost_and_others_went_on(self) -> None:
        """B6: one that did not arrive before others wrote can land no more, and is made anew."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(LOST, done=False)
            asked = asyncio.create_task(bench.first.change(give("default/a", 0)))
            await asyncio.sleep(0.0035)
            bench.store.edit(SMALL, writes=["maker.1", "theirs.1"])
            assert await asked == "first.2"
            assert bench.held == {0}

        simulate(scenario())

    def test_landed_and_others_went_on(self) -> None:
        """B6: one that landed before others wrote is found among the last writes."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(LOST, done=True)
            asked = asyncio.create_task(bench.first.change(give("default/a", 0)))
            await asyncio.sleep(0.0045)
            await bench.second.change(give("default/b", 1))
            assert await asked == "first.1"
            assert bench.held == {0, 1}

        simulate(scenario())

    @pytest.mark.parametrize("landed", [True, False])
    def test_nobody_can_tell(self, *, landed: bool) -> None:
        """B6: when too much was written since, it is done anew; what is left over then is for the repairer."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(LOST, done=landed)
            asked = asyncio.create_task(bench.first.change(_first_free))
            await asyncio.sleep(0.0045)
            bench.store.edit(SMALL, writes=RIVALS)
            assert await asked == (1 if landed else 0)
            assert bench.held == ({0, 1} if landed else {0})

        simulate(scenario())

    @pytest.mark.parametrize("error", UNKNOWN, ids=name_of)
    @pytest.mark.parametrize("landed", [True, False])
    def test_release_of_which_nobody_can_tell(self, error: KubeError, *, landed: bool) -> None:
        """B6: a release that may have landed is not made again: by now the address may be another's."""

        async def scenario() -> None:
            bench = Bench(held=(0,))
            bench.one.fault = next_writes(error, done=landed)
            asked = asyncio.create_task(bench.first.change(release(0, "long.ago"), once=True))
            await asyncio.sleep(0.0045)
            bench.store.edit(SMALL, data="AQ==", writes=RIVALS)
            await asked
            assert bench.held == {0}, "another's"

        simulate(scenario())

    def test_release_that_is_known(self) -> None:
        """B6: one that surely did not land is made again."""

        async def scenario() -> None:
            bench = Bench(held=(0,))
            bench.one.fault = next_writes(LOST, done=False)
            asked = asyncio.create_task(bench.first.change(release(0, "long.ago"), once=True))
            await asyncio.sleep(0.0035)
            bench.store.edit(SMALL, writes=["maker.1", "theirs.1"])
            await asked
            assert bench.held == set()

        simulate(scenario())

    def test_new_object(self) -> None:
        """B6: of a write to an object that was replaced by another of its name, nobody can tell."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(LOST, done=True)
            asked = asyncio.create_task(bench.first.change(give("default/a", 0)))
            await asyncio.sleep(0.0045)
            bench.store.delete(SMALL)
            bench.store.make(SMALL)
            assert await asked == "first.2"
            assert bench.held == {0}

        simulate(scenario())


class TestTrouble:
    """An API that does not answer, or not well."""

    @pytest.mark.parametrize("hangs", [True, False])
    def test_away(self, *, hangs: bool) -> None:
        """Who asks an API that is away is told so in bounded time; when it is back, it goes on by itself."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.change(give("default/a", 0))
            bench.one.away, bench.one.hangs = not hangs, hangs
            loop = asyncio.get_running_loop()
            began = loop.time()
            asked = asyncio.create_task(bench.first.change(give("default/b", 1)))
            await asyncio.sleep(2)
            later = asyncio.create_task(bench.first.change(give("default/c", 2)))
            with pytest.raises(NoAnswerError):
                await asked
            assert loop.time() - began <= PATIENCE + REQUEST_SECONDS
            with pytest.raises(NoAnswerError):
                await later
            assert loop.time() - began <= 2 + PATIENCE + REQUEST_SECONDS
            assert bench.first._worker is None, "nobody waits: nobody asks"
            bench.one.away = bench.one.hangs = False
            await bench.first.change(give("default/d", 3))
            assert bench.held == {0, 3}

        simulate(scenario())

    @pytest.mark.parametrize("error", UNKNOWN, ids=name_of)
    def test_landed_after_all(self, error: KubeError) -> None:
        """What was done for somebody who was told that it failed is taken back when that is seen."""

        async def scenario() -> None:
            bench = Bench()
            await bench.first.refresh()
            bench.one.fault = next_writes(error, done=True)
            asked = asyncio.create_task(
                bench.first.change(give("default/a", 0), undo=lambda state, write: state.release(0, write))
            )
            await asyncio.sleep(0.004)
            bench.one.away = True
            with pytest.raises(NoAnswerError):
                await asked
            assert bench.held == {0}
            bench.one.away = False
            await bench.first.change(give("default/b", 1))
            await bench.first.finish(1)
            assert bench.held == {1}

        simulate(scenario())

    def test_too_many_requests(self) -> None:
        """A server that asks for a pause gets it."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(ApiError(429, "TooManyRequests", "later", 2.0), done=False)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await bench.first.change(give("default/a", 0))
            assert 2.0 <= loop.time() - began < 2.1

        simulate(scenario())

    def test_forbidden(self) -> None:
        """A refusal that time does not mend is told at once."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = next_writes(ApiError(403, "Forbidden", "not you"), done=False)
            with pytest.raises(ApiError, match="not you"):
                await bench.first.change(give("default/a", 0))
            assert asyncio.get_running_loop().time() < 1000.1

        simulate(scenario())

    @pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "not you"), page(403), page(408)], ids=name_of)
    def test_refused_read(self, error: KubeError) -> None:
        """A read that is refused is told at once, whoever sent the reply: a read leaves nothing in doubt."""

        async def scenario() -> None:
            bench = Bench()
            bench.one.fault = lambda method, done: None if done or method != "GET" else error
            with pytest.raises(ApiError, match=f"^{error}$"):
                await bench.first.change(give("default/a", 0))
            assert bench.one.asked == ["GET"]

        simulate(scenario())

    @pytest.mark.parametrize("error", [LOST, BROKEN, BUSY, DENIED, page(502)], ids=name_of)
    def test_read_that_fails_for_a_while(self, error: KubeError) -> None:
        """A read from a server that failed, or has too much to do, is made again."""

        async def scenario() -> None:
            bench = Bench()
            left = [error]
            bench.one.fault = lambda method, _: left.pop() if left and method == "GET" else None
            await bench.first.change(give("default/a", 0))
            assert bench.one.asked == ["GET", "GET", "PUT"]

        simulate(scenario())

    def test_refused_after_an_unknown_answer(self) -> None:
        """A definite refusal of what was sent again says nothing of the first attempt, which may land yet."""

        async def scenario() -> None:
            bench = Bench()
            late = Late(bench.store, page(408))
            ledger = make_ledger(late, identity="late", rng=random.Random(1))
            late.fault = next_writes(ApiError(403, "Forbidden", "not you"), done=False)
            undo = lambda state, write: state.release(0, write)  # noqa: E731 -- as elsewhere
            with pytest.raises(ApiError, match="not you"):
                await ledger.change(give("default/a", 0), undo=undo)
            late.arrive()
            assert bench.held == {0}
            await ledger.change(give("default/b", 1))
            await ledger.finish(1)
            assert bench.held == {1}

        simulate(scenario())

    @pytest.mark.parametrize("error", [page(409), page(404), page(408), BUSY], ids=name_of)
    def test_made_anew_with_an_unknown_answer(self, error: KubeError) -> None:
        """B5: an object whose creation was not definitely refused may come to be: it is not taken for another's."""

        async def scenario() -> None:
            bench = Bench()
            bench.store.delete(SMALL)
            late = Late(bench.store, error)
            ledger = make_ledger(late, identity="late", rng=random.Random(1))
            with pytest.raises(ApiError, match=f"^{error}$"):
                await ledger.establish((3,), "term-2", "")
            late.arrive()
            assert not await ledger.establish((3, 4), "term-2", ""), "the first has landed"
            assert await ledger.change(_first_free) == 0
            assert bench.held == {0, 3}

        simulate(scenario())

    def test_patience_is_for_outages(self) -> None:
        """Who has waited long because of lost races still bears an outage as others do."""

        async def scenario() -> None:
            bench = Bench()
            races = int(2 * PATIENCE / 0.004)
            bench.one.fault = next_writes(*[ApiError(409, "Conflict", "lost")] * races, LOST, done=False)
            assert await bench.first.change(give("default/a", 0)) == f"first.{races + 1}"
            assert asyncio.get_running_loop().time() > 1000 + PATIENCE

        simulate(scenario())

    @pytest.mark.parametrize("reply", [b"{}", b"[", b'{"metadata": {"uid": "other", "resourceVersion": "9"}}'])
    def test_strange_replies(self, reply: bytes) -> None:
        """A success that the API would not word like this is none; what it was about is found out."""

        async def scenario() -> None:
            bench = Bench()
            odd = Odd(bench.store, reply)
            ledger = make_ledger(odd, identity="odd")
            assert await ledger.change(give("default/a", 0)) == "odd.1"
            assert bench.held == {0}
            assert ledger.state is not None
            assert ledger.state.version == str(bench.store.version)

        simulate(scenario())


class Late(StoreClient):
    """Answers the first write with an error, and holds it back until it is told, or until the second is there."""

    def __init__(self, store: Store, error: KubeError) -> None:
        super().__init__(store)
        self.caught = asyncio.Event()
        self.when_resent = False
        self._error = error
        self._held: tuple[str, str, bytes] | None = None

    def arrive(self) -> None:
        """Carry out the write that was held back."""
        assert self._held is not None
        held, self._held = self._held, None
        self.store.do(*held)

    async def request(self, method: str, path: str, **rest: Any) -> bytes:
        if method != "GET" and not self.caught.is_set():
            self.asked.append(method)
            self._held = method, path, rest["body"]
            self.caught.set()
            raise self._error
        if method == "PUT" and self.when_resent and self._held is not None:
            self.arrive()
        return await super().request(method, path, **rest)


class Odd(StoreClient):
    """Replies once to a write, and once to a read, with something else."""

    def __init__(self, store: Store, reply: bytes) -> None:
        super().__init__(store)
        self._left = {"PUT": reply, "GET": reply if reply != b"{}" else json.dumps({"metadata": {}}).encode()}

    async def request(self, method: str, path: str, **rest: Any) -> bytes:
        reply = await super().request(method, path, **rest)
        return self._left.pop(method, reply)


def _first_free(state: State) -> int:
    offset = state.bitmap.next_free(0, SMALL.usable)
    assert offset is not None
    state.grant(offset, "default/a")
    return offset
