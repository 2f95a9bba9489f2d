"""The checker finds what is not as it should be when nothing changes any more.

For each excuse there is a history that has it, and one just beyond it.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.chaos.checker import check
from tests.chaos.history import NODES, POOLS
from tests.chaos.story import Story, broken, selects


def test_never_at_rest(story: Story) -> None:
    """A run that never came to rest is flagged."""
    assert broken(dataclasses.replace(story.history(), rest=None)) == {"rest"}


def test_intent_left(story: Story) -> None:
    """Pitfall 27: at rest the Lease holds nothing."""
    story.record("a", "pool", "10.0.0.0/24")
    assert broken(story.history()) == {"intent-left"}


def test_held_for_a_node_that_nothing_can_be_given(story: Story) -> None:
    """P3: what may yet be written counts as used: no leak, and the pool stays as long as the node waits for it."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    story.gone(NODES, "a")
    story.delete(POOLS, "pool")
    story.pool("other", ipv4="10.0.0.0/23", nodeSelector=selects("zone", "Exists"))
    counts = {("pool", "10.0.0.0/21"): (7, 8), ("other", "10.0.0.0/23"): (1, 2)}
    assert check(story.history(counts)) == []
    assert broken(story.history({**counts, ("other", "10.0.0.0/23"): (2, 2)})) == {"leak"}


def test_held_though_somebody_else_has_it() -> None:
    """N6: what may yet be written to a node stays in the Lease while another has it, and no pool has anything else."""
    story = Story()
    story.pool("pool", ipv4="10.0.0.0/24")
    story.node("a")
    story.node("b")
    story.record("b", "pool", "10.0.0.0/24")
    story.seize("a", "10.0.0.0/24")
    assert check(story.history()) == []


