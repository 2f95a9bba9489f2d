"""The last changes, for any number of readers that have no queue."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from cidrella.web.history import ForgottenError, History


def test_who_follows_is_told_everything_once() -> None:
    """A place in the history is all that one needs."""
    history = History(100)
    assert history.after(100) == []
    for each in (b"a", b"b", b"c"):
        history.add(each)
    assert history.version == 103
    assert history.after(100) == [b"a", b"b", b"c"]
    assert history.after(102) == [b"c"]
    assert history.after(103) == []


@pytest.mark.parametrize("version", [99, 104, -1, 10**18])
def test_a_version_that_is_not_known(version: int) -> None:
    """From before the beginning, or of another process: it is not guessed what came after it."""
    history = History(100)
    for each in (b"a", b"b", b"c"):
        history.add(each)
    with pytest.raises(ForgottenError):
        history.after(version)


def test_bounds() -> None:
    """Neither the number of changes nor their size grows without end; the last one is there in any case."""
    history = History(0, count_max=3, size_max=100)
    for each in range(5):
        history.add(b"%d" % each)
    assert history.after(2) == [b"2", b"3", b"4"]
    with pytest.raises(ForgottenError):
        history.after(1)
    history.add(b"x" * 99)
    assert history.after(4) == [b"4", b"x" * 99]
    history.add(b"y" * 1000)
    assert history.after(6) == [b"y" * 1000]
    with pytest.raises(ForgottenError):
        history.after(5)


def test_waiting() -> None:
    """All who wait are woken by a change, by the end, and by a beginning anew."""

    async def scenario() -> None:
        history = History(0)
        for happen in (partial(history.add, b"a"), history.forget, history.end):
            waiting = [asyncio.ensure_future(history.wait(history.version)) for _ in range(3)]
            await asyncio.sleep(0)
            assert not any(each.done() for each in waiting)
            happen()
            await asyncio.wait_for(asyncio.gather(*waiting), 60)
        await asyncio.wait_for(history.wait(history.version), 60)

    asyncio.run(scenario())


def test_forgetting() -> None:
    """Whoever was there before begins anew."""
    history = History(0)
    history.add(b"a")
    history.forget()
    for version in (0, 1):
        with pytest.raises(ForgottenError):
            history.after(version)
    assert history.after(2) == []
