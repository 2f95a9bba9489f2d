"""An API server in memory for whole desks: RangeAllocations as in `store`, collections to be followed, and events."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError
from cidrella.model.objects import SERVICE_CIDRS_PATH
from cidrella.model.serviceip import IP_ADDRESSES_PATH, RANGE_ALLOCATIONS_PATH, SERVICES_PATH, range_name
from cidrella.serviceip.desk import Desk, DeskSettings
from tests.serviceip.store import SMALL, Json, Store, StoreClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from cidrella.core.bands import ServiceRange

PATIENCE = 3600.0
"""In simulated seconds."""


class Collection:
    """Objects by namespace/name, with a history for those who watch."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.objects: dict[str, Json] = {}
        self.served = True
        self.mute = False
        """Whether those who watch hear nothing."""
        self.version = 100
        self.lists = 0
        self._history: list[tuple[int, bytes]] = []
        self._open: list[asyncio.Queue[bytes]] = []

    def put(self, name: str, **fields: object) -> None:
        """Create or modify an object, of which fields beside metadata are given; `metadata` adds to the usual."""
        known = self.objects.get(name)
        self.version += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        namespace, _, short = name.rpartition("/")
        metadata: Json = {"name": short, "uid": uid, "resourceVersion": str(self.version)}
        if namespace:
            metadata["namespace"] = namespace
        extra = fields.pop("metadata", {})
        assert isinstance(extra, dict)
        self.objects[name] = {"metadata": metadata | extra, **fields}
        self._tell("MODIFIED" if known else "ADDED", self.objects[name])

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.version += 1
        obj = self.objects.pop(name)
        self._tell("DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}})

    def _tell(self, kind: str, obj: Json) -> None:
        line = json.dumps({"type": kind, "object": obj}).encode() + b"\n"
        self._history.append((self.version, line))
        for stream in self._open:
            if not self.mute:
                stream.put_nowait(line)

    def list(self) -> Json:
        """All of them, in one page."""
        self.lists += 1
        if not self.served:
            raise ApiError(404, "", "404 page not found")
        return {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.objects.values())}

    @asynccontextmanager
    async def watch(self, version: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Everything since a version, and then what comes."""
        stream: asyncio.Queue[bytes] = asyncio.Queue()
        for at, line in self._history:
            if at > version:
                stream.put_nowait(line)
        self._open.append(stream)
        try:
            yield _lines(stream)
        finally:
            self._open.remove(stream)


async def _lines(stream: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await stream.get()


class FakeCluster(StoreClient):
    """All that a desk asks for."""

    def __init__(self) -> None:
        super().__init__(Store())
        self.services = Collection(SERVICES_PATH)
        self.cidrs = Collection(SERVICE_CIDRS_PATH)
        self.addresses = Collection(IP_ADDRESSES_PATH)
        self.events: list[Json] = []
        self._collections = {each.path: each for each in (self.services, self.cidrs, self.addresses)}
        self.installed = True
        """Whether there is the CRD."""

    def service(self, name: str, *addresses: str, **spec: object) -> None:
        """A Service as "namespace/name" with these addresses."""
        ips = list(addresses)
        self.services.put(name, spec={"type": "ClusterIP", "clusterIP": (ips or [""])[0], "clusterIPs": ips, **spec})

    def cidr(self, name: str, *cidrs: str, **metadata: str) -> None:
        """A ServiceCIDR."""
        made = {"creationTimestamp": f"2026-01-01T00:00:{self.cidrs.version % 60:02}Z"}
        self.cidrs.put(name, metadata=made | metadata, spec={"cidrs": list(cidrs)})

    def overtake(self, service_range: ServiceRange = SMALL, **fields: object) -> None:
        """Write an object as another replica would, so that what was built on the version before is lost."""
        writes = self.store.objects[range_name(service_range.cidr)].get("writes", "")
        self.store.edit(service_range, writes=f"{writes} another.{self.store.version}", **fields)

    def reasons(self, name: str = "") -> list[str]:
        """The reasons of the events on an object of that name, in order."""
        return [each["reason"] for each in self.events if not name or each["regarding"]["name"] == name]

    async def request(
        self,
        method: str,
        path: str,
        *,
        verb: str = "",
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accept: str = "",
        **_: object,
    ) -> bytes:
        """One request."""
        if path.startswith(RANGE_ALLOCATIONS_PATH) and not verb:
            if not self.installed:
                raise ApiError(404, "", "404 page not found")
            return await super().request(method, path, params=params, body=body, accept=accept)
        await asyncio.sleep(0.001)
        return json.dumps(self._answer(method, path, body)).encode()

    def _answer(self, method: str, path: str, body: bytes | None) -> Json:
        if path == RANGE_ALLOCATIONS_PATH:
            if not self.installed:
                raise ApiError(404, "", "404 page not found")
            items = [{"metadata": each["metadata"]} for each in self.store.objects.values()]
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if path in self._collections:
            return self._collections[path].list()
        if path.startswith("/apis/events.k8s.io/v1/namespaces/"):
            if method == "POST":
                self.events.append(json.loads(body or b""))
            return {}
        _, _, name = path.partition("/api/v1/namespaces/")
        found = self.services.objects.get(name.replace("/services/", "/"))
        if found is None:
            raise ApiError(404, "NotFound", f"there is no {path}")
        return found

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch."""
        await asyncio.sleep(0.001)
        async with self._collections[path].watch(int(params["resourceVersion"])) as lines:
            yield lines


@asynccontextmanager
async def desk_at(cluster: FakeCluster, *ranges: str, ready: bool = True, **settings: Any) -> AsyncIterator[Desk]:
    """A desk that runs and leads alone, with the small range by its flag unless others are named or `ranges` is ()."""
    told = DeskSettings(
        ranges=tuple(map(Prefix.parse, ranges)), identity=settings.pop("identity", "me"), election=None, **settings
    )
    desk = Desk(cluster.client, told, CollectorRegistry())
    task = asyncio.create_task(desk.run())
    try:
        if ready:
            await until(lambda: not desk.readiness(), lambda: f"{desk.readiness()}")
        yield desk
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(met: Callable[[], object], explain: Callable[[], str] = lambda: "") -> None:
    """Wait until something holds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while not met():
        assert loop.time() < end, explain()
        await asyncio.sleep(0.01)


def held(cluster: FakeCluster, service_range: ServiceRange = SMALL) -> list[str]:
    """The addresses that are given, by their texts."""
    return [str(service_range.address(offset)) for offset in sorted(cluster.store.held(service_range))]
