"""The checker finds blocks that are given twice, and podCIDRs that are written twice.

For each excuse there is a history that has it, and one just beyond it.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.chaos.allowance import ALLOWANCE, RECOVERY, SLOW
from tests.chaos.checker import check
from tests.chaos.history import NODES
from tests.chaos.story import KNOWN, LONG, THIRD, Story, broken


def test_overlap(story: Story) -> None:
    """A1: the same block twice is flagged."""
    story.serve("b", "pool", "10.0.0.0/24")
    assert [(each.invariant, each.revision) for each in check(story.history())] == [("overlap", story.revision - 1)]


def test_overlap_for_a_while(story: Story) -> None:
    """A1: that one of the two is gone later is no excuse."""
    story.serve("b", "pool", "10.0.0.0/24")
    story.gone(NODES, "a")
    assert broken(story.history()) == {"overlap"}


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


def test_ours_unlogged_and_somebody_else_says_the_same(story: Story) -> None:
    """A1: nor does it where the line of who did change something was lost."""
    story.serve("b", "pool", "10.0.0.0/24")
    number = next(number for number, each in enumerate(story.writes) if each.name == "b" and each.verb == "patch")
    story.writes[number] = dataclasses.replace(story.writes[number], user=THIRD)
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


def test_a_fault_of_whoever_it_was(story: Story) -> None:
    """O6: where the audit log lost who it was, it may have been the one that had a fault."""
    story.node("b")
    story.node("c")
    story.fault(LONG, "r1")
    story.seize("b", "10.0.1.0/24")
    story.wait(LONG)
    story.record("c", "pool", "10.0.1.0/24", "r1")
    story.lose_audit_line()
    story.send("c", "pool", "10.0.1.0/24", "r0")
    story.settle("c")
    assert check(story.history()) == []


def test_in_time_though_answered_late(story: Story) -> None:
    """O6: what counts is when the API server received what was recorded, not when it answered."""
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    story.wait(ALLOWANCE - 0.2)
    story.record("c", "pool", "10.0.1.0/24")
    story.writes[-1] = dataclasses.replace(story.writes[-1], answered=story.now + 0.9)
    story.wait(1.0)
    story.send("c", "pool", "10.0.1.0/24")
    story.settle("c")
    assert check(story.history()) == []


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
