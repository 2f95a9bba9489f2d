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
from collections import Counter, OrderedDict
from enum import Enum
from itertools import chain, count
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_RETRY_SHARE: Final = 4
_INHERITED_SHARE: Final = 2
"""The part of the window, as a divisor."""
_STALE_MAX: Final = 64
"""How many discarded retries the heap may hold beyond as many as there are retries: too few to matter."""


class Attempt(Enum):
    """What is known of a write before it is sent."""

    FIRST = "first"
    INHERITED = "inherited"
    RETRY = "retry"


class SendQueue(Generic[T]):
    """Writes in three lanes, one for a node at most, and how many of each are in flight. Does no I/O.

    >>> queue = SendQueue[str]()
    >>> for number in range(3):
    ...     queue.put(f"a{number}", f"again {number}", Attempt.RETRY, failures=3 - number)
    ...     queue.put(f"n{number}", f"new {number}", Attempt.FIRST)
    >>> [write for _, write in iter(lambda: queue.take(4), None)]
    ['again 2', 'new 0', 'new 1', 'new 2']
    >>> queue.ended(Attempt.RETRY)
    >>> queue.take(4)
    (<Attempt.RETRY: 'retry'>, 'again 1')
    """

    def __init__(self) -> None:
        self._lanes: dict[Attempt, OrderedDict[str, T]] = {attempt: OrderedDict() for attempt in Attempt}
        """Writes by the name of their node, in order of arrival."""
        self._retries: list[tuple[int, int, str]] = []
        """A heap of the retries by failures, then by arrival. A retry that was discarded stays until it is due."""
        self._numbers = count()
        self._newest: dict[str, int] = {}
        """The number of each retry that is not discarded."""
        self._in_flight: Counter[Attempt] = Counter()

    @property
    def first_attempts(self) -> int:
        """How many first attempts wait for a slot."""
        return len(self._lanes[Attempt.FIRST])

    def put(self, name: str, write: T, attempt: Attempt, failures: int = 0) -> None:
        """Add a write for a node for which none waits. O(log of the retries)."""
        self._lanes[attempt][name] = write
        if attempt is Attempt.RETRY:
            self._newest[name] = number = next(self._numbers)
            heapq.heappush(self._retries, (failures, number, name))

    def discard(self, name: str) -> bool:
        """Drop the write for a node, if one waits. Whether one did."""
        self._newest.pop(name, None)
        found = [lane for lane in self._lanes.values() if name in lane]
        for lane in found:
            del lane[name]
        if len(self._retries) > 2 * len(self._newest) + _STALE_MAX:
            self._retries = [each for each in self._retries if self._newest.get(each[2]) == each[1]]
            heapq.heapify(self._retries)
        return bool(found)

    def take(self, window: int) -> tuple[Attempt, T] | None:
        """Take the next write, which counts as in flight until `ended`; None if none may be sent now."""
        if self._in_flight.total() >= window:
            return None
        shares = ((Attempt.RETRY, window // _RETRY_SHARE), (Attempt.INHERITED, window // _INHERITED_SHARE))
        for attempt, share in (*shares, (Attempt.FIRST, window)):
            if self._lanes[attempt] and self._in_flight[attempt] < max(share, 1):
                self._in_flight[attempt] += 1
                return attempt, self._pop(attempt)
        return None

    def _pop(self, attempt: Attempt) -> T:
        if attempt is not Attempt.RETRY:
            return self._lanes[attempt].popitem(last=False)[1]
        while True:
            _, number, name = heapq.heappop(self._retries)
            if self._newest.get(name) == number:
                del self._newest[name]
                return self._lanes[attempt].pop(name)

    def ended(self, attempt: Attempt) -> None:
        """A write that was taken has ended, or was not sent after all."""
        self._in_flight[attempt] -= 1

    def clear(self) -> list[str]:
        """Drop every write that waits; those in flight stay so. The names of their nodes."""
        names = list(chain.from_iterable(self._lanes.values()))
        for name in names:
            self.discard(name)
        return names
