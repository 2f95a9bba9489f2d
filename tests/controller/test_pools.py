"""The pools of every kind, followed together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cidrella.controller.pools import Pools
from cidrella.kube.errors import ApiError
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS
from tests.kube.fakeapi import PATH, FakeApi
from tests.kube.following import until
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from cidrella.kube.client import Client
    from cidrella.kube.reflector import Change
    from cidrella.model.reading import SeenPool

SPECS: dict[object, object] = {
    CLUSTER_CIDR: {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"},
    CLUSTER_CIDR_CONFIG: {"cidr": "10.2.0.0/16", "perNodeMaskSize": 24},
}


class _Pools(FakeApi):
    """The collection of one kind."""

    def __init__(self, spec: object) -> None:
        super().__init__()
        self._spec = spec

    def tell(self, kind: str, obj: dict[str, Any]) -> None:
        """Send a pool rather than a thing."""
        if obj.pop("size", None) is not None:
            obj["spec"] = self._spec
        super().tell(kind, obj)


class _Server:
    """Stands in for the client: each kind has its collection."""

    def __init__(self) -> None:
        self.kinds = {kind: _Pools(SPECS[kind]) for kind in POOL_KINDS}
        self._paths = {kind.path: api for kind, api in self.kinds.items()}

    async def get(self, path: str, kind: type[Any]) -> object:
        served = [each.plural for each, api in self.kinds.items() if api.served and each.path.startswith(path + "/")]
        return msgspec.convert({"resources": [{"name": name} for name in served]}, kind)

    async def request(self, method: str, path: str, **rest: Any) -> bytes:
        return await self._paths[path].request(method, PATH, **rest)

    def watch(self, path: str, params: Any) -> AbstractAsyncContextManager[Any]:
        return self._paths[path].watch(PATH, params)


def test_kinds_come_and_go() -> None:
    """K5, K6, P6: equal names of two kinds are two pools; a kind may be missing, come later, and go with its pools."""

    async def scenario() -> None:
        server = _Server()
        required, optional = server.kinds[CLUSTER_CIDR], server.kinds[CLUSTER_CIDR_CONFIG]
        optional.served = required.served = False
        told: list[Change[SeenPool]] = []
        pools = Pools(cast("Client", server), told.extend)
        tasks = [asyncio.create_task(each.run()) for each in pools.reflectors.values()]
        await until(lambda: all(each.synced for each in pools.reflectors.values()))
        assert (pools.served, pools.missing, dict(pools.objects)) == (frozenset(), [CLUSTER_CIDR], {})
        required.put("pods")
        required.served = True
        await until(lambda: pools.objects)
        assert (pools.served, pools.missing) == (frozenset({CLUSTER_CIDR}), [])
        optional.put("pods")
        optional.put("more")
        optional.served = True
        await until(lambda: len(pools.objects) == 3)
        assert pools.served == set(POOL_KINDS)
        found = {name: (each.kind, each.object_name) for name, each in pools.objects.items()}
        assert found == {
            "pods": (CLUSTER_CIDR, "pods"),
            "ccc/pods": (CLUSTER_CIDR_CONFIG, "pods"),
            "ccc/more": (CLUSTER_CIDR_CONFIG, "more"),
        }
        optional.delete("more")
        await until(lambda: "ccc/more" not in pools.objects)
        optional.put("pods", uid="another")
        await until(lambda: pools.objects["ccc/pods"].uid == "another")
        await pools.relist()
        assert sorted(pools.objects) == ["ccc/pods", "pods"]

        optional.served = False
        optional.send(None)
        await until(lambda: pools.reflectors[CLUSTER_CIDR_CONFIG].absent)
        assert (list(pools.objects), pools.served, pools.missing) == (["pods"], frozenset({CLUSTER_CIDR}), [])
        optional.served = True
        await until(lambda: "ccc/pods" in pools.objects)
        known: dict[str, SeenPool] = {}
        for old, new in told:
            if old is not None:
                assert known.pop(old.name) == old
            if new is not None:
                known[new.name] = new
        assert known == pools.objects
        for task in tasks:
            task.cancel()

    simulate(scenario())


def test_a_kind_that_may_be_missing_is_refused() -> None:
    """K6: with the rights of a version that did not know it, an optional kind that is not there is not missed."""

    async def scenario() -> None:
        server = _Server()
        for api in server.kinds.values():
            api.served = False
            api.list_faults.append(ApiError(403, "Forbidden", "no"))
        pools = Pools(cast("Client", server), lambda _: None)
        tasks = [asyncio.create_task(each.run()) for each in pools.reflectors.values()]
        await asyncio.sleep(0.05)
        found = {kind: (each.absent, bool(each.trouble)) for kind, each in pools.reflectors.items()}
        assert found == {CLUSTER_CIDR: (False, True), CLUSTER_CIDR_CONFIG: (True, False)}
        for task in tasks:
            task.cancel()

    simulate(scenario())
