"""Who uses a pool, and how many of its blocks (P3, A8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cidrella.core.prefix import Family, Prefix


class Usage:
    """The blocks that count towards one pool, with the nodes that have them."""

    __slots__ = ("_blocks", "_lengths", "_odd", "_touched", "nodes")

    def __init__(self, lengths: dict[Family, int]) -> None:
        self._lengths = lengths
        self._blocks: dict[Family, dict[Prefix, int]] = {family: {} for family in lengths}
        """How many nodes have each block: more than one where a third party wrote it twice."""
        self._touched: dict[Family, int] = {}
        """What `allocated` last found where that takes looking at each block, until one comes or goes."""
        self._odd: dict[Family, int] = dict.fromkeys(lengths, 0)
        """How many distinct blocks are not of the pool's size: found on a node, or given by a pool of another size."""
        self.nodes: dict[str, int] = {}
        """The nodes that use the pool, each with its number of blocks."""

    def add(self, block: Prefix, node: str) -> None:
        """Count a node's block towards the pool. O(1)."""
        self._touched.pop(block.family, None)
        blocks = self._blocks[block.family]
        if block not in blocks and block.length != self._lengths[block.family]:
            self._odd[block.family] += 1
        blocks[block] = blocks.get(block, 0) + 1
        self.nodes[node] = self.nodes.get(node, 0) + 1

    def remove(self, block: Prefix, node: str) -> None:
        """Undo one `add`. O(1)."""
        self._touched.pop(block.family, None)
        blocks = self._blocks[block.family]
        blocks[block] -= 1
        if not blocks[block]:
            del blocks[block]
            if block.length != self._lengths[block.family]:
                self._odd[block.family] -= 1
        self.nodes[node] -= 1
        if not self.nodes[node]:
            del self.nodes[node]

    def allocated(self, family: Family) -> int:
        """How many of the pool's blocks its users touch. O(1); O(n log n) after changes while other sizes count."""
        if not self._odd[family]:
            return len(self._blocks[family])
        if family not in self._touched:
            self._touched[family] = self._count_touched(family)
        return self._touched[family]

    def _count_touched(self, family: Family) -> int:
        blocks = self._blocks[family]
        host_bits = family.bits - self._lengths[family]
        touched, counted_to = 0, -1
        for first, last in sorted((block.network >> host_bits, block.last >> host_bits) for block in blocks):
            touched += max(0, last - max(first - 1, counted_to))
            counted_to = max(counted_to, last)
        return touched
