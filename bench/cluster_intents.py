"""What recording intents costs: the controller as it is installed, beside the same that records nothing.

Both are two replicas with the times of election that they ship with, on the same nodes, in turns; who comes first
changes from pair to pair. While they start, somebody else holds the Lease, so that both are warm when it is released;
whoever takes it serves all nodes.

Writes to the Lease are read off its history afterwards. A leader that has nothing to record renews a retry period after
its last write, or a little later. What comes sooner is beyond the renewals.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.testenv.ports import free_port
from tests.testenv.processes import Process
from tests.testenv.without_intents import WITHOUT_INTENTS

from bench.cluster_contestants import cidrella
from bench.cluster_observer import Observer
from bench.cluster_race import require_running
from bench.cluster_restart import wait_ready
from bench.cluster_stage import node_names, verify, wait_quiet
from bench.cluster_usage import cpu_seconds
from cidrella.kube.campaign import ElectionSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

    from bench.cluster_stage import Stage

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/cidrella"
WITH, WITHOUT = "with intents", "without intents"
_REPLICAS = 2
_LONG = 3600
"""Seconds for which nobody but us may take the Lease."""
_EARLY = 0.9
"""Of the retry period: what comes sooner is no renewal. One that is due comes after all of it."""
_HISTORY_SECONDS = 10.0
_REST_SECONDS = 60.0
_LOOK_EVERY = 0.1


@dataclass(frozen=True)
class Trial:
    """What one run showed."""

    nodes: int
    rate: float
    """Nodes per second, from the first that has a block to the last."""
    seconds: float
    """From the release of the Lease to the last node."""
    cpu: float
    """Seconds of all replicas in that time."""
    server_cpu: float
    lease_writes: int
    beyond_renewals: int

    @property
    def per_hundred(self) -> float:
        """Writes to the Lease beyond renewals, for a hundred nodes."""
        return 100 * self.beyond_renewals / self.nodes

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} nodes/s, {self.seconds:.1f} s to the last, CPU {self.cpu:.2f} s, "
            f"{self.lease_writes} Lease writes, {self.beyond_renewals} of them beyond renewals"
        )


@dataclass(frozen=True)
class Pair:
    """Both, one after the other."""

    recording: Trial
    not_recording: Trial

    @property
    def share(self) -> float:
        """How fast it is with intents, as a part of how fast it is without."""
        return self.recording.rate / self.not_recording.rate


def pairs(stage: Stage, nodes: int, count: int) -> list[Pair]:
    """So many pairs."""
    found = []
    for number in range(1, count + 1):
        trials = {}
        for key in (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH):
            with stage.cluster(nodes) as cluster:
                trials[key] = _trial(cluster, nodes, records=key == WITH)
            print(f"pair {number} of {count}, {key}, {nodes:,} nodes: {trials[key]}", flush=True)
        found.append(Pair(trials[WITH], trials[WITHOUT]))
        print(f"pair {number} of {count}: {found[-1].share:.3f} of the rate without", flush=True)
    return found


def _trial(cluster: Cluster, nodes: int, *, records: bool) -> Trial:
    """One run, on a cluster whose nodes all wait."""
    held = {"holderIdentity": "bench", "leaseDurationSeconds": _LONG, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = cluster.admin.create(LEASES, {"metadata": {"name": "cidrella"}, "spec": held})
    with ExitStack() as stack:
        replicas = [_replica(cluster, number, stack, records=records) for number in range(_REPLICAS)]
        wait_quiet(cluster)
        with Observer(cluster) as observer:
            processes = [cluster.apiserver, *replicas]
            before, began = [cpu_seconds(each.pid) for each in processes], time.monotonic()
            cluster.admin.patch(LEASE, {"spec": {"holderIdentity": ""}})
            observer.wait(node_names(nodes), lambda: _require_running(replicas))
            server, *own = [cpu_seconds(each.pid) - was for each, was in zip(processes, before, strict=True)]
        last = _at_rest(cluster)
    verify(cluster, nodes)
    times = renewals(_history(cluster, lease, last))
    moments = observer.changed.values()
    first, done = min(moments), max(moments)
    return Trial(nodes, (nodes - 1) / (done - first), done - began, sum(own), server, len(times), out_of_turn(times))


def _replica(cluster: Cluster, number: int, stack: ExitStack, *, records: bool) -> Process:
    """One that is ready, and ends with the stack."""
    port = free_port()
    program, *arguments = cidrella(port, elects=True)(cluster)
    command = [program] if records else [sys.executable, "-m", WITHOUT_INTENTS]
    name = f"cidrella-{number}"
    process = Process(name, [*command, *arguments], cluster.directory / f"{name}.log")
    process.start()
    stack.callback(process.stop)
    wait_ready(process, port)
    return process


def _require_running(replicas: Sequence[Process]) -> None:
    for each in replicas:
        require_running(each)


def _at_rest(cluster: Cluster) -> Json:
    """The Lease, once nothing is recorded in it any more: taking entries out of it is a part of the cost."""
    deadline = time.monotonic() + _REST_SECONDS
    while (lease := cluster.admin.get(LEASE))["metadata"].get("annotations"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the Lease still says {lease['metadata']['annotations']}")
        time.sleep(_LOOK_EVERY)
    return lease


def _history(cluster: Cluster, first: Json, last: Json) -> list[Json]:
    """Every state of the Lease after the first, up to the last. A history that the server has not whole is an error."""
    version, found = last["metadata"]["resourceVersion"], []
    for event in cluster.admin.watch(
        LEASES, first["metadata"]["resourceVersion"], _HISTORY_SECONDS, fieldSelector="metadata.name=cidrella"
    ):
        if event["type"] != "MODIFIED":
            raise ValueError(f"the history of the Lease has a gap: {event}")
        found.append(event["object"])
        if event["object"]["metadata"]["resourceVersion"] == version:
            return found
    raise ValueError("the history of the Lease does not end where the Lease stands")


def renewals(history: Sequence[Json]) -> list[float]:
    """When whoever held the Lease wrote to it, in seconds, by its own clock."""
    held = [each["spec"] for each in history if each["spec"].get("holderIdentity")]
    return [datetime.fromisoformat(each["renewTime"]).timestamp() for each in held]


def out_of_turn(times: Sequence[float], period: float = ElectionSettings().retry_period) -> int:
    """How many writes came sooner than a renewal would have."""
    return sum(later - sooner < _EARLY * period for sooner, later in pairwise(times))
