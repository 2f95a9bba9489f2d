"""Group commit beside one compare-and-swap for each allocation: part of `make bench-services`.

All on a real API server, through the allocator that the webhook uses, in one process. So many requests wait at a time:
whoever is given an address asks for the next. One at a time is the same, but that a lock lets one request in after the
other: each allocation is a write of its own, and no race is lost. Every address that was given is checked.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvloop

from cidrella.core.bands import ServiceRange
from cidrella.core.prefix import Prefix
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.model.serviceip import RANGE_ALLOCATIONS_PATH, range_name
from cidrella.serviceip.allocator import Allocator, Want
from cidrella.serviceip.ledger import Ledger
from cidrella.serviceip.state import RECENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.cluster import Cluster

    from bench.report import Report

RANGE = "10.97.0.0/16"
"""Another than the API server's own."""
WAITING = (1, 8, 32, 128)
SINGLY = 32
"""How many wait where one is let in at a time."""
TIMES_AS_MANY = 8
"""What group commit is held to at as many."""
WRITES = 200
"""How many writes a measurement takes, about."""
SEED = 3070
_TITLE = "one compare-and-swap per allocation, 32 waiting"


@dataclass(frozen=True)
class Rate:
    """How fast addresses were given, and by how many writes."""

    per_second: float
    per_write: float


def compare_commits(report: Report, cluster: Cluster, rounds: int, writes: int = WRITES) -> None:
    """Both, in turns."""
    uvloop.run(_compare(report, cluster, rounds, writes))


async def _compare(report: Report, cluster: Cluster, rounds: int, writes: int) -> None:
    found: dict[str, list[Rate]] = {}
    async with Client(load_access(str(cluster.kubeconfig))) as client:
        await _measure(cluster, client, SINGLY, writes * 4)  # warms up
        for number in range(rounds):
            print(f"group commit: round {number + 1} of {rounds}", flush=True)
            found.setdefault(_TITLE, []).append(await _measure(cluster, client, SINGLY, writes, singly=True))
            for waiting in WAITING:
                name = f"group commit, {waiting} waiting"
                found.setdefault(name, []).append(await _measure(cluster, client, waiting, waiting * writes))
    rates = {name: statistics.median(each.per_second for each in those) for name, those in found.items()}
    for name, rate in rates.items():
        report.figure(f"{name}: allocations per second", rate)
        report.figure(f"{name}: allocations per write", statistics.median(each.per_write for each in found[name]))
    for waiting in WAITING:
        ratio = rates[f"group commit, {waiting} waiting"] / rates[_TITLE]
        limit = TIMES_AS_MANY if waiting == SINGLY else 0
        report.ratio(f"group commit, {waiting} waiting: times one write per allocation", ratio, at_least=limit)


async def _measure(cluster: Cluster, client: Client, waiting: int, count: int, *, singly: bool = False) -> Rate:
    """So many allocations, out of a range that has seen some: its object remembers as much as it ever does."""
    services = ServiceRange.of(Prefix.parse(RANGE))
    path = f"{RANGE_ALLOCATIONS_PATH}/{range_name(services.cidr)}"
    ledger = Ledger(client, services)
    assert await ledger.establish([], "bench", "")
    allocator = Allocator(lambda: [ledger], below=random.Random(SEED).randrange)
    gate = asyncio.Lock() if singly else nullcontext()
    given: list[object] = []

    async def ask(name: str) -> None:
        transaction = await allocator.allocate(name, [Want(services.cidr.family, None)])
        given.extend(each.address for each in transaction.given)
        await transaction.commit()

    async def ask_for_each(names: Iterator[str]) -> None:
        for name in names:
            async with gate:
                await ask(name)

    await asyncio.gather(*(ask(f"bench/before-{number}") for number in range(RECENT)))
    names = (f"bench/service-{number}" for number in range(count))
    before = _writes(cluster, path)
    began = time.perf_counter()
    await asyncio.gather(*(ask_for_each(names) for _ in range(waiting)))
    seconds = time.perf_counter() - began
    writes = _writes(cluster, path) - before
    assert len({*given}) == count + RECENT == (await ledger.refresh()).bitmap.count
    cluster.admin.delete(path)
    return Rate(count / seconds, count / writes)


def _writes(cluster: Cluster, path: str) -> int:
    """How often an object was written: the API server counts that."""
    return int(cluster.admin.get(path)["metadata"]["generation"])
