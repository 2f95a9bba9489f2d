"""The elector on a simulated clock: stops first and asks later, survives any outage, gives the Lease back (F5)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from cidrella.kube.campaign import Verb
from cidrella.kube.election import ElectionSettings, Elector, Holder, Note, make_identity, read_holder, steady_clock
from cidrella.kube.errors import ApiError, ConfigError, KubeError, MalformedReplyError, NoAnswerError
from cidrella.model.lease import micro_time
from tests.kube.lease_store import LeaseStore, StoreClient
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SETTINGS = ElectionSettings()


class Candidate:
    """An elector that runs, with a client of its own, and a diary: what it was told, and what was asked by then."""

    def __init__(self, store: LeaseStore, identity: str) -> None:
        loop = asyncio.get_running_loop()
        self.late = 0.0
        self.note: str | None = None
        self.client = StoreClient(store)
        self.diary: list[tuple[str, float, int]] = []
        self.elector = Elector(
            self.client.as_client(),
            identity,
            SETTINGS,
            on_started=lambda: self._note("started"),
            on_stopped=lambda: self._note("stopped"),
            note=Note("example.com/note", lambda: self.note),
            clock=self.clock,
            wall=loop.time,
            jitter=lambda: 0.0,
        )
        self.task = asyncio.create_task(self.elector.run())

    def clock(self) -> float:
        """The loop's time, and by how much the process has slept since without its loop knowing."""
        return asyncio.get_running_loop().time() + self.late

    @property
    def told(self) -> list[str]:
        return [word for word, _, _ in self.diary]

    def _note(self, word: str) -> None:
        assert self.elector.leading == (word == "started")
        self.diary.append((word, self.clock(), len(self.client.asked)))

    async def end(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


@contextlib.asynccontextmanager
async def running(store: LeaseStore, *names: str, refusal: KubeError | None = None) -> AsyncIterator[list[Candidate]]:
    """Candidates that start one after the other."""
    candidates = []
    for name in names:
        candidates.append(Candidate(store, name))
        candidates[-1].client.refusal = refusal
        await asyncio.sleep(0.1)
    try:
        yield candidates
    finally:
        for each in candidates:
            await each.end()


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> float:
    """Wait for it, in simulated time; how long it took."""
    begun = asyncio.get_running_loop().time()
    while not condition():
        await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - begun < seconds, "it did not come to pass"
    return asyncio.get_running_loop().time() - begun


def test_one_leads_and_the_others_wait() -> None:
    """F5: of three candidates one leads, for as long as it renews, and the others know who."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a", "b", "c") as candidates:
            await asyncio.sleep(300)
            assert [each.told for each in candidates] == [["started"], [], []]
            assert [each.elector.leading for each in candidates] == [True, False, False]
            assert {each.elector.holder for each in candidates} == {"a"}
            assert not any(each.elector.trouble for each in candidates)
            assert 145 < len(candidates[0].client.asked) < 155
            assert 145 < len(candidates[1].client.asked) < 155

    simulate(scenario())


def test_handing_over() -> None:
    """F5: a leader that is cancelled stops first, then gives the Lease back; another takes it at its next look."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a", "b") as (first, second):
            await asyncio.sleep(10)
            await first.end()
            asked = first.client.asked
            assert (asked[-1], first.diary[-1][0], first.diary[-1][2]) == (Verb.WRITE, "stopped", len(asked) - 1)
            assert store.lease.terms.holder_identity == ""
            assert await until(lambda: second.elector.leading) < 2.1
            assert store.lease.terms.lease_transitions == 1
            await second.end()
            assert not store.lease.holder

    simulate(scenario())


def test_an_outage_ends_leading_in_time() -> None:
    """Pitfall 24: with the API away the leader stops at its deadline, goes on asking for hours, and leads again."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a") as (only,):
            await asyncio.sleep(9)
            for hangs in (False, True):
                only.client.away, only.client.hangs = True, hangs
                assert 7.9 < await until(lambda: not only.elector.leading) <= 10.01
                await asyncio.sleep(0.02)
                assert only.told[-1] == "stopped"
                before = len(only.client.asked)
                await asyncio.sleep(5 * 3600)
                assert len(only.client.asked) > before + 2000
                assert "no answer" in only.elector.trouble or "connection refused" in only.elector.trouble
                only.client.away = only.client.hangs = False
                assert await until(lambda: only.elector.leading) < 10
                assert only.told[-1] == "started"
                assert not only.elector.trouble
                await asyncio.sleep(9)

    simulate(scenario())


def test_the_other_side_of_an_outage() -> None:
    """Pitfall 24: when only the leader is cut off, another takes over after the leader has stopped."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a", "b") as (first, second):
            await asyncio.sleep(10)
            first.client.away = True
            await until(lambda: second.elector.leading)
            assert first.told == ["started", "stopped"]
            assert second.diary[0][1] > first.diary[1][1] + 4
            first.client.away = False
            await asyncio.sleep(60)
            assert first.elector.holder == "b"
            assert second.told == ["started"]

    simulate(scenario())


