"""The reflector on objects that are known by another name than the one that they have in the API."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from cidrella.kube.reflector import Change, Reflector
from tests.kube.fakeapi import PATH, FakeApi, Thing, decode
from tests.kube.following import until
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    import msgspec


def known_as(name: str) -> str:
    return f"t/{name}"


def renamed(raw: bytes | msgspec.Raw) -> Thing:
    thing = decode(raw)
    return replace(thing, name=known_as(thing.name))


def test_known_by_another_name() -> None:
    """K5: whatever tells of an object, the list or the watch, readable or not, is taken to be of the right one."""

    async def scenario() -> None:
        api = FakeApi()
        for name in ("a", "b", "c"):
            api.put(name, 1)
        told: list[Change[Thing]] = []
        reflector = Reflector(api.client, PATH, renamed, told.extend, known_as=known_as)
        task = asyncio.create_task(reflector.run())
        await until(lambda: api.watches)
        assert sorted(reflector.objects) == ["t/a", "t/b", "t/c"]
        api.delete("a")
        await until(lambda: "t/a" not in reflector.objects)
        assert [(old and old.name, new) for old, new in told[-1:]] == [("t/a", None)]

        # One that cannot be read stays as it was known; another of that name that cannot be read means that it is gone.
        api.put("b", "nonsense")
        api.put("c", 2)
        await until(lambda: reflector.objects["t/c"].size == 2)
        assert reflector.objects["t/b"].size == 1
        await reflector.relist()
        assert sorted(reflector.objects) == ["t/b", "t/c"]
        api.put("b", "nonsense", uid="another")
        await until(lambda: "t/b" not in reflector.objects)
        api.mute = True
        api.delete("c")
        await reflector.relist()
        assert list(reflector.objects) == []
        task.cancel()

    simulate(scenario())
