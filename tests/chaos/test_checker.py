"""The checker: bad histories are flagged for what is wrong with them, and good ones are not.

For each excuse there is a history that has it, and one just beyond it.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.chaos.allowance import ALLOWANCE, RECOVERY, SLOW
from tests.chaos.blocks import block, count_touched
from tests.chaos.checker import check
from tests.chaos.history import CONFIGS, LEASES, NODES, POOLS, History
from tests.chaos.pools import read_pool
from tests.chaos.story import THIRD, Story

LONG = 60.0
KNOWN = ALLOWANCE + 0.5
"""Seconds after which a sound controller knows."""


def broken(history: History) -> set[str]:
    return {each.invariant for each in check(history)}


@pytest.fixture
def story() -> Story:
    """A pool of eight, and a node that has the first of them."""
    made = Story()
    made.pool("pool", ipv4="10.0.0.0/21")
    made.serve("a", "pool", "10.0.0.0/24")
    return made


# Good histories


def test_a_good_history(story: Story) -> None:
    """All that a sound controller does: nodes and pools of both kinds come, go and come again."""
    story.pool("both", ipv4="10.1.0.0/22", ipv6="fd00::/118", nodeSelector=_selects("zone", "In", "b"))
    story.config("v4", "10.2.0.0/22", 24, {"np": "3"})
    story.config("v6", "fd01::/62", 64, {"np": "3"})
    story.serve("b", "both", "10.1.0.0/24,fd00::/120", {"zone": "b"})
    story.serve("c", "ccc/v4,ccc/v6", "10.2.0.0/24,fd01::/64", {"np": "3"})
    story.gone(NODES, "a")
    story.serve("a", "pool", "10.0.0.0/24")
    story.delete(POOLS, "both")
    story.wait(LONG)
    story.gone(NODES, "b")
    story.gone(POOLS, "both")
    story.snapshot()
    assert check(story.history()) == []


def test_without_intents() -> None:
    """Where nothing is recorded, the Lease is not looked at."""
    story = Story(intents=False)
    story.pool("pool", ipv4="10.0.0.0/21")
    story.serve("a", "pool", "10.0.0.0/24")
    assert check(story.history()) == []


# overlap


def test_overlap(story: Story) -> None:
    """A1: the same block twice is flagged."""
    story.serve("b", "pool", "10.0.0.0/24")
    assert [(each.invariant, each.revision) for each in check(story.history())] == [("overlap", story.revision - 1)]


def test_overlap_of_sizes(story: Story) -> None:
    """A1, A6: a block of another pool that has some of the same addresses is flagged."""
    story.pool("large", ipv4="10.0.0.0/20", perNodeHostBits=9)
    story.serve("b", "large", "10.0.0.0/23")
    assert broken(story.history()) == {"overlap"}


def test_overlap_has_no_excuse(story: Story) -> None:
    """A1, pitfall 27: no fault excuses what controllers alone gave twice."""
    story.fault(LONG)
    story.serve("b", "pool", "10.0.0.0/24")
    assert broken(story.history()) == {"overlap"}


def test_a_block_that_is_free_again(story: Story) -> None:
    """N8: what a node had that is gone may be another's."""
    story.node("b")
    story.gone(NODES, "a")
    story.give("b", "pool", "10.0.0.0/24")
    assert check(story.history()) == []


