"""What is not as it should be with nodes, told to those who look at them: events, and counts for the metrics.

A node is looked at when it changes, when a neighbour that it shares addresses with does, and once when this process
begins to lead. That a pool went is no reason to look at its nodes: they keep what they have, and there is no storm of
events (P7).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from cidrella.core.decision import Reason
from cidrella.kube.events import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Finding, Node
    from cidrella.kube.duty import Duty
    from cidrella.kube.events import Recorder


_NEIGHBOURS = 100


class Findings:
    """Examines what nodes hold. Tells only while duty is on: one tells, not every replica."""

    def __init__(self, cluster: Cluster, nodes: Mapping[str, Node], duty: Duty, recorder: Recorder) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._duty = duty
        self._recorder = recorder
        self._untracked_told: set[str] = set()
        """The uids of nodes that were told once that their blocks are in no pool (N5)."""
        self.conflicting: set[str] = set()
        """The nodes that hold addresses which somebody else holds as well."""

    def not_available(self, node: Node, message: str) -> None:
        """A node waits (N4)."""
        self._tell(node, Reason.NOT_AVAILABLE, f"no Pod CIDR for this node: {message}")

    def assignment_failed(self, node: Node, message: str) -> None:
        """The PATCH of a node's podCIDRs failed."""
        self._tell(node, Reason.ASSIGNMENT_FAILED, f"podCIDRs could not be written: {message}")

    def waits_for_cloud_provider(self, node: Node, pool: str, seconds: float) -> None:
        """A node waits for labels that could make a pool match (N10)."""
        note = (
            f"no Pod CIDR for this node yet: it waits for its cloud provider, at most {seconds:g}s from when the "
            f"controller first saw it; the selector of {pool} may match once labels are set"
        )
        self._tell(node, Reason.UNINITIALIZED, note, type_="Normal")

    def examine(self, names: Iterable[str]) -> None:
        """Look at nodes that hold something, and tell what is found. One that shares addresses tells on both (N6)."""
        for name in names:
            node = self._nodes.get(name)
            if node is None or not self._cluster.holds(name):
                continue
            conflict = False
            for finding in self._cluster.findings(name):
                conflict = conflict or finding.reason is Reason.CONFLICT
                self._tell_finding(node, finding)
            if conflict:
                self.conflicting.add(name)
            else:
                self.conflicting.discard(name)

    def neighbours(self, name: str) -> list[str]:
        """The nodes that share addresses with one, or as many of them as anybody reads about."""
        if not self._cluster.holds(name):
            return []
        others = islice(self._cluster.conflicts(name), _NEIGHBOURS)
        return [each.holder for each in others if isinstance(each.holder, str)]

    def gone(self, node: Node) -> None:
        """A node is gone: nothing is said of it any more. Those who shared its addresses are to be examined."""
        self.conflicting.discard(node.name)
        self._untracked_told.discard(node.uid)

    def _tell_finding(self, node: Node, finding: Finding) -> None:
        if finding.reason is Reason.UNTRACKED:
            if node.uid in self._untracked_told or not self._duty.on:
                return
            self._untracked_told.add(node.uid)
        shown = ", ".join(node.pod_cidrs) or "(being written)"
        self._tell(node, finding.reason, f"podCIDRs {shown}: {finding.message}")

    def _tell(self, node: Node, reason: Reason, note: str, *, type_: str = "Warning") -> None:
        if self._duty.on:
            self._recorder.record(Reference("v1", "Node", node.name, node.uid), reason.value, note, type=type_)
