"""The pools whose selector asks for labels: which of them could still match a node (N10).

Theory of operation:

- Pools with the same selector that give the same are one lane: one look at the selector is enough for all of them.
- A lane without room is left out until a full range gets room, so that thousands of full pools cost the next node
  nothing. Most nodes match few selectors: the first lane with room is nearly always the answer.
- The answer for a kind of node is kept, for as long as its pool has room. That there is none stays so until a full
  range gets room, or pools come or go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.offer import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.pool import Part, Pool
    from cidrella.core.selector import Selector


_KNOWN_LIMIT = 1 << 16
"""Answers kept at most: more than the kinds of nodes a cluster has."""


class LabelPools:
    """The pools that give and ask for labels, by what they give and by their selector."""

    __slots__ = ("_epoch", "_known", "_lanes", "_open")

    def __init__(self) -> None:
        self._lanes: dict[Part, dict[Selector, Lane]] = {}
        self._open: dict[Part, dict[Selector, Lane]] = {}
        """The same without the lanes that were found full in this epoch."""
        self._known: dict[tuple[Part, object], Pool | None] = {}
        """Answers of this epoch, by what is to be given and by the kind of node."""
        self._epoch = -1

    def add(self, pool: Pool) -> None:
        """Take in a pool, if it asks for labels. O(requirements + pools with this selector)."""
        selector = pool.spec.selector
        if selector is not None and any(term.expressions for term in selector.terms):
            lanes = self._lanes.setdefault(pool.part, {})
            before = lanes[selector].pools if selector in lanes else []
            lanes[selector] = Lane([*before, pool])
            self._open, self._epoch = {}, -1

    def remove(self, pool: Pool) -> None:
        """Undo `add`. The same cost."""
        selector = pool.spec.selector
        lanes = self._lanes.get(pool.part, {})
        if selector is not None and selector in lanes:
            left = [each for each in lanes[selector].pools if each is not pool]
            if left:
                lanes[selector] = Lane(left)
            else:
                del lanes[selector]
            if not lanes:
                del self._lanes[pool.part]
            self._open, self._epoch = {}, -1

    @property
    def parts(self) -> list[Part]:
        """What these pools give; pools that give all of a node's blocks come first."""
        return sorted(self._lanes, key=lambda part: (part is not None, part))

    def first_unmatched(
        self, part: Part, kind: object, name: str, labels: Mapping[str, str], epoch: int
    ) -> Pool | None:
        """A pool with room that does not match a node, and could if labels were set that the node lacks.

        `part` is what the pool has to give, `epoch` counts full ranges that got room. Nodes of one `kind` are alike to
        all selectors. O(1) for a kind seen before in this epoch, else O(selectors).
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._open = {part: dict(lanes) for part, lanes in self._lanes.items()}
            self._known = {}
        key = part, kind
        if key in self._known and ((known := self._known[key]) is None or not known.full()):
            return known
        if len(self._known) >= _KNOWN_LIMIT:
            self._known = {}
        self._known[key] = found = self._find(part, name, labels, epoch)
        return found

    def _find(self, part: Part, name: str, labels: Mapping[str, str], epoch: int) -> Pool | None:
        found: Pool | None = None
        full: list[Selector] = []
        for selector, lane in self._open[part].items():
            pool = lane.first_open(epoch)
            if pool is None:
                full.append(selector)
            elif selector.lacks_labels(name, labels):
                found = pool
                break
        for selector in full:
            del self._open[part][selector]
        return found
