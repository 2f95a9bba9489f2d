"""Pools of one family seldom change alone: nodes wait the moment that it takes the others to follow (K3).

Whoever applies, changes or deletes a pool for each family has the second a moment after the first. A node that was
decided on in between would have one family for life, where both were meant for it, or none. So whatever bears on whom
a pool of one family gives to has nodes wait: a second where it comes or goes, and less where it only changes, for that
is to be felt at once (K2). What follows within that time has them wait anew, for a few seconds in all, and no stream of
changes holds them up for longer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.core.pool import PoolSpec

_COMES_OR_GOES: Final = 1.0
"""Seconds for what may come or go together with a pool: kubectl takes a tenth of it for a file."""
_CHANGES: Final = 0.3
_PATIENCE: Final = 3.0
"""Seconds that nodes wait at most: enough for a file with hundreds of pools."""


class Together:
    """Knows until when others may be on their way that belong to a pool which has just changed."""

    def __init__(self, guarded: Callable[[], Awaitable[None]]) -> None:
        self._guarded = guarded
        """Waits until the pools that have come are guarded: only then they count."""
        self._since = 0.0
        """The event loop's time of the first of the changes that nodes wait for."""
        self._until = 0.0

    def pool_changed(self, old: PoolSpec | None, new: PoolSpec | None) -> None:
        """A pool has come, changed or gone."""
        moment = _moment(old, new)
        if moment:
            now = asyncio.get_running_loop().time()
            if now >= self._until:
                self._since = now
            self._until = max(self._until, min(now + moment, self._since + _PATIENCE))

    async def wait_settled(self) -> None:
        """Wait until pools are as somebody meant them, as far as one can tell. Not for ever: others can be served."""
        await self._guarded()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        while (pause := min(self._until, deadline) - loop.time()) > 0:
            await asyncio.sleep(pause)
            await self._guarded()


def _moment(old: PoolSpec | None, new: PoolSpec | None) -> float:
    """Seconds that a change of a pool is worth."""
    if not any(each is not None and each.composed for each in (old, new)):
        return 0.0
    gave = old is not None and old.gives
    gives = new is not None and new.gives
    if (_usable(new) and not _usable(old)) or (gave and not gives):
        return _COMES_OR_GOES
    return _CHANGES if gave and old != new else 0.0


def _usable(spec: PoolSpec | None) -> bool:
    """Whether a pool gives, or is about to as soon as it is guarded."""
    return spec is not None and not spec.problem and not spec.terminating
