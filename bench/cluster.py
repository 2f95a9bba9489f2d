"""Measure the controller on a real API server, beside the bare limit and its peers: `make bench-cluster`.

Four parts: a race over nodes that all wait for a block, the same with and without recording what is sent (`intents`),
nodes that arrive one by one, and a restart. In each, all take turns on the same machine, and medians of the rounds
count. The API server runs here too, so the contestants share the cores with it, as they share it with each other. Every
block that anybody gave is checked before a figure counts.

Times depend on the machine; the ratios, each within one run, are what the design is held to. A ratio out of bounds is
shown, and fails nothing: a machine has bad days. What fails is a run that ends without a block for every node.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.bare import CONCURRENCIES
from bench.cluster_arrivals import arrivals
from bench.cluster_contestants import BARE, OURS, PEER, PEER_LIFTED, bare_loop, contestants, ours_runs
from bench.cluster_intents import pairs
from bench.cluster_race import best_concurrency, race, serve_all
from bench.cluster_report import Report
from bench.cluster_restart import restart
from bench.cluster_stage import Stage, verify
from bench.core import machine

if TYPE_CHECKING:
    from collections.abc import Sequence

ARRIVALS, RESTART, INTENTS = "arrivals", "restart", "intents"
RACE = (BARE, OURS, PEER, PEER_LIFTED)
PARTS = (*RACE, INTENTS, ARRIVALS, RESTART)
NODES, ROUNDS, PAIRS, SECONDS = 5_000, 3, 5, 20
NODES_AS_SHIPPED = 600
QUICK_NODES, QUICK_ROUNDS, QUICK_SECONDS, QUICK_NODES_AS_SHIPPED = 500, 1, 5, 100


def main(given: Sequence[str] | None = None) -> None:
    """Run what was asked for, print tables, write JSON."""
    options = read_options(given)
    report = Report(machine())
    console = Console()
    with tempfile.TemporaryDirectory(prefix="cidrella-bench-") as directory:
        stage = Stage(Path(directory))
        if any(part in RACE for part in options.only):
            run_race(report, stage, options)
        if INTENTS in options.only and ours_runs():
            report.intents = pairs(stage, options.nodes, options.pairs)
        if ARRIVALS in options.only or RESTART in options.only:
            run_settled(report, stage, options)
    report.judge()
    report.show(console)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
        console.print(f"wrote {options.json}")


def read_options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    arguments.add_argument("--quick", action="store_true", help="few nodes, one round: whether it works, not how fast")
    arguments.add_argument("--nodes", type=int, help=f"how many wait for a block ({NODES:,})")
    arguments.add_argument("--rounds", type=int, help=f"how often each is measured ({ROUNDS})")
    arguments.add_argument("--pairs", type=int, help=f"how often with and without intents ({PAIRS})")
    arguments.add_argument("--seconds", type=int, help=f"for how long nodes arrive in a round ({SECONDS})")
    arguments.add_argument(
        "--full", action="store_true", help=f"all nodes, not {NODES_AS_SHIPPED}, for a limited client"
    )
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options = arguments.parse_args(given)
    quick = options.quick
    options.nodes = options.nodes or (QUICK_NODES if quick else NODES)
    options.rounds = options.rounds or (QUICK_ROUNDS if quick else ROUNDS)
    options.pairs = options.pairs or (QUICK_ROUNDS if quick else PAIRS)
    options.seconds = options.seconds or (QUICK_SECONDS if quick else SECONDS)
    limited = options.nodes if options.full else QUICK_NODES_AS_SHIPPED if quick else NODES_AS_SHIPPED
    options.nodes_as_shipped = min(options.nodes, limited)
    return options


def run_race(report: Report, stage: Stage, options: argparse.Namespace) -> None:
    """The race, after finding the bare loop's best concurrency."""
    print("the bare loop, at several concurrencies", flush=True)
    best, report.sweep = best_concurrency(stage, options.nodes)
    those = [each for each in contestants(options.nodes, options.nodes_as_shipped, best) if each.key in options.only]
    report.titles = {each.key: each.title for each in those}
    report.race = race(stage, those, options.rounds)


def run_settled(report: Report, stage: Stage, options: argparse.Namespace) -> None:
    """What happens on a cluster where every node has its block: a restart, and arrivals."""
    print("restart and arrivals: giving every node a block first", flush=True)
    with stage.cluster(options.nodes) as cluster:
        serve_all(cluster, bare_loop(options.nodes, CONCURRENCIES[0]))
        ours = ours_runs()
        if not ours:
            print("LEFT OUT: Cidrella, which has no `cidrella run` here.")
        if ours and RESTART in options.only:
            report.restart = restart(cluster, options.rounds)
        if ARRIVALS in options.only:
            keys = (BARE, OURS) if ours else (BARE,)
            report.arrivals, came = arrivals(cluster, keys, options.rounds, options.seconds)
            verify(cluster, options.nodes + came)


if __name__ == "__main__":
    main()