def test_waking_after_the_deadline() -> None:
    """Pitfall 24: a process that slept through its deadline leads no more at the first look, and asks afterwards."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a") as (only,):
            await asyncio.sleep(9)
            asked = len(only.client.asked)
            only.late = 60.0
            assert not only.elector.leading
            await until(lambda: len(only.told) > 1)
            assert only.diary[1][0::2] == ("stopped", asked)
            await until(lambda: only.elector.leading)
            assert only.told == ["started", "stopped", "started"]

    simulate(scenario())


def test_waking_with_a_reply_waiting() -> None:
    """Pitfall 24: a renewal whose reply comes in after the old deadline is told as an end and a new beginning."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a") as (only,):
            await asyncio.sleep(9)
            only.client.latency = 1.0
            asked = len(only.client.asked)
            await until(lambda: len(only.client.asked) > asked)
            only.late = 8.5
            assert not only.elector.leading
            await until(lambda: len(only.told) == 3)
            assert only.told == ["started", "stopped", "started"]
            assert only.diary[1][1:] == only.diary[2][1:]
            assert only.diary[1][2] == asked + 1

    simulate(scenario())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError(403, "Forbidden", 'User "x" cannot create'), "cannot create the Lease kube-system/cidrella: 403"),
        (ApiError(404, "NotFound", 'namespaces "x" not found'), "does the namespace exist?"),
        (ApiError(500, "InternalError", "etcd"), "500 InternalError: etcd"),
        (ApiError(429, "TooManyRequests", "later", 30.0), "429"),
        (MalformedReplyError("a page of HTML"), "HTML"),
        (ConfigError("no such plugin"), "plugin"),
        (NoAnswerError("connection reset"), "reset"),
    ],
)
def test_refusals_are_told_and_survived(error: KubeError, words: str) -> None:
    """F5: whatever is answered to the first write is told as trouble, and forgotten when it works."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a", refusal=error) as (only,):
            await asyncio.sleep(100)
            assert words in only.elector.trouble
            assert not only.told
            only.client.refusal = None
            await until(lambda: only.elector.leading)
            assert not only.elector.trouble

    simulate(scenario())


def test_refused_renewals() -> None:
    """F5: a leader whose renewals are refused leads until its deadline, and again as soon as one is taken."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a", "b") as (first, second):
            await asyncio.sleep(9)
            first.client.refusal = ApiError(403, "Forbidden", "not any more")
            assert 7.9 < await until(lambda: not first.elector.leading) <= 10.01
            assert "not any more" in first.elector.trouble
            first.client.refusal = None
            assert await until(lambda: first.elector.leading) < 2.5
            assert (first.told, second.told) == (["started", "stopped", "started"], [])

    simulate(scenario())


def test_a_lost_reply_is_no_reason_to_stop() -> None:
    """F5: a renewal whose reply is lost is looked up and repeated, well before the deadline."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a", "b") as (first, second):
            for _ in range(20):
                await asyncio.sleep(7)
                first.client.lost = 2
            assert (first.told, second.told) == (["started"], [])

    simulate(scenario())


def test_what_others_put_into_the_lease_stays() -> None:
    """F5: renewing changes what is ours in the Lease and nothing else; an edit by others does not end leading."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a") as (only,):
            await asyncio.sleep(9)
            assert store.data is not None
            store.put(store.data | {"metadata": {"name": "cidrella", "annotations": {"k": "v"}}, "extra": [1]})
            await asyncio.sleep(60)
            assert store.lease.metadata.annotations == {"k": "v"}
            assert store.data["extra"] == [1]
            assert only.told == ["started"]

    simulate(scenario())


def test_ending_while_the_api_is_away() -> None:
    """F5: giving the Lease back is tried for no longer than two seconds."""

    async def scenario() -> None:
        async with running(LeaseStore(), "a") as (only,):
            await asyncio.sleep(9)
            only.client.hangs = True
            begun = asyncio.get_running_loop().time()
            await only.end()
            assert asyncio.get_running_loop().time() - begun <= 2.01
            assert only.told == ["started", "stopped"]

    simulate(scenario())


