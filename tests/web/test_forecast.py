"""When a pool is full, if it goes on as of late."""

from __future__ import annotations

import pytest

from cidrella.web import forecast as module
from cidrella.web.api import Forecast
from cidrella.web.forecast import SHORTEST, TOGETHER, WINDOW, Course

T0 = 1_800_000_000.0
"""2027-01-15T08:00:00Z; the clock of courses is at 0 then."""
NOTHING = Forecast()


def forecast(courses: list[Course], seconds: float) -> Forecast:
    return module.forecast(courses, seconds, T0 + seconds)


def course(*samples: tuple[float, int]) -> Course:
    made = Course()
    for seconds, free in samples:
        made.note(seconds, free)
    return made


def test_at_the_rate_of_late() -> None:
    """Ten blocks went in half an hour, twenty are left: an hour from now."""
    growing = course((0, 30), (600, 25), (1800, 20))
    assert growing.rate(1800) == pytest.approx(20.0)
    found = forecast([growing], 1800)
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
        ((0, 10), (100, 7), (SHORTEST - 1, 5)),
        ((0, 10), (3000, 5)),
        ((0, 100), (3000, 90), (3000 + TOGETHER - 1, 5)),
        ((0, 100), (TOGETHER - 1, 50), (3000, 40)),
    ],
)
def test_nothing_to_say(samples: tuple[tuple[float, int], ...]) -> None:
    """Nothing known, nothing taken, more given back than taken, all given back, too short a time, or it happened once.

    What happens within a minute is one, and what is taken in the first minute is none.
    """
    at = samples[-1][0] if samples else 0
    assert forecast([course(*samples)], at) == NOTHING


def test_as_soon_as_something_can_be_said() -> None:
    """Some minutes are enough, and two times that something was taken."""
    soon = course((0, 20), (100, 18), (200, 15))
    assert forecast([soon], SHORTEST - 1) == NOTHING
    assert forecast([soon], SHORTEST).text == "full in about 15 minutes at 60 blocks an hour"


def test_what_is_taken_at_the_beginning_is_no_pace() -> None:
    """Nodes that waited for a pool, or for a process, are served at once: that does not go on."""
    found = course((0, 256), (10, 200), (20, 156), (1200, 155), (2400, 154))
    assert found.rate(3600) == pytest.approx(2.0)


def test_what_is_full_is_full() -> None:
    """There is nothing to forecast of it: its state says it."""
    full = course((0, 5), (300, 3), (600, 0))
    assert full.rate(600)
    assert forecast([full], 600) == NOTHING
    assert forecast([course((0, 500), (300, 450), (600, 400)), full], 600) == NOTHING


def test_a_burst_that_is_long_over_counts_no_more() -> None:
    """Only the window is looked at; while nothing happens, the rate falls."""
    burst = course((0, 100), (100, 70), (200, 50))
    rates = []
    for seconds in (500, 1000, 3500, 3900):
        burst.note(seconds, 50)
        rates.append(burst.rate(seconds))
    assert rates[:3] == [pytest.approx(360), pytest.approx(180), pytest.approx(50 / 3500 * 3600)]
    assert rates[3] is None


def test_what_is_kept_is_bounded() -> None:
    """A sample for each minute with a change, of one window; a pool at rest has one."""
    quiet, busy = Course(), Course()
    for number in range(5000):
        quiet.note(10 * number, 7)
        busy.note(10 * number, 10_000 - number)
    assert len(quiet) == 1
    assert WINDOW / TOGETHER <= len(busy) <= WINDOW / TOGETHER + 2
    assert busy.rate(49_990) == pytest.approx(360, rel=0.02)


def test_the_first_range_that_is_full_counts() -> None:
    """A dual-stack pool gives nothing without its IPv4 blocks, however many of the other there are."""
    vast = 1 << 100
    small, large = course((0, 12), (900, 11), (1800, 10)), course((0, vast), (900, vast - 1), (1800, vast - 2))
    assert forecast([small, large], 1800) == forecast([large, small], 1800)
    assert forecast([small, large], 1800).text == "full in about 2 hours at 4 blocks an hour"


def test_what_is_far_away() -> None:
    """Beyond a year there is a rate, and no date."""
    vast = 1 << 100
    found = forecast([course((0, vast), (900, vast - 1), (1800, vast - 2))], 1800)
    assert (found.exhausted_at, found.rate_per_hour) == (None, 4.0)
    assert found.text == "not full within a year at 4 blocks an hour"
    one = forecast([course((0, vast), (900, vast - 1), (1000, vast), (3600, vast - 1))], 3600)
    assert one.text.endswith("at 1 block an hour")
