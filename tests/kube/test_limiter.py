"""How many writes may be in flight: neither one by one nor so many that the server is run over."""

from __future__ import annotations

import asyncio

import pytest

from cidrella.kube.errors import ApiError, ConfigError, KubeError, MalformedReplyError, NoAnswerError
from cidrella.kube.limiter import CAP, LEAST, START, AdaptiveLimit

TOO_MANY = ApiError(429, "", "Too many requests, please try again later.", retry_after=3.0, is_status=False)
WEBHOOK_429 = ApiError(429, "TooManyRequests", "later", retry_after=3.0)


class Clock:
    """Time that passes when it is told to, or slept away."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def limit_on(clock: Clock, cap: int = CAP) -> AdaptiveLimit:
    return AdaptiveLimit(cap=cap, clock=clock, sleep=clock.sleep)


def one_round(limit: AdaptiveLimit, clock: Clock, error: KubeError | None = None, seconds: float = 0.01) -> None:
    """As many writes as the limit lets through, all of which end the same way."""
    beginnings = [limit.began() for _ in range(limit.limit)]
    clock.now += seconds
    for began in beginnings:
        limit.ended(began, error)


def grown(clock: Clock) -> AdaptiveLimit:
    """A limit that has grown as far as it goes."""
    limit = limit_on(clock)
    for _ in range(100):
        one_round(limit, clock)
    assert limit.limit == CAP
    return limit


def test_grows_by_about_one_a_round_up_to_its_cap() -> None:
    """Answers in time let the limit grow by one for each round of them, and never beyond the cap."""
    clock = Clock()
    limit = limit_on(clock)
    assert limit.limit == START
    for rounds in range(1, 21):
        one_round(limit, clock)
        assert START + rounds - 2 <= limit.limit <= START + rounds
    for _ in range(100):
        one_round(limit, clock)
    assert limit.limit == CAP
    assert limit.in_flight == 0


@pytest.mark.parametrize("code", [404, 409, 422])
def test_a_definite_refusal_is_an_answer(code: int) -> None:
    """A server that refuses for the request's own sake is well: the limit grows."""
    clock = Clock()
    limit = limit_on(clock)
    for _ in range(5):
        one_round(limit, clock, ApiError(code, "Reason", "no"))
    assert limit.limit > START


@pytest.mark.parametrize(
    "error",
    [NoAnswerError("gone"), MalformedReplyError("html"), ApiError(500, "", ""), ApiError(503, "", ""), WEBHOOK_429],
)
def test_a_round_of_failed_first_attempts_halves_the_limit(error: KubeError) -> None:
    """Where every first attempt of a round fails, the server is in trouble: half as many, and never below `LEAST`."""
    clock = Clock()
    limit = grown(clock)
    one_round(limit, clock, error)
    assert limit.limit == CAP // 2
    one_round(limit, clock, error)
    assert limit.limit == CAP // 4
    for _ in range(20):
        one_round(limit, clock, error)
    assert limit.limit == LEAST
    for _ in range(200):
        one_round(limit, clock)
    assert limit.limit == CAP


@pytest.mark.parametrize(("failed", "left"), [(0, 8), (2, 7), (4, 6), (6, 5), (8, 4)])
def test_some_failed_first_attempts_shrink_the_limit_by_half_their_share(failed: int, left: int) -> None:
    """Where a share of the first attempts of a round fails, the limit shrinks by half of that share."""
    clock = Clock()
    limit = limit_on(clock)
    for number, began in enumerate([limit.began() for _ in range(START)]):
        limit.ended(began, NoAnswerError("gone") if number < failed else None)
    assert limit.limit == left


def test_failed_retries_never_shrink_the_limit_and_answered_ones_let_it_grow() -> None:
    """Retries that fail say nothing of the server, whatever their number; those that are answered do."""
    clock = Clock()
    limit = limit_on(clock)
    for _ in range(100):
        limit.ended(limit.began(), NoAnswerError("gone"), first=False)
    assert limit.limit == START
    for _ in range(5):
        for began in [limit.began() for _ in range(limit.limit)]:
            limit.ended(began, None, first=False)
    assert limit.limit > START


def test_a_429_of_the_server_halves_once_a_round() -> None:
    """Of all requests that were in flight when the server answered 429, the first halves the limit."""
    clock = Clock()
    limit = grown(clock)
    one_round(limit, clock, TOO_MANY)
    assert limit.limit == CAP // 2
    one_round(limit, clock, TOO_MANY)
    assert limit.limit == CAP // 4


