"""Pauses between attempts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.kube.backoff import Backoff


@given(st.floats(0.001, 1), st.floats(1, 60), st.integers())
def test_between_base_and_cap_and_never_more_than_thrice_the_last(base: float, cap: float, seed: int) -> None:
    """Each delay lies between base and cap, and is at most three times the one before it."""
    backoff = Backoff(base, cap, random.Random(seed))
    last = base
    for _ in range(50):
        delay = backoff.next()
        assert base <= delay <= min(cap, 3 * last)
        last = delay


def test_grows_and_starts_over() -> None:
    """After many failures the delays are long, on average; after a reset the next is short again."""
    backoff = Backoff(0.1, 10, random.Random(1))
    delays = [backoff.next() for _ in range(200)]
    assert sum(delays[20:]) / 180 > 1
    backoff.reset()
    assert backoff.next() <= 0.3


def test_longer_cap_on_demand() -> None:
    """Trouble that takes a person to end may be given a longer cap, and only that."""
    backoff = Backoff(0.1, 10, random.Random(1))
    assert max(backoff.next(30) for _ in range(200)) > 10
    assert max(backoff.next(5) for _ in range(200)) > 5
    assert max(backoff.next() for _ in range(200)) == 10


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1)])
def test_settings_that_make_no_sense(base: float, cap: float) -> None:
    """A base of nothing would be no backoff at all."""
    with pytest.raises(ValueError, match="base"):
        Backoff(base, cap, random.Random(1))
