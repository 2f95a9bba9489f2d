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
import math
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.real.site import LEASE, Site
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, pod_cidrs, realistic_node

from bench.cluster_arrivals import percentile
from bench.cluster_observer import Observer
from bench.cluster_race import require_running
from bench.core import machine
from bench.failing_nodes_webhook import LABEL, FailingWebhook
from bench.soak_samples import lease_sizes, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from tests.real.site import Replica

SCENARIOS = ("hang-6", "hang-40", "refuse-520", "refuse-2000")
RATE, SECONDS = 5, 30
"""Good nodes a second, and for how long they arrive in a phase."""
WAIT = 60.0
"""Seconds after which a good node counts as not served."""
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
        """Read a name such as `hang-6` or `refuse-520-alone`. Raises ValueError for any other."""
        found = _SCENARIO.fullmatch(text)
        if found is None:
            raise ValueError(f"not a scenario: {text!r}")
        return cls(text, found["kind"], int(found["bad"]), bool(found["alone"]))


@dataclass(frozen=True)
class Waits:
    """How long the good nodes of a phase waited, in seconds; None for more than `WAIT`."""

    nodes: int
    p50: float | None
    p99: float | None
    most: float | None
    not_served: int


@dataclass
class Result:
    """The figures of a scenario. All but the waits are from the end of the second phase."""

    waits: dict[str, Waits] = field(default_factory=dict)
    tried_seconds: float | None = None
    """After which each bad node had been tried; None if some never were before the second phase."""
    tried: int = 0
    intents: int | None = None
    """Entries in the annotation of the Lease; None without a Lease."""
    intents_bytes: int | None = None
    writes_limit: float | None = None
    nodes_waiting: float | None = None
    without_cidr: dict[str, float] = field(default_factory=dict)
    """The gauge `cidrella_nodes_without_cidr` by reason, where it exists."""
    load: tuple[float, ...] = ()
    """The load averages of the machine."""


def main(given: Sequence[str] | None = None) -> None:
    """Run the scenarios, print a table, write JSON."""
    options = read_options(given)
    results: dict[str, Result] = {}
    for scenario in options.only:
        with tempfile.TemporaryDirectory(prefix="cidrella-bench-") as name:
            results[scenario.name] = measure(scenario, Path(name), options.first_attempts)
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
    return options


def measure(scenario: Scenario, directory: Path, first_attempts: float) -> Result:
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
                run = Run(scenario, site, replica, webhook, observer)
                run.first_attempts(first_attempts)
                run.afterwards()
                run.verify()
        finally:
            replica.stop()
    return run.result


