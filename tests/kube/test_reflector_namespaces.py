"""The reflector on objects that live in namespaces, where a name alone says little."""

from __future__ import annotations

import asyncio
from typing import Any

from cidrella.kube.reflector import Change, Reflector
from cidrella.model.serviceip import SeenService, read_service
from tests.kube.fakeapi import PATH, FakeApi
from tests.kube.following import until
from tests.kube.simulated import simulate


class _Services(FakeApi):
    """Services, put and deleted as "namespace/name"."""

    def put(self, name: str, size: object = "", uid: str = "") -> None:
        """Create or modify a Service; its size is its address."""
        super().put(name, size, uid)

    def tell(self, kind: str, obj: dict[str, Any]) -> None:
        """Send a Service rather than a thing."""
        if "size" in obj:
            namespace, _, name = obj["metadata"]["name"].rpartition("/")
            address = obj.pop("size")
            obj["metadata"] |= {"namespace": namespace, "name": name}
            obj["spec"] = {"clusterIPs": address if isinstance(address, list) else [address]}
            if kind != "DELETED":
                self.objects[f"{namespace}/{name}"] = obj
        super().tell(kind, obj)


def test_equal_names_in_different_namespaces() -> None:
    """B8: Services of one name in two namespaces are two, listed and watched; each goes alone, also where it is odd."""

    async def scenario() -> None:
        api = _Services()
        api.put("a/web", "10.96.0.1")
        api.put("b/web", "10.96.0.2")
        told: list[Change[SeenService]] = []
        reflector = Reflector(api.client, PATH, read_service, told.extend)
        task = asyncio.create_task(reflector.run())
        await until(lambda: api.watches)
        assert {name: each.cluster_ips for name, each in reflector.objects.items()} == {
            "a/web": ("10.96.0.1",),
            "b/web": ("10.96.0.2",),
        }
        api.put("c/web", "10.96.0.3")
        api.delete("a/web")
        await until(lambda: "a/web" not in reflector.objects)
        assert sorted(reflector.objects) == ["b/web", "c/web"]
        assert [(old and old.name, new and new.name) for old, new in told[-2:]] == [(None, "c/web"), ("a/web", None)]

        # One that cannot be read stays as it was known, and is gone when it is; its namesake has nothing to do with it.
        api.put("b/web", [7])
        api.put("c/web", "10.96.0.4")
        await until(lambda: reflector.objects["c/web"].cluster_ips == ("10.96.0.4",))
        assert reflector.objects["b/web"].cluster_ips == ("10.96.0.2",)
        await reflector.relist()
        assert sorted(reflector.objects) == ["b/web", "c/web"]
        api.delete("b/web")
        await until(lambda: "b/web" not in reflector.objects)
        assert sorted(reflector.objects) == ["c/web"]
        task.cancel()

    simulate(scenario())


def test_a_deletion_that_only_a_list_shows() -> None:
    """B8: what went while nobody watched is found gone by its full name."""

    async def scenario() -> None:
        api = _Services()
        api.put("a/web", "10.96.0.1")
        api.put("b/web", "10.96.0.2")
        reflector = Reflector(api.client, PATH, read_service, lambda _: None)
        task = asyncio.create_task(reflector.run())
        await until(lambda: api.watches)
        api.mute = True
        api.delete("b/web")
        await reflector.relist()
        assert list(reflector.objects) == ["a/web"]
        task.cancel()

    simulate(scenario())
