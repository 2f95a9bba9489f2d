"""Parts that work side by side, and end together."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from cidrella.kube.parts import run_parts
from tests.kube.simulated import simulate


class Parts:
    """Two that go on until they are told to end, and what happened, in order."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    async def work(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.happened.append(f"{name} ended")

    async def finish(self) -> None:
        await asyncio.sleep(0.1)
        self.happened.append("finished")

    async def run(self, *more: str, seconds: float = 10.0, failed: asyncio.Future[None] | None = None) -> None:
        """Run the two, and one that ends as it is told after a second."""
        failed = failed or asyncio.get_running_loop().create_future()
        parts = [self.work("first"), self.work("second"), *(self.end(each) for each in more)]
        async with asyncio.timeout(seconds):
            await run_parts(parts, failed, self.finish, "the test")

    async def end(self, how: str) -> None:
        await asyncio.sleep(1)
        if how:
            raise ValueError(how)


def test_one_that_fails() -> None:
    """O6: what it failed of is raised, when what is under way is finished, and then the others have ended."""
    parts = Parts()
    with pytest.raises(ValueError, match="out of luck"):
        simulate(parts.run("out of luck"))
    assert parts.happened == ["finished", "first ended", "second ended"]


def test_one_that_ends() -> None:
    """O6: none of them should; it is not taken for success."""
    with pytest.raises(AssertionError, match="a part of the test ended"):
        simulate(Parts().run(""))


def test_one_that_fails_on_the_way_out() -> None:
    """O6: only one error can be raised; each is in the log."""
    with capture_logs() as lines, pytest.raises(ValueError, match="th"):
        simulate(Parts().run("this", "that"))
    assert [(line["event"], line["error"]) for line in lines] == [
        ("a part of the test failed", "ValueError('this')"),
        ("a part of the test failed", "ValueError('that')"),
    ]


def test_told_to_end() -> None:
    """O6: the same order where it is cancelled."""
    parts = Parts()
    with pytest.raises(TimeoutError):
        simulate(parts.run(seconds=0.5))
    assert parts.happened == ["finished", "first ended", "second ended"]


def test_a_failure_elsewhere() -> None:
    """O6: what works beside the parts ends them by `failed`."""
    parts = Parts()

    async def all_of_it() -> None:
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[None] = loop.create_future()
        loop.call_later(0.5, failed.set_exception, ValueError("elsewhere"))
        await parts.run(failed=failed)

    with pytest.raises(ValueError, match="elsewhere"):
        simulate(all_of_it())
    assert parts.happened == ["finished", "first ended", "second ended"]
