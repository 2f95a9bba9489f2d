"""What an operator's dashboards show (O1).

Counts of pools are read from the books when somebody asks. Series of a pool go with it: they are made from the pools
that there are, or removed when one goes.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cidrella.kube.traffic import SECONDS, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from cidrella.controller.no_cidr_reason import NoCidrReason
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision
    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Prefix

_SET = "node_ipam_controller_multicidrset"
"""The prefix that dashboards already use."""
_LABELS = ("clusterCIDR", "clusterCIDRName")
_TRIES = (1, 5, 25, 125, 625)

WithoutCidr: TypeAlias = "Callable[[], Mapping[NoCidrReason, tuple[int, int]]]"
"""Counts nodes without podCIDRs by reason: all of them, and those for more than a minute."""

GAUGES = {
    "cidrella_nodes_waiting": "Nodes without a block that no pool can serve.",
    "cidrella_conflicts": "Nodes that hold addresses which another node or a service range holds as well.",
    "cidrella_leader": "1 where this process leads, and gives blocks.",
    "cidrella_queue_depth": "Nodes to be looked at: now, later, or under way.",
    "cidrella_api_reachable": "1 while the API server answers lists, watches and the election.",
    "cidrella_writes_in_flight": "Writes to nodes under way.",
    "cidrella_writes_limit": "How many writes to nodes may be under way, as the API server takes them.",
    "cidrella_events_dropped": "Events that were not sent, because there were too many.",
    "cidrella_lease_record_bytes": "Bytes of the record of writes in the Lease. It has room for 240000.",
}
"""The gauges that the controller reads off itself, with what they say."""


class Metrics:
    """Every series of one process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observe_request = Traffic(self.registry).observe
        self._waited = Histogram(
            "cidrella_node_allocation_seconds",
            "Seconds from a node being seen without a block to its block being written.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self._tries = Histogram(
            f"{_SET}_allocation_tries_per_request",
            "Pools looked at until one could give.",
            _LABELS,
            buckets=_TRIES,
            registry=self.registry,
        )
        self._cluster: Cluster | None = None
        self._tries_of: dict[tuple[str, str], Histogram] = {}
        self._allocations: Counter[tuple[str, str]] = Counter()
        self._releases: Counter[tuple[str, str]] = Counter()

    def allocated(self, decision: Decision, seconds: float) -> None:
        """A node was given its blocks, so long after it was first seen without."""
        self._waited.observe(seconds)
        for block, pool in zip(decision.blocks, decision.pools, strict=True):
            if pool is not None and self._knows(pool):
                labels = _labels(block, pool)
                self._allocations[labels] += 1
                tries = self._tries_of.get(labels)
                if tries is None:
                    tries = self._tries_of[labels] = self._tries.labels(*labels)
                tries.observe(decision.tried)

    def released(self, uses: Iterable[tuple[Prefix, Pool]]) -> None:
        """A node is gone that had these blocks, each counted towards a pool."""
        for block, pool in filter(lambda use: self._knows(use[1]), uses):
            self._releases[_labels(block, pool)] += 1

    def pool_gone(self, pool: Pool) -> None:
        """Nothing is said of a pool any more (pitfall 21)."""
        for labels in _series(pool):
            self._allocations.pop(labels, None)
            self._releases.pop(labels, None)
            self._tries_of.pop(labels, None)
            self._tries.remove_by_labels(dict(zip(_LABELS, labels, strict=True)))

    def _knows(self, pool: Pool) -> bool:
        """Whether a pool is still there: a write that comes home late must not bring its series back."""
        return self._cluster is None or pool.name in self._cluster.pools

    def attach(self, cluster: Cluster, gauges: Mapping[str, Callable[[], float]], without_cidr: WithoutCidr) -> None:
        """Read the rest from the books, and from the controller's own gauges, whenever somebody asks."""
        assert gauges.keys() == GAUGES.keys()
        self._cluster = cluster
        self.registry.register(_Books(cluster, gauges, self._allocations, self._releases))
        self.registry.register(_NodesWithoutCidr(without_cidr))


class _Books(Collector):
    def __init__(
        self,
        cluster: Cluster,
        gauges: Mapping[str, Callable[[], float]],
        allocations: Mapping[tuple[str, str], int],
        releases: Mapping[tuple[str, str], int],
    ) -> None:
        self._cluster = cluster
        self._gauges = gauges
        self._allocations = allocations
        self._releases = releases

    def collect(self) -> Iterator[Metric]:
        """Every series, from what holds now."""
        for name, read in self._gauges.items():
            yield GaugeMetricFamily(name, GAUGES[name], value=read())
        allocations = CounterMetricFamily(f"{_SET}_cidrs_allocations", "Blocks given to nodes.", labels=_LABELS)
        releases = CounterMetricFamily(f"{_SET}_cidrs_releases", "Blocks that nodes left behind.", labels=_LABELS)
        usage = GaugeMetricFamily(
            f"{_SET}_usage_cidrs", "The part of a range that is not free, 0 to 1.", labels=_LABELS
        )
        most = GaugeMetricFamily(f"{_SET}_max_cidrs", "The blocks that a range is divided into.", labels=_LABELS)
        for pool in list(self._cluster.pools.values()):  # pools may come and go meanwhile, on another thread
            for labels, view in zip(_series(pool), pool.views, strict=True):
                allocations.add_metric(labels, self._allocations.get(labels, 0))
                releases.add_metric(labels, self._releases.get(labels, 0))
                usage.add_metric(labels, 1 - view.free / view.capacity)
                most.add_metric(labels, view.capacity)
        yield from (allocations, releases, usage, most)


class _NodesWithoutCidr(Collector):
    def __init__(self, count: WithoutCidr) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """Every reason, those of no node too, so that an alert sees a zero."""
        name = "cidrella_nodes_without_cidr"
        some = GaugeMetricFamily(name, "Nodes without podCIDRs, by reason.", labels=("reason",))
        long = GaugeMetricFamily(
            f"{name}_over_a_minute", "Nodes without podCIDRs for more than a minute, by reason.", labels=("reason",)
        )
        for reason, counts in self._count().items():
            some.add_metric((reason.value,), counts[0])
            long.add_metric((reason.value,), counts[1])
        yield from (some, long)


def _labels(block: Prefix, pool: Pool) -> tuple[str, str]:
    """The labels of the series that a block counts in."""
    return _text(next(cidr for cidr, _ in pool.spec.ranges if cidr.family is block.family)), pool.name


def _series(pool: Pool) -> list[tuple[str, str]]:
    """The labels of a pool's series: one for each range."""
    return [(_text(cidr), pool.name) for cidr, _ in pool.spec.ranges]


@lru_cache(maxsize=1 << 14)
def _text(cidr: Prefix) -> str:
    return str(cidr)