@pytest.mark.parametrize("why", ["it could be given", "the node has others", "the node is gone", "another has room"])
def test_held_without_need(story: Story, why: str) -> None:
    """P2, N4: what could be given to a node, or can be written to it no more, has no place in the Lease."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    if why != "it could be given":
        story.delete(POOLS, "pool")
    if why == "the node has others":
        story.seize("b", "10.9.0.0/24")
    elif why == "the node is gone":
        story.gone(NODES, "b")
        story.node("c")
    elif why == "another has room":
        story.pool("other", ipv4="10.1.0.0/24")
    assert broken(story.history()) >= ({"unserved"} if why == "another has room" else {"intent-left"})


def test_unserved(story: Story) -> None:
    """N4: a node without a block is flagged while a pool has one for it."""
    story.node("b")
    assert broken(story.history()) == {"unserved"}


@pytest.mark.parametrize("why", ["full", "terminating", "unguarded", "not selected", "taint", "deleted"])
def test_rightly_unserved(why: str) -> None:
    """N4, N8, N10, S6: a node that nothing can be given waits."""
    story = Story()
    if why == "full":
        story.pool("pool", ipv4="10.0.0.0/24")
        story.serve("a", "pool", "10.0.0.0/24")
    elif why == "not selected":
        story.pool("pool", ipv4="10.0.0.0/24", nodeSelector=selects("zone", "Exists"))
    else:
        story.pool("pool", ipv4="10.0.0.0/23", guarded=why != "unguarded")
    if why == "terminating":
        story.serve("a", "pool", "10.0.0.0/24")
        story.delete(POOLS, "pool")
    story.node("b")
    if why == "taint":
        story.pool("zone", ipv4="10.1.0.0/24", nodeSelector=selects("zone", "Exists"))
        taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
        story.update(NODES, "b", "admin", spec={"taints": [taint]})
    elif why == "deleted":
        story.update(NODES, "b", "admin", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert check(story.history()) == []


def test_unserved_though_labels_change_nothing() -> None:
    """N10: the taint is no reason where no pool has a selector that could match later, and room."""
    story = Story()
    story.pool("pool", ipv4="10.0.0.0/23")
    story.pool("zone", ipv4="10.1.0.0/24", nodeSelector=selects("zone", "Exists"))
    story.serve("a", "zone", "10.1.0.0/24", {"zone": "a"})
    story.node("b")
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
    story.update(NODES, "b", "admin", spec={"taints": [taint]})
    assert broken(story.history()) == {"unserved"}


def test_unserved_though_another_pool_is_full(story: Story) -> None:
    """S4: a full pool falls through to the next."""
    story.pool("small", ipv4="10.1.0.0/24", nodeSelector=selects("zone", "In", "b"))
    story.serve("b", "small", "10.1.0.0/24", {"zone": "b"})
    story.node("c", {"zone": "b"})
    assert broken(story.history()) == {"unserved"}


def test_one_family_is_full() -> None:
    """S4: a pool of both families with one of them full gives nothing."""
    story = Story()
    story.pool("both", ipv4="10.1.0.0/22", ipv6="fd00::/120")
    story.serve("a", "both", "10.1.0.0/24,fd00::/120")
    story.node("b")
    assert check(story.history()) == []


def test_configs_of_both_families() -> None:
    """K3: from configs a node gets one of each family that applies, or nothing."""
    story = Story()
    story.config("v4", "10.2.0.0/22", 24)
    story.config("v6", "fd01::/64", 64, {"np": "3"})
    story.serve("a", "ccc/v4,ccc/v6", "10.2.0.0/24,fd01::/64", {"np": "3"})
    story.node("b", {"np": "3"})
    assert check(story.history()) == []
    story.config("more-v6", "fd02::/64", 64)
    assert broken(story.history()) == {"unserved"}


def test_undeletable(story: Story) -> None:
    """P2: a deleted pool that no node uses has to be gone."""
    story.delete(POOLS, "pool")
    assert check(story.history()) == []
    story.gone(NODES, "a")
    assert broken(story.history()) == {"undeletable"}


def test_undeletable_where_pools_overlap(story: Story) -> None:
    """P3: a block counts towards the pool that its annotation names, not to another around it."""
    story.pool("other", ipv4="10.0.0.0/20")
    story.delete(POOLS, "other")
    assert broken(story.history()) == {"undeletable"}


@pytest.mark.parametrize(("annotation", "flagged"), [("", "younger"), ("gone", "younger"), ("younger", "older")])
def test_whose_a_found_block_is(annotation: str, flagged: str) -> None:
    """P3: a block of which the annotation names no pool counts towards the oldest of its size."""
    story = Story()
    story.pool("oldest-of-another-size", ipv4="10.0.0.0/21", perNodeHostBits=9)
    story.pool("older", ipv4="10.0.0.0/21")
    story.pool("younger", ipv4="10.0.0.0/21")
    story.node("a", blocks="10.0.0.0/24")
    story.update(NODES, "a", "admin", metadata={"annotations": {"cidrella.dev/pool": annotation}})
    story.delete(POOLS, "older")
    story.delete(POOLS, "younger")
    (found,) = check(story.history())
    assert (found.invariant, found.text.split()[0]) == ("undeletable", flagged)


def test_whose_a_block_of_another_size_is(story: Story) -> None:
    """P3: a block of no pool's size counts towards the oldest pool around it."""
    story.gone(NODES, "a")
    story.node("b", blocks="10.0.0.0/26")
    story.delete(POOLS, "pool")
    assert check(story.history()) == []


@pytest.mark.parametrize("free", [6, 8])
def test_leak(story: Story, free: int) -> None:
    """A8: one that is neither free nor anybody's is flagged, and so is one that is said to be free."""
    assert check(story.history({("pool", "10.0.0.0/21"): (7, 8)})) == []
    assert broken(story.history({("pool", "10.0.0.0/21"): (free, 8)})) == {"leak"}


def test_leak_in_a_large_range() -> None:
    """A8, A3: counts that a float cannot hold are compared as floats."""
    story = Story()
    story.pool("six", ipv6="fd00::/16")
    assert check(story.history({("six", "fd00::/16"): (1 << 104, 1 << 104)})) == []
    assert broken(story.history({("six", "fd00::/16"): (1 << 103, 1 << 104)})) == {"leak"}


def test_series_of_pools(story: Story) -> None:
    """O1: a pool without metrics is flagged, and so are metrics without a pool, and another capacity."""
    right = {("pool", "10.0.0.0/21"): (7, 8)}
    assert broken(story.history({})) == {"leak"}
    assert broken(story.history({**right, ("gone", "10.9.0.0/24"): (1, 1)})) == {"leak"}
    assert broken(story.history({("pool", "10.0.0.0/21"): (14, 16)})) == {"leak"}
