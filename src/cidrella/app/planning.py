"""A plan: who gets what, and what is left.

The same core decides as in a cluster, so that a plan is a promise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from cidrella.core.cluster import Cluster
from cidrella.core.decision import Decision, Node, Outcome
from cidrella.core.explain import Verdict, explain
from cidrella.model.convert import node_facts, pool_spec, service_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cidrella.app.inventory import Inventory
    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Family, Prefix

SERVICE_RANGE_FLAG = "--service-cluster-ip-range"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to the input."""

    service_ranges: Sequence[Prefix] = ()
    add_nodes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    wait_for_labels: bool = True


@dataclass(frozen=True, slots=True)
class RangeCount:
    """The counts of one family of a pool (A8)."""

    cidr: str
    length: int
    capacity: int
    allocated: int
    free: int


@dataclass(frozen=True, slots=True)
class PoolCount:
    """The counts of a pool."""

    name: str
    families: Mapping[Family, RangeCount]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """How many more nodes fit."""

    asked: int
    fit: int
    stopped_by: str
    """Why the next one would not fit; empty where it would."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every node gets, and what is left."""

    cluster: Cluster
    """The books as the plan leaves them."""
    decisions: list[Decision]
    pools: list[PoolCount]
    what_if: WhatIf | None

    @property
    def outcomes(self) -> Counter[str]:
        """How many nodes stand how."""
        return Counter(decision.outcome.value for decision in self.decisions)

    @property
    def complete(self) -> bool:
        """Whether every node has its blocks: none waits, and none has some that cannot be read."""
        return all(each.outcome not in (Outcome.WAITING, Outcome.INVALID) for each in self.decisions)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a node gets what it gets."""

    node: Node
    verdicts: list[Verdict]
    """As things stood when the node's turn came."""
    decision: Decision
    would_get: Decision | None = None
    """In a cluster, what a node that waits would get, were it served now and alone."""
    unguarded: tuple[str, ...] = ()
    """Of the pools that would give that, those that have yet to get their finalizer (P1)."""
    others_waiting: int = 0
    """In a cluster, how many other nodes have no block either."""


class NoSuchNodeError(LookupError):
    """The node to explain is not in the input."""


def make_plan(inventory: Inventory, options: Options) -> Plan:
    """Serve the nodes in the order of the input, then the added ones."""
    cluster = build_cluster(inventory, options)
    nodes = [node_facts(node) for node in inventory.nodes]
    added = _added_nodes(options, {node.name for node in nodes})
    decisions = cluster.decide_many([*nodes, *added], wait_for_labels=options.wait_for_labels)
    what_if = _what_if(cluster, added, decisions[len(nodes) :]) if added else None
    pools = [count_pool(cluster, pool) for pool in cluster.pools.values()]
    return Plan(cluster, decisions, pools, what_if)


def explain_node(inventory: Inventory, options: Options, name: str) -> Explanation:
    """How a node fares when its turn comes, those before it served. Raises `NoSuchNodeError`."""
    nodes = [node_facts(node) for node in inventory.nodes]
    at = find_node(inventory, name)
    cluster = build_cluster(inventory, options)
    holding = [node for node in nodes if node.pod_cidrs]
    cluster.decide_many(holding)
    cluster.decide_many([node for node in nodes[:at] if not node.pod_cidrs], wait_for_labels=options.wait_for_labels)
    verdicts = explain(nodes[at], cluster.pools.values())
    decision = cluster.decide(nodes[at], wait_for_labels=options.wait_for_labels)
    return Explanation(nodes[at], verdicts, decision)


def find_node(inventory: Inventory, name: str) -> int:
    """The place of a node among the others. Raises `NoSuchNodeError`."""
    names = [node.metadata.name for node in inventory.nodes]
    if name in names:
        return names.index(name)
    close = get_close_matches(name, names, n=1)
    raise NoSuchNodeError(
        f"there is no Node {name} in {inventory.place}"
        + (f"; did you mean {close[0]}?" if close else f" ({len(names)} others)")
    )


def build_cluster(inventory: Inventory, options: Options, *, heed_finalizers: bool = False) -> Cluster:
    """The books with pools and service ranges, before any node.

    `heed_finalizers` has a pool give nothing while it lacks its finalizer, as is the case in a cluster for a moment, or
    for as long as no controller runs (P1).
    """
    cluster = Cluster()
    for cidr in options.service_ranges:
        cluster.add_service_range(cidr, SERVICE_RANGE_FLAG)
    for service in inventory.services:
        for cidr in service_ranges(service):
            cluster.add_service_range(cidr, service.metadata.name)
    for pool in inventory.pools:
        cluster.add_pool(pool_spec(pool, live=heed_finalizers))
    for invalid in inventory.invalid:
        cluster.add_pool(invalid)
    return cluster


def count_pool(cluster: Cluster, pool: Pool) -> PoolCount:
    """The counts of a pool as the books have them."""
    usage = cluster.usage(pool)
    return PoolCount(
        pool.name,
        {
            view.family: RangeCount(
                str(view.block_range), view.length, view.capacity, usage.allocated(view.family), pool.free(view.family)
            )
            for view in pool.views
        },
    )


def _added_nodes(options: Options, taken: set[str]) -> list[Node]:
    """As many as were asked for, under names that no node of the input has."""
    stem = "added-"
    while any(name.startswith(stem) for name in taken):
        stem += "more-"
    return [Node(f"{stem}{number}", options.labels) for number in range(1, options.add_nodes + 1)]


def _what_if(cluster: Cluster, added: list[Node], decisions: list[Decision]) -> WhatIf:
    """How many fit, and what stops the next: found by asking for one more, which is taken back."""
    following = Node(f"{added[-1].name}-and-one", added[-1].labels)
    decision = cluster.decide(following)
    if decision.blocks:
        cluster.cancel(following.name)
    return WhatIf(len(added), sum(bool(each.blocks) for each in decisions), decision.message)
