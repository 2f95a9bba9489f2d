"""The decision: (node, pools, space) → blocks, or the reason why there are none.

The first offer in order that can give a block of each of its views gives them (S4, K3). Whether it can is known before
anything is reserved, because the counts are exact: a family that is full never costs the other one a block, not even
for a moment. Whether the views are those of one pool or of several makes no difference here.
"""

from __future__ import annotations

from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from cidrella.core.decision import Decision, Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.core.decision import Node
    from cidrella.core.index import PoolIndex
    from cidrella.core.offer import Gift, Offer
    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Family
    from cidrella.core.space import AddressSpace

_NAMED = 5
"""Full pools that a message names; the rest are counted."""

_HALF = "not every family that it needs has a pool with room: "
"""There is room, but a node that got it would be half for life (K3)."""

_new = tuple.__new__  # see cidrella.core.view


class Planner:
    """Chooses the pools for a node and takes its blocks. Knows nothing of what nodes already have."""

    __slots__ = ("_index", "_spaces")

    def __init__(self, index: PoolIndex, spaces: Sequence[AddressSpace]) -> None:
        self._index = index
        self._spaces = spaces

    def decide(self, node: Node) -> Decision:
        """Take blocks for a node, held by its name from now on. O(labels + levels), whatever the number of pools."""
        return self._serve_one(node.name, self._index.offers(node.name, node.labels))

    def look(self, node: Node) -> Decision:
        """How a node without blocks stands, without giving it any: it waits, with no reason where there is room."""
        offers = self._index.offers(node.name, node.labels)
        gift, tried = self._first_open(offers)
        if gift is None:
            return _waiting(node.name, offers)
        return Decision(node.name, Outcome.WAITING, (), (), Reason.NONE, "", tried)

    def awaited_pool(self, node: Node) -> Pool | None:
        """A pool that could give to a node if labels were set that it lacks (N10). O(labels) for a kind seen before."""
        epoch, kind = self._epoch(), self._index.kind(node.name, node.labels)
        for part in self._index.label_pools.parts:
            if part is None or self._is_completed(part, node, epoch):
                pool = self._index.label_pools.first_unmatched(part, kind, node.name, node.labels, epoch)
                if pool is not None:
                    return pool
        return None

    def _is_completed(self, part: Family, node: Node, epoch: int) -> bool:
        """Whether a block of this family would do: no pool matches for the other one, or one has room (K3)."""
        lanes = [lane for offer in self._index.offers(node.name, node.labels) for lane in offer.lanes]
        others = [lane for lane in lanes if lane.pools[0].part not in {None, part}]
        return not others or any(lane.first_open(epoch) is not None for lane in others)

    def decide_many(self, nodes: Sequence[Node]) -> list[Decision]:
        """The same decisions as one call for each node, in order. Neighbours that are alike are served together."""
        decisions: list[Decision] = []
        offers_to = self._index.offers
        for offers, alike in groupby(nodes, key=lambda node: offers_to(node.name, node.labels)):
            names = [node.name for node in alike]
            if len(names) == 1:
                decisions.append(self._serve_one(names[0], offers))
            else:
                decisions += self._serve(names, offers)
        return decisions

    def _serve_one(self, name: str, offers: tuple[Offer, ...]) -> Decision:
        gift, tried = self._first_open(offers)
        if gift is None:
            return _waiting(name, offers)
        # The views have just said that they have room, so none gives None.
        blocks = tuple([view.allocate(name) for view in gift.views])
        return _new(Decision, (name, Outcome.ASSIGNED, blocks, gift.pools, Reason.NONE, "", tried))

    def _serve(self, names: list[str], offers: tuple[Offer, ...]) -> list[Decision]:
        decisions: list[Decision] = []
        while len(decisions) < len(names):
            gift, tried = self._first_open(offers)
            if gift is None:
                waiting = _waiting("", offers)
                return decisions + [waiting._replace(node=name) for name in names[len(decisions) :]]
            room = min(view.free for view in gift.views)
            served = names[len(decisions) : len(decisions) + room]
            blocks = zip(*[view.allocate_many(served) for view in gift.views], strict=True)
            tail = (gift.pools, Reason.NONE, "", tried)
            decisions += [
                _new(Decision, (name, Outcome.ASSIGNED, given, *tail))
                for name, given in zip(served, blocks, strict=True)
            ]
        return decisions

    def _first_open(self, offers: tuple[Offer, ...]) -> tuple[Gift | None, int]:
        """What the first offer that can give gives, and how many pools were looked at for it."""
        epoch = self._epoch()
        for offer in offers:
            gift = offer.open(epoch)
            if gift is not None:
                return gift, offer.tried()
        return None, 0

    def _epoch(self) -> int:
        """How often a full range got room."""
        return sum([space.reopened for space in self._spaces])


def _waiting(name: str, offers: tuple[Offer, ...]) -> Decision:
    """What to tell a node after every offer has been asked in vain: which pools are full."""
    if not offers:
        return Decision(name, Outcome.WAITING, (), (), Reason.NOT_AVAILABLE, "no pool applies to it")
    lanes = offers[-1].lanes_so_far
    exhausted = [lane for lane in lanes if lane.exhausted]
    named = islice(chain.from_iterable(lane.pools for lane in exhausted), _NAMED)
    others = sum(len(lane.pools) for lane in exhausted) - _NAMED
    message = (
        ("every pool that applies is full: " if exhausted == list(lanes) else _HALF)
        + ", ".join(f"{pool.name} ({_full(pool)})" for pool in named)
        + (f" and {others} more" if others > 0 else "")
    )
    return Decision(name, Outcome.WAITING, (), (), Reason.NOT_AVAILABLE, message, offers[-1].tried())


def _full(pool: Pool) -> str:
    return " and ".join(f"no {view.family} /{view.length} left" for view in pool.full())
