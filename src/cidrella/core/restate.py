"""Whether pools can be said otherwise, and every node still gets the blocks that it would have got.

Theory of operation:

- A *change* puts some pools in the place of others that give the same blocks to the same nodes: one that gives all of
  a node's blocks for one that gives a family, or for two that give a family each and are for the same nodes; and the
  other way round.
- What a node gets is the first in a row of gifts that can be given (S4, K3). If each row stays the same, so does
  whatever comes of it, however full pools are. So the row of every node that can be has to stay the same.
- A row is known by its pairs: it stays the same if of any two pools that can be for one node the same one stays first.
  So pairs are all that is looked at, and of those only the ones of which something changes.
- That holds as long as a row is one of gifts that stand for themselves. Pools of two families that are for one node
  are joined, each with each (K3), and such a row can be said in one way only. So no pool that changes may be joined
  with another, before or after; two that change together may be with each other.
- What cannot be changed stays, and then others may not be free to change: they would be before it where they were
  after. So changes are held back, round after round, until those that are left can be made. Of two that then do not
  go together both are held back: the result does not depend on an order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.overlap import Demand, candidates
from cidrella.core.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cidrella.core.pool import PoolSpec
    from cidrella.core.selector import Selector


class Change(NamedTuple):
    """Pools, and those that are to take their place."""

    before: tuple[PoolSpec, ...]
    after: tuple[PoolSpec, ...]


class _Side:
    """What gives one gift to a node: a pool, or two of a family each."""

    __slots__ = ("_first", "_places", "composed", "families", "name", "selector")

    def __init__(self, specs: Sequence[PoolSpec]) -> None:
        self._first = Pool(specs[0], ())
        self._places: dict[int, tuple[object, ...]] = {}
        self.name = " and ".join(spec.name for spec in specs)
        self.composed = specs[0].composed
        self.families = {each.cidr.family for spec in specs for each in spec.ranges}
        self.selector: Selector | None = specs[0].selector

    def place(self, matched: int) -> tuple[object, ...]:
        """Where it stands among others; lower is tried first. First what K3 says, then what S3 or K4 does."""
        place = self._places.get(matched)
        if place is None:
            step = (self.selector is None, self.composed)
            place = self._places[matched] = (step, *self._first.place(matched))
        return place

    def joined_with(self, other: _Side) -> bool:
        """Whether nodes that both are for get blocks of both (K3)."""
        return self.composed and other.composed and len(self.families | other.families) > 1


class _Unit:
    """What changes, or stays, as one."""

    __slots__ = ("after", "before", "changes", "demand", "neighbours")

    def __init__(self, change: Change, *, changes: bool) -> None:
        self.before = _Side(change.before)
        self.after = _Side(change.after) if changes else self.before
        self.changes = changes
        self.demand = Demand(self.before.selector)
        self.neighbours: list[tuple[_Unit, frozenset[tuple[int, int]]]] = []
        """Those that can be for the same nodes, of which it or they change, with the requirements that nodes meet."""

    def hold_back(self) -> None:
        self.after, self.changes = self.before, False

    def must_stay(self, *, changes: bool) -> str:
        """Why it cannot become what it is to become for a neighbour that changes, too, or that stays; empty if none."""
        quarrels = (self._quarrel(other, met) for other, met in self.neighbours if other.changes is changes)
        return next(filter(None, quarrels), "")

    def _quarrel(self, other: _Unit, met: frozenset[tuple[int, int]]) -> str:
        """Why not both can become what they are to become, said of this one; empty where they can."""
        name = other.before.name + ("" if other.changes else ", which stays as it is")
        if self.before.joined_with(other.before):
            return f"nodes that both are for get its blocks joined with those of {name} (K3), and then would not"
        if self.after.joined_with(other.after):
            return f"nodes that both are for would get its blocks joined with those of {name} (K3), and now do not"
        for own, others in met:
            first = self.before.place(own) < other.before.place(others)
            if first != (self.after.place(own) < other.after.place(others)):
                now, then = _rule(self.before, other.before), _rule(self.after, other.after)
                if first:
                    return f"it comes before {other.before.name} by {now}, and would come after {name}, by {then}"
                return f"it comes after {other.before.name} by {now}, and would come before {name}, by {then}"
        return ""


def held_back(
    pools: Iterable[PoolSpec],
    changes: Sequence[Change],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> dict[int, str]:
    """The changes that must not be made, by their number, each with the reason; the others can be, all together.

    `pools` are those that stay in any case. Pools that give nothing bear on nobody; none of those changes.
    O(n²) in all the pools; `progress` is told how many of the changes were compared with all others, and of how many.
    """
    changing = [_Unit(change, changes=True) for change in changes]
    staying = [_Unit(Change((spec,), (spec,)), changes=False) for spec in pools if spec.gives]
    _introduce(changing, staying, progress)
    reasons: dict[_Unit, str] = {}
    doubtful = changing
    # All that is wrong is found before anything is done about it, so that no order matters.
    while found := _must_stay(doubtful, changes=False) or _must_stay(changing, changes=True):
        for unit in found:
            unit.hold_back()
        reasons |= found
        doubtful = list(dict.fromkeys(other for unit in found for other, _ in unit.neighbours))
    return {number: reasons[unit] for number, unit in enumerate(changing) if unit in reasons}


def _must_stay(units: Iterable[_Unit], *, changes: bool) -> dict[_Unit, str]:
    """Those of the units that cannot change as others do, or because others stay, each with the reason."""
    return {unit: reason for unit in units if unit.changes and (reason := unit.must_stay(changes=changes))}


def _introduce(changing: list[_Unit], staying: list[_Unit], progress: Callable[[int, int], None]) -> None:
    """Make those known to each other that can be for the same nodes."""
    units = [*changing, *staying]
    both_ways: dict[frozenset[tuple[int, int]], tuple[frozenset[tuple[int, int]], ...]] = {}  # few, for many pairs
    for number, (one, others) in enumerate(zip(changing, candidates([each.demand for each in units]), strict=False)):
        progress(number, len(changing))
        for other in others:
            two = units[other]
            met = one.demand.shared(two.demand)
            if met:
                if met not in both_ways:
                    both_ways[met] = met, frozenset((second, first) for first, second in met)
                there, back = both_ways[met]
                one.neighbours.append((two, there))
                two.neighbours.append((one, back))


def _rule(one: _Side, two: _Side) -> str:
    """What puts one of two before the other."""
    if (one.selector is None, one.composed) != (two.selector is None, two.composed):
        return "K3"
    return "K4" if one.composed else "S3"
