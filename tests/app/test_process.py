"""What processes that run for long have in common."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cidrella.app.logs import set_up_logs
from cidrella.app.process import beside, run_loop

if TYPE_CHECKING:
    from cidrella.app.lifetime import Lifetime

CLOSED = "unable to perform operation on <TCPTransport closed=True reading=False 0x2cda6750>; the handler is closed"


@pytest.mark.parametrize(
    ("told", "logged"),
    [
        ({"exception": RuntimeError(CLOSED), "transport": object()}, []),
        ({"exception": RuntimeError(CLOSED)}, ["Fatal error"]),
        ({"exception": RuntimeError("no running event loop"), "transport": object()}, ["Fatal error"]),
        ({"exception": KeyError("oops"), "transport": object()}, ["Fatal error"]),
        ({}, ["Fatal error"]),
    ],
    ids=["a closed connection", "no connection", "another error", "a bug", "nothing known"],
)
def test_what_only_the_event_loop_knows(
    told: dict[str, object], logged: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """O4: that uvloop sends on a connection that it has closed is no error in the log; all else is."""

    async def main(_: Lifetime) -> int:
        asyncio.get_running_loop().call_exception_handler({"message": "Fatal error", **told})
        return 0

    set_up_logs(form="json")
    assert run_loop(main, "a test") == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"].splitlines()[0] for line in lines if line["level"] == "error"] == logged


def test_as_many_files_as_may_be() -> None:
    """O6: what a shell or a container allows at first is no bound on those who connect."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found: list[int] = []

    async def main(_: Lifetime) -> int:
        found.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        return 0

    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 1, hard))
    try:
        assert run_loop(main, "a test") == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == [hard]


def test_what_is_done_beside() -> None:
    """It goes on for as long as that lasts, and is over then; what it died of is not lost."""

    async def scenario() -> None:
        ended = asyncio.Event()

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def die() -> None:
            raise KeyError("oops")

        async with beside(wait()):
            await asyncio.sleep(0)
            assert not ended.is_set()
        assert ended.is_set()
        with pytest.raises(KeyError, match="oops"):
            async with beside(die()):
                await asyncio.sleep(0)

    asyncio.run(scenario())


@pytest.mark.parametrize("returned", [True, False])
def test_large_buffers_are_returned(returned: bool) -> None:
    """After a reply of 12 MB glibc takes a buffer of 1 MB from the heap, where it may stay: not once it is told so."""
    done = subprocess.run(
        [sys.executable, "-c", _BUFFERS, str(int(returned))], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == [str(not returned)]


_BUFFERS = """
import ctypes, sys
from cidrella.app.process import return_large_buffers
if int(sys.argv[1]):
    return_large_buffers()
large = bytearray(12 << 20)
del large
buffer = bytearray(1 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
with open("/proc/self/maps") as maps:
    spans = [line.split()[0].split("-") for line in maps if "[heap]" in line]
print(any(int(first, 16) <= at < int(last, 16) for first, last in spans))
"""
