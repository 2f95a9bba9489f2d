"""Measure the embedded API beside the real one: `make bench-up`.

Nodes as large as kubelets make them are created, and then each is given its block, by one client, so many requests at a
time, on fresh servers that take turns on the same machine: kube-apiserver with an etcd that waits for the disk, as in
production; `cidrella up --data-dir` on the same disk, which does likewise; and `cidrella up` in memory. Medians of the
rounds count. What was written is checked before a figure counts.

Times depend on the machine; the ratio, within one run, is what the design is held to. A ratio out of bounds is shown,
and fails nothing: a machine has bad days. What fails is a run in which a node is not as it was written.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster
from tests.testenv.embedded import Embedded

from bench.cluster_stage import wait_quiet
from bench.core import machine
from bench.report import Report
from bench.up_writes import Seconds, write_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.testenv.api import Api

REAL, DURABLE, MEMORY = "kube-apiserver and etcd", "cidrella up --data-dir", "cidrella up, in memory"
NODES, CONCURRENCY, ROUNDS = 5_000, 32, 3
QUICK_NODES, QUICK_ROUNDS = 200, 1
TIMES_AS_FAST = 1
"""What the embedded API is held to, where both wait for the disk."""
_BUILD = Path(__file__).parent.parent / "build"
"""Where servers have their files: temporary directories are in memory on some machines."""


class Lasting(Cluster):
    """As in production: what is acknowledged is on the disk."""

    fsync = True


class Contestant(NamedTuple):
    """A server to be measured."""

    name: str
    make: Callable[[Path], Api]


CONTESTANTS = (
    Contestant(REAL, lambda directory: Lasting(directory, flags=WITHOUT_AUDIT)),
    Contestant(DURABLE, lambda directory: Embedded(directory, flags={"audit-log": None})),
    Contestant(MEMORY, lambda directory: Embedded(directory, flags={"audit-log": None, "data-dir": None})),
)


def main(given: Sequence[str] | None = None) -> None:
    """Run, print tables, write JSON."""
    options = read_options(given)
    found: dict[str, list[Seconds]] = {each.name: [] for each in CONTESTANTS}
    for number in range(options.rounds):
        for contestant in CONTESTANTS:
            print(f"round {number + 1} of {options.rounds}: {contestant.name}", flush=True)
            found[contestant.name].append(measure(contestant, options.nodes, options.concurrency))
    report = Report(machine())
    note(report, found, options.nodes)
    report.show(options.json)


def read_options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    arguments.add_argument("--quick", action="store_true", help="few nodes, one round: whether it works, not how fast")
    arguments.add_argument("--nodes", type=int, help=f"how many are created and patched ({NODES:,})")
    arguments.add_argument("--rounds", type=int, help=f"how often each is measured ({ROUNDS})")
    arguments.add_argument("--concurrency", type=int, default=CONCURRENCY, help=f"requests at a time ({CONCURRENCY})")
    options = arguments.parse_args(given)
    options.nodes = options.nodes or (QUICK_NODES if options.quick else NODES)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    return options


def measure(contestant: Contestant, nodes: int, concurrency: int) -> Seconds:
    """All writes, on a fresh server that has come to rest."""
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-up-", dir=_BUILD, ignore_cleanup_errors=True) as name:
        api = contestant.make(Path(name) / "server")
        try:
            api.start()
            wait_quiet(api)
            return uvloop.run(write_nodes(api, nodes, concurrency))
        finally:
            api.stop()


def note(report: Report, found: dict[str, list[Seconds]], nodes: int) -> None:
    """Rates, and how many times as fast as the real one each is."""
    middle = {
        name: {what: statistics.median(getattr(each, what) for each in those) for what in ("create", "patch", "both")}
        for name, those in found.items()
    }
    for name, seconds in middle.items():
        report.figure(f"{name}: nodes created per second", nodes / seconds["create"])
        report.figure(f"{name}: nodes patched per second", nodes / seconds["patch"])
        report.figure(f"{name}: create and patch {nodes:,} nodes, seconds", seconds["both"])
    for name in (DURABLE, MEMORY):
        for what in ("create", "patch", "both"):
            limit = TIMES_AS_FAST if (name, what) == (DURABLE, "both") else 0
            doing = {"create": "creating", "patch": "patching", "both": "creating and patching"}[what]
            ratio = middle[REAL][what] / middle[name][what]
            report.ratio(f"{doing}: times as fast as {REAL}, {name}", ratio, at_least=limit)


if __name__ == "__main__":
    main()
