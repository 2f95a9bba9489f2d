"""The work queue, beside a model that is obviously right, and in the situations that it is there for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pytest
import uvloop
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cidrella.kube.queue import WorkQueue
from tests.kube.simulated import SimulatedLoop, simulate

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
BASE, CAP = 1.0, 8.0


def whole() -> float:
    """A draw that leaves the delay whole, so that times can be told."""
    return 1.0


@dataclass
class Model:
    """Ready keys as a list, delayed ones as (time, key) in order of arrival, and everything looked up by walking."""

    now: float = 1000.0
    ready: list[str] = field(default_factory=list)
    delayed: list[tuple[float, str]] = field(default_factory=list)
    in_hand: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)

    def add(self, key: str) -> None:
        self.drop_delay(key)
        place = self.again if key in self.in_hand else self.ready
        if key not in place:
            place.append(key)

    def add_after(self, key: str, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
        elif key not in self.ready + self.again:
            due = self.now + seconds
            if all(due < other for other, each in self.delayed if each == key):
                self.drop_delay(key)
                self.delayed.append((due, key))

    def drop_delay(self, key: str) -> None:
        self.delayed = [entry for entry in self.delayed if entry[1] != key]

    def pass_time(self, until: float) -> None:
        for due, key in sorted(self.delayed, key=lambda entry: entry[0]):
            if due <= until:
                self.add(key)
        self.now = until

    def take(self, most: int) -> list[str]:
        taken, self.ready = self.ready[:most], self.ready[most:]
        self.in_hand += taken
        return taken

    def done(self, key: str) -> None:
        self.in_hand.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.ready.append(key)


keys = st.sampled_from("abcd")


class QueueMachine(RuleBasedStateMachine):
    """Whatever is done in whatever order, the queue and the model say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SimulatedLoop()
        self.queue: WorkQueue[str] = WorkQueue(base=BASE, cap=CAP, jitter=whole)
        self.model = Model()

    def teardown(self) -> None:
        self.loop.close()

    def run(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(work)

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.model.add(key)

    @rule(key=keys, seconds=st.integers(0, 5))
    def add_after(self, key: str, seconds: int) -> None:
        async def work() -> None:
            self.queue.add_after(key, seconds)

        self.run(work())
        self.model.add_after(key, seconds)

    @rule(key=keys)
    def retry(self, key: str) -> None:
        async def work() -> float:
            return self.queue.retry(key)

        failed = self.model.failures.get(key, 0)
        self.model.failures[key] = failed + 1
        delay = min(CAP, BASE * 2**failed)
        assert self.run(work()) == delay
        self.model.add_after(key, delay)

    @rule(key=keys)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        self.model.failures.pop(key, None)
        self.model.drop_delay(key)

    @rule(key=keys)
    def discard(self, key: str) -> None:
        self.queue.discard(key)
        self.model.failures.pop(key, None)
        self.model.drop_delay(key)
        for place in (self.model.ready, self.model.again):
            if key in place:
                place.remove(key)

    @rule(most=st.integers(1, 3), patience=st.integers(0, 4))
    def take(self, most: int, patience: int) -> None:
        # Never at the time at which a key is due: which of the two comes first is not defined.
        give_up = self.model.now + patience + 1 / 1024
        while any(due == give_up for due, _ in self.model.delayed):
            give_up += 1 / 2048
        if not self.model.ready:
            soonest = [due for due, key in self.model.delayed if key not in self.model.in_hand]
            self.model.pass_time(min([*soonest, give_up]))
        expected = self.model.take(most)

        async def work() -> list[str]:
            async with asyncio.timeout_at(give_up):
                return await self.queue.take(most)

        if expected:
            assert self.run(work()) == expected
        else:
            with pytest.raises(TimeoutError):
                self.run(work())

    @precondition(lambda self: self.model.in_hand)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.model.in_hand))
        self.queue.done(key)
        self.model.done(key)

    @rule(seconds=st.integers(1, 9))
    def wait(self, seconds: int) -> None:
        self.run(asyncio.sleep(seconds))
        self.model.pass_time(self.model.now + seconds)

    @invariant()
    def the_same_keys_are_in_the_same_places(self) -> None:
        model = self.model
        assert self.loop.time() == model.now
        assert list(self.queue._ready) == model.ready
        assert self.queue._in_hand == set(model.in_hand)
        assert self.queue._again == set(model.again)
        assert {(due, key) for key, due in self.queue._due.items()} == set(model.delayed)
        assert self.queue.ready == len(model.ready)
        assert self.queue.delayed == len(model.delayed)
        assert self.queue.in_hand == len(model.in_hand)
        assert len(self.queue) == len(model.ready) + len(model.delayed) + len(model.in_hand)


