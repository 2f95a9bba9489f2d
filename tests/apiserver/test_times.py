"""Timestamps: read as the real server reads them, with its complaints, and written in whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.words.times import format_time, parse_time

AS = 'as "2006-01-02T15:04:05Z07:00": cannot parse'


@given(st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)), st.integers(-1439, 1439))
def test_round_trip(moment: datetime, minutes: int) -> None:
    """What is written, in whatever zone it is thought of, is read back as the same second."""
    local = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(format_time(local)) == local
    assert parse_time(local.isoformat()) == local


def test_zones() -> None:
    """The furthest zones that are read are a day away, and those of 60 minutes more."""
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    assert parse_time("2020-01-02T00:00:00+24:00") == moment
    assert parse_time("2020-01-01T02:00:00+01:60") == moment


def test_fractions() -> None:
    """A fraction of a second is read, after a dot or a comma, and not written."""
    assert parse_time("2020-01-01T00:00:00.1234567Z") == datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)
    assert parse_time("2020-01-01T00:00:00,5Z") == datetime(2020, 1, 1, 0, 0, 0, 500000, UTC)
    assert format_time(parse_time("2020-01-01T00:00:00.9Z")) == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", f'parsing time "x" {AS} "x" as "2006"'),
        ("", f'parsing time "" {AS} "" as "2006"'),
        ("2020-1-1T00:00:00Z", f'parsing time "2020-1-1T00:00:00Z" {AS} "1-1T00:00:00Z" as "01"'),
        ("2020x", f'parsing time "2020x" {AS} "x" as "-"'),
        ("2020-01x", f'parsing time "2020-01x" {AS} "x" as "-"'),
        ("2020-01-x", f'parsing time "2020-01-x" {AS} "x" as "02"'),
        ("2020-01-01Tx", f'parsing time "2020-01-01Tx" {AS} "x" as "15"'),
        ("2020-01-01T00x", f'parsing time "2020-01-01T00x" {AS} "x" as ":"'),
        ("2020-01-01T00:x", f'parsing time "2020-01-01T00:x" {AS} "x" as "04"'),
        ("2020-01-01T00:00x", f'parsing time "2020-01-01T00:00x" {AS} "x" as ":"'),
        ("2020-01-01T00:00:x", f'parsing time "2020-01-01T00:00:x" {AS} "x" as "05"'),
        ("2020-01-01", f'parsing time "2020-01-01" {AS} "" as "T"'),
        ("2020-01-01T00:00:00", f'parsing time "2020-01-01T00:00:00" {AS} "" as "Z07:00"'),
        ("2020-01-01T00:00:00.Z", f'parsing time "2020-01-01T00:00:00.Z" {AS} ".Z" as "Z07:00"'),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-01-00T00:00:00Z", 'parsing time "2020-01-00T00:00:00Z": day out of range'),
        ("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range'),
        ("2020-01-01T00:60:00Z", 'parsing time "2020-01-01T00:60:00Z": minute out of range'),
        ("2020-01-01T00:00:60Z", 'parsing time "2020-01-01T00:00:60Z": second out of range'),
        ("2020-01-01T00:00:00+25:00", 'parsing time "2020-01-01T00:00:00+25:00": time zone offset hour out of range'),
        ("2020-01-01T00:00:00+01:61", 'parsing time "2020-01-01T00:00:00+01:61": time zone offset minute out of range'),
        ("2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'),
    ],
)
def test_unreadable(text: str, told: str) -> None:
    """What is no timestamp is refused in the words of the real server."""
    with pytest.raises(ValueError, match="parsing time") as refusal:
        parse_time(text)
    assert str(refusal.value) == told
