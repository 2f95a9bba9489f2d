"""Which events are told, and when: series, pace and bounds, on a clock that the test turns (O3)."""

from __future__ import annotations

import pytest

from cidrella.kube.series import RETRIES, EventSettings, Occurrence, Reference, Series, SeriesBook, TokenBucket

SETTINGS = EventSettings(pending_max=10, series_max=20)
WALL = 1e9


def what(node: str = "n", note: str = "no room") -> Occurrence:
    """Something that happened to a node."""
    return Occurrence(Reference("v1", "Node", node, f"uid-{node}"), "Warning", "CIDRNotAvailable", note, "Allocate")


def tell_all(book: SeriesBook, now: float) -> list[tuple[str, int, bool]]:
    """Tell all that is due: of whom, what count, and whether as an event that is there already."""
    told = []
    while book.wait(now) == 0:
        series = book.take(now)
        told.append((series.what.about.name, series.count, series.exists))
        book.told(series, series.count, now)
    return told


def test_one_event_for_the_same_thing() -> None:
    """O3: what happens again is told as a count, half a minute after it was last told, and not sooner."""
    book = SeriesBook(SETTINGS)
    book.record(what(), 0.0, WALL)
    assert tell_all(book, 0.0) == [("n", 1, False)]
    assert book.wait(0.0) is None
    for second in range(1, 60):
        book.record(what(), float(second), WALL + second)
        expected = [("n", second + 1, True)] if second == 30 else []
        assert tell_all(book, float(second)) == expected
    assert book.wait(59.0) == 1.0
    assert tell_all(book, 60.0) == [("n", 60, True)]
    assert book.wait(60.0) is None


def test_what_is_the_same_thing() -> None:
    """O3: another object, another note, or the same after a quiet time is another event."""
    book = SeriesBook(SETTINGS)
    book.record(what("a"), 0.0, WALL)
    book.record(what("b"), 0.0, WALL)
    book.record(what("a", "another note"), 0.0, WALL)
    assert tell_all(book, 0.0) == [("a", 1, False), ("b", 1, False), ("a", 1, False)]
    book.record(what("a"), 360.0, WALL)
    assert tell_all(book, 360.0) == [("a", 2, True)]
    book.record(what("a"), 720.1, WALL)
    assert tell_all(book, 720.1) == [("a", 1, False)]


def test_what_happens_while_it_is_told() -> None:
    """O3: an occurrence during the request is counted, and told with the next update."""
    book = SeriesBook(SETTINGS)
    book.record(what(), 0.0, WALL)
    series = book.take(0.0)
    book.record(what(), 0.1, WALL)
    assert book.wait(0.1) is None
    book.told(series, 1, 0.2)
    assert book.wait(0.2) == 30.0
    assert tell_all(book, 30.2) == [("n", 2, True)]


def test_memory_is_bounded() -> None:
    """O3: a flood of different events keeps no more than the settings say; the rest is counted as dropped."""
    book = SeriesBook(SETTINGS)
    for number in range(1000):
        book.record(what(f"n{number}"), 0.0, WALL)
    assert (len(book), book.pending, book.dropped) == (20, 10, 990)
    assert [name for name, _, _ in tell_all(book, 0.0)] == [f"n{number}" for number in range(10)]


def test_dropped_ones_count_when_there_is_room() -> None:
    """O3: what found no room is told, with all of its count, when it happens again and there is."""
    book = SeriesBook(SETTINGS)
    for number in range(11):
        book.record(what(f"n{number}"), 0.0, WALL)
    book.record(what("n10"), 0.1, WALL)
    assert book.dropped == 2
    assert len(tell_all(book, 1.0)) == 10
    book.record(what("n10"), 2.0, WALL)
    assert tell_all(book, 2.0) == [("n10", 3, False)]


def test_a_quiet_series_makes_room() -> None:
    """O3: with the book full, the series that has been quiet for longest goes."""
    book = SeriesBook(SETTINGS)
    for number in range(20):
        book.record(what(f"n{number}"), float(number), WALL)
        tell_all(book, float(number))
    book.record(what("n0"), 20.0, WALL)
    book.record(what("new"), 21.0, WALL)
    assert tell_all(book, 21.0) == [("new", 1, False)]
    book.record(what("n1"), 22.0, WALL)
    assert tell_all(book, 22.0) == [("n1", 1, False)]
    assert tell_all(book, 30.0) == [("n0", 2, True)]
    assert (len(book), book.dropped) == (20, 0)


def test_new_events_do_not_starve_counts() -> None:
    """O3: new events go before counts, but a count that is late by its period goes before all."""
    book = SeriesBook(SETTINGS)
    book.record(what("old"), 0.0, WALL)
    tell_all(book, 0.0)
    book.record(what("old"), 1.0, WALL)
    for number in range(3):
        book.record(what(f"n{number}"), 1.0, WALL)

    def next_told(now: float) -> str:
        series = book.take(now)
        book.told(series, series.count, now)
        return series.what.about.name

    assert [next_told(now) for now in (30.0, 59.9, 60.0, 60.0)] == ["n0", "n1", "old", "n2"]


def failing(series: Series, book: SeriesBook, retry_after: float | None) -> list[float]:
    """Fail until it is given up; how long was waited each time."""
    waits: list[float] = []
    now = 100.0
    while True:
        book.failed(series, now, retry_after)
        wait = book.wait(now)
        if wait is None:
            return waits
        waits.append(wait)
        now += wait
        assert book.take(now) is series


def test_what_may_work_later_is_tried_again() -> None:
    """O3: after a failure that may pass, a few more attempts, further and further apart; then it is dropped."""
    book = SeriesBook(SETTINGS)
    book.record(what(), 100.0, WALL)
    assert failing(book.take(100.0), book, 0.0) == [2.0, 4.0, 8.0]
    assert RETRIES == 3
    assert book.dropped == 1
    book.record(what(), 120.0, WALL)
    assert failing(book.take(144.0), book, 5.0) == [5.0, 5.0, 8.0]


def test_what_never_works_is_dropped() -> None:
    """O3: a refusal for good is not repeated; when it happens again, it is tried at the pace of counts."""
    book = SeriesBook(SETTINGS)
    book.record(what(), 100.0, WALL)
    assert failing(book.take(100.0), book, None) == []
    book.record(what(), 101.0, WALL)
    assert book.wait(101.0) == 29.0
    assert tell_all(book, 130.0) == [("n", 2, False)]


def test_an_event_that_the_server_forgot() -> None:
    """O3: a count for an event that is gone becomes a new event at once."""
    book = SeriesBook(SETTINGS)
    book.record(what(), 0.0, WALL)
    tell_all(book, 0.0)
    book.record(what(), 1.0, WALL)
    series = book.take(30.0)
    series.name = "n.1"
    book.gone(series)
    assert not series.name
    assert tell_all(book, 30.0) == [("n", 2, False)]


def test_pace() -> None:
    """O3: a burst at once after a quiet time, and then so many a second."""
    pace = TokenBucket(rate=10.0, burst=25, now=0.0)
    assert [pace.wait(0.0) for _ in range(25)] == [0.0] * 25
    assert pace.wait(0.0) == pytest.approx(0.1)
    assert pace.wait(0.1) == 0.0
    taken = sum(pace.wait(0.1 + step / 1000) == 0.0 for step in range(1, 10_001))
    assert 99 <= taken <= 101
    assert sum(pace.wait(1e6) == 0.0 for _ in range(100)) == 25
