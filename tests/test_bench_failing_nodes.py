"""The parts of `make bench-failing-nodes` that compute something: a wrong figure would look like any other."""

from __future__ import annotations

import argparse

import pytest
from bench.failing_nodes import Scenario, read_options
from bench.failing_nodes_report import WAIT, Waits, summarize

NAMES = [f"node-{number}" for number in range(100)]
REPLIED = dict.fromkeys(NAMES, 1000.0)


def test_options() -> None:
    """All four scenarios, unless told otherwise."""
    assert [each.name for each in read_options([]).only] == ["hang-6", "hang-40", "refuse-520", "refuse-2000"]
    assert read_options(["--only", "hang-6", "refuse-9-alone"]).only == [
        Scenario("hang-6", "hang", 6, alone=False),
        Scenario("refuse-9-alone", "refuse", 9, alone=True),
    ]


@pytest.mark.parametrize(
    "text", ["", "hang", "hang-0", "hang-06", "hang-10000", "slow-6", "hang-6-", "hang-6-alone-alone"]
)
def test_unknown_scenario(text: str) -> None:
    """Anything else is refused, with what there is."""
    with pytest.raises(argparse.ArgumentTypeError, match="hang-N or refuse-N"):
        Scenario.parse(text)


@pytest.mark.parametrize("flag", ["--first-attempts", "--rate"])
@pytest.mark.parametrize("value", ["0", "nan", "inf", "-1", "3601"])
def test_durations_and_rates_are_bounded(flag: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A phase without an end, or with too many nodes for one machine, is refused."""
    with pytest.raises(SystemExit):
        read_options([f"{flag}={value}"])
    assert f"{flag}: from " in capsys.readouterr().err


def test_summary() -> None:
    """Percentiles over all nodes. A watch that is faster than the reply makes no negative wait."""
    changed = {name: 1000.0 + 0.01 * number for number, name in enumerate(NAMES)}
    assert summarize(NAMES, REPLIED, changed) == Waits(100, 0.49, 0.98, 0.99, 0)
    assert summarize(NAMES, REPLIED, dict.fromkeys(NAMES, 999.0)) == Waits(100, 0.0, 0.0, 0.0, 0)


def test_summary_counts_nodes_that_are_not_served_as_slowest() -> None:
    """One that has no Pod CIDR yet, and one that got it too late."""
    changed = dict.fromkeys(NAMES[:-2], 1000.25) | {NAMES[-2]: 1000.0 + WAIT + 1}
    assert summarize(NAMES, REPLIED, changed) == Waits(100, 0.25, None, None, 2)
    assert summarize(NAMES, REPLIED, {}) == Waits(100, None, None, None, 100)
