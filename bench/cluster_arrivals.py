"""Nodes that come at a steady rate, with many in place: from the reply to the creation until the block is visible.

"Visible" is the moment at which the observer's watch shows the change. Beside ours, in turns: a process that watches
nodes and sends each new one its PATCH, with nothing in between.
"""

from __future__ import annotations

import math
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.testenv.nodes import NODES, realistic_node
from tests.testenv.processes import Process

from bench.bare import WATCHING
from bench.cluster_contestants import BARE, bare
from bench.cluster_observer import Observer
from bench.cluster_race import require_running
from bench.cluster_restart import ready_controller
from bench.cluster_stage import wait_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.testenv.cluster import Cluster

PER_SECOND = 20
_WARM_UP = PER_SECOND
"""Nodes that come first and do not count."""
_CREATORS = 8
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Latency:
    """Milliseconds, the medians of the rounds."""

    half: float
    most: float
    """The 99th percentile."""


def arrivals(cluster: Cluster, keys: Sequence[str], rounds: int, seconds: int) -> tuple[dict[str, Latency], int]:
    """Measure bare and ours, in turns. Returns what was measured, by key, and how many nodes came."""
    found: dict[str, list[Latency]] = {key: [] for key in keys}
    created = 0
    for number in range(1, rounds + 1):
        for key, latencies in found.items():
            wait_quiet(cluster)
            with _bare(cluster, number) if key == BARE else _ours(cluster) as process:
                names = [f"new-{key}-{number}-{each:04}" for each in range(_WARM_UP + PER_SECOND * seconds)]
                waits = _waits(cluster, process, names)
            created += len(names)
            latest = Latency(percentile(waits, 50), percentile(waits, 99))
            latencies.append(latest)
            print(
                f"round {number} of {rounds}, {PER_SECOND} nodes a second, {key}: "
                f"p50 {latest.half:.1f} ms, p99 {latest.most:.1f} ms",
                flush=True,
            )
    return {key: _median(each) for key, each in found.items()}, created


def _waits(cluster: Cluster, process: Process, names: Sequence[str]) -> list[float]:
    """Create the nodes at the rate; the milliseconds that each waited, without those that warm up."""
    replied: dict[str, float] = {}

    def create(name: str) -> None:
        cluster.admin.create(NODES, realistic_node(name))
        replied[name] = time.monotonic()

    with Observer(cluster) as observer, ThreadPoolExecutor(_CREATORS) as pool:
        create(names[0])
        observer.wait(names[:1], lambda: require_running(process))
        began = time.monotonic()
        creating = []
        for at, name in enumerate(names[1:]):
            time.sleep(max(0.0, began + at / PER_SECOND - time.monotonic()))
            creating.append(pool.submit(create, name))
        for each in creating:
            each.result()
        observer.wait(names, lambda: require_running(process))
    # The watch may be faster than the reply. Then nobody waited.
    return [max(0.0, observer.changed[name] - replied[name]) * 1e3 for name in names[_WARM_UP:]]


@contextmanager
def _bare(cluster: Cluster, number: int) -> Iterator[Process]:
    """The process that sends a PATCH to whatever comes, out of a range of this round's own."""
    command = bare("arrivals", block_range=f"10.{8 * (number % 32)}.0.0/13")(cluster)
    process = Process(BARE, command, cluster.directory / f"{BARE}-{number}.log")
    process.start()
    try:
        while WATCHING not in process.tail():
            require_running(process)
            time.sleep(_LOOK_EVERY)
        yield process
    finally:
        process.stop()


@contextmanager
def _ours(cluster: Cluster) -> Iterator[Process]:
    with ready_controller(cluster) as (process, _):
        yield process


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of all do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _median(found: Sequence[Latency]) -> Latency:
    return Latency(statistics.median(each.half for each in found), statistics.median(each.most for each in found))
