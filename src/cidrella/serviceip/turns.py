"""How processes that write one object take turns, without a word between them.

Theory of operation:

- Of those who try at once, one wins and the others have worked for nothing, and made the winner slow. So each waits
  before it tries: a random part of the time that all of them need, one after the other.
- How many there are is seen in the object. The ids of writes begin with the name of their writer, so that the rivals
  are those who have written since we last did, or first looked. They are forgotten one by one: two turns in a row prove
  nothing. Who is alone never waits.
- Winners wait as well. They know the newest version and need not read it: else they would win again and again, and
  others never.
- Each attempt is as good as any other's, however many were lost before: nobody is left behind for long. Waiting less
  after each loss, to catch up, makes more losers; waiting more, as is usual, leaves them behind.
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIRST_GUESS: Final = 0.005
"""Seconds that a request takes, before one was made."""
_LONGEST: Final = 0.25
"""Seconds that a request is believed to take at most: one that hung says nothing of the others."""
_WEIGHT: Final = 0.2
"""Of the last request in the mean."""


class Turns:
    """The turns of one writer at one object."""

    def __init__(self, writer: str, jitter: Callable[[], float]) -> None:
        self._writer = writer
        self._jitter = jitter
        self._numbers = count(1)
        self._seconds = _FIRST_GUESS
        self._first_seen: str | None = None
        """The last write when we first looked: of those before it nobody knows how old they are."""
        self._rivals = 0
        """How many others want to write, as far as was seen."""

    def next_id(self) -> str:
        """The id of a write: nobody has used it, and it says whose it is."""
        return f"{self._writer}.{next(self._numbers)}"

    def took(self, seconds: float) -> None:
        """A request was answered after so long."""
        self._seconds += _WEIGHT * (min(seconds, _LONGEST) - self._seconds)

    def saw(self, writes: Sequence[str]) -> None:
        """The object was read; its last writes are these."""
        if self._first_seen is None:
            self._first_seen = writes[-1] if writes else ""
        since = takewhile(lambda write: write != self._first_seen, reversed(writes))
        others = set(takewhile(lambda writer: writer != self._writer, map(_writer_of, since)))
        self._rivals = max(len(others), self._rivals - 1)

    def lost(self) -> float:
        """A race was lost: the seconds to wait before the object is read and the next attempt made."""
        return self._part_of(max(1, self._rivals))

    def won(self) -> float:
        """A race was won: the seconds to wait before the next; 0.0 if there is nobody to wait for."""
        return self._part_of(self._rivals)

    def _part_of(self, turns: int) -> float:
        """A random part of the time that so many turns take, of two requests each."""
        return self._jitter() * turns * 2 * self._seconds


def _writer_of(write: str) -> str:
    return write.rpartition(".")[0]