def test_a_deletion_alone_frees_nothing(story: Story) -> None:
    """N8: a node that is being deleted has its block until it is gone."""
    story.update(NODES, "a", "admin", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    story.serve("b", "pool", "10.0.0.0/24")
    assert broken(story.history()) == {"overlap"}


@pytest.mark.parametrize("how", ["later", "at birth", "unlogged"])
def test_somebody_else_on_top_of_ours(story: Story, how: str) -> None:
    """N6: what somebody else writes is not ours to answer for, also where the audit log lost it."""
    if how == "at birth":
        story.node("b", blocks="10.0.0.0/24")
    else:
        story.node("b")
        story.seize("b", "10.0.0.0/24")
    if how == "unlogged":
        story.lose_audit_line()
    assert check(story.history()) == []


def test_ours_unlogged(story: Story) -> None:
    """A1: what the audit log lost is ours where the annotation came with it."""
    story.node("b")
    story.record("b", "pool", "10.0.0.0/24")
    story.send("b", "pool", "10.0.0.0/24")
    story.lose_audit_line()
    story.settle("b")
    assert broken(story.history()) == {"overlap"}


def test_somebody_else_says_the_same(story: Story) -> None:
    """A1: a write that changed nothing does not make somebody else's of what is ours."""
    story.serve("b", "pool", "10.0.0.0/24")
    given = next(each for each in story.writes if each.name == "b" and each.verb == "patch")
    story.writes.append(dataclasses.replace(given, user=THIRD))
    assert broken(story.history()) == {"overlap"}


@pytest.mark.parametrize(("seconds", "flagged"), [(ALLOWANCE - 0.5, False), (KNOWN, True)])
def test_ours_on_top_of_somebody_else(story: Story, seconds: float, flagged: bool) -> None:
    """A1, N2: what somebody else took is not given any more, once there was time to learn of it."""
    story.node("b")
    story.seize("b", "10.0.1.0/24")
    story.node("c")
    story.wait(seconds)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == ({"overlap"} if flagged else set())


def test_decided_before_and_late(story: Story) -> None:
    """N9: what was recorded before somebody else took it may arrive any time after."""
    story.node("b")
    story.node("c")
    story.record("c", "pool", "10.0.1.0/24")
    story.seize("b", "10.0.1.0/24")
    story.wait(LONG)
    story.send("c", "pool", "10.0.1.0/24")
    story.settle("c")
    assert check(story.history()) == []


def test_decided_again_and_late(story: Story) -> None:
    """N9: what was recorded, taken out, and recorded again is decided on when it was recorded last."""
    story.node("b")
    story.node("c")
    story.record("c", "pool", "10.0.1.0/24")
    story.settle("c")
    story.seize("b", "10.0.1.0/24")
    story.wait(KNOWN)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"overlap"}


@pytest.mark.parametrize(
    ("whose", "sound", "flagged"),
    [
        ("r0", 0.0, False),
        (None, 0.0, False),
        ("r1", 0.0, True),
        ("r0", RECOVERY + ALLOWANCE - 0.5, False),
        ("r0", RECOVERY + KNOWN, True),
    ],
)
def test_a_fault_excuses(story: Story, whose: str | None, sound: float, flagged: bool) -> None:
    """O6: a fault of the replica itself or of the cluster excuses what it did not know, until it had time to learn."""
    story.node("b")
    story.node("c")
    story.fault(LONG, whose)
    story.seize("b", "10.0.1.0/24")
    story.wait(LONG + sound)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == ({"overlap"} if flagged else set())


def test_sound_moments_between_faults_add_up(story: Story) -> None:
    """O6: what is sound between faults counts together."""
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    for _ in range(3):
        story.fault(1.0, "r0")
        story.wait(1.0 + RECOVERY + 1.2)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"overlap"}


@pytest.mark.parametrize(("took", "flagged"), [(SLOW - 0.1, True), (LONG, False)])
def test_a_slow_api_server_excuses(story: Story, took: float, flagged: bool) -> None:
    """O6: a cluster in which a write takes seconds need not have told anybody."""
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    story.relabel("b", {"zone": "a"})
    story.writes[-1] = dataclasses.replace(story.writes[-1], answered=story.now + took, revision=None)
    story.wait(LONG)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == ({"overlap"} if flagged else set())


def test_without_intents_a_write_is_when_it_was_received() -> None:
    """A1: without a record, a block is decided on when its write is received."""
    story = Story(intents=False)
    story.pool("pool", ipv4="10.0.0.0/21")
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    story.wait(KNOWN)
    story.give("c", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"overlap"}


# rewritten


def test_rewritten(story: Story) -> None:
    """N1: podCIDRs that change, whoever asked for it, are flagged."""
    story.update(NODES, "a", THIRD, spec={"podCIDRs": ["10.0.1.0/24"]})
    assert "rewritten" in broken(story.history())


def test_taken_away(story: Story) -> None:
    """N1: podCIDRs that go are flagged."""
    story.update(NODES, "a", "admin", spec={"podCIDRs": []})
    assert "rewritten" in broken(story.history())


