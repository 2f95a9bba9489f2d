"""How many writes may be in flight: as many as the server takes well.

Theory of operation, after TCP's: the limit grows by about one for each round of answers, and shrinks by a factor when
the server complains, at most once for each round, as all requests that were in flight then meet the same trouble.

| what comes back | the limit |
|---|---|
| a 429 that is no `Status`: the API server's own | halved, and nothing is sent until the Retry-After is over |
| to a first attempt: no definite answer | shrinks by half of the share of its round that failed |
| to any other attempt: no definite answer | stays |
| an answer, and answers take longer than the target | shrinks by a tenth |
| an answer, and of those in flight many wait in line at the server | shrinks by one a round |
| an answer, and few do; refusals such as 404, 409 and 422 are answers, too | grows by one a round |

How many wait in line is estimated as TCP Vegas does it: if the quickest answer took a third of what answers take now,
two thirds of what is in flight wait. More of them in flight would be no faster, only later, and everybody else's
requests with them.

No definite answer is no answer, a 5xx, a reply that is none, or a 429 of an admission webhook. A round is as many first
attempts as the limit was when the round began. Where all of them fail, the server is in trouble, and the limit is
halved. Where few do, the trouble is of these objects, such as an admission webhook that hangs for them, and the limit
stays nearly as it is. A write that failed before says nothing new of the server when it fails again.

A write that hangs, where answers take no longer than the target, would keep others waiting for as long as it hangs:
after `OVERDUE` seconds it may be excused, and counts no longer towards the limit. At most `CAP` are. A server that
freezes altogether thus has that many more requests to answer when it goes on.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from cidrella.kube.errors import ApiError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.kube.errors import KubeError

START: Final = 8
LEAST: Final = 4
"""What the limit never goes below, so that retries, inherited writes and first attempts can each have a part of it."""
CAP: Final = 32
"""Requests in flight. More than a server can work on at a time only wait there instead of here."""
TARGET: Final = 0.5
"""Seconds for an answer. A server with nothing else to do takes a hundredth of that."""
OVERDUE: Final = 1.0
"""Seconds after which a write that has no answer may be excused, where answers take less than the target."""
_TOO_MANY: Final = 429
_PAUSE: Final = 1.0
"""Seconds, for a 429 that names none: what Kubernetes names mostly."""
_PAUSE_MAX: Final = 60.0
"""Seconds. Whoever names more is not to be trusted with our standstill."""
_ON_TOO_MANY: Final = 0.5
_ON_FAILURE: Final = 0.5
"""The part by which the limit shrinks where every first attempt of a round failed."""
_ON_SLOWNESS: Final = 0.9
_IN_LINE_FEW: Final = 8
_IN_LINE_MANY: Final = 16
"""Requests in line at the server: enough that it is never without work, and no more."""
_FORGOTTEN: Final = 0.01
"""The part by which the quickest answer is thought to have been slower, each second: a server may be so for good."""
_NEWEST: Final = 0.1
"""What the last answer's time weighs in the average."""


class AdaptiveLimit:
    """The limit for one server, to be used from one event loop.

    Before a write: `await wait()`, then `began()` for each of at most as many as it returned, at once. After it:
    `ended()` with what `began` returned, however it ended.
    """

    def __init__(
        self,
        *,
        cap: int = CAP,
        target: float = TARGET,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cap = cap
        self._target = target
        self._clock = clock
        self._sleep = sleep
        self._window = float(min(START, cap))
        self._least = min(LEAST, cap)
        self._round = self._round_left = self.limit
        self._round_failed = 0
        self._in_flight = 0
        self._excused = 0
        self._latency = 0.0
        self._quickest = float("inf")
        self._answered_at = clock()
        self._shrunk_at = float("-inf")
        self._paused_until = float("-inf")
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many may be in flight now, at least `LEAST`."""
        return int(self._window)

    @property
    def in_flight(self) -> int:
        """How many are, those that are excused included."""
        return self._in_flight + self._excused

    @property
    def latency(self) -> float:
        """Seconds that an answer takes, averaged over the last ones."""
        return self._latency

    async def wait(self) -> int:
        """Wait until something may be sent, and return how much."""
        while True:
            pause = self._paused_until - self._clock()
            if pause > 0:
                await self._sleep(pause)
            elif self._in_flight < self.limit:
                return self.limit - self._in_flight
            else:
                self._changed.clear()
                await self._changed.wait()

    def began(self) -> float:
        """Something is being sent; the time, for `ended`."""
        self._in_flight += 1
        return self._clock()

    def excuse(self) -> bool:
        """Whether a write that is overdue counts no longer: then `readmit` it before it is said to have ended."""
        if self._excused >= self._cap or self._latency > self._target:
            return False
        self._in_flight -= 1
        self._excused += 1
        self._changed.set()
        return True

    def readmit(self) -> None:
        """Undo `excuse`."""
        self._excused -= 1
        self._in_flight += 1

    def abandoned(self) -> None:
        """Nobody waits for its answer any more, which says nothing of the server."""
        self._in_flight -= 1
        self._changed.set()

    def ended(self, began: float, error: KubeError | None, *, first: bool = True) -> None:
        """It was answered, or not. None is a success. `first` says that the write was never sent before."""
        self._in_flight -= 1
        self._changed.set()
        now = self._clock()
        if isinstance(error, ConfigError):
            return  # nothing was sent
        if isinstance(error, ApiError) and error.code == _TOO_MANY and not error.is_status:
            pause = _PAUSE if error.retry_after is None else min(error.retry_after, _PAUSE_MAX)
            self._paused_until = max(self._paused_until, now + pause)
            self._shrink(_ON_TOO_MANY, began, now)
            return
        failed = error is not None and error.unsettled
        if not failed:
            self._answered(began, now)
        if first:
            self._count(failed)

    def _count(self, failed: bool) -> None:
        """Count a first attempt, and draw the consequence at the end of its round."""
        self._round_left -= 1
        self._round_failed += failed
        if self._round_left <= 0:
            self._window = max(self._window * (1 - _ON_FAILURE * self._round_failed / self._round), self._least)
            self._round = self._round_left = self.limit
            self._round_failed = 0

    def _answered(self, began: float, now: float) -> None:
        took = now - began
        self._latency += _NEWEST * (took - self._latency) if self._latency else took
        self._quickest = min(self._quickest * (1 + _FORGOTTEN * (now - self._answered_at)), took)
        self._answered_at = now
        in_line = self._window * (1 - self._quickest / self._latency) if self._latency else 0.0
        if self._latency > self._target:
            self._shrink(_ON_SLOWNESS, began, now)
        elif in_line < _IN_LINE_FEW:
            self._window = min(self._window + 1 / self._window, self._cap)
        elif in_line > _IN_LINE_MANY:
            self._window = max(self._window - 1 / self._window, self._least)

    def _shrink(self, factor: float, began: float, now: float) -> None:
        """Shrink, unless that was done after the request began: it says nothing of what is sent since."""
        if began >= self._shrunk_at:
            self._window = max(self._window * factor, self._least)
            self._shrunk_at = now
