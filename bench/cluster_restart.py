"""A restart with every node in place: from the start of the process until it says that it is ready.

Beside it, in turns: one paged list of the same nodes through the same HTTP library, decoded into nothing, in a process
that does only this. Starting Python is part of both.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.testenv.ports import free_port
from tests.testenv.processes import Process

from bench.cluster_contestants import OURS, bare, cidrella
from bench.cluster_race import require_running
from bench.cluster_stage import wait_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.cluster import Cluster

_POLL = 0.02
_PATIENCE = 60.0


@dataclass(frozen=True)
class Restart:
    """Seconds, the medians of the rounds."""

    ready: float
    """From the start of our process until `/readyz` says 200."""
    list_process: float
    """From the start of the process that lists to its end."""
    list_only: float
    """The list alone, within that process."""


def restart(cluster: Cluster, rounds: int) -> Restart:
    """Measure both, in turns."""
    with ready_controller(cluster):
        pass  # makes the pool of the flags, which a restart finds
    found: list[Restart] = []
    for number in range(1, rounds + 1):
        wait_quiet(cluster)
        process, alone = _timed_list(cluster)
        wait_quiet(cluster)
        with ready_controller(cluster) as (_, seconds):
            found.append(Restart(seconds, process, alone))
        print(
            f"round {number} of {rounds}, restart: ready after {seconds:.2f} s; "
            f"a paged list takes {process:.2f} s as a process, {alone:.2f} s of them for the list",
            flush=True,
        )
    return Restart(
        *(
            statistics.median(each)
            for each in zip(*((r.ready, r.list_process, r.list_only) for r in found), strict=True)
        )
    )


def _timed_list(cluster: Cluster) -> tuple[float, float]:
    """Seconds of a process that lists, and of the list within it."""
    began = time.monotonic()
    done = subprocess.run(bare("list")(cluster), stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own
    return time.monotonic() - began, float(json.loads(done.stdout)["seconds"])


@contextmanager
def ready_controller(cluster: Cluster) -> Iterator[tuple[Process, float]]:
    """Our controller while it runs, and the seconds after which it was ready."""
    port = free_port()
    process = Process(OURS, cidrella(port)(cluster), cluster.directory / f"{OURS}.log")
    began = time.monotonic()
    process.start()
    try:
        wait_ready(process, port)
        yield process, time.monotonic() - began
    finally:
        process.stop()


def wait_ready(process: Process, port: int) -> None:
    """Wait until a controller says that it is ready. Raises RuntimeError if it ends, TimeoutError if it never is."""
    deadline = time.monotonic() + _PATIENCE
    while not _is_ready(port):
        require_running(process)
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready after {_PATIENCE:.0f} s:\n{process.tail()}")
        time.sleep(_POLL)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except ConnectionError:
        return False  # it does not listen yet
    finally:
        connection.close()
