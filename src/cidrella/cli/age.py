"""How long ago something happened, in few letters."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_YEAR = 365 * _DAY
# From how many seconds on (the first that fits counts), the unit, and the smaller unit that is still of interest.
_STEPS = (
    (8 * _YEAR, _YEAR, 0),
    (2 * _YEAR, _YEAR, _DAY),
    (8 * _DAY, _DAY, 0),
    (2 * _DAY, _DAY, _HOUR),
    (8 * _HOUR, _HOUR, 0),
    (3 * _HOUR, _HOUR, _MINUTE),
    (10 * _MINUTE, _MINUTE, 0),
    (2 * _MINUTE, _MINUTE, 1),
)
_LETTERS = {_YEAR: "y", _DAY: "d", _HOUR: "h", _MINUTE: "m", 1: "s"}


def age(created: str, now: datetime | None = None) -> str:
    """The age of an object by its creation timestamp; empty where that cannot be read.

    >>> age("2026-01-01T00:00:00Z", datetime(2026, 1, 3, 5, tzinfo=UTC))
    '2d5h'
    """
    try:
        when = datetime.fromisoformat(created)
    except ValueError:
        return ""
    if when.tzinfo is None:
        return ""
    return duration(((now or datetime.now(UTC)) - when).total_seconds())


def duration(seconds: float) -> str:
    """A time span as kubectl writes it.

    >>> [duration(each) for each in (-1, 119, 200, 4000, 12_000, 100_000, 3e8)]
    ['0s', '119s', '3m20s', '66m', '3h20m', '27h', '9y']
    """
    left = max(0, int(seconds))
    for start, unit, smaller in _STEPS:
        if left >= start:
            rest = left % unit // smaller if smaller else 0
            return f"{left // unit}{_LETTERS[unit]}" + (f"{rest}{_LETTERS[smaller]}" if rest else "")
    return f"{left}s"