@pytest.mark.parametrize(("seconds", "flagged"), [(ALLOWANCE - 0.5, False), (KNOWN, True)])
def test_asked_for_others(story: Story, seconds: float, flagged: bool) -> None:
    """N1, N3: asking for other blocks than a node has is flagged, though refused, if there was time to learn."""
    story.wait(seconds)
    story.refused("a", "10.0.1.0/24")
    assert broken(story.history()) == ({"rewritten"} if flagged else set())


@pytest.mark.parametrize(("whose", "flagged"), [("r0", True), ("r1", False)])
def test_asked_for_others_after_a_pause(story: Story, whose: str, flagged: bool) -> None:
    """Pitfall 27: who was paused, or whose write was on its way for long, may ask for others than are there."""
    story.fault(LONG, whose)
    story.wait(LONG)
    story.refused("a", "10.0.1.0/24", "r1")
    assert broken(story.history()) == ({"rewritten"} if flagged else set())


def test_asked_for_the_same_again(story: Story) -> None:
    """N9: what a node has may be asked for again and again."""
    story.wait(LONG)
    story.refused("a", "10.0.0.0/24")
    assert check(story.history()) == []


def test_asked_without_a_uid(story: Story) -> None:
    """N3: a write that names no uid may hit a node of the same name that came later."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    story.send("b", "pool", "10.0.1.0/24")
    body = {"spec": {"podCIDRs": ["10.0.1.0/24"]}}
    story.writes[-1] = dataclasses.replace(story.writes[-1], body=body)
    story.settle("b")
    assert broken(story.history()) == {"rewritten"}


def test_asked_for_one_that_is_gone(story: Story) -> None:
    """N3: what is meant for a node that is gone, by its uid, is no rewriting of its successor."""
    story.node("b")
    uid = story.uid("b")
    story.gone(NODES, "b")
    story.serve("b", "pool", "10.0.2.0/24")
    story.wait(LONG)
    story.refused("b", "10.0.1.0/24")
    story.writes[-1].body["metadata"]["uid"] = uid
    assert check(story.history()) == []


# outside, unguarded, terminating


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
    story.pool("zone-b", ipv4="10.1.0.0/22", nodeSelector=_selects("zone", "In", "b"))
    story.serve("b", "zone-b", "10.1.0.0/24", {"zone": "a"})
    assert broken(story.history()) == {"outside"}


def test_a_node_that_was_selected_once(story: Story) -> None:
    """N2: what a node's labels were counts; what they become after it got its block does not."""
    story.pool("zone-b", ipv4="10.1.0.0/22", nodeSelector=_selects("zone", "In", "b"))
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
    story.wait(LONG)
    story.serve("b", "ccc/v4", "10.2.0.0/24", {} if why == "not selected" else {"np": "3"})
    if why == "came later":
        story.config("v6", "fd01::/62", 64)
    assert check(story.history()) == []


def test_half_from_a_pool_is_not_half(story: Story) -> None:
    """K3: a ClusterCIDR of one family is all of what a node gets, whatever configs there are."""
    story.config("v6", "fd01::/62", 64)
    story.wait(LONG)
    story.serve("b", "pool", "10.0.1.0/24")
    assert check(story.history()) == []


def test_unguarded(story: Story) -> None:
    """P1: what is given before the finalizer is stored is flagged."""
    story.pool("new", ipv4="10.1.0.0/22", guarded=False)
    story.node("b")
    story.record("b", "new", "10.1.0.0/24")
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


