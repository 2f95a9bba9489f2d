"""The checker finds blocks that were not their pool's to give, to this node or at that time.

For each excuse there is a history that has it, and one just beyond it.
"""

from __future__ import annotations

import pytest

from tests.chaos.allowance import ALLOWANCE
from tests.chaos.checker import check
from tests.chaos.history import CONFIGS, NODES, POOLS
from tests.chaos.story import KNOWN, LONG, Story, broken, selects


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        ("10.0.8.0/24", "beyond the range"),
        ("10.0.2.0/23", "too large"),
        ("10.0.1.0/25", "too small"),
        ("10.0.1.0/24,10.0.2.0/24", "two of one family"),
    ],
)
def test_outside(story: Story, blocks: str, why: str) -> None:
    """A2: a block that is not the pool's to give is flagged."""
    story.serve("b", "pool", blocks)
    assert broken(story.history()) == {"outside"}, why


def test_half(story: Story) -> None:
    """S4: half of what a pool of both families gives is flagged."""
    story.pool("both", ipv4="10.1.0.0/22", ipv6="fd00::/118")
    story.serve("b", "both", "10.1.0.0/24")
    assert broken(story.history()) == {"outside"}


def test_no_pool_named(story: Story) -> None:
    """N3, P3: a block without a pool is flagged, and so is one of a pool that there never was."""
    story.serve("b", "", "10.0.1.0/24")
    story.serve("c", "other", "10.0.2.0/24")
    assert [each.invariant for each in check(story.history())] == ["outside", "outside"]


def test_more_than_the_pools_named(story: Story) -> None:
    """K3: a block that is of none of the pools that are named is flagged."""
    story.config("v4", "10.2.0.0/22", 24)
    story.serve("b", "ccc/v4", "10.2.0.0/24,fd01::/64")
    assert broken(story.history()) == {"outside"}


def test_of_a_service_range(story: Story) -> None:
    """A7: a block of a service range is flagged."""
    story.pool("wide", ipv4="10.96.0.0/15")
    story.serve("b", "wide", "10.97.0.0/24")
    assert check(story.history()) == []
    story.serve("c", "wide", "10.96.1.0/24")
    assert broken(story.history()) == {"outside"}


def test_a_node_that_is_not_selected(story: Story) -> None:
    """S1: a pool's selector has to match the node."""
    story.pool("zone-b", ipv4="10.1.0.0/22", nodeSelector=selects("zone", "In", "b"))
    story.serve("b", "zone-b", "10.1.0.0/24", {"zone": "a"})
    assert broken(story.history()) == {"outside"}


def test_a_node_that_was_selected_once(story: Story) -> None:
    """N2: what a node's labels were counts; what they become after it got its block does not."""
    story.pool("zone-b", ipv4="10.1.0.0/22", nodeSelector=selects("zone", "In", "b"))
    story.node("b", {"zone": "b"})
    story.relabel("b", {"zone": "c"})
    story.give("b", "zone-b", "10.1.0.0/24")
    assert check(story.history()) == []
    story.serve("c", "zone-b", "10.1.1.0/24", {"zone": "c"})
    story.relabel("c", {"zone": "b"})
    assert broken(story.history()) == {"outside"}


def test_a_selector_that_changed(story: Story) -> None:
    """K2: a config's selector may change; a node that none of those so far selected is flagged."""
    story.config("v4", "10.2.0.0/22", 24, {"np": "1"})
    story.update(CONFIGS, "v4", "admin", spec={"nodeSelector": {"matchLabels": {"np": "2"}}})
    story.serve("b", "ccc/v4", "10.2.0.0/24", {"np": "1"})
    story.serve("c", "ccc/v4", "10.2.1.0/24", {"np": "2"})
    assert check(story.history()) == []
    story.serve("d", "ccc/v4", "10.2.2.0/24", {"np": "3"})
    story.update(CONFIGS, "v4", "admin", spec={"nodeSelector": {"matchLabels": {"np": "3"}}})
    assert broken(story.history()) == {"outside"}


@pytest.mark.parametrize(("seconds", "flagged"), [(ALLOWANCE - 0.5, False), (KNOWN, True)])
@pytest.mark.parametrize("late", ["the config", "its finalizer", "its selector", "the label"])
def test_half_from_configs(late: str, seconds: float, flagged: bool) -> None:
    """K3: from configs a node gets one of each family that applies, once there was time to learn that one does."""
    story = Story()
    story.config("v4", "10.2.0.0/22", 24)
    story.node("b", {} if late == "the label" else {"np": "3"})
    selected = {"np": "4"} if late == "its selector" else {"np": "3"}
    story.config("v6", "fd01::/62", 64, selected, guarded=late != "its finalizer")
    if late == "its selector":
        story.wait(LONG)
        story.update(CONFIGS, "v6", "admin", spec={"nodeSelector": {"matchLabels": {"np": "3"}}})
    elif late == "the label":
        story.wait(LONG)
        story.relabel("b", {"np": "3"})
    elif late == "its finalizer":
        story.wait(LONG)
        story.guard(CONFIGS, "v6")
    story.wait(seconds)
    story.update(NODES, "b", "admin", spec={"unschedulable": True})
    story.give("b", "ccc/v4", "10.2.0.0/24")
    assert broken(story.history()) == ({"half"} if flagged else set())


