"""The race: nodes that all wait for a block; who has given one to the last of them, how soon, and at what cost."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from bench.cluster_contestants import bare
from bench.cluster_observer import Observer
from bench.cluster_stage import Stage, node_names, verify
from bench.cluster_usage import cpu_seconds, peak_megabytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.testenv.cluster import Cluster
    from tests.testenv.processes import Process

    from bench.cluster_contestants import Contestant

_SWEPT = 300


@dataclass(frozen=True)
class Run:
    """What one run showed; or, for several, the median of each figure."""

    nodes: float
    rate: float
    """Nodes per second, from the first that has a block to the last."""
    seconds: float
    """From the start of the process to the last node."""
    cpu: float
    """Seconds of the process, up to then."""
    peak: float
    """Megabytes."""
    server_cpu: float
    """Seconds of the API server in the same time."""

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} nodes/s, {self.seconds:.1f} s to the last, CPU {self.cpu:.2f} s, peak {self.peak:.0f} MB"
        )


def best_concurrency(stage: Stage, nodes: int) -> tuple[int, dict[int, float]]:
    """The concurrency at which the bare loop is fastest, and its rate at each."""
    with stage.cluster(nodes) as cluster:
        command = bare("sweep", options=(f"--count={_SWEPT}",))(cluster)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own
    rates = {int(concurrency): float(rate) for concurrency, rate in json.loads(done.stdout).items()}
    return max(rates, key=lambda each: rates[each]), rates


def race(stage: Stage, contestants: Sequence[Contestant], rounds: int) -> dict[str, Run]:
    """All in turns, so that a slow moment of the machine meets everybody. The medians, by key."""
    runs: dict[str, list[Run]] = {each.key: [] for each in contestants}
    for number in range(1, rounds + 1):
        for each in contestants:
            runs[each.key].append(run(stage, each))
            print(f"round {number} of {rounds}, {each.title}, {each.nodes:,} nodes: {runs[each.key][-1]}", flush=True)
    return {key: median(found) for key, found in runs.items()}


def run(stage: Stage, contestant: Contestant) -> Run:
    """One contestant, once, on a cluster of its own."""
    with stage.cluster(contestant.nodes) as cluster:
        return serve_all(cluster, contestant)


def serve_all(cluster: Cluster, contestant: Contestant) -> Run:
    """Let a contestant give a block to every node of a cluster; what that took."""
    process = contestant.process(cluster)
    with Observer(cluster) as observer:
        server_before, began = cpu_seconds(cluster.apiserver.pid), time.monotonic()
        process.start()
        try:
            observer.wait(node_names(contestant.nodes), lambda: require_running(process))
            cpu, peak = cpu_seconds(process.pid), peak_megabytes(process.pid)
            server_cpu = cpu_seconds(cluster.apiserver.pid) - server_before
        finally:
            process.stop()
    verify(cluster, contestant.nodes)
    moments = observer.changed.values()
    first, last = min(moments), max(moments)
    return Run(contestant.nodes, (contestant.nodes - 1) / (last - first), last - began, cpu, peak, server_cpu)


def require_running(process: Process) -> None:
    """Raise `RuntimeError`, with the end of its log, if a process has ended."""
    if process.ended is not None:
        raise RuntimeError(f"{process.name} ended with {process.ended}:\n{process.tail()}")


def median(runs: Sequence[Run]) -> Run:
    """The median of each figure."""
    return Run(*(statistics.median(getattr(each, field.name) for each in runs) for field in fields(Run)))
