"""Run the controller under a steady load for a while, and see whether anything grows: `make soak`.

A real API server and etcd, two replicas as installed, nodes that come at a rate and go as fast, and lists that fail
(`soak_faults`), of which nothing may stay in memory. Compared are the first minutes after a warm-up and the last ones:
memory, open connections, the Lease, events (`soak_verdict`). Exit code 1 if something grew, or if the load was not what
it was meant to be.

Events are kept for two minutes here, not for an hour, so that as many go as come.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.rbac import controller_account
from tests.real.site import Site, eventually
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster
from tests.testenv.nodes import NODES

from bench.core import machine
from bench.soak_faults import FailingLists
from bench.soak_load import LABEL, LIFE, Load
from bench.soak_samples import Sampler
from bench.soak_verdict import Plan, judge, rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.real.site import Replica

    from bench.soak_samples import Rest, Sample
    from bench.soak_verdict import Verdict

MINUTES, RATE = 20.0, 10.0
MINUTES_LEAST = 5.0
"""The count of an event is told after half a minute: with a shorter warm-up, there would be more of them after it."""
EVENTS_KEPT_SHARE = 0.4
"""Of the warm-up: events are kept for so long, so that there are as many as there will be when it ends."""
POOL = {"ipv4": "10.0.0.0/14", "ipv6": "fd00::/112", "labels": LABEL}
"""1,024 blocks: all have been given once within the warm-up, and it goes round and round."""
RATE_MAX = 50.0
"""Nodes a second, for which there are blocks enough."""
LOOK_EVERY = 1.0
IDLE = 35.0
"""Seconds after which connections that nobody uses are closed: they are looked at every 15 s, and have to be as old."""
PATIENCE = 120.0
"""Seconds in which all has to come to rest after the load: counts of events are told half a minute late."""


def main(given: Sequence[str] | None = None) -> int:
    """Run, print what was found, write JSON. The exit code."""
    options = read_options(given)
    plan = Plan(options.minutes * 60, options.rate)
    with (
        tempfile.TemporaryDirectory(prefix="cidrella-soak-") as name,
        Cluster.temporary(flags={**WITHOUT_AUDIT, "event-ttl": f"{plan.warm_up * EVENTS_KEPT_SHARE:.0f}s"}) as cluster,
    ):
        samples, before, after = soak(Site(cluster, Path(name)), plan)
    verdicts = judge(plan, samples, before, after)
    show(plan, samples, verdicts)
    if options.json:
        write(options.json, plan, samples, verdicts)
    return 0 if all(each.kept for each in verdicts) else 1


def read_options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    arguments.add_argument("--minutes", type=float, default=MINUTES, help=f"for how long ({MINUTES:g})")
    arguments.add_argument("--rate", type=float, default=RATE, help=f"nodes a second that come, and go ({RATE:g})")
    options = arguments.parse_args(given)
    if not MINUTES_LEAST <= options.minutes < math.inf:
        arguments.error(f"--minutes: at least {MINUTES_LEAST:g}, to see anything grow, not {options.minutes:g}")
    if not 1 <= options.rate <= RATE_MAX:
        arguments.error(f"--rate: from 1 to {RATE_MAX:g} nodes a second, not {options.rate:g}")
    return options


def soak(site: Site, plan: Plan) -> tuple[list[Sample], Rest, Rest]:
    """All of it: samples under load, and what there was without load before and after."""
    controller_account(site.cluster)
    site.create_pool("soak", **POOL)
    with ExitStack() as stack:
        failing = {name: stack.enter_context(FailingLists(site, name)) for name in ("replica 1", "replica 2")}
        replicas = {
            name: site.replica("--leader-elect=true", kubeconfig=each.kubeconfig()) for name, each in failing.items()
        }
        for replica in replicas.values():
            stack.callback(replica.stop)
            replica.start()
        sampler = Sampler(site.admin, replicas, failing)
        say(f"two replicas are ready; looking at them without load in {IDLE:.0f} s")
        time.sleep(IDLE)
        before = sampler.rest(0)
        for each in failing.values():
            each.begin()
        with Load(site.admin, plan.rate, round(plan.rate * LIFE)) as load:
            samples = watch(sampler, load, plan, replicas)
            say("the load ends")
        for each in failing.values():
            each.end()
        eventually(lambda: not site.admin.items(NODES, limit="1"), PATIENCE)
        return samples, before, rest_after(lambda: sampler.rest(load.created), before)


def rest_after(look: Callable[[], Rest], before: Rest) -> Rest:
    """What there is at rest: as soon as it is what there was before, or after a while."""
    deadline = time.monotonic() + PATIENCE
    while (after := look()).exceeds(before) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY)
    return after


def watch(sampler: Sampler, load: Load, plan: Plan, replicas: Mapping[str, Replica]) -> list[Sample]:
    """Take samples for as long as planned."""
    samples: list[Sample] = []
    began = time.monotonic()
    while (at := time.monotonic() - began) < plan.seconds:
        for name, replica in replicas.items():
            if replica.process.ended is not None:
                raise RuntimeError(f"{name} ended with {replica.process.ended}:\n{replica.process.tail()}")
        if at >= plan.period * (len(samples) + 1):
            samples.append(sampler.sample(at, load.created))
            say(progress(plan, samples))
        else:
            sampler.look()
        time.sleep(LOOK_EVERY)
    return samples


def progress(plan: Plan, samples: Sequence[Sample]) -> str:
    """One line on how it goes."""
    last = samples[-1]
    parts = [
        f"{_clock(last.at)} of {_clock(plan.seconds)}",
        f"{last.created:,} nodes came, {last.served:,} served, {last.nodes} there",
        *(
            f"{name}{' (leads)' * own.leads} {own.memory.resident:.1f} MB, {own.sockets.middle:.0f} connections, "
            f"{sum(own.failed_lists.values())} lists failed"
            for name, own in last.replicas.items()
        ),
        f"Lease {last.lease.most:.0f} B and {last.intents.middle:.0f} of intents, {last.oldest:.0f} s old at most",
        f"{last.events} events",
    ]
    if len(samples) > 1:
        parts.append(f"{rate(samples[-2:], _lease_writes):.1f} Lease writes a second")
    return " | ".join(parts)


def show(plan: Plan, samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> None:
    """Print what was found, a line for each thing that is held to something."""
    say(
        f"\n{_clock(plan.seconds)} minutes at {plan.rate:g} nodes a second: what it was in the {_clock(plan.window)} "
        f"after the first {_clock(plan.warm_up)}, in the last {_clock(plan.window)}, and at most"
    )
    for each in verdicts:
        first, last, most = (f"{value:,.4g}" for value in each.found)
        say(f"{'kept  ' if each.kept else 'BROKEN'}  {each.name}: {first}, {last}, {most} ({each.held_to})")
    for name, own in samples[-1].replicas.items():
        say(f"{name} at the end: {own.memory.own:.1f} MB of its own, {own.threads} threads")
    say(f"writes to the Lease: {rate(plan.parts(samples)[2], _lease_writes):.1f} a second")
    broken = sum(not each.kept for each in verdicts)
    say(f"{broken} of {len(verdicts)} BROKEN" if broken else "all kept: nothing grew")


def write(path: Path, plan: Plan, samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> None:
    """Write all figures, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine(),
        "plan": {**asdict(plan), "warm_up": plan.warm_up, "window": plan.window, "period": plan.period},
        "verdicts": [{**asdict(each), "kept": each.kept} for each in verdicts],
        "samples": [asdict(each) for each in samples],
    }
    path.write_text(json.dumps(found, indent=2) + "\n")
    print(f"wrote {path}")


def say(line: str) -> None:
    """Progress, where people and logs see it at once."""
    print(line, flush=True)


def _lease_writes(sample: Sample) -> int:
    return sample.lease_writes


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


if __name__ == "__main__":
    sys.exit(main())
