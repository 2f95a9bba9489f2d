"""An example that lives: nodes of a few kinds, pools for them where there are none, nodes that come and go.

The pools are just large enough: each zone has one that fills, a pool for all takes what does not fit, and when most
nodes are there, some wait. How many nodes there are swings slowly around the number that was asked for.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from typing import TYPE_CHECKING, Any, Final

from cidrella.app.kubelet import register, unregister
from cidrella.kube.errors import ApiError
from cidrella.kube.listing import list_all
from cidrella.kube.wire import read_head
from cidrella.model.kinds import CLUSTER_CIDR, POOL_KINDS
from cidrella.model.objects import NODES_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.kube.client import Client

    Json = dict[str, Any]
    Progress = Callable[[int, int], None]

ZONE: Final = "topology.kubernetes.io/zone"
SIZE: Final = "node.kubernetes.io/instance-type"
_ZONES: Final = {"zone-a": "10.0.0.0", "zone-b": "10.32.0.0", "zone-c": "10.64.0.0"}
_EVERY_LARGE: Final = 8
"""Of so many nodes one is large."""
_OURS: Final = re.compile(r"worker-([0-9]{3}|[1-9][0-9]{3,8})", re.ASCII)
_AT_ONCE: Final = 16
_PAUSE: Final = 0.25
"""Seconds between two changes: a few a second are as many as one can follow."""
_PERIOD: Final = 240.0
"""Seconds in which the number of nodes goes up and down once."""
_MIDDLE, _SWING = 0.85, 0.4
"""Of the number that was asked for: between somewhat less than half, and a quarter more."""
_SEED: Final = 20_200_617


def pool_objects(nodes: int) -> Iterator[Json]:
    """Pools for so many nodes."""
    some = _power_below(nodes / 3 * (1 - 1 / _EVERY_LARGE))
    for zone, address in _ZONES.items():
        yield _pool(zone, address, blocks=some, host_bits=8, selector=(ZONE, zone))
    yield _pool(
        "large", "10.128.0.0", blocks=_power_below(nodes / _EVERY_LARGE), host_bits=10, selector=(SIZE, "large")
    )
    yield _pool("all-nodes", "10.192.0.0", blocks=2 * _power_below(nodes / 2), host_bits=8, selector=None)


def labels_of(number: int) -> dict[str, str]:
    """Those of a node of the example."""
    zone = list(_ZONES)[number % len(_ZONES)]
    return {ZONE: zone, SIZE: "usual" if number % _EVERY_LARGE else "large"}


class Example:
    """So many nodes, more or less, on one API."""

    def __init__(self, client: Client, nodes: int, version: str, *, pools: bool = True) -> None:
        self._client = client
        self._nodes = nodes
        self._version = version
        self._pools = pools
        """Whether the kinds of pools are there."""
        self._there: set[int] = set()
        """The numbers of our nodes."""

    async def prepare(self, progress: Progress) -> None:
        """Have the nodes, and pools if there are none. Raises `KubeError`."""
        if self._pools and not any([await list_all(self._client, kind.path) for kind in POOL_KINDS]):
            for each in pool_objects(self._nodes):
                await self._client.create(CLUSTER_CIDR.path, each, dict)
        names = [read_head(item).name for item in await list_all(self._client, NODES_PATH)]
        self._there = {int(found[1]) for name in names if (found := _OURS.fullmatch(name))}
        missing = [number for number in range(1, self._nodes + 1) if number not in self._there]
        for at in range(0, len(missing), _AT_ONCE):
            await asyncio.gather(*map(self._add, missing[at : at + _AT_ONCE]))
            progress(min(at + _AT_ONCE, len(missing)), len(missing))

    async def live(self, seed: int = _SEED) -> None:
        """Let nodes come and go, for ever. Raises `KubeError`."""
        chance = random.Random(seed)  # noqa: S311 -- an example is the same each time
        for step in range(1, 1 << 60):
            await asyncio.sleep(_PAUSE)
            wanted = self._nodes * (_MIDDLE + _SWING * math.sin(2 * math.pi * step * _PAUSE / _PERIOD))
            grows = len(self._there) < wanted
            if (chance.random() < 0.8) is grows or not self._there:
                await self._add(max(self._there, default=0) + 1)
            else:
                await self._remove(chance.choice(sorted(self._there)))

    async def _add(self, number: int) -> None:
        """Have a node. One that somebody else has made is as good."""
        self._there.add(number)
        try:
            await register(self._client, _name(number), labels_of(number), self._version)
        except ApiError as error:
            if error.reason not in ("AlreadyExists", "NotFound"):  # made, or deleted again, by somebody else
                raise

    async def _remove(self, number: int) -> None:
        self._there.discard(number)
        await unregister(self._client, _name(number))


def _name(number: int) -> str:
    return f"worker-{number:03}"


def _power_below(number: float) -> int:
    """The largest power of two that is not more, and at least 1."""
    return 1 << max(0, math.floor(math.log2(max(1.0, number))))


def _pool(name: str, address: str, *, blocks: int, host_bits: int, selector: tuple[str, str] | None) -> Json:
    length = 32 - host_bits - blocks.bit_length() + 1
    spec: Json = {"perNodeHostBits": host_bits, "ipv4": f"{address}/{length}"}
    if selector:
        key, value = selector
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
        spec["nodeSelector"] = {"nodeSelectorTerms": terms}
    return {"apiVersion": CLUSTER_CIDR.api_version, "kind": CLUSTER_CIDR.kind, "metadata": {"name": name}, "spec": spec}
