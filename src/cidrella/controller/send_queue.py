"""Writes that are ready to be sent, and which of them is sent next.

| attempt | which writes | share of the window |
|---|---|---|
| `RETRY` | writes for a node whose last write failed, in whatever way | a quarter, fewest failures first |
| `INHERITED` | writes that another leader may have sent, and this process has not | half, in order of arrival |
| `FIRST` | all others | whatever the two above leave, in order of arrival |

The window is the number of writes that may be in flight, 4 at least (`kube.limiter`). So a first attempt always has a
slot, however many writes fail or hang for some nodes; and so has a retry, however many nodes arrive.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from enum import Enum
from itertools import chain, count
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_RETRY_SHARE: Final = 4
_INHERITED_SHARE: Final = 2
"""The part of the window, as a divisor."""


class Attempt(Enum):
    """What is known of a write before it is sent."""

    FIRST = "first"
    INHERITED = "inherited"
    RETRY = "retry"


class SendQueue(Generic[T]):
    """Writes in three lanes, and how many of each are in flight. Does no I/O.

    >>> queue = SendQueue[str]()
    >>> for number in range(3):
    ...     queue.put(f"again {number}", Attempt.RETRY, failures=3 - number)
    ...     queue.put(f"new {number}", Attempt.FIRST)
    >>> [write for _, write in iter(lambda: queue.take(4), None)]
    ['again 2', 'new 0', 'new 1', 'new 2']
    >>> queue.ended(Attempt.RETRY)
    >>> queue.take(4)
    (<Attempt.RETRY: 'retry'>, 'again 1')
    """

    def __init__(self) -> None:
        self._lanes: dict[Attempt, deque[T]] = {Attempt.FIRST: deque(), Attempt.INHERITED: deque()}
        self._retries: list[tuple[int, int, T]] = []
        """A heap by failures, then by arrival."""
        self._numbers = count()
        self._in_flight: Counter[Attempt] = Counter()

    @property
    def first_attempts(self) -> int:
        """How many first attempts wait for a slot."""
        return len(self._lanes[Attempt.FIRST])

    def put(self, write: T, attempt: Attempt, failures: int = 0) -> None:
        """Add a write. O(log of the retries)."""
        if attempt is Attempt.RETRY:
            heapq.heappush(self._retries, (failures, next(self._numbers), write))
        else:
            self._lanes[attempt].append(write)

    def take(self, window: int) -> tuple[Attempt, T] | None:
        """Take the next write, which counts as in flight until `ended`; None if none may be sent now."""
        if self._in_flight.total() >= window:
            return None
        if self._retries and self._in_flight[Attempt.RETRY] < max(window // _RETRY_SHARE, 1):
            return self._took(Attempt.RETRY, heapq.heappop(self._retries)[2])
        inherited, first = self._lanes[Attempt.INHERITED], self._lanes[Attempt.FIRST]
        if inherited and self._in_flight[Attempt.INHERITED] < max(window // _INHERITED_SHARE, 1):
            return self._took(Attempt.INHERITED, inherited.popleft())
        return self._took(Attempt.FIRST, first.popleft()) if first else None

    def _took(self, attempt: Attempt, write: T) -> tuple[Attempt, T]:
        self._in_flight[attempt] += 1
        return attempt, write

    def ended(self, attempt: Attempt) -> None:
        """A write that was taken has ended, or was not sent after all."""
        self._in_flight[attempt] -= 1

    def clear(self) -> list[T]:
        """Take every write that waits; those in flight stay so."""
        writes = [*chain.from_iterable(self._lanes.values()), *(each[2] for each in self._retries)]
        for lane in self._lanes.values():
            lane.clear()
        self._retries.clear()
        return writes
