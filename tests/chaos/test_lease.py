"""The checker finds what was sent without a record, and records that contradict each other."""

from __future__ import annotations

import pytest

from tests.chaos.checker import check
from tests.chaos.history import NODES
from tests.chaos.story import LONG, Story, broken


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


def test_recorded_for_ever(story: Story) -> None:
    """Pitfall 27: what stands in the Lease to the end stood there when it arrived."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24")
    story.send("b", "pool", "10.0.1.0/24")
    assert broken(story.history()) == {"intent-left"}


def test_sent_by_a_successor(story: Story) -> None:
    """Pitfall 27: what one replica recorded another may send."""
    story.node("b")
    story.record("b", "pool", "10.0.1.0/24", "r0")
    story.wait(LONG)
    story.send("b", "pool", "10.0.1.0/24", "r1")
    story.settle("b", "r1")
    assert check(story.history()) == []


@pytest.mark.parametrize("ahead", [False, True])
def test_twice_recorded(story: Story, ahead: bool) -> None:
    """Pitfall 27: one block that may go to two nodes is flagged, before it does."""
    story.node("b")
    story.node("c")
    story.record("b", "pool", "10.0.1.0/24")
    story.record("c", "pool", "10.0.1.0/24", ahead=ahead)
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
