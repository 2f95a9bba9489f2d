"""Which events to tell the API, and when: counting and pacing, without I/O (O3).

Rules:

- The same thing said again of the same object within `window` is one series: one event, whose count goes up.
- A new event is told as soon as the pace allows. Its count is told `update_period` after it was last told, and
  not sooner: the last word on a series comes about that long after its end.
- New events go before counts, except those that are late by another `update_period`.
- Memory is bounded. Past `pending_max` new events, further ones are noted but not in line; those that happen again when
  there is room get in line with all of their count. Past `series_max` series, the one that has been quiet for longest
  is forgotten, unless it has yet to be told.
- What the API does not take is dropped: at once if it never will, after a few attempts if it may. It is tried again
  when it happens again, `update_period` later at the earliest.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

RETRIES: Final = 3
"""How often what may work later is tried again, after 2, 4 and 8 seconds: an API server restarts in less."""

_TICK: Final = 0.001
"""Waits shorter than this are none: timers are not exact, and sums of times are not either."""


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Where events go, and how many. Times are in seconds."""

    namespace: str = "default"
    """Where events of objects are that have no namespace of their own, as Kubernetes has it."""
    rate: float = 10.0
    """Requests a second in the long run: events are for people, and the API server has better things to do."""
    burst: int = 25
    """Requests at once, after a quiet time."""
    window: float = 360.0
    """After so long without it, the same event is a new one."""
    update_period: float = 30.0
    """How often, at most, the count of one event is told."""
    pending_max: int = 5000
    """New events that wait to be told."""
    series_max: int = 5000
    """Series remembered, of at most about 2 KB each."""
    timeout: float = 5.0
    """What one request may take."""


class Reference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""
    """Where the object is, and so its events; "" for an object that is in none."""


class Occurrence(NamedTuple):
    """What happened, in words that the API takes. Equal ones are one series."""

    about: Reference
    type: str
    reason: str
    note: str
    action: str


@dataclass(slots=True, eq=False)
class Series:
    """One event and how often it happened. `first` and `last` are for people, since 1970."""

    what: Occurrence
    first: float
    last: float = 0.0
    count: int = 0
    told: int = 0
    """The count that the API knows."""
    name: str = ""
    """The event's, "" while there is none."""
    exists: bool = False
    """Whether the API has the event."""
    seen: float = 0.0
    tried: float = -math.inf
    tries: int = 0
    queued: bool = False
    """Whether it waits to be told, or is being told."""


class SeriesBook:
    """All series. `now` is the time on a clock that nobody sets. Every method is O(log n) at most."""

    def __init__(self, settings: EventSettings) -> None:
        self._settings = settings
        self._series: OrderedDict[Occurrence, Series] = OrderedDict()
        """By when they were last seen."""
        self._new: deque[Series] = deque()
        self._later: list[tuple[float, int, Series]] = []
        self._serial = count()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._series)

    @property
    def pending(self) -> int:
        """How many series wait to be told, or to be told again."""
        return len(self._new) + len(self._later)

    def record(self, what: Occurrence, now: float, wall: float) -> None:
        """Count one occurrence, and see to it that it is told."""
        series = self._current(what, now) or self._begin(what, wall)
        if series is None:
            self.dropped += 1
            return
        series.count += 1
        series.seen, series.last = now, wall
        self._series.move_to_end(what)
        if not series.queued:
            self._call(series)

    def wait(self, now: float) -> float | None:
        """How long until there is something to tell: 0 for now, None for as long as nothing happens."""
        if self._new:
            return 0.0
        if not self._later:
            return None
        seconds = self._later[0][0] - now
        return seconds if seconds > _TICK else 0.0

    def take(self, now: float) -> Series:
        """The next of those pending, due or not. `told`, `failed` or `gone` must follow."""
        if self._new and not (self._later and self._later[0][0] + self._settings.update_period <= now):
            return self._new.popleft()
        return heapq.heappop(self._later)[2]

    def told(self, series: Series, so_many: int, now: float) -> None:
        """The API has the event, with that count."""
        series.exists = True
        series.told, series.tried, series.tries = so_many, now, 0
        series.queued = False
        if series.count > so_many:
            self._call(series)

    def failed(self, series: Series, now: float, retry_after: float | None) -> None:
        """The API did not take it. `retry_after` is None if it never will, and otherwise the least time to wait."""
        series.tries += 1
        if retry_after is not None and series.tries <= RETRIES:
            self._put(series, now + max(retry_after, 2.0**series.tries))
            return
        self.dropped += 1
        series.tried, series.tries = now, 0
        series.queued = False

    def gone(self, series: Series) -> None:
        """The API has the event no more: it is to be told anew, at once."""
        series.name, series.exists = "", False
        self._new.appendleft(series)

    def _current(self, what: Occurrence, now: float) -> Series | None:
        """The series that goes on; one that has ended is forgotten."""
        series = self._series.get(what)
        if series is None or series.queued or now - series.seen <= self._settings.window:
            return series
        del self._series[what]
        return None

    def _begin(self, what: Occurrence, wall: float) -> Series | None:
        """A new series, if there is room for it."""
        if len(self._series) >= self._settings.series_max:
            quiet = next(iter(self._series.values()))
            if quiet.queued and not quiet.exists:
                return None
            del self._series[quiet.what]
        series = self._series[what] = Series(what, first=wall)
        return series

    def _call(self, series: Series) -> None:
        """Put a series in line."""
        if series.tried > -math.inf:
            self._put(series, series.tried + self._settings.update_period)
        elif len(self._new) < self._settings.pending_max:
            series.queued = True
            self._new.append(series)
        else:
            self.dropped += 1

    def _put(self, series: Series, due: float) -> None:
        series.queued = True
        heapq.heappush(self._later, (due, next(self._serial), series))


class TokenBucket:
    """A pace: at most `burst` at once, and `rate` a second in the long run."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def wait(self, now: float) -> float:
        """Take a token if there is one, and return 0; otherwise how long to wait before asking again."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = now
        seconds = (1 - self._tokens) / self._rate
        if seconds > _TICK:
            return seconds
        self._tokens -= 1
        return 0.0
