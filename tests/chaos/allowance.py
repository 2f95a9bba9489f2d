"""What a controller may not know yet: when something happened, and whether a fault kept it from being told.

A controller learns from watches, a moment after the fact. Between the moment at which something happened and the moment
at which a replica acted as if it had not, no more than `ALLOWANCE` seconds may have passed in which nothing was wrong:
neither with the cluster nor with that replica. A fault goes on for `RECOVERY` seconds after it ended, which is what it
takes to connect again and to catch up. Faults of other replicas excuse nothing. An API server that takes longer than
`SLOW` seconds to answer a write is a fault of the cluster, though nobody brought it about: so is a busy machine.

Revisions have no times of their own. The API server answered each write after its revision came to be, so the earliest
answer that tells of a revision or of a later one is when it had happened at the latest. Taking that as the beginning,
and as the end the moment at which the API server received what was sent, is in favour of the controller.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from tests.chaos.history import Fault

if TYPE_CHECKING:
    from tests.chaos.history import History

ALLOWANCE: Final = 3.0
RECOVERY: Final = 3.0
SLOW: Final = 1.0


class Clock:
    """When revisions came to be, and what happened since."""

    def __init__(self, history: History) -> None:
        told = [(each.revision, each.answered) for each in history.writes if each.revision is not None]
        told += [(each.revision, each.answered) for each in history.snapshots]
        told.sort()
        self._revisions = [revision for revision, _ in told]
        self._answered = [answered for _, answered in told]
        for at in reversed(range(len(told) - 1)):
            self._answered[at] = min(self._answered[at], self._answered[at + 1])
        self._received: dict[int, float] = {}
        for each in history.writes:
            if each.revision is not None:
                # A write that changed nothing is answered with the revision that was there: the first is what made it.
                self._received[each.revision] = min(each.received, self._received.get(each.revision, math.inf))
        slow = [
            Fault("slow", each.received, each.answered)
            for each in history.writes
            if each.answered - each.received > SLOW
        ]
        self._faults = sorted((*history.faults, *slow), key=lambda fault: fault.begin)

    def latest(self, revision: int) -> float:
        """When a revision had come to be, at the latest; never, as far as is known, after the last write."""
        at = bisect_left(self._revisions, revision)
        return self._answered[at] if at < len(self._answered) else math.inf

    def received(self, revision: int) -> float:
        """When the write that made a revision was received, or the best that is known."""
        return self._received.get(revision, self.latest(revision))

    def excuses(self, replica: str | None, since: float, until: float) -> bool:
        """Whether a replica need not have known at one moment what happened at another; None may have been any."""
        return self.sound_seconds(replica, since, until) <= ALLOWANCE

    def sound_seconds(self, replica: str | None, since: float, until: float) -> float:
        """How many seconds between two moments were seconds in which nothing was wrong."""
        sound, at = 0.0, since
        for fault in self._faults:
            if replica is not None and fault.replica not in {None, replica}:
                continue
            if fault.begin >= until:
                break
            sound += max(0.0, fault.begin - at)
            at = max(at, fault.end + RECOVERY)
        return sound + max(0.0, until - at)
