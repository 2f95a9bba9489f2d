"""A Lease in memory, with versions and conflicts as the API server has them, and a client that can lose things."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from cidrella.kube.campaign import Ask, Verb
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.model.lease import Lease

if TYPE_CHECKING:
    from cidrella.kube.client import Client

T = TypeVar("T")


class LeaseStore:
    """One Lease, as plain data: so that what is lost of it is seen to be lost."""

    def __init__(self) -> None:
        self.data: dict[str, object] | None = None
        self.version = 0

    @property
    def lease(self) -> Lease:
        """The Lease. Raises ApiError if there is none."""
        if self.data is None:
            raise ApiError(404, "NotFound", "no such lease")
        return msgspec.convert(self.data, Lease)

    def do(self, ask: Ask) -> Lease:
        """Carry out a request. Raises ApiError."""
        body = msgspec.to_builtins(ask.body)
        if ask.verb is Verb.READ:
            return self.lease
        if ask.verb is Verb.CREATE:
            if self.data is not None:
                raise ApiError(409, "AlreadyExists", "there is one")
            return self.put(body)
        if self.lease.version != ask.body.version:
            raise ApiError(409, "Conflict", "there is a newer one")
        return self.put(_merged(self.data, body))

    def put(self, data: object) -> Lease:
        """Store a Lease, whoever held it before."""
        self.version += 1
        self.data = cast("dict[str, object]", _merged(data, {"metadata": {"resourceVersion": str(self.version)}}))
        return self.lease

    def edit(self, **spec: object) -> None:
        """Change the Lease as somebody would by hand."""
        self.put(_merged(self.data, {"spec": spec}))

    def delete(self) -> None:
        """Take the Lease away, as somebody might."""
        self.data = None


class StoreClient:
    """Looks like a `Client` to an elector, and does to requests what the test says.

    `away`: no connection. `hangs`: no answer. `refusal`: what is answered to writes. `lost`: so many replies to writes
    get lost. `latency` and `latency_of_replies`: what each takes on its way.
    """

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.asked: list[Verb] = []
        self.away = False
        self.hangs = False
        self.refusal: KubeError | None = None
        self.lost = 0
        self.latency = 0.01
        self.latency_of_replies = 0.0

    def as_client(self) -> Client:
        """This, for whoever insists on types."""
        return cast("Client", self)

    async def get(self, path: str, kind: type[T]) -> T:
        assert kind is Lease
        assert path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cidrella"
        return cast("T", await self._do(Verb.READ, Lease()))

    async def create(self, path: str, obj: Lease, kind: type[T]) -> T:
        assert kind is Lease
        assert path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        return cast("T", await self._do(Verb.CREATE, obj))

    async def patch(self, path: str, patch: Lease, kind: type[T]) -> T:
        assert kind is Lease
        assert path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cidrella"
        return cast("T", await self._do(Verb.WRITE, patch))

    async def _do(self, verb: Verb, body: Lease) -> Lease:
        self.asked.append(verb)
        if self.hangs:
            await asyncio.sleep(3600)
        await asyncio.sleep(self.latency)
        if self.away:
            raise NoAnswerError("connection refused")
        if self.refusal and verb is not Verb.READ:
            raise self.refusal
        lease = self.store.do(Ask(verb, body, 0, 0))
        await asyncio.sleep(self.latency_of_replies)
        if verb is not Verb.READ and self.lost:
            self.lost -= 1
            raise NoAnswerError("the connection was lost")
        return lease


def _merged(old: object, new: object) -> object:
    """A merge patch, applied: what is null goes."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    merged = old | {key: _merged(old.get(key, {}), value) for key, value in new.items()}
    return {key: value for key, value in merged.items() if value is not None}
