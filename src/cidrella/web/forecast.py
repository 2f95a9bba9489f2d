"""When a pool is full, if it goes on as of late. Pure: what time it is, is passed in.

What is looked at is how many blocks were free, and when. From then to now gives a rate, which counts whatever takes
blocks of a range and whatever gives them back, other pools included. What changes within a minute is one change: so
what a pool is asked for as it comes, or as a process begins, is where its course begins, and no pace.

Nothing is said where nothing was taken in all, or where too little is known: a rate of a few minutes is none, and what
happened once has none.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.web.api import Forecast

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW: Final = 3600.0
"""Seconds that are looked back."""
SHORTEST: Final = 300.0
"""Seconds below which nothing is said."""
TOGETHER: Final = 60.0
"""Seconds within which changes are one."""
_FALLS: Final = 2
"""How often blocks must have been taken."""
_HOUR: Final = 3600.0
_YEAR: Final = 366 * 24 * _HOUR
"""What is further away is not worth a date."""
_UNITS: Final = ((24 * _HOUR, "day"), (_HOUR, "hour"), (60.0, "minute"))


class Sample(NamedTuple):
    """How many blocks were free from a time on, in seconds of a clock that nobody sets."""

    at: float
    free: int


class Course:
    """How many blocks of a range were free of late: a sample for each change, and what held when the window began."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def note(self, now: float, free: int) -> None:
        """So many are free now."""
        samples = self._samples
        if not samples or (samples[-1].free != free and now - samples[-1].at >= TOGETHER):
            samples.append(Sample(now, free))
        elif samples[-1].free != free:
            samples[-1] = Sample(samples[-1].at, free)
        while len(samples) > 1 and samples[1].at <= now - WINDOW:
            samples.popleft()

    def rate(self, now: float) -> float | None:
        """Blocks that go in an hour; None where none do, or where too little is known."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        seconds = min(now - first.at, WINDOW)
        taken = first.free - last.free
        if seconds < SHORTEST or taken <= 0:
            return None
        falls = sum(after.free < before.free for before, after in pairwise(self._samples))
        return taken / seconds * _HOUR if falls >= _FALLS else None

    @property
    def free(self) -> int:
        """As last noted."""
        return self._samples[-1].free

    def __len__(self) -> int:
        return len(self._samples)


def forecast(courses: Sequence[Course], now: float, date: float) -> Forecast:
    """When the first of a pool's ranges is full; nothing where one is full already.

    `now` is the time by the clock of the courses, `date` the same in seconds since the epoch.
    """
    coming = [(course.free / rate, rate) for course in courses if len(course) and (rate := course.rate(now))]
    if not coming or not all(course.free for course in courses if len(course)):
        return Forecast()
    hours, rate = min(coming)
    seconds = hours * _HOUR
    shown = float(f"{rate:.3g}")
    pace = f"at {shown:,g} {'block' if shown == 1 else 'blocks'} an hour"
    if seconds > _YEAR:
        return Forecast(rate_per_hour=shown, text=f"not full within a year {pace}")
    at = datetime.fromtimestamp((date + seconds) // 60 * 60, UTC)
    return Forecast(
        exhausted_at=at.strftime("%Y-%m-%dT%H:%M:%SZ"), rate_per_hour=shown, text=f"full in {_about(seconds)} {pace}"
    )


def _about(seconds: float) -> str:
    """A time as people say it.

    >>> _about(5 * 3600), _about(90 * 60), _about(3 * 86400), _about(70), _about(1)
    ('about 5 hours', 'about 90 minutes', 'about 3 days', 'about 1 minute', 'less than a minute')
    """
    for size, name in _UNITS:
        count = round(seconds / size)
        if count > 1 and (size == 60.0 or seconds >= 2 * size):
            return f"about {count} {name}s"
    return "about 1 minute" if seconds >= 60 else "less than a minute"
