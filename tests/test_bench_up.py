"""The parts of `make bench-up` that compute something: a wrong figure would look like any other."""

from __future__ import annotations

from bench.report import Report
from bench.up import DURABLE, MEMORY, REAL, note, read_options
from bench.up_writes import Seconds


def test_options() -> None:
    """5,000 nodes, three times, unless told otherwise."""
    options = read_options([])
    assert (options.nodes, options.rounds, options.concurrency) == (5_000, 3, 32)
    assert read_options(["--quick"]).nodes == 200
    assert read_options(["--quick", "--rounds", "2"]).rounds == 2


def test_all_are_compared_by_their_medians() -> None:
    """How many times as fast as the real one each is; of three rounds, neither the best nor the worst counts."""
    report = Report({})
    found = {
        REAL: [Seconds(4, 6), Seconds(100, 100), Seconds(1, 1)],
        DURABLE: [Seconds(2, 2), Seconds(2, 2), Seconds(9, 9)],
        MEMORY: [Seconds(1, 1), Seconds(1, 1), Seconds(1, 1)],
    }
    note(report, found, 1_000)
    assert report.figures[f"{REAL}: nodes created per second"] == 250
    assert report.figures[f"{DURABLE}: nodes patched per second"] == 500
    assert report.figures[f"{MEMORY}: create and patch 1,000 nodes, seconds"] == 2
    held = {name: each for name, each in report.ratios.items() if each["at_least"]}
    assert held == {
        f"creating and patching: times as fast as {REAL}, {DURABLE}": {"value": 2.5, "at_most": 0, "at_least": 1}
    }
    assert report.ratios[f"patching: times as fast as {REAL}, {MEMORY}"]["value"] == 6
