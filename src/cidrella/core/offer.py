"""What a node may be given: offers, in the order in which they are tried (S4, K3).

Theory of operation:

- A *lane* is a row of pools of which one gives: the first that has room in all of its families.
- An *offer* takes one pool from each of its lanes, all or nothing. A pool that gives a node all of its blocks stands in
  a lane that makes an offer alone. Pools that give one family stand in lanes of that family, and an offer joins one
  lane of each family for which some pool applies: `podCIDRs` cannot be completed later, so that half a dual-stack node
  would be half for life.
- A lane has pools with a selector, or defaults, never both. So the defaults of all nodes are the same few lanes.
- A pool found full stays full until something is released. A lane remembers how many at its head were, so that a
  thousand full pools cost the next node nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.pool import Part, Pool
    from cidrella.core.view import View


class Gift(NamedTuple):
    """Views that all have room, and for each the pool whose it is: one block of each is what a node gets."""

    views: tuple[View, ...]
    pools: tuple[Pool, ...]


class Lane:
    """Pools in the order in which they are tried."""

    __slots__ = ("_epoch", "_full", "looked_at", "pools")

    def __init__(self, pools: list[Pool]) -> None:
        self.pools = pools
        self._epoch = -1
        self._full = 0
        """How many at the head were full when it was last asked."""
        self.looked_at = 0
        """How many come up to the one that was found open then, that one included; all, where none was."""

    def first_open(self, epoch: int) -> Pool | None:
        """The first pool with room in all of its families (S4), or None. `epoch` counts full ranges that got room.

        O(1) amortised over the calls of one epoch.
        """
        at = self._full if epoch == self._epoch else 0
        pools = self.pools
        while at < len(pools):
            pool = pools[at]
            for view in pool.views:
                if not view.free:
                    break
            else:
                break
            at += 1
        self._epoch, self._full = epoch, at
        if at == len(pools):
            self.looked_at = at
            return None
        self.looked_at = at + 1
        return pools[at]

    @property
    def exhausted(self) -> bool:
        """Whether no pool had room when it was last asked."""
        return self._full == len(self.pools)


class Offer:
    """One pool from each of some lanes, all or nothing."""

    __slots__ = ("_epoch", "_gift", "lanes", "lanes_so_far")

    def __init__(self, lanes: tuple[Lane, ...], lanes_so_far: tuple[Lane, ...]) -> None:
        self.lanes = lanes
        self.lanes_so_far = lanes_so_far
        """The lanes that were asked when this has been: its own and those of the offers before it, each once."""
        self._gift: Gift | None = None
        self._epoch = -1
        """When the gift was put together."""

    def open(self, epoch: int) -> Gift | None:
        """What it can give, or None where one of its lanes has nothing left; `epoch` as in `Lane`.

        O(1) amortised over the calls of one epoch.
        """
        gift = self._gift
        if gift is not None and epoch == self._epoch:
            # What was passed over for these pools is as full as it was: they are the first as long as they have room.
            for view in gift.views:
                if not view.free:
                    break
            else:
                return gift
        self._epoch, self._gift = epoch, _join([lane.first_open(epoch) for lane in self.lanes])
        return self._gift

    def tried(self) -> int:
        """How many pools were looked at up to here, if this was just asked, and those before it in vain."""
        tried = 0
        for lane in self.lanes_so_far:
            tried += lane.looked_at
        return tried


def _join(found: list[Pool | None]) -> Gift | None:
    views: tuple[View, ...] = ()
    givers: tuple[Pool, ...] = ()
    for pool in found:
        if pool is None:
            return None
        views += pool.views
        givers += (pool,) * len(pool.views)
    return Gift(views, givers)


def offers(matching: Mapping[Part, Lane], defaults: Mapping[Part, Lane]) -> tuple[Offer, ...]:
    """The offers of a node, in order (K3), from the lanes of pools that match it and of defaults, by what they give.

    First what has a selector in it, then what is defaults only; of each, first pools that give alone.
    """
    chosen: list[tuple[Lane, ...]] = [(matching[None],)] if None in matching else []
    fallback: list[tuple[Lane, ...]] = [(defaults[None],)] if None in defaults else []
    families = sorted({family for family in (*matching, *defaults) if family is not None})
    if families:
        # Within a family, too, those with a selector come before defaults (K4), which makes defaults only the last row.
        rows = product(*([side[family] for side in (matching, defaults) if family in side] for family in families))
        chosen += rows
        if all(family in defaults for family in families):
            fallback.append(chosen.pop())
    made: list[Offer] = []
    asked: tuple[Lane, ...] = ()
    for lanes in chosen + fallback:
        asked = asked + tuple([lane for lane in lanes if lane not in asked]) if asked else lanes
        made.append(Offer(lanes, asked))
    return tuple(made)
