"""A controller's insight, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cidrella.controller.insight import Insight
from cidrella.model.flags import IpamFlags
from tests.core.build import cluster

if TYPE_CHECKING:
    from cidrella.core.decision import Node
    from cidrella.core.pool import PoolSpec
    from cidrella.model.serviceip import SeenServiceCIDR


class Kind:
    kind = "ClusterCIDR"


class Seen:
    """As much of a pool's object as is looked at."""

    kind = Kind


class World:
    """The books and objects, and whether somebody leads and has listed everything."""

    def __init__(self, *specs: PoolSpec, **flags: Any) -> None:
        self.books = cluster(*specs)
        self.nodes: dict[str, Node] = {}
        self.service_ranges: dict[str, SeenServiceCIDR] = {}
        self.leads = True
        self.listed = True
        self.missing: list[str] = []
        self.may_wait = True
        self.insight = Insight(
            self.books,
            self.nodes,
            cast("Any", {each.name: Seen for each in specs}),
            self.service_ranges,
            IpamFlags(**flags),
            "tests",
            leads=lambda: self.leads,
            listed=lambda: self.listed,
            missing=lambda: self.missing,
            may_wait=lambda _: self.may_wait,
        )

    def see(self, *nodes: Node) -> None:
        """Nodes come, or change."""
        for each in nodes:
            self.nodes[each.name] = each
            self.books.observe(each)

    def lose(self, name: str) -> Node:
        """A node goes."""
        self.books.forget(name)
        return self.nodes.pop(name)