def test_another_pool_of_that_name(story: Story) -> None:
    """P3: a pool that has the name now is not the one that had these blocks."""
    story.gone(NODES, "a")
    story.delete(POOLS, "pool")
    story.gone(POOLS, "pool")
    story.pool("pool", ipv4="10.8.0.0/21")
    story.wait(KNOWN)
    story.serve("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"terminating"}


# unrecorded, twice-recorded


def test_unrecorded(story: Story) -> None:
    """Pitfall 27: what was sent without a record is flagged."""
    story.node("b")
    story.send("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"unrecorded"}


@pytest.mark.parametrize("recorded", ["10.0.2.0/24", "of another node", "too late", "taken out"])
def test_recorded_otherwise(story: Story, recorded: str) -> None:
    """Pitfall 27: a record of other blocks, of another node, of afterwards, or that was taken out does not count."""
    story.node("b")
    story.node("c")
    if recorded == "10.0.2.0/24":
        story.record("b", "pool", recorded)
    elif recorded == "of another node":
        story.record("c", "pool", "10.0.1.0/24")
    elif recorded == "taken out":
        story.record("b", "pool", "10.0.1.0/24")
        story.settle("b")
    story.send("b", "pool", "10.0.1.0/24")
    if recorded == "too late":
        story.record("b", "pool", "10.0.1.0/24")
    story.settle("b")
    story.give("c", "pool", "10.0.3.0/24")
    assert broken(story.history()) == {"unrecorded"}


def test_sent_by_a_successor(story: Story) -> None:
    """Pitfall 27: what one replica recorded another may send."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24", "r0")
    story.wait(LONG)
    story.send("b", "pool", "10.0.1.0/24", "r1")
    story.settle("b", "r1")
    assert check(story.history()) == []


def test_twice_recorded(story: Story) -> None:
    """Pitfall 27: one block that may go to two nodes is flagged, before it does."""
    story.node("b")
    story.node("c")
    story.record("b", "pool", "10.0.1.0/24")
    story.record("c", "pool", "10.0.1.0/24")
    story.settle("b")
    story.settle("c")
    story.give("b", "pool", "10.0.1.0/24")
    story.give("c", "pool", "10.0.2.0/24")
    assert [each.invariant for each in check(story.history())] == ["twice-recorded"]


@pytest.mark.parametrize("how", ["gone", "has others", "the same node"])
def test_recorded_for_one_that_cannot_get_it(story: Story, how: str) -> None:
    """Pitfall 27: an entry of a node that is gone, or has others, is dead; and one node may have several."""
    story.node("b")
    story.node("c")
    story.record("b", "pool", "10.0.1.0/24")
    if how == "gone":
        story.gone(NODES, "b")
    elif how == "has others":
        story.seize("b", "10.0.5.0/24")
    else:
        story.record("b", "pool", "10.0.2.0/24")
        story.send("b", "pool", "10.0.2.0/24")
    story.record("c", "pool", "10.0.1.0/24")
    story.send("c", "pool", "10.0.1.0/24")
    story.forget()
    assert check(story.history()) == []


# At rest


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
    story.pool("other", ipv4="10.0.0.0/23", nodeSelector=_selects("zone", "Exists"))
    counts = {("pool", "10.0.0.0/21"): (7, 8), ("other", "10.0.0.0/23"): (1, 2)}
    assert check(story.history(counts)) == []
    assert broken(story.history({**counts, ("other", "10.0.0.0/23"): (2, 2)})) == {"leak"}


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
        story.pool("pool", ipv4="10.0.0.0/24", nodeSelector=_selects("zone", "Exists"))
    else:
        story.pool("pool", ipv4="10.0.0.0/23", guarded=why != "unguarded")
    if why == "terminating":
        story.serve("a", "pool", "10.0.0.0/24")
        story.delete(POOLS, "pool")
    story.node("b")
    if why == "taint":
        taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
        story.update(NODES, "b", "admin", spec={"taints": [taint]})
    elif why == "deleted":
        story.update(NODES, "b", "admin", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert check(story.history()) == []


def test_unserved_though_another_pool_is_full(story: Story) -> None:
    """S4: a full pool falls through to the next."""
    story.pool("small", ipv4="10.1.0.0/24", nodeSelector=_selects("zone", "In", "b"))
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
    story.pool("older", ipv4="10.0.0.0/21")
    story.pool("younger", ipv4="10.0.0.0/21")
    story.pool("oldest-of-another-size", ipv4="10.0.0.0/21", perNodeHostBits=9)
    story.node("a", blocks="10.0.0.0/24")
    story.update(NODES, "a", "admin", metadata={"annotations": {"cidrella.dev/pool": annotation}})
    story.delete(POOLS, "older")
    story.delete(POOLS, "younger")
    (found,) = check(story.history())
    assert (found.invariant, found.text.split()[0]) == ("undeletable", flagged)


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
    assert broken(story.history({("pool", "10.0.0.0/21"): (7, 16)})) == {"leak"}


# gap


def test_gaps_of_the_recorder(story: Story) -> None:
    """What the recorder could not find out is flagged."""
    assert broken(dataclasses.replace(story.history(), gaps=("410",))) == {"gap"}


@pytest.mark.parametrize("lost", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_that_is_missing(story: Story, lost: str) -> None:
    """A change that a list knows of and the history does not is flagged."""
    story.node("b")
    story.relabel("b", {"zone": "a"})
    story.snapshot()
    story.gone(NODES, "b")
    story.snapshot()
    whole = story.history()
    assert check(whole) == []
    changes = tuple(each for each in whole.changes if not (each.name == "b" and each.type == lost))
    assert broken(dataclasses.replace(whole, changes=changes)) == {"gap"}


def test_changed_before_it_was_added(story: Story) -> None:
    """A history that contradicts itself is flagged without any list."""
    whole = story.history()
    changes = tuple(each for each in whole.changes if not (each.collection == LEASES and each.type == "ADDED"))
    assert broken(dataclasses.replace(whole, changes=changes)) == {"gap"}


def test_snapshots_of_the_end(story: Story) -> None:
    """A list of after the last change is compared, too."""
    seen = story.snapshot()
    story.snapshots[-1] = dataclasses.replace(seen, revision=seen.revision + 10, objects={})
    assert broken(story.history()) == {"gap"}


# The parts


def test_no_time_is_known() -> None:
    """A revision that no answer tells of happened at no known time, which excuses."""
    story = Story()
    story.pool("pool", ipv4="10.0.0.0/21")
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    story.wait(KNOWN)
    story.give("c", "pool", "10.0.1.0/24")
    story.writes.clear()
    assert "overlap" not in broken(story.history())


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        ("In", ["1", "2"], "12"),
        ("NotIn", ["1"], "2x-"),
        ("Exists", [], "12x"),
        ("DoesNotExist", [], "-"),
        ("Gt", ["1"], "2"),
        ("Lt", ["2"], "1"),
    ],
)
def test_operators(operator: str, values: list[str], matching: str) -> None:
    """S1: of nodes with the label 1, 2, x and without it, those that each operator selects."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "nodeSelector": _selects("n", operator, *values)}
    pool = read_pool(POOLS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert "".join(each for each in "12x-" if pool.selects("a", {} if each == "-" else {"n": each})) == matching


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        ({}, "ab"),
        ({"nodeSelectorTerms": []}, "ab"),
        ({"nodeSelectorTerms": [{}]}, ""),
        ({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}, "a"),
    ],
)
def test_selectors(selector: dict[str, object], matching: str) -> None:
    """S1, S2: no terms select all, an empty one none, and fields know the name."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "nodeSelector": selector}
    pool = read_pool(POOLS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert "".join(name for name in "ab" if pool.selects(name, {})) == matching


def test_touched() -> None:
    """A8: blocks count once, whatever overlaps in them, and what is beside the range does not."""
    taken = [block(each) for each in ("10.0.0.0/26", "10.0.0.64/26", "10.0.2.0/23", "10.0.3.0/24", "10.1.0.0/24")]
    assert count_touched(block("10.0.0.0/20"), 24, taken) == 3
    assert count_touched(block("10.0.3.0/24"), 26, taken) == 4
    assert count_touched(block("fd00::/64"), 120, taken) == 0


def test_a_history_is_kept_whole(story: Story, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is saved and read again is the same, down to the numbers."""
    directory = tmp_path_factory.mktemp("history")
    story.fault(1.0, "r0")
    story.snapshot()
    whole = dataclasses.replace(story.history(), gaps=("one",))
    whole.save(directory)
    assert History.load(directory) == whole


def test_many(story: Story) -> None:
    """Thousands of nodes, hundreds of them at a time, are checked in seconds."""
    story.pool("large", ipv4="10.32.0.0/11")
    for number in range(3000):
        at = f"10.{32 + number // 256}.{number % 256}.0/24"
        story.serve(f"n{number}", "large", at)
        if number >= 300:
            story.gone(NODES, f"n{number - 300}")
    assert check(story.history({("pool", "10.0.0.0/21"): (7, 8), ("large", "10.32.0.0/11"): (8192 - 300, 8192)})) == []


def _selects(key: str, operator: str, *values: str) -> dict[str, object]:
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
