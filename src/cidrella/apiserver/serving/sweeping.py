"""Objects that go by themselves, some time after they were last written: events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.holdings import Holdings

PERIOD: Final = 60.0
"""Seconds between looks at what is there."""


class _Seen(NamedTuple):
    """Since when an object has been at a version."""

    version: int
    since: float


class Sweeping:
    """Looks at the objects that have a lifetime. What was there at the start lives as if it had just been written."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._seen: dict[tuple[str, str], _Seen] = {}

    async def run(self) -> None:
        """For ever, until cancelled."""
        while True:
            self.sweep(asyncio.get_running_loop().time())
            await asyncio.sleep(PERIOD)

    def sweep(self, now: float) -> None:
        """Delete what has lived long enough. O(objects that have a lifetime)."""
        mortal = {each.resource.store_key: each.resource for each in self._holdings.registry.all()}
        seen: dict[tuple[str, str], _Seen] = {}
        for resource in mortal.values():
            if resource.lifetime:
                self._sweep(resource, now, seen)
        self._seen = seen

    def _sweep(self, resource: Resource, now: float, seen: dict[tuple[str, str], _Seen]) -> None:
        for entry in self._holdings.store.entries(resource.store_key):
            key = (resource.store_key, entry.path)
            known = self._seen.get(key)
            if known is None or known.version != entry.version:
                known = _Seen(entry.version, now)
            if now - known.since < resource.lifetime:
                seen[key] = known
            else:
                self._holdings.delete(resource, entry)