class Run:
    """A scenario on a cluster that is ready."""

    def __init__(
        self, scenario: Scenario, site: Site, replica: Replica, webhook: FailingWebhook, observer: Observer
    ) -> None:
        self._scenario = scenario
        self._site = site
        self._replica = replica
        self._webhook = webhook
        self._observer = observer
        self._replied: dict[str, float] = {}
        self.result = Result()

    def first_attempts(self, patience: float) -> None:
        """Create the bad nodes while good ones arrive, and wait until each bad one was tried."""
        began = time.monotonic()

        def all_tried() -> bool:
            if len(self._webhook.asked) == self._scenario.bad and self.result.tried_seconds is None:
                self.result.tried_seconds = time.monotonic() - began
            return self.result.tried_seconds is not None or time.monotonic() - began > patience

        bad = [f"bad-{number:04}" for number in range(self._scenario.bad)]
        with ThreadPoolExecutor(1) as pool:
            creating = pool.submit(
                create_nodes, self._site.admin, bad, lambda name: realistic_node(name, LABEL), _CREATORS
            )
            self._phase("first attempts", all_tried)
            creating.result()
        self.result.tried = len(self._webhook.asked)

    def afterwards(self) -> None:
        """Good nodes arrive after that. Then read the Lease and the metrics."""
        self._phase("afterwards", lambda: True)
        result, samples = self.result, self._replica.samples()
        result.writes_limit = self._replica.metric("cidrella_writes_limit")
        result.nodes_waiting = self._replica.metric("cidrella_nodes_waiting")
        result.without_cidr = {
            each.labels["reason"]: each.value
            for each in samples
            if each.name == "cidrella_nodes_without_cidr" and each.value
        }
        result.load = os.getloadavg()
        if not self._scenario.alone:
            lease = self._site.admin.get(LEASE)
            result.intents, result.intents_bytes = len(recorded(lease)), lease_sizes(lease)[1]

    def verify(self) -> None:
        """Check that the nodes which changed have a Pod CIDR, that bad ones have none, and that no two overlap."""
        nodes = self._site.admin.items(NODES)
        assert_no_overlap(nodes)
        served = {name for name, cidrs in pod_cidrs(nodes).items() if cidrs}
        assert self._observer.changed.keys() <= served, self._observer.changed.keys() - served
        assert not [name for name in served if name.startswith("bad")]

    def _phase(self, name: str, done: Callable[[], bool]) -> None:
        """Have good nodes arrive, and wait until all are served and `done`, or have waited for too long."""
        names = [f"{name[:5]}-{number:04}" for number in range(RATE * SECONDS)]
        began = said = time.monotonic()
        with ThreadPoolExecutor(_CREATORS) as pool:
            creating = [pool.submit(self._create, each, began + at / RATE) for at, each in enumerate(names)]
            while not (done() and self._settled(names)):
                self._check(creating)
                if time.monotonic() - said > _SAY_EVERY:
                    said = time.monotonic()
                    self._say(name, names, said - began)
                time.sleep(_LOOK_EVERY)
        self._check(creating)
        self.result.waits[name] = summarize(names, self._replied, self._observer.changed)
        self._say(name, names, time.monotonic() - began)

    def _check(self, creating: Sequence[Future[None]]) -> None:
        """Raise the error of anything that failed."""
        require_running(self._replica.process)
        self._observer.check()
        for each in creating:
            if each.done():
                each.result()

    def _create(self, name: str, at: float) -> None:
        time.sleep(max(0.0, at - time.monotonic()))
        self._site.admin.create(NODES, realistic_node(name))
        self._replied[name] = time.monotonic()

    def _settled(self, names: Sequence[str]) -> bool:
        """Whether each node was created, and was served or has waited for too long."""
        late = time.monotonic() - WAIT
        return all(
            name in self._replied and (name in self._observer.changed or self._replied[name] < late) for name in names
        )

    def _say(self, phase: str, names: Sequence[str], seconds: float) -> None:
        created = sum(name in self._replied for name in names)
        served = sum(name in self._observer.changed for name in names)
        say(
            f"{self._scenario.name}: {phase}, {seconds:.0f} s: {created} good nodes created, {served} served; "
            f"{len(self._webhook.asked)} of {self._scenario.bad} bad nodes tried"
        )


def summarize(names: Sequence[str], replied: Mapping[str, float], changed: Mapping[str, float]) -> Waits:
    """The percentiles of what nodes waited. One that was not served in time waited for ever."""
    # The watch may be faster than the reply. Then the node did not wait.
    waited = [max(0.0, changed.get(name, math.inf) - replied[name]) for name in names]
    waited = [each if each <= WAIT else math.inf for each in waited]
    figures = [percentile(waited, percent) for percent in (50, 99, 100)]
    p50, p99, most = (round(each, 3) if each < math.inf else None for each in figures)
    return Waits(len(names), p50, p99, most, waited.count(math.inf))


def show(results: Mapping[str, Result]) -> None:
    """Print the figures, a column for each scenario."""
    table = Table("seconds that good nodes waited", *results, title="Nodes while others fail")
    for phase in ("first attempts", "afterwards"):
        for name in ("p50", "p99", "most"):
            table.add_row(
                f"{phase}: {name}", *(_seconds(getattr(each.waits[phase], name)) for each in results.values())
            )
        counts = [each.waits[phase] for each in results.values()]
        table.add_row(
            f"{phase}: not served in {WAIT:.0f} s", *(f"{each.not_served} of {each.nodes}" for each in counts)
        )
    for name in ("tried", "tried_seconds", "intents", "intents_bytes", "writes_limit", "nodes_waiting"):
        table.add_row(name, *(_number(getattr(each, name)) for each in results.values()))
    reasons = [" ".join(f"{key}={value:g}" for key, value in each.without_cidr.items()) for each in results.values()]
    table.add_row("nodes_without_cidr", *(each or "-" for each in reasons))
    table.add_row("load averages", *(" ".join(f"{part:.1f}" for part in each.load) for each in results.values()))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def say(line: str) -> None:
    """Print progress."""
    print(line, file=sys.stderr, flush=True)


def _seconds(value: float | None) -> str:
    return f"> {WAIT:.0f}" if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    main()
