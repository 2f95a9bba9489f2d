"""RangeAllocations in memory, with versions and conflicts as the API server has them; a network that loses things."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, cast

from cidrella.core.address import Address
from cidrella.core.bands import ServiceRange
from cidrella.core.bitmap import Bitmap
from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.model.serviceip import RANGE_ALLOCATIONS_PATH, Grant, grants_text, range_name, read_grants
from cidrella.serviceip.ledger import Ledger

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from cidrella.kube.client import Client
    from cidrella.serviceip.state import State

Json = dict[str, Any]

SMALL = ServiceRange.of(Prefix.parse("10.96.0.0/26"))
"""62 usable addresses, 16 of them in the static band."""
SMALL_IPV6 = ServiceRange.of(Prefix.parse("fd00::/122"))


class Store:
    """The objects, by name, as JSON: so that what is lost of them is seen to be lost."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 0
        self.writes = 0
        self.counts: list[tuple[int, int]] = []
        """How many addresses were given at each version of anything."""

    def make(self, service_range: ServiceRange, held: tuple[int, ...] = (), **fields: object) -> Json:
        """Store the object of a range, as a repairer would; `recent` and `writes` may be lists."""
        bitmap = Bitmap(service_range.usable)
        for offset in held:
            bitmap.add(offset)
        name = range_name(service_range.cidr)
        body = {
            "apiVersion": "cidrella.dev/v1alpha1",
            "kind": "RangeAllocation",
            "metadata": {"name": name, "labels": {"kept": "yes"}},
            "range": str(service_range.cidr),
            "data": _base64(bitmap.snapshot()),
            "writes": "maker.1",
            "repairer": "term-1",
            **_worded(fields),
        }
        return self.put(name, body)

    def put(self, name: str, body: Json) -> Json:
        """Store an object, whatever was there."""
        self.version += 1
        uid = self.objects.get(name, {}).get("metadata", {}).get("uid") or f"uid-{self.version}"
        body["metadata"] = {**body["metadata"], "uid": uid, "resourceVersion": str(self.version)}
        self.objects[name] = json.loads(json.dumps(body))
        if isinstance(data := body.get("data"), str):
            self.counts.append((self.version, int.from_bytes(_unbase64(data)).bit_count()))
        return self.objects[name]

    def edit(self, service_range: ServiceRange, **fields: object) -> None:
        """Change fields of an object, as somebody would by hand; `recent` and `writes` may be lists."""
        name = range_name(service_range.cidr)
        self.put(name, {**self.objects[name], **_worded(fields)})

    def delete(self, service_range: ServiceRange) -> None:
        """Take an object away, as somebody might."""
        del self.objects[range_name(service_range.cidr)]

    def do(self, method: str, path: str, body: bytes | None) -> Json:
        """Carry out a request. Raises ApiError."""
        name = path.removeprefix(RANGE_ALLOCATIONS_PATH).removeprefix("/")
        if method == "POST":
            sent = json.loads(body or b"")
            name = sent["metadata"]["name"]
            if name in self.objects:
                raise ApiError(409, "AlreadyExists", f"there is one of the name {name}")
            self.writes += 1
            return self.put(name, sent)
        if name not in self.objects:
            raise ApiError(404, "NotFound", f"there is no {name}")
        if method == "GET":
            return self.objects[name]
        sent = json.loads(body or b"")
        found = self.objects[name]["metadata"]
        if any(sent["metadata"].get(key) != found[key] for key in ("uid", "resourceVersion")):
            raise ApiError(409, "Conflict", "the object has been modified")
        self.writes += 1
        return self.put(name, sent)

    def held(self, service_range: ServiceRange) -> set[int]:
        """The offsets that are given."""
        found = self.objects[range_name(service_range.cidr)]
        return set(Bitmap.restore(_unbase64(found.get("data", "")), service_range.usable))

    def recent(self, service_range: ServiceRange) -> list[Grant]:
        """What the object remembers as given."""
        return read_grants(self.objects[range_name(service_range.cidr)].get("recent", ""))


class StoreClient:
    """Looks like a `Client` to a ledger, and does to requests what the test says.

    `away`: no connection. `hangs`: no answer. `fault` is asked for each request before it is carried out, and again
    after it: the error that it returns is raised. `latency` is what a request takes on each way.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[str] = []
        self.away = False
        self.hangs = False
        self.fault: Callable[[str, bool], KubeError | None] = lambda _method, _done: None
        self.latency: Callable[[], float] = lambda: 0.001

    @property
    def client(self) -> Client:
        """This, for whoever insists on types."""
        return cast("Client", self)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accept: str = "",
    ) -> bytes:
        """One request, as far as it gets."""
        assert method == "GET" or (params == {"fieldValidation": "Ignore"} and "PartialObjectMetadata" in accept)
        self.asked.append(method)
        if self.hangs:
            await asyncio.sleep(3600)
        await asyncio.sleep(self.latency())
        if self.away:
            raise NoAnswerError("connection refused")
        self._fail(method, done=False)
        reply = json.dumps(self.store.do(method, path, body)).encode()
        await asyncio.sleep(self.latency())
        self._fail(method, done=True)
        return reply

    def _fail(self, method: str, *, done: bool) -> None:
        if (error := self.fault(method, done)) is not None:
            raise error


def next_writes(*errors: KubeError | None, done: bool) -> Callable[[str, bool], KubeError | None]:
    """A fault for the next writes, before or after they are carried out: these errors in turn, None for none."""
    left = list(errors)

    def fault(method: str, at_end: bool) -> KubeError | None:
        return left.pop(0) if method != "GET" and at_end == done and left else None

    return fault


def make_ledger(
    client: StoreClient, service_range: ServiceRange = SMALL, rng: random.Random | None = None, **rest: Any
) -> Ledger:
    """A ledger on a store."""
    return Ledger(client.client, service_range, rng=rng, **rest)


def give(service: str, offset: int) -> Callable[[State], str]:
    """An edit that gives an address, and returns the id of the write that does."""

    def edit(state: State) -> str:
        state.grant(offset, service)
        return state.last_write

    return edit


def address(text: str) -> Address:
    """An address by its text."""
    return Address.parse(text)


def _worded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as the object has them: lists of grants and of writes are texts in it."""
    made = dict(fields)
    if isinstance(recent := made.get("recent"), list):
        made["recent"] = grants_text(Grant(**each) for each in recent)
    if isinstance(writes := made.get("writes"), list):
        made["writes"] = " ".join(writes)
    return made


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    """What is no base64 is made of what can be read of it: it is stored to be refused."""
    return base64.b64decode(text + "==")
