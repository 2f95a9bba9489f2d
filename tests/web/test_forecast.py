"""When a pool is full, if it goes on as of late."""

from __future__ import annotations

import pytest

from cidrella.web.api import Forecast
from cidrella.web.forecast import SHORTEST, WINDOW, Course, forecast

T0 = 1_800_000_000.0
"""2027-01-15T08:00:00Z."""
NOTHING = Forecast()


def course(*samples: tuple[float, int]) -> Course:
    made = Course()
    for seconds, free in samples:
        made.note(T0 + seconds, free)
    return made


def test_at_the_rate_of_late() -> None:
    """Ten blocks went in half an hour, twenty are left: an hour from now."""
    growing = course((0, 30), (600, 25), (1800, 20))
    assert growing.rate(T0 + 1800) == pytest.approx(20.0)
    found = forecast([growing], T0 + 1800)
    assert found.exhausted_at == "2027-01-15T09:30:00Z"
    assert found.rate_per_hour == 20.0
    assert found.text == "full in about 60 minutes at 20 blocks an hour"


@pytest.mark.parametrize(
    "samples",
    [
        (),
        ((0, 10), (3000, 10)),
        ((0, 10), (3000, 12)),
        ((0, 10), (1000, 2), (2000, 10)),
        ((0, 10), (SHORTEST - 1, 5)),
    ],
)
def test_nothing_to_say(samples: tuple[tuple[float, int], ...]) -> None:
    """Nothing known, nothing taken, more given back than taken, all given back, or too short a time."""
    at = T0 + (samples[-1][0] if samples else 0)
    assert forecast([course(*samples)], at) == NOTHING


def test_as_soon_as_something_can_be_said() -> None:
    """A minute is enough."""
    assert (
        forecast([course((0, 10), (SHORTEST, 5))], T0 + SHORTEST).text == "full in about 1 minute at 300 blocks an hour"
    )


def test_what_is_full_is_full() -> None:
    """There is nothing to forecast of it: its state says it."""
    assert forecast([course((0, 5), (600, 0))], T0 + 600) == NOTHING
    assert forecast([course((0, 500), (600, 400)), course((0, 5), (600, 0))], T0 + 600) == NOTHING


def test_a_burst_that_is_long_over_counts_no_more() -> None:
    """Only the window is looked at; while nothing happens, the rate falls."""
    burst = course((0, 100), (10, 50))
    rates = []
    for seconds in (100, 1000, 3500, 3700):
        burst.note(T0 + seconds, 50)
        rates.append(burst.rate(T0 + seconds))
    assert rates[:3] == [pytest.approx(1800), pytest.approx(180), pytest.approx(50 / 3500 * 3600)]
    assert rates[3] is None


def test_what_is_kept_is_bounded() -> None:
    """A sample for each change, of one window; a pool at rest has one."""
    quiet, busy = Course(), Course()
    for number in range(5000):
        quiet.note(T0 + 10 * number, 7)
        busy.note(T0 + 10 * number, 10_000 - number)
    assert len(quiet) == 1
    assert WINDOW / 10 <= len(busy) <= WINDOW / 10 + 2
    assert busy.rate(T0 + 49_990) == pytest.approx(360, rel=0.01)


def test_the_first_range_that_is_full_counts() -> None:
    """A dual-stack pool gives nothing without its IPv4 blocks, however many of the other there are."""
    small, large = course((0, 12), (1800, 10)), course((0, 1 << 100), (1800, (1 << 100) - 2))
    assert forecast([small, large], T0 + 1800) == forecast([large, small], T0 + 1800)
    assert forecast([small, large], T0 + 1800).text == "full in about 2 hours at 4 blocks an hour"


def test_what_is_far_away() -> None:
    """Beyond a year there is a rate, and no date."""
    found = forecast([course((0, 1 << 100), (1800, (1 << 100) - 1))], T0 + 1800)
    assert (found.exhausted_at, found.rate_per_hour) == (None, 2.0)
    assert found.text == "not full within a year at 2 blocks an hour"
    one = forecast([course((0, 1 << 100), (3600, (1 << 100) - 1))], T0 + 3600)
    assert one.text.endswith("at 1 block an hour")
