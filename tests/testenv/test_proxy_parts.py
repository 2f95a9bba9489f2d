"""The parts of the proxy that can be held to their word without one: streams, and how much of a reply goes through."""

from __future__ import annotations

import asyncio
import socket

from hypothesis import given
from hypothesis import strategies as st

from tests.testenv.faults import cut_reply, stall_watch, swallow
from tests.testenv.proxy_allowance import Allowance, FirstBytes, HalfALine, allowance_of
from tests.testenv.proxy_wire import Stream

SHORT = 0.1
"""Seconds that a test can afford to wait for nothing."""

pieces = st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=8)


def through(allowance: Allowance, pieces: list[bytes]) -> bytes:
    """Return what goes through of a body that comes in these pieces."""
    taken = b""
    for piece in pieces:
        if allowance.spent:
            return taken
        taken += allowance.take(piece)
    return taken if allowance.spent else taken + allowance.finish()


class TestStream:
    """What was sent has left."""

    def test_written_is_sent(self) -> None:
        """What a write has returned for arrives, even if the connection is aborted right after."""

        async def write_until_nobody_takes_more(connection: socket.socket) -> int:
            stream, written = Stream(*await asyncio.open_connection(sock=connection), tls=None), 0
            try:
                while True:
                    async with asyncio.timeout(SHORT):
                        await stream.write(bytes(1000))
                    written += 1000
            except TimeoutError:
                stream.abort()
                await stream.closed()
            return written

        ours, theirs = socket.socketpair()
        with ours, theirs:
            written = asyncio.run(write_until_nobody_takes_more(ours))
            received = 0
            while piece := theirs.recv(65536):
                received += len(piece)
        assert 0 < written <= received


class TestAllowance:
    """How much of a reply goes through depends on the reply alone, not on the pieces in which it comes."""

    @given(pieces, st.integers(0, 60))
    def test_first_bytes(self, pieces: list[bytes], count: int) -> None:
        """That many bytes go through, or all there are."""
        assert through(FirstBytes(count), pieces) == b"".join(pieces)[:count]

    @given(pieces, st.integers(0, 5))
    def test_half_a_line(self, pieces: list[bytes], after_lines: int) -> None:
        """That many lines go through whole, empty ones after them too, and half of the next, rounded up."""
        lines = b"".join(pieces).splitlines(keepends=True)
        expected = b"".join(lines[:after_lines])
        for line in lines[after_lines:]:
            if text := line.removesuffix(b"\n"):
                expected += text[: (len(text) + 1) // 2]
                break
            expected += line
        assert through(HalfALine(after_lines), pieces) == expected

    def test_of_a_fault(self) -> None:
        """Faults that end a reply early say where; the others let all of it through."""
        assert isinstance(allowance_of(stall_watch(0)), FirstBytes)
        assert isinstance(allowance_of(cut_reply(0)), FirstBytes)
        assert isinstance(allowance_of(cut_reply(mid_line=True)), HalfALine)
        assert allowance_of(swallow()) is None
        assert allowance_of(None) is None
