"""The bare limit: what the same requests cost with nothing around them. A process of its own, for `bench.cluster`.

Four works, through the transport that the controller uses, on one event loop, with nothing kept and nothing decided:

- `patch`: list the nodes, then send each its PATCH, so many at a time; then wait to be ended, as a controller would.
- `sweep`: the same for a few hundred nodes at each of several concurrencies, in turns; prints their rates as JSON.
- `arrivals`: watch nodes, say so, and send each that is new its PATCH; until ended.
- `list`: one paged list, decoded into nothing; prints the seconds it took as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import ssl
import statistics
import time
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import msgspec
import uvloop

from cidrella.kube.credentials import Access, Credentials
from cidrella.kube.transport import Call, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

CONCURRENCIES = (8, 16, 32, 64)
LENGTH = 24
WATCHING = "watching"
_NODES = "/api/v1/nodes"
_PAGE = 500
_SWEEPS = 3
_JSON = "application/json"
_PATCH = "application/strategic-merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_TIMEOUT = 600.0
_CONNECTIONS = 10_000


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Spec(msgspec.Struct):
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class _Event(msgspec.Struct):
    type: str
    object: _Node


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class _PageOfNothing(msgspec.Struct):
    metadata: _ListMeta


class _Page(_PageOfNothing):
    items: list[_Node]


_P = TypeVar("_P", bound=_PageOfNothing)


class Bare:
    """The requests, on a transport."""

    def __init__(self, transport: Transport, credentials: Credentials, server: str, cidrs: Iterator[str]) -> None:
        self._transport = transport
        self._credentials = credentials
        self._nodes = f"{server}{_NODES}"
        self._cidrs = cidrs

    async def pages(self, kind: type[_P]) -> AsyncIterator[_P]:
        """A list of all nodes, page by page."""
        query = {"limit": str(_PAGE)}
        while True:
            page = msgspec.json.decode(await self._get(query), type=kind)
            yield page
            if not page.metadata.more:
                return
            query["continue"] = page.metadata.more

    async def waiting(self) -> list[_Meta]:
        """The nodes without a block."""
        return [each.metadata async for page in self.pages(_Page) for each in page.items if not each.spec.pod_cidr]

    async def patch(self, node: _Meta) -> None:
        """Give a node the next block, in the one PATCH that the controller sends."""
        cidr = next(self._cidrs)
        body = msgspec.json.encode(
            {
                "metadata": {"uid": node.uid, "annotations": {"cidrella.dev/pool": "bare"}},
                "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
            }
        )
        url = f"{self._nodes}/{node.name}?fieldValidation=Ignore"
        await self._exchange(Call("PATCH", url, body, _PATCH, _METADATA_ONLY))

    async def patch_all(self, nodes: Sequence[_Meta], concurrency: int) -> float:
        """All of them, so many at a time. Returns the seconds it took."""
        left = iter(nodes)

        async def work() -> None:
            for node in left:
                await self.patch(node)

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - began

    async def arrivals(self) -> None:
        """For ever: a PATCH for each node that comes."""
        version = msgspec.json.decode(await self._get({"limit": "1"}), type=_PageOfNothing).metadata.resource_version
        query = urlencode({"watch": "true", "resourceVersion": version})
        call = Call("GET", f"{self._nodes}?{query}", None, _JSON, _JSON)
        event = msgspec.json.Decoder(_Event)
        async with asyncio.TaskGroup() as tasks:
            with closing(await self._transport.open(call, self._credentials)) as reply:
                print(WATCHING, flush=True)
                rest = b""
                async for chunk in reply.chunks():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for each in map(event.decode, lines):
                        if each.type == "ADDED" and not each.object.spec.pod_cidr:
                            tasks.create_task(self.patch(each.object.metadata))
        raise RuntimeError("the watch ended")

    async def _get(self, query: dict[str, str]) -> bytes:
        return await self._exchange(Call("GET", f"{self._nodes}?{urlencode(query)}", None, _JSON, _JSON))

    async def _exchange(self, call: Call) -> bytes:
        reply = await self._transport.exchange(call, self._credentials, None)
        if reply.code != 200:
            raise RuntimeError(f"{call}: {reply.code} {reply.body[:200]!r}")
        return reply.body


async def sweep(bare: Bare, count: int) -> dict[int, float]:
    """Nodes per second at each concurrency, the median of several turns; the first turn only warms up."""
    nodes = await bare.waiting()
    turns = [each for _ in range(_SWEEPS + 1) for each in CONCURRENCIES]
    step = min(count, len(nodes) // len(turns))
    rates: dict[int, list[float]] = {each: [] for each in CONCURRENCIES}
    for turn, concurrency in enumerate(turns):
        seconds = await bare.patch_all(nodes[turn * step : (turn + 1) * step], concurrency)
        rates[concurrency].append(step / seconds)
    return {concurrency: statistics.median(each[1:]) for concurrency, each in rates.items()}


async def work(options: argparse.Namespace) -> None:
    """Do the work that was asked for."""
    tls = ssl.create_default_context(cafile=options.ca)
    tls.load_cert_chain(options.certificate, options.key)
    cidrs = (str(each) for each in ipaddress.ip_network(options.range).subnets(new_prefix=LENGTH))
    transport = Transport(Access(options.server), timeout=_TIMEOUT, connections=_CONNECTIONS)
    bare = Bare(transport, Credentials("", tls), options.server, cidrs)
    try:
        match options.work:
            case "list":
                began = time.perf_counter()
                async for _ in bare.pages(_PageOfNothing):
                    pass
                print(json.dumps({"seconds": time.perf_counter() - began}))
            case "sweep":
                print(json.dumps(await sweep(bare, options.count)))
            case "arrivals":
                await bare.arrivals()
            case _:
                await bare.patch_all(await bare.waiting(), options.concurrency)
                await asyncio.Event().wait()
    finally:
        await transport.close()


def main() -> None:
    """Read the options and go."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("work", choices=("patch", "sweep", "arrivals", "list"))
    for name in ("server", "ca", "certificate", "key"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--range", default="100.64.0.0/10", help="what to give blocks out of")
    arguments.add_argument("--concurrency", type=int, default=CONCURRENCIES[1])
    arguments.add_argument("--count", type=int, default=300, help="nodes for each turn of the sweep")
    uvloop.run(work(arguments.parse_args()))


if __name__ == "__main__":
    main()
