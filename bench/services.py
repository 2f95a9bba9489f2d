"""Measure how Service addresses are given: `make bench-services`.

Three parts: the bitmap beside that of Kubernetes' API server; group commit beside one compare-and-swap per allocation,
on a real API server; and what one decision of the webhook takes beside a bare PATCH, on the same API server. In each,
all take turns on the same machine, and medians of the rounds count.

Times depend on the machine; the ratios, each within one run, are what the design is held to. A ratio out of bounds is
shown, and fails nothing: a machine has bad days. What fails is a run in which an address is given twice.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.webhook import WebhookSite
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster

from bench.cluster_stage import wait_quiet
from bench.core import machine
from bench.report import Report
from bench.services_admission import DECISIONS, compare_admission
from bench.services_bitmap import compare_bitmaps
from bench.services_commit import WRITES, compare_commits

if TYPE_CHECKING:
    from collections.abc import Sequence

BITMAP, COMMIT, ADMISSION = PARTS = ("bitmap", "commit", "admission")
ROUNDS = 3
QUICK_ROUNDS, QUICK_WRITES, QUICK_DECISIONS = 1, 20, 50


def main(given: Sequence[str] | None = None) -> None:
    """Run what was asked for, print tables, write JSON."""
    options = read_options(given)
    report = Report(machine())
    if BITMAP in options.only:
        compare_bitmaps(report, options.rounds)
    if COMMIT in options.only or ADMISSION in options.only:
        run_on_server(report, options)
    report.show(options.json)


def read_options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    arguments.add_argument(
        "--quick", action="store_true", help="few of each, one round: whether it works, not how fast"
    )
    arguments.add_argument("--rounds", type=int, help=f"how often each is measured ({ROUNDS})")
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options = arguments.parse_args(given)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.writes = QUICK_WRITES if options.quick else WRITES
    options.decisions = QUICK_DECISIONS if options.quick else DECISIONS
    return options


def run_on_server(report: Report, options: argparse.Namespace) -> None:
    """What needs an API server: one with `deploy/webhook`, and at first with no webhook running."""
    with (
        tempfile.TemporaryDirectory(prefix="cidrella-bench-") as name,
        Cluster.temporary(flags=WITHOUT_AUDIT) as cluster,
        WebhookSite(cluster, Path(name)) as site,
    ):
        wait_quiet(cluster)
        if COMMIT in options.only:
            compare_commits(report, cluster, options.rounds, options.writes)
        if ADMISSION in options.only:
            compare_admission(report, site, options.rounds, options.decisions)


if __name__ == "__main__":
    main()
