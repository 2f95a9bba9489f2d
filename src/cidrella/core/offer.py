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
    from collections.abc import Mapping, Sequence

    from cidrella.core.pool import Part, Pool
    from cidrella.core.view import View


class Gift(NamedTuple):
    """Views that all have room, and for each the pool whose it is: one block of each is what a node gets."""

    views: tuple[View, ...]
    pools: tuple[Pool, ...]


class Lane:
    """Pools in the order in which they are tried."""

    __slots__ = ("_epoch", "full", "pools")

    def __init__(self, pools: list[Pool]) -> None:
        self.pools = pools
        self._epoch = -1
        self.full = 0
        """How many at the head were full when it was last asked."""

    def first_open(self, epoch: int) -> Pool | None:
        """The first pool with room in all of its families (S4), or None. `epoch` counts full ranges that got room.

        O(1) amortised over the calls of one epoch.
        """
        at = self.full if epoch == self._epoch else 0
        pools = self.pools
        while at < len(pools):
            pool = pools[at]
            for view in pool.views:
                if not view.free:
                    break
            else:
                break
            at += 1
        self._epoch, self.full = epoch, at
        return pools[at] if at < len(pools) else None

    @property
    def exhausted(self) -> bool:
        """Whether no pool had room when it was last asked."""
        return self.full == len(self.pools)

    @property
    def looked_at(self) -> int:
        """How many pools come before the one that was last found open, and that one; all, where none was."""
        return self.full + (self.full < len(self.pools))


class Offer:
    """One pool from each of some lanes, all or nothing."""

    __slots__ = ("_found", "_gift", "_lanes", "lanes_so_far")

    def __init__(self, lanes: Sequence[Lane], lanes_before: Sequence[Lane]) -> None:
        self._lanes = lanes
        self.lanes_so_far = tuple(dict.fromkeys((*lanes_before, *lanes)))
        """The lanes that were asked when this has been: its own and those of the offers before it, each once."""
        self._found: list[Pool | None] = []
        self._gift: Gift | None = None
        """What `open` last made of what it found."""

    def open(self, epoch: int) -> Gift | None:
        """What it can give, or None where one of its lanes has nothing left; `epoch` as in `Lane`. O(lanes)."""
        found = [lane.first_open(epoch) for lane in self._lanes]
        if found != self._found:
            self._found, self._gift = found, _join(found)
        return self._gift

    def tried(self) -> int:
        """How many pools were looked at up to here, if this was just asked, and those before it in vain."""
        return sum([lane.looked_at for lane in self.lanes_so_far])


def _join(found: list[Pool | None]) -> Gift | None:
    pools = [pool for pool in found if pool is not None]
    if len(pools) < len(found):
        return None
    return Gift(tuple(view for pool in pools for view in pool.views), tuple(pool for pool in pools for _ in pool.views))


def offers(matching: Mapping[Part, Lane], defaults: Mapping[Part, Lane]) -> tuple[Offer, ...]:
    """The offers of a node, in order (K3), from the lanes of pools that match it and of defaults, by what they give.

    First what has a selector in it, then what is defaults only; of each, first pools that give alone.
    """
    rows: list[tuple[Lane, ...]] = [(side[None],) for side in (matching, defaults) if None in side]
    families = sorted({family for side in (matching, defaults) for family in side if family is not None})
    if families:
        # Within a family, too, those with a selector come before defaults (K4).
        rows += product(*([side[family] for side in (matching, defaults) if family in side] for family in families))
    rows.sort(key=lambda row: all(lane in defaults.values() for lane in row))
    made: list[Offer] = []
    for row in rows:
        made.append(Offer(row, made[-1].lanes_so_far if made else ()))
    return tuple(made)