def test_ending_in_the_middle_of_a_renewal() -> None:
    """F5: a renewal that arrives although its sender has ended does not keep the Lease from being given back."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a") as (only,):
            await asyncio.sleep(9)
            only.client.latency_of_replies = 1.0
            before = store.version
            await until(lambda: store.version > before)
            await only.end()
            assert not store.lease.holder
            assert only.client.asked[-3:] == [Verb.WRITE, Verb.READ, Verb.WRITE]

    simulate(scenario())


def noted(store: LeaseStore) -> str | None:
    """What the note in the Lease says; None where there is none."""
    return store.lease.metadata.annotations.get("example.com/note")


def test_recording() -> None:
    """Pitfall 27: what is to be recorded is written at once; what comes meanwhile goes together in the next write."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a") as (only,):
            await asyncio.sleep(9)
            before, begun = store.version, asyncio.get_running_loop().time()
            recording = []
            for number in range(10):
                only.note = f"upto {number}"
                recording.append(asyncio.create_task(only.elector.record()))
                await asyncio.sleep(0.002)
            assert await recording[0]
            assert noted(store) == "upto 0"
            assert await recording[9]
            assert noted(store) == "upto 9"
            assert all(await asyncio.gather(*recording))
            assert store.version - before == 3
            assert asyncio.get_running_loop().time() - begun < 0.05
            only.note = ""
            await asyncio.sleep(0.5)
            assert noted(store) == "upto 9"
            await asyncio.sleep(2)
            assert noted(store) is None

    simulate(scenario())


def test_recording_when_replies_are_lost() -> None:
    """Pitfall 27: what may have been written or not is written again, until a reply says that it is there."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a") as (only,):
            await asyncio.sleep(9)
            only.client.lost, only.note = 3, "x"
            begun = asyncio.get_running_loop().time()
            assert await only.elector.record()
            assert not only.client.lost
            assert asyncio.get_running_loop().time() - begun < 3
            assert only.told == ["started"]

    simulate(scenario())


def test_recording_and_no_longer_leading() -> None:
    """Pitfall 27: nothing counts as recorded by whoever stops leading first, or does not lead."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a", "b") as (first, second):
            await asyncio.sleep(9)
            second.note = "never"
            assert not await second.elector.record()
            first.note = "kept"
            assert await first.elector.record()
            first.client.away, first.note = True, "lost"
            assert not await first.elector.record()
            assert first.told == ["started", "stopped"]
            await until(lambda: second.elector.leading)
            assert second.elector.noted == "kept"
            second.note = "kept, too"
            assert await second.elector.record()
            assert noted(store) == "kept, too"

    simulate(scenario())


def test_the_note_is_left_behind() -> None:
    """Pitfall 27: a leader that ends writes down what it leaves behind, and releases the Lease at once."""

    async def scenario() -> None:
        store = LeaseStore()
        async with running(store, "a", "b") as (first, second):
            await asyncio.sleep(9)
            first.note = "left behind"
            recording = asyncio.create_task(first.elector.record())
            await asyncio.sleep(0)
            await first.end()
            assert not await recording
            assert not store.lease.holder
            assert noted(store) == "left behind"
            await until(lambda: second.elector.leading)
            assert second.elector.noted == "left behind"

    simulate(scenario())


def test_identities_differ() -> None:
    """F5: every process has a name of its own that begins with its host's."""
    assert make_identity() != make_identity()
    assert "_" in make_identity()


def test_the_clock_goes_on() -> None:
    """F5: the clock that leading is judged by never goes back."""
    first = steady_clock()
    assert steady_clock() >= first


def held(renewed: float | None, *, expired: bool = False, duration: float = 15.0) -> Holder:
    return Holder("z", renewed, expired, "kube-system/cidrella", duration)


@pytest.mark.parametrize(
    ("spec", "holder"),
    [
        (None, None),
        ({"holderIdentity": ""}, None),
        ({"holderIdentity": "z"}, held(None)),
        ({"holderIdentity": "z", "renewTime": "soon"}, held(None)),
        ({"holderIdentity": "z", "renewTime": micro_time(90.0)}, held(10.0)),
        ({"holderIdentity": "z", "leaseDurationSeconds": -1}, held(None)),
        ({"holderIdentity": "z", "leaseDurationSeconds": 1 << 30}, held(None, duration=3600.0)),
        (
            {"holderIdentity": "z", "renewTime": micro_time(90.0), "leaseDurationSeconds": 12},
            held(10.0, duration=12.0),
        ),
        (
            {"holderIdentity": "z", "renewTime": micro_time(80.0), "leaseDurationSeconds": 12},
            held(20.0, expired=True, duration=12.0),
        ),
    ],
)
def test_who_holds_the_lease(spec: dict[str, object] | None, holder: Holder | None) -> None:
    """F6: other commands see who holds the Lease and since when, and that nobody does."""

    async def scenario() -> Holder | None:
        store = LeaseStore()
        if spec is not None:
            store.put({"metadata": {"name": "cidrella"}, "spec": spec})
        return await read_holder(StoreClient(store).as_client(), SETTINGS, wall=lambda: 100.0)

    found = asyncio.run(scenario())
    assert (found and found._replace(renew_time="")) == holder
    assert found is None or spec is None or found.renew_time == spec.get("renewTime", "")


def test_who_holds_the_lease_cannot_be_told() -> None:
    """F6: with the API away, who holds the Lease is an error, and not nobody."""

    async def scenario() -> None:
        client = StoreClient(LeaseStore())
        client.away = True
        await read_holder(client.as_client(), SETTINGS)

    with pytest.raises(NoAnswerError):
        asyncio.run(scenario())
