"""Nodes that come at a steady rate, while some look at the page or nobody does: how long they wait for their blocks."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.reflector import Reflector
from cidrella.model.objects import NODES_PATH
from cidrella.model.reading import read_node

if TYPE_CHECKING:
    from cidrella.core.decision import Node
    from cidrella.kube.reflector import Change

COUNT, PER_SECOND = 400, 20
_PATIENCE = 60.0


class Wait(NamedTuple):
    """Milliseconds that nodes wait."""

    half: float
    most: float
    """The 99th percentile."""


async def arrivals(kubeconfig: str, prefix: str) -> Wait:
    """Have nodes come, see how long each waits, and have them go again."""
    created: dict[str, float] = {}
    served: dict[str, float] = {}
    every = asyncio.Event()

    def changed(changes: list[Change[Node]]) -> None:
        for _, new in changes:
            if new is not None and new.pod_cidrs and new.name in created:
                served.setdefault(new.name, time.perf_counter())
        if len(served) == COUNT:
            every.set()

    async with Client(load_access(kubeconfig, "")) as client:
        nodes = Reflector(client, NODES_PATH, read_node, changed)
        watching = asyncio.create_task(nodes.run())
        await nodes.wait_synced()
        for number in range(COUNT):
            name = f"{prefix}-{number:03}"
            created[name] = time.perf_counter()
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            await client.create(NODES_PATH, node, dict)
            await asyncio.sleep(max(0.0, created[name] + 1 / PER_SECOND - time.perf_counter()))
        await asyncio.wait_for(every.wait(), _PATIENCE)
        for name in created:
            await client.request("DELETE", f"{NODES_PATH}/{name}")
        watching.cancel()
    waits = [(served[name] - created[name]) * 1000 for name in created]
    return Wait(statistics.median(waits), statistics.quantiles(waits, n=100)[98])


if __name__ == "__main__":
    print(json.dumps(uvloop.run(arrivals(*sys.argv[1:]))))
