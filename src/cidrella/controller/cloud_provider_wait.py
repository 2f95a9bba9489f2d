"""Nodes that wait for the labels which their cloud provider sets (N10).

A node waits only while labels that it lacks could change which pool serves it, and at most for a time that begins when
this process first saw the node without Pod CIDRs. A standby counts that time as well, so that a new leader does not
begin anew. The books decide whether there is anything to wait for; the time is kept here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cidrella.controller.findings import Findings
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Node
    from cidrella.core.pool import Pool


class CloudProviderWait:
    """Knows which nodes wait, for which pool, and how long each may."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: Mapping[str, Node],
        pending: Mapping[str, float],
        findings: Findings,
        seconds: float,
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._pending = pending
        """The nodes without podCIDRs, each with the event loop's time since which it has been seen so."""
        self._findings = findings
        self._seconds = seconds
        """How long a node may wait; 0 where none does."""
        self.waiting: dict[str, Pool] = {}
        """The nodes that wait now, each with the pool that could match."""
        self._by_pool: dict[Pool, dict[str, None]] = {}
        """The same by pool, in order of arrival."""
        self._told: dict[str, str] = {}
        """The uids of nodes that were told once, by name."""

    def remaining(self, name: str) -> float:
        """The seconds for which a node may still wait; 0 or less where its time is over."""
        now = asyncio.get_running_loop().time()
        return self._pending.get(name, now) + self._seconds - now

    def over(self, nodes: Iterable[Node]) -> set[str]:
        """Those of the nodes that may not wait any longer."""
        return {node.name for node in nodes if node.uninitialized and self.remaining(node.name) <= 0}

    def begin(self, node: Node) -> float:
        """A node waits, or goes on waiting: tell so once. Returns the seconds after which to look again."""
        self.end(node.name)
        pool = self._cluster.awaited_pool(node)
        if pool is None:
            return 0.0  # nodes that were decided together with it took what was left
        self.waiting[node.name] = pool
        self._by_pool.setdefault(pool, {})[node.name] = None
        if self._told.get(node.name) != node.uid:
            self._told[node.name] = node.uid
            self._findings.waits_for_cloud_provider(node, pool.name, self._seconds)
        return self.remaining(node.name)

    def end(self, name: str) -> None:
        """A node does not wait any longer. No error for one that did not."""
        pool = self.waiting.pop(name, None)
        if pool is not None:
            del self._by_pool[pool][name]
            if not self._by_pool[pool]:
                del self._by_pool[pool]

    def forget(self, name: str) -> None:
        """A node has its blocks, or is gone."""
        self.end(name)
        self._told.pop(name, None)

    def clear(self) -> None:
        """This process does not lead any longer."""
        self.waiting.clear()
        self._by_pool.clear()

    def outdated(self) -> list[str]:
        """The nodes to look at again, since their pool cannot be waited for any longer: it is full, or deleted.

        One node stands for all that wait for the same pool. O(pools that are waited for + nodes returned).
        """
        found: list[str] = []
        for pool, names in self._by_pool.items():
            node = self._nodes.get(next(iter(names)))
            if node is None or self._cluster.awaited_pool(node) is not pool:
                found += names
        return found
