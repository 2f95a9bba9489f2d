"""The decision: (node, pools, space) → blocks, or the reason why there are none.

The first pool in order that can give all of its families gives them (S4). Whether it can is known before anything is
reserved, because the counts are exact: a family that is full never costs the other one a block, not even for a moment.

A pool here has one view for each of its families. Blocks composed from a pool of one family and a pool of the other
need no other planner: `Decision.pools` names a pool for each block, and a lane may hold anything that has `views` and
`both`.
"""

from __future__ import annotations

from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from cidrella.core.decision import Decision, Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.core.decision import Node
    from cidrella.core.index import Lane, PoolIndex
    from cidrella.core.pool import Pool
    from cidrella.core.space import AddressSpace

_NAMED = 5
"""Full pools that a message names; the rest are counted."""

_new = tuple.__new__  # see cidrella.core.view


class Planner:
    """Chooses a pool for a node and takes its blocks. Knows nothing of what nodes already have."""

    __slots__ = ("_index", "_spaces")

    def __init__(self, index: PoolIndex, spaces: Sequence[AddressSpace]) -> None:
        self._index = index
        self._spaces = spaces

    def decide(self, node: Node) -> Decision:
        """Take blocks for a node, held by its name from now on. O(labels + levels), whatever the number of pools."""
        return self._serve_one(node.name, self._index.lanes(node.name, node.labels))

    def decide_many(self, nodes: Sequence[Node]) -> list[Decision]:
        """The same decisions as one call for each node, in order. Neighbours that are alike are served together."""
        decisions: list[Decision] = []
        lanes_of = self._index.lanes
        for lanes, alike in groupby(nodes, key=lambda node: lanes_of(node.name, node.labels)):
            names = [node.name for node in alike]
            if len(names) == 1:
                decisions.append(self._serve_one(names[0], lanes))
            else:
                decisions += self._serve(names, lanes)
        return decisions

    def _serve_one(self, name: str, lanes: tuple[Lane, Lane]) -> Decision:
        pool = self._first_open(lanes)
        if pool is None:
            return _waiting(name, lanes)
        # The pool has just said that it has room, so no view gives None.
        blocks = tuple([view.allocate(name) for view in pool.views])
        return _new(Decision, (name, Outcome.ASSIGNED, blocks, pool.both, Reason.NONE, "", _tried(lanes)))

    def _serve(self, names: list[str], lanes: tuple[Lane, Lane]) -> list[Decision]:
        decisions: list[Decision] = []
        while len(decisions) < len(names):
            pool = self._first_open(lanes)
            if pool is None:
                waiting = _waiting("", lanes)
                return decisions + [waiting._replace(node=name) for name in names[len(decisions) :]]
            room = min(view.free for view in pool.views)
            served = names[len(decisions) : len(decisions) + room]
            blocks = zip(*[view.allocate_many(served) for view in pool.views], strict=True)
            tail = (pool.both, Reason.NONE, "", _tried(lanes))
            decisions += [
                _new(Decision, (name, Outcome.ASSIGNED, given, *tail))
                for name, given in zip(served, blocks, strict=True)
            ]
        return decisions

    def _first_open(self, lanes: tuple[Lane, Lane]) -> Pool | None:
        epoch = sum([space.reopened for space in self._spaces])
        return lanes[0].first_open(epoch) or lanes[1].first_open(epoch)


def _tried(lanes: tuple[Lane, Lane]) -> int:
    """How many pools come before the one that was just found open, and that one."""
    matching, defaults = lanes
    at = matching.full + 1
    return at if at <= len(matching.pools) else at + defaults.full


def _waiting(name: str, lanes: tuple[Lane, Lane]) -> Decision:
    named = ", ".join(f"{pool.name} ({_full(pool)})" for pool in islice(chain(*(lane.pools for lane in lanes)), _NAMED))
    others = sum(len(lane.pools) for lane in lanes) - _NAMED
    message = f"every pool that applies is full: {named}" + (f" and {others} more" if others > 0 else "")
    if not named:
        message = "no pool applies to it"
    return Decision(name, Outcome.WAITING, (), (), Reason.NOT_AVAILABLE, message, others + _NAMED)


def _full(pool: Pool) -> str:
    return " and ".join(f"no {view.family} /{view.length} left" for view in pool.full())
