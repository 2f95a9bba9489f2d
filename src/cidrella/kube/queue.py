"""A queue of keys: what is to be looked at, by whom at most one at a time, and when again.

Rules:

- A key waits in one place at most: ready, in order of arrival, or delayed until a time. Adding it again changes nothing
  but that the sooner time counts.
- A key that was taken is in hand until `done`. Until then nobody else gets it; when it is added or comes due meanwhile,
  it becomes ready again at `done`. So whoever takes it sees everything that happened before.
- Each failure in a row doubles a key's delay, from `base` to `cap`. Success is told by `forget`.
- A key of something that is gone is told by `discard`. Where nobody takes anything, as in a standby, the queue would
  else grow with all that ever came.

Theory of operation: delayed keys lie in a heap by time, where an entry that was overtaken stays until it surfaces or
outnumbers the living. One timer of the event loop stands for the first of them. Everything but `take` returns at once,
is to be called on the event loop's thread, and takes O(log n) at most, on average over the calls.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import OrderedDict
from collections.abc import Hashable
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K", bound=Hashable)

_STALE_MAX: Final = 64
"""How many overtaken entries the heap may hold beyond as many as there are delayed keys: too few to matter."""


class WorkQueue(Generic[K]):
    """Keys to be worked on. `base` and `cap` bound the delay after failures, in seconds; `jitter` draws from [0, 1)."""

    def __init__(self, *, base: float = 0.05, cap: float = 60.0, jitter: Callable[[], float] = random.random) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._in_hand: set[K] = set()
        self._again: set[K] = set()
        """Those in hand that are to be ready at `done`."""
        self._due: dict[K, float] = {}
        """The delayed keys, each with its time."""
        self._heap: list[tuple[float, int, K]] = []
        """Times of delayed keys; one that is not the key's own time in `_due` was overtaken."""
        self._numbers = count()
        """Keys of the same time come in order of arrival, and are never compared."""
        self._backoff: dict[K, float] = {}
        """The whole delay of each key that has failed, before jitter."""
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        """The timer's time, kept here: what uvloop returns for a time that has come does not know it."""
        self._stirred = asyncio.Event()

    def __len__(self) -> int:
        """Ready, delayed and in hand together; a key in hand that is delayed as well counts twice."""
        return self.ready + self.delayed + self.in_hand

    @property
    def ready(self) -> int:
        """How many could be taken now."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many have their time to come."""
        return len(self._due)

    @property
    def in_hand(self) -> int:
        """How many were taken and are not done."""
        return len(self._in_hand)

    def add(self, key: K) -> None:
        """Make a key ready now, whatever its delay was; one in hand will be at `done`."""
        self._due.pop(key, None)
        if key in self._in_hand:
            self._again.add(key)
        elif key not in self._ready:
            self._push(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Make a key ready after a while. No effect where it is ready, or due sooner, anyway."""
        if seconds <= 0:
            self.add(key)
            return
        due = asyncio.get_running_loop().time() + seconds
        if key in self._ready or key in self._again or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._numbers), key))
        if len(self._heap) > 2 * len(self._due) + _STALE_MAX:
            self._heap = [entry for entry in self._heap if self._is_living(entry)]
            heapq.heapify(self._heap)
        self._set_timer()

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Make a key ready after the delay that its failures have earned it, and return that delay.

        The first is between half of `base` and all of it, the next twice that, and so on up to `cap`; and `at_least`
        as many seconds as the server asked for.
        """
        whole = min(self._cap, self._backoff[key] * 2 if key in self._backoff else self._base)
        self._backoff[key] = whole
        delay = max(whole * (1 + self._jitter()) / 2, at_least)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Forget a key's failures, and a delay with them. One that is ready stays so, as does one in hand."""
        self._backoff.pop(key, None)
        self._due.pop(key, None)

    def discard(self, key: K) -> None:
        """There is nothing to look at any more: out of wherever it waits. One in hand is so until `done`, and no more.

        No error where it waits nowhere.
        """
        self.forget(key)
        self._ready.pop(key, None)
        self._again.discard(key)

    async def take(self, most: int = 1) -> list[K]:
        """Wait until a key is ready, then take all that are, in order of arrival and `most` at most. They are in hand.

        Any number may wait; each key goes to one of them.
        """
        self._move_due()
        while not self._ready:
            self._stirred.clear()
            await self._stirred.wait()
        keys = [self._ready.popitem(last=False)[0] for _ in range(min(most, len(self._ready)))]
        self._in_hand.update(keys)
        return keys

    def done(self, key: K) -> None:
        """Put a key out of hand. Raises KeyError where it was not in hand."""
        self._in_hand.remove(key)
        if key in self._again:
            self._again.remove(key)
            self._push(key)

    def _push(self, key: K) -> None:
        self._ready[key] = None
        self._stirred.set()

    def _is_living(self, entry: tuple[float, int, K]) -> bool:
        due, _, key = entry
        return self._due.get(key) == due

    def _move_due(self) -> None:
        """Make ready what is due."""
        if not self._heap:
            return
        now = asyncio.get_running_loop().time()
        while self._heap and (self._heap[0][0] <= now or not self._is_living(self._heap[0])):
            entry = heapq.heappop(self._heap)
            if self._is_living(entry):
                self.add(entry[2])

    def _set_timer(self) -> None:
        """Have the timer stand for the first delayed key."""
        first = self._heap[0][0] if self._heap else None
        if self._timer is not None:
            if first is not None and self._timer_at <= first:
                return
            self._timer.cancel()
            self._timer = None
        if first is not None:
            self._timer_at = first
            self._timer = asyncio.get_running_loop().call_at(first, self._time_came)

    def _time_came(self) -> None:
        self._timer = None
        self._move_due()
        self._set_timer()
