"""How things stand: what every node holds, what is left of each pool, who waits and why.

A plan says what will be; this says what is. A node without a block waits, whatever there is for it, and what it would
get is told apart from what it has. The same core decides, and everything comes from the objects themselves: a pool's
status is what some controller said of it, some time ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from cidrella.app.planning import Explanation, build_cluster, count_pool, find_node
from cidrella.core.decision import Decision, Outcome, Reason
from cidrella.core.explain import explain
from cidrella.model.convert import node_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.app.inventory import Inventory
    from cidrella.app.planning import Options, PoolCount
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Node
    from cidrella.core.pool import Pool, PoolSpec


class PoolState(Enum):
    """How a pool stands."""

    ACTIVE = "Active"
    FULL = "Full"
    """It has no block left of a family that it gives."""
    TERMINATING = "Terminating"
    INVALID = "Invalid"


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """A pool, its counts, and the nodes that use it."""

    spec: PoolSpec
    count: PoolCount
    nodes: int
    state: PoolState


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node, how it stands, and for one that waits: what it would get if those before it were served now, and it."""

    node: Node
    decision: Decision
    would_get: Decision | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How everything stands."""

    cluster: Cluster
    """The books, with what nodes hold and nothing else."""
    pools: list[PoolStanding]
    nodes: list[NodeStanding]
    """In the order of the input."""


def take_stock(inventory: Inventory, options: Options) -> Standing:
    """How things stand. O(n log n) in the nodes."""
    cluster = build_cluster(inventory, options)
    nodes = [node_facts(node) for node in inventory.nodes]
    decisions = {each.node: each for each in cluster.decide_many([node for node in nodes if node.pod_cidrs])}
    pools = [_pool_standing(cluster, pool) for pool in cluster.pools.values()]
    waiting = [node for node in nodes if node.name not in decisions]
    offers = {each.node: each for each in cluster.decide_many(waiting, wait_for_labels=options.wait_for_labels)}
    for offer in reversed(offers.values()):
        if offer.blocks:
            cluster.cancel(offer.node)
    standing = [
        NodeStanding(node, decisions[node.name]) if node.name in decisions else _waits(cluster, node, offers[node.name])
        for node in nodes
    ]
    return Standing(cluster, pools, standing)


def explain_standing(inventory: Inventory, options: Options, name: str) -> Explanation:
    """Why a node has what it has, as things stand in a cluster. Raises `NoSuchNodeError`."""
    at = find_node(inventory, name)
    nodes = [node_facts(node) for node in inventory.nodes]
    others = sum(1 for each in nodes if not each.pod_cidrs and each.name != name)
    cluster = _with_holders(inventory, options, nodes, heed_finalizers=True)
    verdicts = explain(nodes[at], cluster.pools.values())
    decision = cluster.decide(nodes[at], wait_for_labels=options.wait_for_labels)
    if decision.reason is Reason.UNINITIALIZED:
        after = cluster.decide(nodes[at], wait_for_labels=False)
        return Explanation(nodes[at], verdicts, decision, after if after.blocks else None, others_waiting=others)
    served = decision.outcome is Outcome.ASSIGNED
    stands = _plainly_waiting(name) if served else decision
    unguarded = {each.name for each in cluster.pools.values() if not each.spec.guarded}
    if unguarded and (served or decision.reason is Reason.NOT_AVAILABLE):
        later = _with_holders(inventory, options, nodes).decide(nodes[at], wait_for_labels=options.wait_for_labels)
        if len(later.blocks) > len(decision.blocks):  # the controller waits for a family that is about to come (K3)
            missing = tuple(each for each in later.pool_names if each in unguarded)
            return Explanation(nodes[at], verdicts, stands, later, missing, others)
    if served:
        return Explanation(nodes[at], verdicts, stands, decision, others_waiting=others)
    return Explanation(nodes[at], verdicts, decision)


def _with_holders(
    inventory: Inventory, options: Options, nodes: Sequence[Node], *, heed_finalizers: bool = False
) -> Cluster:
    cluster = build_cluster(inventory, options, heed_finalizers=heed_finalizers)
    cluster.decide_many([node for node in nodes if node.pod_cidrs])
    return cluster


def _pool_standing(cluster: Cluster, pool: Pool) -> PoolStanding:
    count = count_pool(cluster, pool)
    if pool.spec.problem:
        state = PoolState.INVALID
    elif pool.spec.terminating:
        state = PoolState.TERMINATING
    else:
        state = PoolState.FULL if pool.full() else PoolState.ACTIVE
    return PoolStanding(pool.spec, count, len(cluster.usage(pool).nodes), state)


def _waits(cluster: Cluster, node: Node, offer: Decision) -> NodeStanding:
    """A node without a block. One that finds no room may find it only because of those before it: then that is said."""
    if offer.blocks:
        return NodeStanding(node, _plainly_waiting(node.name), offer)
    if offer.reason is Reason.NOT_AVAILABLE and cluster.decide(node, wait_for_labels=False).blocks:
        cluster.cancel(node.name)
        offer = offer._replace(message=f"the nodes before it would take what is left; then {offer.message}")
    return NodeStanding(node, offer)


def _plainly_waiting(name: str) -> Decision:
    return Decision(name, Outcome.WAITING, (), (), Reason.NONE, "")
