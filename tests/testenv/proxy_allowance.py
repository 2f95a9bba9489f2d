"""How much of a reply's body goes through before its fault comes. Pure: bytes in, bytes out."""

from __future__ import annotations

from typing import Protocol

from tests.testenv.faults import CutReply, Fault, StallWatch


class Allowance(Protocol):
    """What is left to go through. `spent` once the fault has to come, which may be from the start."""

    @property
    def spent(self) -> bool: ...

    def take(self, data: bytes) -> bytes:
        """Return what may go through now, of this data and of what was held back before."""
        ...

    def finish(self) -> bytes:
        """Return what may still go through when the body ends before the fault has come."""
        ...


class FirstBytes:
    """That many bytes, as they come.

    >>> allowance = FirstBytes(4)
    >>> allowance.take(b"abc"), allowance.spent, allowance.take(b"def"), allowance.spent
    (b'abc', False, b'd', True)
    """

    def __init__(self, count: int) -> None:
        self._left = count

    @property
    def spent(self) -> bool:
        return self._left == 0

    def take(self, data: bytes) -> bytes:
        taken = data[: self._left]
        self._left -= len(taken)
        return taken

    def finish(self) -> bytes:
        return b""


class HalfALine:
    r"""That many lines, as they come, and then half of the next one that is not empty, once it is known how long it is.

    >>> allowance = HalfALine(after_lines=1)
    >>> allowance.take(b"on"), allowance.take(b"e\nfo"), allowance.spent
    (b'on', b'e\n', False)
    >>> allowance.take(b"ur\nthree\n"), allowance.spent
    (b'fo', True)
    """

    def __init__(self, after_lines: int) -> None:
        self._left = after_lines
        self._held = b""
        self.spent = False

    def take(self, data: bytes) -> bytes:
        self._held += data
        taken = self._whole_lines()
        if self._left:
            # The beginning of a line that will go through to its end.
            taken, self._held = taken + self._held, b""
        elif b"\n" in self._held:
            taken += self._half(self._held.index(b"\n"))
        return taken

    def finish(self) -> bytes:
        return self._half(len(self._held))

    def _whole_lines(self) -> bytes:
        """Let go of the lines that are not to be cut."""
        taken = b""
        while b"\n" in self._held and (self._left or self._held.startswith(b"\n")):
            line, end, self._held = self._held.partition(b"\n")
            taken += line + end
            self._left = max(0, self._left - 1)
        return taken

    def _half(self, length: int) -> bytes:
        self.spent = True
        return self._held[: (length + 1) // 2]


def allowance_of(fault: Fault | None) -> Allowance | None:
    """Return how much of the reply goes through, None for all of it."""
    match fault:
        case StallWatch(after_bytes=int(count)) | CutReply(after_bytes=int(count)):
            return FirstBytes(count)
        case CutReply(after_lines=int(count)):
            return HalfALine(count)
        case _:
            return None
