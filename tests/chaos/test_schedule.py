"""Schedules of chaos: the same for the same seed, and with enough of everything, whatever the seed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from tests.chaos.schedule import (
    AFTERMATH,
    LONGEST_LEASE,
    PAUSES,
    AnswerEarly,
    CreateNode,
    Kind,
    PauseLeader,
    Reply,
    Schedule,
    kind_of,
    make_schedule,
)

SEEDS = range(1, 13)
MINUTE, WHOLE = 60.0, 240.0


@cache
def drawn(seed: int, seconds: float) -> Schedule:
    return make_schedule(seed, seconds)


def test_a_seed_gives_one_schedule() -> None:
    """What went wrong can be done again."""
    assert make_schedule(7, WHOLE) == make_schedule(7, WHOLE)
    assert len({drawn(seed, MINUTE) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seconds", [MINUTE, WHOLE])
def test_it_is_in_order_and_within_its_time(seconds: float) -> None:
    """Steps come in the order of their times; the last fault has time to end."""
    for seed in SEEDS:
        schedule = drawn(seed, seconds)
        assert all(one.at <= two.at for one, two in pairwise(schedule.steps))
        assert 0 <= schedule.steps[0].at <= schedule.steps[-1].at < seconds
        assert max(fault.at for fault in schedule.faults) <= seconds - AFTERMATH + 2


def test_four_minutes_have_everything() -> None:
    """Every kind of fault, at least 25 of them and 6 pauses of the leader, and enough nodes for 1,100 allocations."""
    for seed in SEEDS:
        schedule = drawn(seed, WHOLE)
        kinds = Counter(kind_of(fault) for fault in schedule.faults)
        assert set(kinds) == set(Kind)
        assert kinds.total() >= 25
        assert kinds[Kind.PAUSE_ON_THE_WIRE] >= 5
        assert sum(kinds[kind] for kind in PAUSES) >= 7
        assert sum(isinstance(step, CreateNode) for step in schedule.steps) > 1_700


def test_a_minute_has_pauses() -> None:
    """At least two of them, with writes on the wire, and other faults beside."""
    for seed in SEEDS:
        kinds = Counter(kind_of(fault) for fault in drawn(seed, MINUTE).faults)
        assert kinds[Kind.PAUSE_ON_THE_WIRE] >= 2
        assert len(kinds) >= 6


def test_a_pause_outlasts_the_lease() -> None:
    """Pitfall 27: somebody else leads before the paused one wakes, and what it had sent arrives after that."""
    for seed in SEEDS:
        for fault in drawn(seed, WHOLE).faults:
            if isinstance(fault, PauseLeader):
                assert fault.seconds > LONGEST_LEASE + 0.9
                contest = fault.contest
                assert not fault.held or (fault.held > fault.seconds and contest.turned_away and contest.rivals)
                assert {node.name for node in contest.wanting} >= set(contest.turned_away)


def test_answered_writes_are_contested() -> None:
    """What was answered before it arrived is wanted by others meanwhile; the seeds try every reply."""
    faults = [fault for seed in range(1, 41) for fault in drawn(seed, WHOLE).faults]
    answered = [fault for fault in faults if isinstance(fault, AnswerEarly)]
    assert {fault.reply for fault in answered} == set(Reply)
    for fault in answered:
        assert fault.held >= 4.0
        assert fault.contest.turned_away
        assert fault.contest.rivals
