"""Pools, nodes and ranges as the page shows them, from the books. Nothing here changes them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.app.mapping import outermost
from cidrella.controller.status import conditions
from cidrella.core.decision import Outcome, Reason
from cidrella.core.explain import explain, remedy
from cidrella.web import api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.controller.insight import Insight
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision, Node
    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Prefix

STATES: Final = {
    Outcome.ASSIGNED: "pending",
    Outcome.KEPT: "served",
    Outcome.WAITING: "waiting",
    Outcome.UNTRACKED: "untracked",
    Outcome.CONFLICT: "conflict",
    Outcome.INVALID: "unreadable",
}
SERVED: Final = STATES[Outcome.KEPT]
NO_FORECAST: Final = api.Forecast()
_UNGUARDED: Final = "It has yet to get its finalizer, and gives nothing before."


class Stood(NamedTuple):
    """How a node was last seen to stand, and since when."""

    state: str
    """"" where nobody has looked since."""
    since: str


def node_row(insight: Insight, node: Node, now: str, before: Stood | None) -> api.Node:
    """A node as it stands at a time, and as it stood before, if it was there."""
    decision = insight.books.standing(node, wait_for_labels=insight.may_wait(node.name))
    state = STATES[decision.outcome]
    return api.Node(
        name=node.name,
        blocks=[str(block) for block in decision.blocks],
        pools=[pool.name if pool is not None else "" for pool in decision.pools],
        state=state,
        terminating=node.terminating,
        since=before.since if before is not None and before.state in {"", state} else now,
        reason=decision.message or _why_it_waits(insight, decision),
        help=remedy(decision),
    )


def _why_it_waits(insight: Insight, decision: Decision) -> str:
    """Of a node for which there is room."""
    if decision.outcome is not Outcome.WAITING or decision.reason is not Reason.NONE:
        return ""
    if not insight.flags.allocate:
        return "there is room for it, but nodes are given no blocks here (--allocate-node-cidrs=false)"
    if insight.leads():
        return "there is room for it: it is about to be served"
    return "there is room for it: the replica that leads is about to serve it"


def explanation(insight: Insight, name: str, now: str, before: Stood | None) -> api.Explanation | None:
    """Why a node has what it has; None where there is no such node. O(pools)."""
    node = insight.nodes.get(name)
    if node is None:
        return None
    verdicts = explain(node, list(insight.books.pools.values()))
    return api.Explanation(
        node=node_row(insight, node, now, before),
        labels=dict(node.labels),
        pools=[
            api.Verdict(
                pool=each.pool.name,
                applies=each.applies,
                why=each.why,
                room=not each.full,
                before_next=each.before_next,
            )
            for each in verdicts
        ],
    )


def pool_row(insight: Insight, pool: Pool, forecast: api.Forecast) -> api.Pool:
    """A pool as it stands. A forecast is for one that gives, and has something to give."""
    usage = insight.books.usage(pool)
    seen = insight.pools.get(pool.name)
    return api.Pool(
        name=pool.name,
        kind=seen.kind.kind if seen is not None else "",
        state=_pool_state(pool),
        message=_pool_message(pool, usage.nodes),
        selector=str(pool.spec.selector) if pool.spec.selector else "",
        families=[
            api.PoolFamily(
                family=str(view.family),
                range=str(view.block_range),
                block_size=view.length,
                total=clamp(view.capacity),
                used=clamp(usage.allocated(view.family)),
                free=clamp(pool.free(view.family)),
            )
            for view in pool.views
        ],
        nodes=len(usage.nodes),
        utilisation=max((round(1 - view.free / view.capacity, 6) for view in pool.views), default=0.0),
        forecast=forecast if _pool_state(pool) == "active" else NO_FORECAST,
    )


def _pool_state(pool: Pool) -> str:
    if pool.spec.terminating:
        return "terminating"
    if pool.spec.problem:
        return "invalid"
    if not pool.spec.guarded:
        return "pending"
    return "full" if pool.full() else "active"


def _pool_message(pool: Pool, users: dict[str, int]) -> str:
    """The last condition, which says most."""
    if _pool_state(pool) == "pending":
        return _UNGUARDED
    return [message for _, _, _, message in conditions(pool, users)][-1]


def range_rows(books: Cluster, service_ranges: Iterable[Prefix]) -> list[api.Range]:
    """The ranges that no other contains, with what is in each. O(n log n) in the pools."""
    services = sorted(set(service_ranges))
    of_pools = [(each.cidr, pool.name) for pool in books.pools.values() for each in pool.spec.ranges]
    roots = outermost([*services, *(cidr for cidr, _ in of_pools)])
    pools: dict[Prefix, dict[str, None]] = {root: {} for root in roots}
    for cidr, name in sorted(of_pools):
        pools[roots[bisect_right(roots, cidr) - 1]][name] = None
    inside: dict[Prefix, list[str]] = {root: [] for root in roots}
    for cidr in services:
        inside[roots[bisect_right(roots, cidr) - 1]].append(str(cidr))
    return [
        api.Range(range=str(root), family=str(root.family), pools=list(pools[root]), services=inside[root])
        for root in roots
    ]


def clamp(count: int) -> int:
    """A count as JSON holds it everywhere."""
    return min(count, api.COUNT_MAX)
