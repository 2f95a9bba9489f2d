"""A reflector under test in simulated time, and somebody who believes everything that it tells."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cidrella.kube.reflector import Change, Reflector, ReflectorSettings
from tests.kube.fakeapi import PATH, FakeApi, Thing, decode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PATIENCE = 3600.0
"""In simulated seconds."""


class Follower:
    """Knows what it was told, and that every batch fits what it knew."""

    def __init__(self) -> None:
        self.known: dict[str, Thing] = {}
        self.batches: list[list[Change[Thing]]] = []

    def on_changes(self, changes: list[Change[Thing]]) -> None:
        """Believe it."""
        assert changes
        self.batches.append(changes)
        for old, new in changes:
            self._believe(old, new)

    def _believe(self, old: Thing | None, new: Thing | None) -> None:
        if old is not None:
            assert self.known.pop(old.name) == old
        if new is not None:
            assert new.name not in self.known
            self.known[new.name] = new
        assert old != new
        assert old is None or new is None or (old.name, old.uid) == (new.name, new.uid)

    def words(self, batch: int) -> list[str]:
        """A batch in short: +a added, ~a modified, -a gone."""
        signs = {(False, True): "+", (True, True): "~", (True, False): "-"}
        return [
            signs[change.old is not None, change.new is not None] + (change.new or change.old or _nobody()).name
            for change in self.batches[batch]
        ]


def _nobody() -> Thing:
    raise AssertionError("a change of nothing into nothing")


@asynccontextmanager
async def reflecting(
    api: FakeApi, *, settings: ReflectorSettings | None = None, seed: int = 1
) -> AsyncIterator[tuple[Reflector[Thing], Follower]]:
    """A reflector that runs. It must not have ended by itself, and at the end what it knows is what it told."""
    follower = Follower()
    reflector = Reflector(api.client, PATH, decode, follower.on_changes, settings=settings, rng=random.Random(seed))
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector, follower
        assert follower.known == reflector.objects
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def until(met: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.01)


def sizes(api: FakeApi) -> dict[str, tuple[str, int]]:
    """What there is: uid and size by name."""
    return {name: (obj["metadata"]["uid"], obj["size"]) for name, obj in api.objects.items()}


def seen(reflector: Reflector[Thing]) -> dict[str, tuple[str, int]]:
    """What the reflector has: uid and size by name."""
    return {name: (thing.uid, thing.size) for name, thing in reflector.objects.items()}
