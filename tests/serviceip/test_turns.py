"""What became of a write, and how writers of one object take turns."""

from __future__ import annotations

import json

import pytest

from cidrella.model.serviceip import read_range_allocation
from cidrella.serviceip.fate import Fate, fate
from cidrella.serviceip.state import State
from cidrella.serviceip.turns import Turns
from tests.serviceip.store import SMALL, Store


def found(version: str, *writes: str, uid: str = "uid-1") -> State:
    """An object as it was read."""
    made = Store().make(SMALL, writes=list(writes))
    made["metadata"] |= {"resourceVersion": version, "uid": uid}
    return State.read(read_range_allocation(json.dumps(made).encode()), SMALL)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (found("2", "base.1", "ours.1"), Fate.LANDED),
        (found("9", "ours.1", "theirs.1"), Fate.LANDED),
        (found("1", "base.1"), Fate.OPEN),
        (found("2", "base.1", "theirs.1"), Fate.LOST),
        (found("9", "theirs.1"), Fate.UNKNOWN),
        (found("9"), Fate.UNKNOWN),
        (found("1", "base.1", uid="uid-2"), Fate.UNKNOWN),
    ],
)
def test_fate(after: State, expected: Fate) -> None:
    """B6: what became of a write is known from what the object remembers, or known not to be known."""
    assert fate("ours.1", found("1", "base.1"), after) is expected


def test_object_without_writes() -> None:
    """One that was made by hand remembers no write: as soon as it moves on, nobody can tell."""
    assert fate("ours.1", found("1"), found("2", "theirs.1")) is Fate.UNKNOWN


class TestTurns:
    """How long writers wait."""

    def test_alone(self) -> None:
        """Who is alone does not wait, however long they have been at it."""
        turns = Turns("ours", lambda: 0.5)
        turns.saw(["ours.1", "ours.2"])
        assert turns.won() == 0.0

    def test_rivals(self) -> None:
        """The wait grows with the number of those who wrote since we did, and with what a request takes."""
        turns = Turns("ours", lambda: 0.5)
        for _ in range(100):
            turns.took(0.01)
        turns.saw(["long.ago", "early.1"])
        assert turns.won() == 0.0, "nobody knows how long ago"
        turns.saw(["early.1", "ours.1", "a.1", "b.1", "a.2"])
        assert turns.won() == pytest.approx(0.02)
        assert turns.lost() == pytest.approx(0.02)
        for _ in range(100):
            turns.took(3.0)
        assert turns.won() == pytest.approx(0.5)

    def test_rivals_are_forgotten(self) -> None:
        """Who has not been seen to write for a while is waited for no longer."""
        turns = Turns("ours", lambda: 0.5)
        turns.saw([])
        turns.saw(["a.1", "b.1", "c.1"])
        for _ in range(3):
            turns.saw(["ours.1"])
        assert turns.won() == 0.0
        assert turns.lost() > 0.0, "a race was lost: there is somebody"

    def test_ids(self) -> None:
        """No id is used twice."""
        turns = Turns("ours", lambda: 0.5)
        assert [turns.next_id() for _ in range(3)] == ["ours.1", "ours.2", "ours.3"]