@pytest.mark.parametrize("why", ["terminating", "unguarded", "not selected", "came later", "gives the other family"])
def test_whole_from_one_config(why: str) -> None:
    """K3, S6: a family for which no config applies, at the time, is not missing."""
    story = Story()
    story.config("v4", "10.2.0.0/22", 24)
    if why == "gives the other family":
        story.config("more", "10.3.0.0/22", 24)
    elif why != "came later":
        story.config("v6", "fd01::/62", 64, {"np": "3"}, guarded=why != "unguarded")
    if why == "terminating":
        story.serve("a", "ccc/v4,ccc/v6", "10.2.1.0/24,fd01::/64", {"np": "3"})
        story.delete(CONFIGS, "v6")
    story.node("b", {} if why == "not selected" else {"np": "3"})
    story.wait(LONG)
    story.give("b", "ccc/v4", "10.2.0.0/24")
    if why == "came later":
        story.config("v6", "fd01::/62", 64)
    assert check(story.history()) == []


def test_half_from_a_pool_is_not_half(story: Story) -> None:
    """K3: a ClusterCIDR of one family is all of what a node gets, and what others give is theirs to answer for."""
    story.config("v6", "fd01::/62", 64)
    story.node("b")
    story.node("c")
    story.wait(LONG)
    story.give("b", "pool", "10.0.1.0/24")
    story.seize("c", "10.9.0.0/24")
    assert check(story.history()) == []


def test_the_same_block_from_another_pool(story: Story) -> None:
    """P1: what counts is when it was recorded as that pool's. It may have stood there before, as another's."""
    story.pool("old", ipv4="10.1.0.0/22")
    story.node("b")
    story.record("b", "old", "10.1.0.0/24")
    story.pool("new", ipv4="10.1.0.0/22")
    story.record("b", "new", "10.1.0.0/24")
    story.send("b", "new", "10.1.0.0/24")
    story.settle("b")
    assert check(story.history()) == []


@pytest.mark.parametrize("ever", [True, False])
def test_unguarded(story: Story, ever: bool) -> None:
    """P1: what is given before the finalizer is stored, if it ever is, is flagged."""
    story.pool("new", ipv4="10.1.0.0/22", guarded=False)
    story.node("b")
    story.record("b", "new", "10.1.0.0/24")
    if ever:
        story.guard(POOLS, "new")
    story.send("b", "new", "10.1.0.0/24")
    story.settle("b")
    assert broken(story.history()) == {"unguarded"}


@pytest.mark.parametrize(("seconds", "flagged"), [(ALLOWANCE - 0.5, False), (KNOWN, True)])
def test_terminating(story: Story, seconds: float, flagged: bool) -> None:
    """S6, P2: a pool that was deleted gives nothing, once there was time to learn of it."""
    story.node("b")
    story.delete(POOLS, "pool")
    story.wait(seconds)
    story.give("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == ({"terminating"} if flagged else set())


@pytest.mark.parametrize(("whose", "flagged"), [("r0", False), (None, False), ("r1", True)])
def test_terminating_and_not_told(story: Story, whose: str | None, flagged: bool) -> None:
    """S6, O6: a replica that could not be told gives on."""
    story.node("b")
    story.fault(LONG, whose)
    story.delete(POOLS, "pool")
    story.wait(LONG)
    story.give("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == ({"terminating"} if flagged else set())


@pytest.mark.parametrize("meanwhile", ["something else changes", "it goes", "it goes at once"])
def test_terminating_since_it_was_deleted(story: Story, meanwhile: str) -> None:
    """S6, P2: whatever becomes of a deleted pool, it gives nothing since it was deleted."""
    story.node("b")
    story.gone(NODES, "a")
    if meanwhile == "it goes at once":
        story.gone(POOLS, "pool")
    else:
        story.delete(POOLS, "pool")
    story.relabel("b", {"zone": "a"})  # an answer that tells when: that of a deletion has no revision
    story.wait(KNOWN)
    if meanwhile == "something else changes":
        story.update(POOLS, "pool", "admin", metadata={"labels": {"zone": "a"}})
    elif meanwhile == "it goes":
        story.gone(POOLS, "pool")
    story.give("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"terminating"}


def test_recorded_before_the_pool_was_deleted(story: Story) -> None:
    """P3: what was recorded in time arrives whenever it does, and the pool is there as long."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    story.delete(POOLS, "pool")
    story.wait(LONG)
    story.send("b", "pool", "10.0.1.0/24")
    story.settle("b")
    assert check(story.history()) == []


def test_recorded_in_time_but_the_pool_is_gone(story: Story) -> None:
    """P2, P3: a reservation in flight is a use, so that a pool that is gone when it arrives is flagged, always."""
    story.fault(LONG)
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    story.delete(POOLS, "pool")
    story.gone(NODES, "a")
    story.gone(POOLS, "pool")
    story.send("b", "pool", "10.0.1.0/24")
    story.settle("b")
    assert broken(story.history()) == {"outside"}


def test_a_pool_that_was_made_again(story: Story) -> None:
    """P6: a pool of the name that another had gives of its own range."""
    story.gone(NODES, "a")
    story.delete(POOLS, "pool")
    story.gone(POOLS, "pool")
    story.wait(LONG)
    story.pool("pool", ipv4="10.8.0.0/21")
    story.serve("b", "pool", "10.8.1.0/24")
    assert check(story.history()) == []


def test_another_pool_of_that_name(story: Story) -> None:
    """P3: a pool that has the name now is not the one that had these blocks."""
    story.gone(NODES, "a")
    story.delete(POOLS, "pool")
    story.gone(POOLS, "pool")
    story.pool("pool", ipv4="10.8.0.0/21")
    story.wait(KNOWN)
    story.serve("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"terminating"}
