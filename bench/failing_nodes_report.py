"""The figures of `make bench-failing-nodes`, and the table that shows them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench.cluster_arrivals import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIRST, AFTERWARDS = "first attempts", "afterwards"
"""The phases."""
WAIT = 60.0
"""Seconds after which a good node counts as not served."""
_ROWS = {
    "tried": "bad nodes tried in the first phase",
    "tried_seconds": "until all were tried, seconds",
    "intents": "entries in the Lease",
    "intents_bytes": "bytes of them",
    "writes_limit": "cidrella_writes_limit",
    "nodes_waiting": "cidrella_nodes_waiting",
}


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
    """The figures of a scenario. Those of the Lease, the metrics and the load are from the end of the second phase."""

    waits: dict[str, Waits] = field(default_factory=dict)
    tried_seconds: float | None = None
    """Until each bad node had been tried; None if the second phase began before that."""
    tried: int = 0
    """Bad nodes that had been tried when the second phase began."""
    intents: int | None = None
    """Entries in the annotation of the Lease; None without a Lease."""
    intents_bytes: int | None = None
    writes_limit: float | None = None
    nodes_waiting: float | None = None
    without_cidr: dict[str, float] = field(default_factory=dict)
    """The gauge `cidrella_nodes_without_cidr` by reason, where it exists."""
    load: tuple[float, ...] = ()
    """The load averages of the machine."""


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
    for phase in (FIRST, AFTERWARDS):
        for name in ("p50", "p99", "most"):
            table.add_row(
                f"{phase}: {name}", *(_seconds(getattr(each.waits[phase], name)) for each in results.values())
            )
        counts = [each.waits[phase] for each in results.values()]
        table.add_row(
            f"{phase}: not served in {WAIT:.0f} s", *(f"{each.not_served} of {each.nodes}" for each in counts)
        )
    for name, title in _ROWS.items():
        table.add_row(title, *(_number(getattr(each, name)) for each in results.values()))
    reasons = [" ".join(f"{key}={value:g}" for key, value in each.without_cidr.items()) for each in results.values()]
    table.add_row("cidrella_nodes_without_cidr", *(each or "-" for each in reasons))
    table.add_row("load averages", *(" ".join(f"{part:.1f}" for part in each.load) for each in results.values()))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _seconds(value: float | None) -> str:
    return f"> {WAIT:.0f}" if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
