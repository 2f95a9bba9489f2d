"""Which write is sent next: retries and inherited writes have a share, first attempts always have a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.controller.send_queue import Attempt, SendQueue
from cidrella.kube.limiter import LEAST

if TYPE_CHECKING:
    from collections.abc import Sequence


def fill(queue: SendQueue[str], attempt: Attempt, many: int) -> None:
    for number in range(many):
        name = f"{attempt.value} {number}"
        queue.put(name, name, attempt, failures=number)


def taken(queue: SendQueue[str], window: int) -> list[Attempt]:
    """The attempts of all that may be sent now."""
    return [attempt for attempt, _ in iter(lambda: queue.take(window), None)]


@pytest.mark.parametrize("window", [4, 5, 8, 16, 31, 32])
def test_shares(window: int) -> None:
    """Retries get a quarter of the window, inherited writes half of it, first attempts what is left, at least one."""
    queue = SendQueue[str]()
    for attempt in Attempt:
        fill(queue, attempt, 100)
    attempts = taken(queue, window)
    assert attempts.count(Attempt.RETRY) == window // 4
    assert attempts.count(Attempt.INHERITED) == window // 2
    assert attempts.count(Attempt.FIRST) == window - window // 4 - window // 2 > 0


@pytest.mark.parametrize(("attempt", "expected"), [(Attempt.RETRY, 2), (Attempt.INHERITED, 4), (Attempt.FIRST, 8)])
def test_a_share_is_not_exceeded_where_nothing_else_waits(attempt: Attempt, expected: int) -> None:
    """A slot is left for a first attempt that may come: whatever hangs now, it need not wait for that."""
    queue = SendQueue[str]()
    fill(queue, attempt, 100)
    assert taken(queue, 8) == [attempt] * expected
    if attempt is not Attempt.FIRST:
        queue.put("n", "new", Attempt.FIRST)
        assert queue.take(8) == (Attempt.FIRST, "new")


def test_fewest_failures_first() -> None:
    """Of the retries that with fewest failures goes first, and of those alike the first that came."""
    queue = SendQueue[str]()
    for failures, name in ((3, "c"), (1, "a"), (2, "b"), (1, "a too")):
        queue.put(name, name, Attempt.RETRY, failures)
    order = []
    while (each := queue.take(4)) is not None:
        order.append(each[1])
        queue.ended(each[0])
    assert order == ["a", "a too", "b", "c"]


def test_clear() -> None:
    """What waits comes back; what is in flight still counts."""
    queue = SendQueue[str]()
    for attempt in Attempt:
        fill(queue, attempt, 2)
    assert queue.take(4) is not None
    assert len(queue.clear()) == 5
    assert queue.first_attempts == 0
    fill(queue, Attempt.RETRY, 1)
    assert queue.take(4) is None
    queue.ended(Attempt.RETRY)
    assert queue.take(4) is not None


@pytest.mark.parametrize("attempt", Attempt)
def test_discard(attempt: Attempt) -> None:
    """A write that was discarded is not sent; a later one for the same node is, in the order of its own."""
    queue = SendQueue[str]()
    queue.put("a", "old", attempt, failures=0)
    queue.put("b", "other", attempt, failures=1)
    assert queue.discard("a")
    assert not queue.discard("a")
    queue.put("a", "new", attempt, failures=2)
    order = []
    while (each := queue.take(4)) is not None:
        order.append(each[1])
        queue.ended(each[0])
    assert order == ["other", "new"]


def test_nothing_is_kept_of_what_was_discarded() -> None:
    """However many retries come and are discarded, what is kept of them is bounded."""
    queue = SendQueue[str]()
    for number in range(1000):
        queue.put(str(number), "x", Attempt.RETRY, failures=number)
        queue.discard(str(number))
    assert len(queue._retries) <= 65
    assert queue.take(4) is None


@given(st.lists(st.tuples(st.sampled_from(Attempt), st.booleans(), st.integers(LEAST, 32)), max_size=200))
def test_a_first_attempt_never_waits_for_others(steps: Sequence[tuple[Attempt, bool, int]]) -> None:
    """Whatever came and ended before, and however the window changes: what waits is kept back by its own kind only."""
    queue = SendQueue[str]()
    flying: list[Attempt] = []
    waiting = dict.fromkeys(Attempt, 0)
    for number, (attempt, ends, window) in enumerate(steps):
        if ends and flying:
            queue.ended(flying.pop(0))
        else:
            queue.put(str(number), "x", attempt)
            waiting[attempt] += 1
        new = taken(queue, window)
        flying += new
        for each in new:
            waiting[each] -= 1
        if waiting[Attempt.FIRST]:
            assert len(flying) >= window
        if waiting[Attempt.RETRY]:
            assert flying.count(Attempt.RETRY) >= window // 4 or len(flying) >= window
        if waiting[Attempt.INHERITED]:
            assert flying.count(Attempt.INHERITED) >= window // 2 or len(flying) >= window
