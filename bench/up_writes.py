"""The requests of `bench.up`: nodes are created, and each is given its block, as the controller does it.

All over one transport, which is the controller's own, so many at a time. Bodies are made before the clock starts.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tests.testenv.nodes import NODES, assert_no_overlap, pod_cidrs, realistic_node

from bench.cluster_stage import node_names
from cidrella.kube.access import load_access
from cidrella.kube.transport import Call, Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.testenv.api import Api

    from cidrella.kube.credentials import Credentials

_RANGE = "100.64.0.0/10"
_LENGTH = 24
_JSON = "application/json"
_PATCH = "application/strategic-merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_TIMEOUT = 600.0


@dataclass(frozen=True)
class Seconds:
    """What it took to create all nodes, and to patch them."""

    create: float
    patch: float

    @property
    def both(self) -> float:
        """The one after the other."""
        return self.create + self.patch


class _Meta(msgspec.Struct):
    uid: str


class _Created(msgspec.Struct):
    metadata: _Meta


async def write_nodes(api: Api, count: int, concurrency: int) -> Seconds:
    """Create so many nodes on an API server that has none, and patch each; so many requests at a time."""
    access = load_access(str(api.kubeconfig))
    transport = Transport(access, timeout=_TIMEOUT, connections=concurrency)
    writes = _Writes(transport, await access.credentials(), access.server)
    names = node_names(count)
    bodies = {name: msgspec.json.encode(realistic_node(name)) for name in names}
    blocks = ipaddress.ip_network(_RANGE).subnets(new_prefix=_LENGTH)
    given = dict(zip(names, map(str, blocks), strict=False))
    try:
        create = await _timed(concurrency, names, lambda name: writes.create(name, bodies[name]))
        patch = await _timed(concurrency, names, lambda name: writes.patch(name, given[name]))
    finally:
        await transport.close()
    _verify(api, given)
    return Seconds(create, patch)


class _Writes:
    def __init__(self, transport: Transport, credentials: Credentials, server: str) -> None:
        self._transport = transport
        self._credentials = credentials
        self._nodes = f"{server}{NODES}"
        self._uids: dict[str, str] = {}

    async def create(self, name: str, body: bytes) -> None:
        """As a kubelet registers itself."""
        reply = await self._exchange(Call("POST", self._nodes, body, _JSON, _JSON))
        self._uids[name] = msgspec.json.decode(reply, type=_Created).metadata.uid

    async def patch(self, name: str, cidr: str) -> None:
        """The one PATCH that the controller sends."""
        body = msgspec.json.encode(
            {
                "metadata": {"uid": self._uids[name], "annotations": {"cidrella.dev/pool": "bench"}},
                "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
            }
        )
        await self._exchange(
            Call("PATCH", f"{self._nodes}/{name}?fieldValidation=Ignore", body, _PATCH, _METADATA_ONLY)
        )

    async def _exchange(self, call: Call) -> bytes:
        reply = await self._transport.exchange(call, self._credentials, None)
        if reply.code not in {200, 201}:
            raise RuntimeError(f"{call}: {reply.code} {reply.body[:200]!r}")
        return reply.body


async def _timed(concurrency: int, names: list[str], write: Callable[[str], Awaitable[None]]) -> float:
    """One write for each name, so many at a time. Returns the seconds it took."""
    left = iter(names)

    async def work(left: Iterator[str]) -> None:
        for name in left:
            await write(name)

    began = time.perf_counter()
    await asyncio.gather(*(work(left) for _ in range(concurrency)))
    return time.perf_counter() - began


def _verify(api: Api, given: dict[str, str]) -> None:
    """Whatever was fast has to be right."""
    nodes = api.admin.items(NODES)
    assert pod_cidrs(nodes) == {name: [cidr] for name, cidr in given.items()}
    assert_no_overlap(nodes)
