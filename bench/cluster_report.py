"""What `make bench-cluster` measured, what that is held to, and how it is shown."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.table import Column, Table

from bench.cluster_contestants import BARE, OURS, PEER, PEER_LIFTED
from bench.core import judge

if TYPE_CHECKING:
    from rich.console import Console

    from bench.cluster_arrivals import Latency
    from bench.cluster_intents import Pair
    from bench.cluster_race import Run
    from bench.cluster_restart import Restart

_SHARE_OF_BARE = 0.8
_PEAK_MEGABYTES = 90
_ARRIVALS = 5
_RESTART = 3
_SHARE_WITHOUT_INTENTS = 0.9
_LEASE_WRITES = 1


@dataclass
class Report:
    """What was measured."""

    machine: dict[str, str]
    titles: dict[str, str] = field(default_factory=dict)
    sweep: dict[int, float] = field(default_factory=dict)
    """Nodes per second of the bare loop at each concurrency."""
    race: dict[str, Run] = field(default_factory=dict)
    arrivals: dict[str, Latency] = field(default_factory=dict)
    restart: Restart | None = None
    intents: list[Pair] = field(default_factory=list)
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    def judge(self) -> None:
        """Hold what there is to its limits."""
        self._judge_race()
        if OURS in self.arrivals:
            ratio = self.arrivals[OURS].most / self.arrivals[BARE].most
            self._limit("arriving nodes, p99: times that of the bare loop", ratio, at_most=_ARRIVALS)
        if self.intents:
            name = f"nodes per second: share of that without intents, median of {len(self.intents)} pairs"
            share = statistics.median(each.share for each in self.intents)
            self._limit(name, share, at_least=_SHARE_WITHOUT_INTENTS)
            name = "Lease writes beyond renewals, for 100 nodes, the most of all runs"
            most = max(each.recording.per_hundred for each in self.intents)
            self._limit(name, most, at_most=_LEASE_WRITES)
        if self.restart is not None:
            ratio = self.restart.ready / self.restart.list_process
            self._limit("restart: times a bare paged list, both from the start of Python", ratio, at_most=_RESTART)
            ratio = self.restart.ready / self.restart.list_only
            self._limit("restart, from the start of Python: times the bare paged list alone", ratio)

    def _judge_race(self) -> None:
        ours, bare = self.race.get(OURS), self.race.get(BARE)
        if ours is None:
            return
        if bare is not None:
            self._limit("nodes per second: share of the bare limit", ours.rate / bare.rate, at_least=_SHARE_OF_BARE)
        self._limit("peak memory, MB", ours.peak, at_most=_PEAK_MEGABYTES)
        for key in (PEER, PEER_LIFTED):
            if key in self.race:
                peer, name = self.race[key], self.titles[key]
                self._limit(f"nodes per second: times {name}", ours.rate / peer.rate, at_least=1)
                ratio = (ours.cpu / ours.nodes) / (peer.cpu / peer.nodes)
                self._limit(f"CPU for a node: times {name}", ratio, at_most=1)

    def _limit(self, name: str, value: float, *, at_most: float = 0, at_least: float = 0) -> None:
        self.limits[name] = {"value": round(value, 3), "at_most": at_most, "at_least": at_least}

    def show(self, console: Console) -> None:
        """Print tables."""
        console.print(", ".join(f"{key} {value}" for key, value in self.machine.items()))
        if self.sweep:
            console.print("bare loop:", ", ".join(f"{rate:,.0f}/s at {at}" for at, rate in self.sweep.items()))
        if self.race:
            console.print(self._race_table())
        if self.intents:
            console.print(self._intents_table())
        if self.arrivals:
            table = Table("nodes arriving", "p50, ms", "p99, ms", title="From created to block visible")
            for key, each in self.arrivals.items():
                table.add_row(key, f"{each.half:.1f}", f"{each.most:.1f}")
            console.print(table)
        if self.restart is not None:
            table = Table("restart with all nodes in place", "seconds")
            table.add_row("Cidrella, from the start of the process to ready", f"{self.restart.ready:.2f}")
            table.add_row("bare paged list, as a process", f"{self.restart.list_process:.2f}")
            table.add_row("bare paged list, the list alone", f"{self.restart.list_only:.2f}")
            console.print(table)
        limits = Table("within the run", "value", "held to", "", title="Limits")
        for name, limit in self.limits.items():
            limits.add_row(name, f"{limit['value']:.2f}", *judge(**limit))
        console.print(limits)
        for name, limit in self.limits.items():
            held_to, kept = judge(**limit)
            if held_to:
                console.print(f"{kept}: {name}: {limit['value']:g}, {held_to}", highlight=False, soft_wrap=True)

    def _intents_table(self) -> Table:
        """A row for each pair."""
        columns = ("with, nodes/s", "without, nodes/s", "share", "Lease writes", "without", "beyond renewals, per 100")
        table = Table("pair", *(Column(each, justify="right") for each in columns), title="With and without intents")
        for number, each in enumerate(self.intents, 1):
            one, other = each.recording, each.not_recording
            table.add_row(
                *(str(number), f"{one.rate:,.0f}", f"{other.rate:,.0f}", f"{each.share:.3f}"),
                *(str(one.lease_writes), str(other.lease_writes), f"{one.per_hundred:.2f}"),
            )
        return table

    def _race_table(self) -> Table:
        """A row for each contestant. CPU is shown for a node, in milliseconds: not all had as many nodes."""
        first = Column("all nodes waiting", min_width=23)
        columns = ("nodes", "nodes/s", "last, s", "CPU, ms", "peak, MB", "API server's CPU, ms")
        table = Table(first, *(Column(each, justify="right") for each in columns), title="Race (medians)")
        for key, each in self.race.items():
            cpu, server = (1e3 * seconds / each.nodes for seconds in (each.cpu, each.server_cpu))
            figures = f"{each.nodes:,.0f} {each.rate:,.0f} {each.seconds:.1f} {cpu:.2f} {each.peak:.0f} {server:.2f}"
            table.add_row(self.titles[key], *figures.split())
        return table
