"""Nodes, pools and ranges as the page shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.app.page_rows import Stood, explanation, node_row, pool_row, range_rows
from cidrella.web import api
from tests.app.insights import World
from tests.core.build import give, node, nodes, prefix, spec

if TYPE_CHECKING:
    from cidrella.core.decision import Node
    from cidrella.core.pool import PoolSpec

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
POOL = spec("p", "10.0.0.0/23 /24")


class TestNodes:
    """N4, N5, N6, N7: how each stands, why, and what would help."""

    @pytest.mark.parametrize(
        ("seen", "state", "reason", "helps"),
        [
            (node("a", has="10.0.1.0/24"), "served", "", ""),
            (node("a", has="192.0.2.0/24"), "untracked", "in no pool: 192.0.2.0/24", "a pool around them"),
            (node("a", has="10.0.0.0/25"), "conflict", "also held by other (10.0.0.0/24)", "to delete the node"),
            (node("a", has="<b>"), "unreadable", "cannot be read: '<b>'", "to delete the node"),
            (node("a", terminating=True), "waiting", "it is being deleted and gets no Pod CIDR", ""),
            (
                node("a", uninitialized=True),
                "waiting",
                "it waits for its cloud provider, for a limited time: the selector of labelled may match",
                "the cloud provider's controller",
            ),
        ],
    )
    def test_each_state(self, seen: Node, state: str, reason: str, helps: str) -> None:
        """In the words of `explain`."""
        world = World(POOL, spec("labelled", "10.2.0.0/24 /24", where="zone=a"))
        world.see(node("other", has="10.0.0.0/24"), seen)
        row = node_row(world.insight, seen, NOW, None)
        assert (row.name, row.state, row.since, row.terminating) == ("a", state, NOW, seen.terminating)
        assert row.reason.startswith(reason)
        assert row.help.startswith(helps)
        assert bool(row.reason) == bool(reason)
        assert bool(row.help) == bool(helps)

    def test_blocks_have_their_pools(self) -> None:
        """P3: one for each block, and none where it is in none."""
        world = World(POOL, spec("q", "fd00::/48 /64"))
        seen = node("a", has="10.0.1.0/24,fd00::/64")
        world.see(seen, node("b", has="192.0.2.0/24"))
        row = node_row(world.insight, seen, NOW, None)
        assert (row.blocks, row.pools) == (["10.0.1.0/24", "fd00::/64"], ["p", "q"])
        assert node_row(world.insight, world.nodes["b"], NOW, None).pools == [""]

    def test_what_is_being_written(self) -> None:
        """N9: what is reserved is shown as what it is."""
        world = World(POOL)
        give(world.books, node("a"))
        row = node_row(world.insight, node("a"), NOW, None)
        assert (row.state, row.blocks, row.pools, row.reason) == ("pending", ["10.0.0.0/24"], ["p"], "")

    def test_every_pool_is_full(self) -> None:
        """N4: which, and what would help."""
        world = World(POOL)
        for each in nodes(2):
            give(world.books, each)
        row = node_row(world.insight, node("a"), NOW, None)
        assert (row.state, row.reason) == ("waiting", "every pool that applies is full: p (no IPv4 /24 left)")
        assert row.help.startswith("another pool")

    def test_a_node_for_which_there_is_room(self) -> None:
        """F5, F8: it is about to be served, by this one or another; or nodes are served by somebody else."""
        world = World(POOL)
        assert node_row(world.insight, node("a"), NOW, None).reason.endswith("it is about to be served")
        world.leads = False
        assert node_row(world.insight, node("a"), NOW, None).reason.endswith(
            "the replica that leads is about to serve it"
        )
        watching = World(POOL, allocate=False)
        assert "--allocate-node-cidrs=false" in node_row(watching.insight, node("a"), NOW, None).reason

    def test_the_time_to_wait_for_labels_is_over(self) -> None:
        """N10: the page tells it as the controller does."""
        world = World(POOL, spec("labelled", "10.2.0.0/24 /24", where="zone=a"))
        world.may_wait = False
        assert "about to be served" in node_row(world.insight, node("a", uninitialized=True), NOW, None).reason

    def test_since_when(self) -> None:
        """It is the time at which a state began, whatever else changed."""
        world = World(POOL)
        first = node_row(world.insight, node("a"), NOW, None)
        world.leads = False
        again = node_row(world.insight, node("a"), LATER, Stood(first.state, first.since))
        assert (again.since, again.reason != first.reason) == (NOW, True)
        world.see(node("a", has="10.0.0.0/24"))
        assert node_row(world.insight, world.nodes["a"], LATER, Stood(again.state, NOW)).since == LATER
        assert node_row(world.insight, world.nodes["a"], LATER, Stood("", NOW)).since == NOW


class TestPools:
    """P4: how each stands."""

    @pytest.mark.parametrize(
        ("written", "state", "message"),
        [
            (POOL, "active", "It can give blocks."),
            (replace(POOL, terminating=True), "terminating", "No node uses it: it is about to go."),
            (replace(POOL, problem="<i>odd</i>"), "invalid", "It is not used: <i>odd</i>"),
            (spec("p", problem="rubbish"), "invalid", "It is not used: rubbish"),
            (replace(POOL, guarded=False), "pending", "It has yet to get its finalizer, and gives nothing before."),
            (replace(POOL, guarded=False, terminating=True), "terminating", "No node uses it: it is about to go."),
        ],
    )
    def test_each_state(self, written: PoolSpec, state: str, message: str) -> None:
        """In the words of its status."""
        world = World(written)
        row = pool_row(world.insight, world.books.pools["p"], api.Forecast())
        assert (row.name, row.kind, row.state, row.message) == ("p", "ClusterCIDR", state, message)

    def test_counts(self) -> None:
        """A8: both families, the fuller of which counts; a count that JSON cannot hold is as good as the largest."""
        world = World(spec("p", "10.0.0.0/22 /24", "fd00::/16 /120", where="size=big"))
        world.see(node("a", has="10.0.0.0/24,fd00::/120"), node("b", has="10.0.1.0/24"))
        row = pool_row(world.insight, world.books.pools["p"], api.Forecast(text="soon"))
        four, six = row.families
        assert (four.family, four.range, four.block_size, four.total, four.used, four.free) == (
            "IPv4",
            "10.0.0.0/22",
            24,
            4,
            2,
            2,
        )
        assert (six.family, six.total, six.used, six.free) == ("IPv6", api.COUNT_MAX, 1, api.COUNT_MAX)
        assert (row.nodes, row.utilisation, row.selector, row.forecast.text) == (2, 0.5, "(size In (big))", "soon")

    def test_full(self) -> None:
        """It is full, and says which range is."""
        world = World(POOL)
        world.see(node("a", has="10.0.0.0/24"), node("b", has="10.0.1.0/24"))
        row = pool_row(world.insight, world.books.pools["p"], api.Forecast())
        assert (row.state, row.utilisation) == ("full", 1.0)
        assert row.message == "It is full: 10.0.0.0/23 has no /24 left."

    def test_the_pool_of_the_flags(self) -> None:
        """F4: with the old allocator there is a pool that is no object."""
        world = World()
        world.books.add_pool(spec("--cluster-cidr", "10.0.0.0/16 /24"))
        assert pool_row(world.insight, world.books.pools["--cluster-cidr"], api.Forecast()).kind == ""


def test_ranges() -> None:
    """What no other contains, IPv4 first; with the pools and service ranges in each."""
    books = World(
        spec("small", "10.0.4.0/22 /24"),
        spec("large", "10.0.0.0/16 /24", "fd00::/48 /64"),
        spec("twin", "10.0.0.0/16 /25"),
        spec("broken", problem="no range"),
    ).books
    rows = range_rows(books, [prefix("10.0.8.0/24"), prefix("10.96.0.0/12"), prefix("10.96.0.0/16")])
    assert [(row.range, row.family, row.pools, row.services) for row in rows] == [
        ("10.0.0.0/16", "IPv4", ["large", "twin", "small"], ["10.0.8.0/24"]),
        ("10.96.0.0/12", "IPv4", [], ["10.96.0.0/12", "10.96.0.0/16"]),
        ("fd00::/48", "IPv6", ["large"], []),
    ]


def test_explanations() -> None:
    """S1, S3: every pool, in order, with its words; nothing of nobody."""
    world = World(spec("p", "10.0.0.0/24 /24"), spec("q", "10.1.0.0/16 /24", where="size=big"))
    world.see(node("other", has="10.0.0.0/24"), node("a", "size=<b>"))
    found = explanation(world.insight, "a", NOW, None)
    assert found is not None
    assert (found.node.name, found.labels) == ("a", {"size": "<b>"})
    assert [(each.pool, each.applies, each.room) for each in found.pools] == [("p", True, False), ("q", False, True)]
    assert "but the node has size=<b>" in found.pools[1].why
    assert explanation(world.insight, "nobody", NOW, None) is None
