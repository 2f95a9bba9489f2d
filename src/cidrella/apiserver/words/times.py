"""Points in time as the API writes them: RFC 3339, UTC, whole seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
"""How Go spells the form, in messages."""

# The parts of a timestamp: how messages call each, what it looks like, and what is said where it is too large.
_PARTS: Final = (
    ("2006", re.compile("[0-9]{4}"), ""),
    ("-", re.compile("-"), ""),
    ("01", re.compile("[0-9]{2}"), "month"),
    ("-", re.compile("-"), ""),
    ("02", re.compile("[0-9]{2}"), "day"),
    ("T", re.compile("T"), ""),
    ("15", re.compile("[0-9]{2}"), "hour"),
    (":", re.compile(":"), ""),
    ("04", re.compile("[0-9]{2}"), "minute"),
    (":", re.compile(":"), ""),
    ("05", re.compile(r"[0-9]{2}([.,][0-9]+)?"), "second"),
    ("Z07:00", re.compile("Z|[+-][0-9]{2}:[0-9]{2}"), ""),
)
_BOUNDS: Final = {
    "month": range(1, 13),
    "day": range(1, 32),
    "hour": range(24),
    "minute": range(60),
    "second": range(60),
}


def parse_time(text: str) -> datetime:
    """Read a timestamp. Raises `ValueError` in the words of the real server.

    >>> str(parse_time("2024-05-06T07:08:09+02:00"))
    '2024-05-06 05:08:09+00:00'
    """
    parts = _split(text)
    year, month, day, hour, minute = (int(parts[index]) for index in (0, 2, 4, 6, 8))
    second, _, fraction = parts[10].replace(",", ".").partition(".")
    try:
        local = datetime(year, month, day, hour, minute, int(second), int(f"{fraction:0<6.6}"), UTC)
        return local - _offset(parts[11])
    except (ValueError, OverflowError):
        raise _unreadable(text, ": day out of range") from None


def format_time(moment: datetime) -> str:
    """Write a timestamp, in whole seconds.

    >>> format_time(datetime(2024, 5, 6, 7, 8, 9, 999, UTC))
    '2024-05-06T07:08:09Z'
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _split(text: str) -> list[str]:
    rest, parts = text, []
    for name, pattern, measure in _PARTS:
        match = pattern.match(rest)
        if match is None:
            raise _unreadable(text, f': cannot parse "{rest}" as "{name}"')
        if measure and int(match[0][:2]) not in _BOUNDS[measure]:
            raise _unreadable(text, f": {measure} out of range")
        parts.append(match[0])
        rest = rest[match.end() :]
    zone = parts[-1]
    for measure, digits, limit in (("hour", zone[1:3], 24), ("minute", zone[4:6], 60)):
        if digits and int(digits) > limit:
            raise _unreadable(text, f": time zone offset {measure} out of range")
    if rest:
        raise _unreadable(text, f': extra text: "{rest}"')
    return parts


def _unreadable(text: str, why: str) -> ValueError:
    told = f'parsing time "{text}"'
    return ValueError(f"{told}{why}" if "cannot parse" not in why else f'{told} as "{LAYOUT}"{why}')


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return ahead if zone[0] == "+" else -ahead
