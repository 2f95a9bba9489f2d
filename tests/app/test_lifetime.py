"""How the process ends: told to, by itself, or by force."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from cidrella.app.lifetime import Lifetime


def told(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop(number: signal.Signals) -> None:
    """The first signal cancels the work, waits until it has finished what is in flight, and is a success."""
    finished = []

    async def work() -> None:
        told(number)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            finished.append(True)

    async def scenario() -> int:
        with Lifetime() as lifetime:
            return await lifetime.spend_on(work())

    assert asyncio.run(scenario()) == 0
    assert finished == [True]
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_work_that_returns_when_it_is_told_to_stop() -> None:
    """Work may return instead of raising the cancellation."""

    async def work() -> None:
        told()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    async def scenario() -> int:
        with Lifetime() as lifetime:
            return await lifetime.spend_on(work())

    assert asyncio.run(scenario()) == 0


def test_work_that_ends_by_itself() -> None:
    """A controller has no end of its own: one that ends is a failure."""

    async def scenario() -> int:
        with Lifetime() as lifetime:
            return await lifetime.spend_on(asyncio.sleep(0))

    assert asyncio.run(scenario()) == 1


@pytest.mark.parametrize("stopping", [False, True])
def test_work_that_fails(stopping: bool) -> None:
    """An error is a failure, also on the way out."""

    async def work() -> None:
        if stopping:
            told()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                raise OSError("broken") from error
        raise OSError("broken")

    async def scenario() -> int:
        with Lifetime() as lifetime:
            return await lifetime.spend_on(work())

    assert asyncio.run(scenario()) == 1


def test_told_again() -> None:
    """The second signal ends the process at once, whatever is in flight."""
    left: list[int] = []

    async def scenario() -> None:
        let_go = asyncio.Event()

        async def work() -> None:
            told()
            try:
                await asyncio.Event().wait()
            finally:
                told(signal.SIGINT)
                await let_go.wait()

        def leave(code: int) -> None:
            left.append(code)
            let_go.set()

        with Lifetime(leave=leave) as lifetime:
            await lifetime.spend_on(work())

    asyncio.run(scenario())
    assert left == [130]


HANGS = """
import asyncio, os, signal, sys
from cidrella.app.lifetime import Lifetime

async def work():
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        await asyncio.Event().wait()
    finally:
        {hang}

async def scenario():
    with Lifetime(grace=0.1) as lifetime:
        await lifetime.spend_on(work())

asyncio.run(scenario())
"""


@pytest.mark.parametrize("hang", ["await asyncio.Event().wait()", "__import__('time').sleep(300)"])
def test_work_that_does_not_stop(hang: str) -> None:
    """Work that does not finish in time, or holds the event loop, does not keep the process."""
    done = subprocess.run(
        [sys.executable, "-c", HANGS.format(hang=hang)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "did not stop in time" in done.stdout + done.stderr
