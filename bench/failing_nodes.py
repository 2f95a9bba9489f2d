"""Measure how long nodes wait for their Pod CIDR while the PATCHes of other nodes fail: `make bench-failing-nodes`.

A real API server, one replica of `cidrella run` as installed, one pool with room for all. The UPDATE of nodes labelled
`bad=yes` fails by a validating webhook: it hangs for 10 s (`hang-N`, with N bad nodes), or the API server answers 500
at once (`refuse-N`). A name that ends in `-alone` runs the replica with `--leader-elect=false`.

Good nodes arrive at a steady rate in two phases: while the bad nodes are created and tried for the first time, and
after each of them has been tried. A node waits from the reply to its creation until a watch shows its Pod CIDR. Nodes
that are not served in time count as the slowest. There are no thresholds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.site import LEASE, Site
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, pod_cidrs, realistic_node

from bench.cluster_observer import Observer
from bench.cluster_race import require_running
from bench.core import machine
from bench.failing_nodes_report import AFTERWARDS, FIRST, WAIT, Result, show, summarize
from bench.failing_nodes_webhook import LABEL, FailingWebhook
from bench.soak_samples import lease_sizes, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from tests.real.site import Replica

SCENARIOS = ("hang-6", "hang-40", "refuse-520", "refuse-2000")
SECONDS = 30
"""For how long good nodes arrive in a phase."""
RATE, RATE_MIN, RATE_MAX = 5.0, 0.1, 50.0
"""Good nodes a second. With few of them, few answers let the limit on writes in flight grow again."""
FIRST_ATTEMPTS, FIRST_ATTEMPTS_MAX = 120.0, 3600.0
"""Seconds within which each bad node should have been tried once. Then the second phase begins in any case."""
_POOL = {"ipv4": "10.0.0.0/8"}
_CREATORS = 8
_LOOK_EVERY = 0.05
_SAY_EVERY = 5.0
_HANG, _REFUSE = "hang", "refuse"
_SCENARIO = re.compile(rf"(?P<kind>{_HANG}|{_REFUSE})-(?P<bad>[1-9]\d{{0,3}})(?P<alone>-alone)?")


@dataclass(frozen=True)
class Scenario:
    """How many nodes fail, and how."""

    name: str
    kind: str
    bad: int
    alone: bool

    @classmethod
    def parse(cls, text: str) -> Scenario:
        """Read a name such as `hang-6` or `refuse-520-alone`. Raises ArgumentTypeError for any other."""
        found = _SCENARIO.fullmatch(text)
        if found is None:
            raise argparse.ArgumentTypeError(f"hang-N or refuse-N, N from 1 to 9999, and perhaps -alone, not {text!r}")
        return cls(text, found["kind"], int(found["bad"]), bool(found["alone"]))


def main(given: Sequence[str] | None = None) -> None:
    """Run the scenarios, print a table, write JSON."""
    options = read_options(given)
    results: dict[str, Result] = {}
    for scenario in options.only:
        with tempfile.TemporaryDirectory(prefix="cidrella-bench-") as name:
            results[scenario.name] = measure(scenario, Path(name), options.rate, options.first_attempts)
    show(results)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        found = {"machine": machine(), "scenarios": {name: asdict(each) for name, each in results.items()}}
        options.json.write_text(json.dumps(found, indent=2) + "\n")
        print(f"wrote {options.json}")


def read_options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    arguments.add_argument(
        "--only",
        nargs="+",
        type=Scenario.parse,
        default=[Scenario.parse(each) for each in SCENARIOS],
        metavar="SCENARIO",
        help=f"{', '.join(SCENARIOS)} (all), or other numbers below 10,000; -alone after it: no leader election",
    )
    arguments.add_argument("--rate", type=float, default=RATE, help=f"good nodes a second that arrive ({RATE:g})")
    arguments.add_argument(
        "--first-attempts",
        type=float,
        default=FIRST_ATTEMPTS,
        metavar="SECONDS",
        help=f"begin the second phase after so long, even if bad nodes were not tried ({FIRST_ATTEMPTS:g})",
    )
    options = arguments.parse_args(given)
    if not 1 <= options.first_attempts <= FIRST_ATTEMPTS_MAX:
        arguments.error(f"--first-attempts: from 1 to {FIRST_ATTEMPTS_MAX:g} seconds, not {options.first_attempts:g}")
    if not RATE_MIN <= options.rate <= RATE_MAX:
        arguments.error(f"--rate: from {RATE_MIN:g} to {RATE_MAX:g} nodes a second, not {options.rate:g}")
    return options


def measure(scenario: Scenario, directory: Path, rate: float, first_attempts: float) -> Result:
    """Run a scenario on an API server of its own."""
    say(f"{scenario.name}: starting an API server")
    with Cluster.temporary(flags=WITHOUT_AUDIT) as cluster, FailingWebhook(cluster) as webhook:
        site = Site(cluster, directory)
        replica = site.replica(f"--leader-elect={str(not scenario.alone).lower()}")
        site.create_pool("p", **_POOL)
        webhook.install(hangs=scenario.kind == _HANG)
        try:
            replica.start()
            with Observer(cluster) as observer:
                run = Run(scenario, rate, site, replica, webhook, observer)
                run.first_attempts(first_attempts)
                run.afterwards()
                run.verify()
        finally:
            replica.stop()
    return run.result


@dataclass
class Run:
    """A scenario on a cluster that is ready."""

    scenario: Scenario
    rate: float
    site: Site
    replica: Replica
    webhook: FailingWebhook
    observer: Observer
    result: Result = field(default_factory=Result)
    replied: dict[str, float] = field(default_factory=dict)
    """When the API server had created each good node."""

    def first_attempts(self, patience: float) -> None:
        """Create the bad nodes while good ones arrive, and wait until each bad one was tried."""
        began = time.monotonic()

        def all_tried() -> bool:
            if len(self.webhook.asked) == self.scenario.bad and self.result.tried_seconds is None:
                self.result.tried_seconds = time.monotonic() - began
            return self.result.tried_seconds is not None or time.monotonic() - began > patience

        bad = [f"bad-{number:04}" for number in range(self.scenario.bad)]
        with ThreadPoolExecutor(1) as pool:
            creating = pool.submit(
                create_nodes, self.site.admin, bad, lambda name: realistic_node(name, LABEL), _CREATORS
            )
            self._phase(FIRST, all_tried)
            creating.result()
        self.result.tried = len(self.webhook.asked)

    def afterwards(self) -> None:
        """Good nodes arrive after that. Then read the Lease and the metrics."""
        self._phase(AFTERWARDS, lambda: True)
        result, samples = self.result, self.replica.samples()
        result.writes_limit = self.replica.metric("cidrella_writes_limit")
        result.nodes_waiting = self.replica.metric("cidrella_nodes_waiting")
        result.without_cidr = {
            each.labels["reason"]: each.value
            for each in samples
            if each.name == "cidrella_nodes_without_cidr" and each.value
        }
        result.load = os.getloadavg()
        if not self.scenario.alone:
            lease = self.site.admin.get(LEASE)
            result.intents, result.intents_bytes = len(recorded(lease)), lease_sizes(lease)[1]

    def verify(self) -> None:
        """Check that the nodes which changed have a Pod CIDR, that bad ones have none, and that no two overlap."""
        nodes = self.site.admin.items(NODES)
        assert_no_overlap(nodes)
        served = {name for name, cidrs in pod_cidrs(nodes).items() if cidrs}
        assert self.observer.changed.keys() <= served, self.observer.changed.keys() - served
        assert not [name for name in served if name.startswith("bad")]

    def _phase(self, name: str, done: Callable[[], bool]) -> None:
        """Have good nodes arrive, and wait until all are served and `done`, or have waited for too long."""
        names = [f"{name[:5]}-{number:04}" for number in range(round(self.rate * SECONDS))]
        began = said = time.monotonic()
        with ThreadPoolExecutor(_CREATORS) as pool:
            creating = [pool.submit(self._create, each, began + at / self.rate) for at, each in enumerate(names)]
            while not (done() and self._settled(names)):
                self._check(creating)
                if time.monotonic() - said > _SAY_EVERY:
                    said = time.monotonic()
                    self._say(name, names, said - began)
                time.sleep(_LOOK_EVERY)
        self._check(creating)
        self.result.waits[name] = summarize(names, self.replied, self.observer.changed)
        self._say(name, names, time.monotonic() - began)

    def _check(self, creating: Sequence[Future[None]]) -> None:
        """Raise the error of anything that failed."""
        require_running(self.replica.process)
        self.observer.check()
        for each in creating:
            if each.done():
                each.result()

    def _create(self, name: str, at: float) -> None:
        time.sleep(max(0.0, at - time.monotonic()))
        self.site.admin.create(NODES, realistic_node(name))
        self.replied[name] = time.monotonic()

    def _settled(self, names: Sequence[str]) -> bool:
        """Whether each node was created, and was served or has waited for too long."""
        late = time.monotonic() - WAIT
        return all(
            name in self.replied and (name in self.observer.changed or self.replied[name] < late) for name in names
        )

    def _say(self, phase: str, names: Sequence[str], seconds: float) -> None:
        created = sum(name in self.replied for name in names)
        served = sum(name in self.observer.changed for name in names)
        say(
            f"{self.scenario.name}: {phase}, {seconds:.0f} s: {created} good nodes created, {served} served; "
            f"{len(self.webhook.asked)} of {self.scenario.bad} bad nodes tried"
        )


def say(line: str) -> None:
    """Print progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