def test_a_429_of_an_admission_webhook_pauses_nothing() -> None:
    """A 429 that is a Status comes from an admission webhook, and is about one object: other writes go on."""

    async def scenario() -> None:
        clock = Clock()
        limit = limit_on(clock)
        limit.ended(limit.began(), WEBHOOK_429)
        assert await limit.wait() == START
        assert clock.slept == []

    asyncio.run(scenario())


def test_slowness_shrinks_gently_and_passes() -> None:
    """Answers that take longer than the target shrink the limit by a tenth a round, until they are fast again."""
    clock = Clock()
    limit = limit_on(clock)
    one_round(limit, clock, seconds=1.0)
    assert limit.limit == int(START * 0.9)
    one_round(limit, clock, seconds=1.0)
    assert limit.limit == int(START * 0.9 * 0.9)
    assert limit.latency == pytest.approx(1.0)
    for _ in range(30):
        one_round(limit, clock, seconds=1.0)
    assert limit.limit == LEAST
    for _ in range(30):
        one_round(limit, clock)
    assert limit.limit > START


def test_waits_while_all_slots_are_taken() -> None:
    """`wait` returns the free slots, and with none free returns as soon as one is."""

    async def scenario() -> None:
        clock = Clock()
        limit = limit_on(clock, cap=2)
        assert await limit.wait() == 2
        first, _second = limit.began(), limit.began()
        waiting = asyncio.create_task(limit.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        limit.ended(first, None)
        assert await waiting == 1
        assert clock.slept == []

    asyncio.run(scenario())


@pytest.mark.parametrize(("retry_after", "pause"), [(3.0, 3.0), (None, 1.0), (0.0, 0.0), (1e9, 60.0)])
def test_pauses_for_as_long_as_the_server_says(retry_after: float | None, pause: float) -> None:
    """A 429 stops all writes until its Retry-After is over, a second if it has none, and never for hours."""

    async def scenario() -> None:
        clock = Clock()
        limit = limit_on(clock)
        limit.ended(limit.began(), ApiError(429, "", "later", retry_after, is_status=False))
        before = clock.now
        assert await limit.wait() == START // 2
        assert clock.now - before == pytest.approx(pause)

    asyncio.run(scenario())


def test_a_longer_pause_is_not_cut_short() -> None:
    """A second 429 with a shorter time, while the first one's still runs, does not end it early."""

    async def scenario() -> None:
        clock = Clock()
        limit = limit_on(clock)
        first, second = limit.began(), limit.began()
        limit.ended(first, TOO_MANY)
        limit.ended(second, ApiError(429, "", "", 1.0, is_status=False))
        before = clock.now
        await limit.wait()
        assert clock.now - before == pytest.approx(3.0)

    asyncio.run(scenario())


def test_stops_growing_where_more_only_wait_in_line() -> None:
    """A server that works on ten at a time is kept busy, and gets about as many more as keep it so, not the cap."""
    clock = Clock()
    limit = limit_on(clock, cap=1000)
    for _ in range(500):
        one_round(limit, clock, seconds=0.01 * max(1.0, limit.limit / 10))
    assert 10 <= limit.limit <= 24
    for _ in range(500):  # it has become as slow as it is now for good, or others use it as well
        one_round(limit, clock, seconds=0.2)
    assert limit.limit >= LEAST


def test_writes_that_hang_are_excused_while_others_are_answered() -> None:
    """A write that hangs leaves its slot to others, up to a number, and counts again when it ends."""

    async def scenario() -> None:
        clock = Clock()
        limit = limit_on(clock)
        one_round(limit, clock)
        hanging = []
        for _ in range(CAP):
            hanging.append(limit.began())
            assert limit.excuse()
        assert await limit.wait() == limit.limit
        assert limit.in_flight == CAP
        limit.began()
        assert not limit.excuse()
        assert await limit.wait() == limit.limit - 1
        for began in hanging:
            limit.readmit()
            limit.ended(began, NoAnswerError("gone"))
        assert limit.in_flight == 1
        assert limit.limit == LEAST

    asyncio.run(scenario())


def test_what_was_not_sent_says_nothing() -> None:
    """A write that was not sent, for want of credentials, is no answer of the server."""
    clock = Clock()
    limit = limit_on(clock)
    for _ in range(100):
        limit.ended(limit.began(), ConfigError("the credential plugin failed"))
    assert (limit.limit, limit.latency, limit.in_flight) == (START, 0.0, 0)


def test_a_slow_server_excuses_nothing() -> None:
    """Where answers take longer than the target, a write that takes long is no exception, and keeps its slot."""
    clock = Clock()
    limit = limit_on(clock)
    one_round(limit, clock, seconds=1.5)
    limit.began()
    assert not limit.excuse()
    assert limit.in_flight == 1
