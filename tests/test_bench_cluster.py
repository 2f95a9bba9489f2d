"""The parts of `make bench-cluster` that compute something: a wrong figure would look like any other."""

from __future__ import annotations

import io
import os

import pytest
from bench.cluster import read_options
from bench.cluster_arrivals import Latency, percentile
from bench.cluster_intents import Pair, Trial, out_of_turn, renewals
from bench.cluster_observer import changed_nodes
from bench.cluster_race import Run, median
from bench.cluster_report import Report
from bench.cluster_restart import Restart
from bench.cluster_usage import cpu_seconds, parse_cpu, parse_peak, peak_megabytes
from rich.console import Console


def test_cpu_is_user_and_system_time() -> None:
    """The right two fields are read, whatever the program is called."""
    tick = os.sysconf("SC_CLK_TCK")
    fields = ["S", *map(str, range(1, 11)), str(3 * tick), str(2 * tick), "700", "800"]
    assert parse_cpu(f"42 (a) b (c)) {' '.join(fields)}\n") == 5.0


def test_peak_is_in_megabytes() -> None:
    """VmHWM, which the kernel gives in KiB, and not VmPeak, which is address space."""
    assert parse_peak("Name:\tx\nVmPeak:\t  999999 kB\nVmHWM:\t  1000000 kB\nVmRSS:\t 5 kB\n") == 1024.0


def test_this_process_has_used_something() -> None:
    """The kernel's files have the form that is expected."""
    assert 0 < cpu_seconds(os.getpid()) < 1e6
    assert 5 < peak_megabytes(os.getpid()) < 1e5


@pytest.mark.parametrize(("percent", "value"), [(50, 50.0), (99, 99.0), (100, 100.0), (0, 1.0), (98.5, 99.0)])
def test_percentile(percent: float, value: float) -> None:
    """The least value that so many percent do not exceed."""
    assert percentile([float(each) for each in range(100, 0, -1)], percent) == value


def test_changed_nodes_of_a_table() -> None:
    """A change counts, an addition does not, and an error is not passed over."""
    rows = {"rows": [{"cells": ["node-1", "Ready"], "object": None}]}
    assert changed_nodes({"type": "MODIFIED", "object": rows}) == ["node-1"]
    assert changed_nodes({"type": "ADDED", "object": rows}) == []
    with pytest.raises(ValueError, match="too old"):
        changed_nodes({"type": "ERROR", "object": {"message": "too old"}})


def test_median_of_each_figure() -> None:
    """Each figure has a median of its own; they need not come from one run."""
    runs = [Run(10, 1, 30, 5, 7, 1), Run(10, 2, 20, 6, 9, 2), Run(10, 3, 10, 4, 8, 3)]
    assert median(runs) == Run(10, 2, 20, 5, 8, 2)


def test_limits() -> None:
    """Rates are compared as they are, CPU for each node, as the limited peer has fewer of them."""
    report = Report({}, {"kcm": "kcm as it ships", "kcm-lifted": "kcm unlimited"})
    report.race = {
        "bare": Run(1000, 500, 2, 0.5, 40, 1),
        "cidrella": Run(1000, 450, 3, 2, 80, 1),
        "kcm": Run(100, 15, 7, 0.4, 150, 1),
        "kcm-lifted": Run(1000, 150, 7, 8, 200, 1),
    }
    report.arrivals = {"bare": Latency(5, 10), "cidrella": Latency(6, 30)}
    report.restart = Restart(ready=2, list_process=1, list_only=0.5)
    report.intents = [
        Pair(Trial(1000, one, 3, 2, 1, 9, beyond), Trial(1000, other, 3, 2, 1, 2, 0))
        for one, other, beyond in [(90, 100, 4), (99, 100, 7), (190, 200, 5)]
    ]
    report.judge()
    assert {name: each["value"] for name, each in report.limits.items()} == {
        "nodes per second: share of the bare limit": 0.9,
        "peak memory, MB": 80,
        "nodes per second: times kcm as it ships": 30,
        "CPU for a node: times kcm as it ships": 0.5,
        "nodes per second: times kcm unlimited": 3,
        "CPU for a node: times kcm unlimited": 0.25,
        "arriving nodes, p99: times that of the bare loop": 3,
        "nodes per second: share of that without intents, median of 3 pairs": 0.95,
        "Lease writes beyond renewals, for 100 nodes, the most of all runs": 0.7,
        "restart: times a bare paged list, both from the start of Python": 2,
        "restart, from the start of Python: times the bare paged list alone": 4,
    }


def test_verdicts_are_said() -> None:
    """Each limit has a line that says whether it was kept, and by which figure."""
    report = Report({})
    trials = Trial(1000, 85, 3, 2, 1, 9, 4), Trial(1000, 100, 3, 2, 1, 2, 0)
    report.intents = [Pair(*trials)]
    report.judge()
    said = io.StringIO()
    report.show(Console(file=said, width=200))
    lines = said.getvalue().splitlines()
    assert "broken: nodes per second: share of that without intents, median of 1 pairs: 0.85, at least 0.9" in lines
    assert "kept: Lease writes beyond renewals, for 100 nodes, the most of all runs: 0.4, at most 1" in lines


def test_lease_writes_of_the_holder() -> None:
    """When it was released, nobody held it: that is no write of a leader."""
    history = [
        {"spec": {"holderIdentity": "", "renewTime": "2026-01-01T00:00:00.000000Z"}},
        {"spec": {"holderIdentity": "a", "renewTime": "1970-01-01T00:00:01.500000Z"}},
        {"spec": {"holderIdentity": "a", "renewTime": "1970-01-01T00:00:03.500000Z"}},
    ]
    assert renewals(history) == [1.5, 3.5]


@pytest.mark.parametrize(
    ("times", "beyond"),
    [
        ([], 0),
        ([0.0], 0),
        ([0.0, 2.0, 4.4, 6.4], 0),
        ([0.0, 0.3, 0.6, 2.6], 2),
        ([0.0, 1.7, 3.7, 3.8], 2),
    ],
)
def test_writes_beyond_renewals(times: list[float], beyond: int) -> None:
    """A renewal comes a retry period after the last write, whatever that was for; what comes sooner is beyond."""
    assert out_of_turn(times, period=2.0) == beyond


def test_nothing_of_ours_is_held_to_nothing() -> None:
    """Without our controller there is nothing to judge."""
    report = Report({}, race={"bare": Run(1000, 500, 2, 0.5, 40, 1)}, arrivals={"bare": Latency(5, 10)})
    report.judge()
    assert report.limits == {}


@pytest.mark.parametrize(
    ("given", "nodes", "as_shipped", "rounds"),
    [
        ([], 5000, 600, 3),
        (["--full"], 5000, 5000, 3),
        (["--quick"], 500, 100, 1),
        (["--nodes", "200", "--rounds", "2"], 200, 200, 2),
        (["--quick", "--nodes", "50"], 50, 50, 1),
    ],
)
def test_options(given: list[str], nodes: int, as_shipped: int, rounds: int) -> None:
    """What is named counts, and a peer with a limited client never gets more nodes than there are."""
    options = read_options(given)
    assert (options.nodes, options.nodes_as_shipped, options.rounds) == (nodes, as_shipped, rounds)