TestQueue = QueueMachine.TestCase


def test_no_key_in_two_hands() -> None:
    """A key that is added while in hand is given to nobody until it is done, and then again, once."""

    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        assert await queue.take() == ["a"]
        queue.add("a")
        queue.add("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1000):
                await queue.take()
        queue.done("a")
        assert await queue.take(5) == ["a"]
        queue.done("a")
        assert len(queue) == 0

    simulate(scenario())


def test_several_who_wait() -> None:
    """Each of several who wait gets keys of its own, and one that gave up loses none."""

    async def scenario() -> None:
        queue: WorkQueue[int] = WorkQueue()
        takers = [asyncio.create_task(queue.take(2)) for _ in range(4)]
        await asyncio.sleep(1)
        for key in range(5):
            queue.add(key)
        takers[0].cancel()
        await asyncio.sleep(1)
        taken = [taker.result() for taker in takers[1:]]
        assert taken == [[0, 1], [2, 3], [4]]

    simulate(scenario())


def test_backoff_doubles_and_is_jittered() -> None:
    """Each failure in a row doubles the delay up to the cap; the draw takes up to half of it away; success resets."""

    async def scenario() -> None:
        draws = iter([0.0, 0.5, 0.999, 0.0, 0.0, 0.0])
        queue: WorkQueue[str] = WorkQueue(base=1, cap=5, jitter=lambda: next(draws))
        assert [queue.retry("a") for _ in range(5)] == pytest.approx([0.5, 1.5, 3.998, 2.5, 2.5])
        queue.forget("a")
        assert len(queue) == 0
        assert queue.retry("a") == 0.5

    simulate(scenario())


def test_now_on_demand() -> None:
    """A key that waits out its failures is ready at once when somebody adds it."""

    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(base=60, cap=600)
        queue.retry("a")
        queue.add("a")
        began = asyncio.get_running_loop().time()
        assert await queue.take() == ["a"]
        assert asyncio.get_running_loop().time() == began
        assert queue.delayed == 0

    simulate(scenario())


def test_overtaken_times_do_not_pile_up() -> None:
    """A key whose time is pulled forward again and again costs no more memory than a few."""

    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for seconds in range(10_000, 0, -1):
            queue.add_after("a", seconds)
        assert len(queue._heap) < 100
        assert await queue.take() == ["a"]
        assert asyncio.get_running_loop().time() == 1001

    simulate(scenario())


def test_done_with_what_was_not_taken() -> None:
    """To be done with a key that is not in hand is a mistake, and is told."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    with pytest.raises(KeyError):
        queue.done("a")


def test_delays_too_short_for_a_timer_of_uvloop() -> None:
    """Delays of less than a millisecond are kept on uvloop, too, whose timers for them are none."""

    async def scenario() -> None:
        queue: WorkQueue[int] = WorkQueue()
        for number in range(20):
            queue.add_after(number, 0.0001 * (20 - number))
        taken: list[int] = []
        async with asyncio.timeout(30):
            while len(taken) < 20:
                taken += await queue.take(20)
        assert sorted(taken) == list(range(20))

    uvloop.run(scenario())
