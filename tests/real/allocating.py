"""Processes that take and give back addresses of one range, all at once, until it is full.

    python -m tests.real.allocating KUBECONFIG CIDR DIRECTORY PROCESSES

Each writes what it was told into a file of its own, a line of JSON for each event, with the time of a clock that all
processes of a machine share. None knows of the others, but for a barrier between taking turns and filling up.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cidrella.core.bands import ServiceRange
from cidrella.core.prefix import Family, Prefix
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.serviceip import ledger as ledgers
from cidrella.serviceip.allocator import Allocator, Transaction, Want
from cidrella.serviceip.errors import FullError
from cidrella.serviceip.ledger import Ledger

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

SERVICES = 4
"""That one process looks after at the same time."""
TURNS = 2
"""How often each takes an address and gives it back before all fill up."""
PATIENCE = 120.0
"""Seconds without an answer after which a process gives up. None is to: faults follow each other, on a busy machine."""
CANCELLED = 0.1
"""How often nobody waits for the answer any more."""


class Process:
    """One of them."""

    def __init__(self, number: int, allocator: Allocator, log: TextIO) -> None:
        self._name = f"p{number}"
        self._allocator = allocator
        self._log = log
        self._rng = random.Random(number)

    async def take_turns(self, number: int) -> None:
        """Take addresses and give them back."""
        for turn in range(TURNS):
            taken = await self._take(f"{self._name}/turn-{number}-{turn}", cancelled=self._rng.random() < CANCELLED)
            if taken is not None:
                await asyncio.sleep(self._rng.uniform(0, 0.05))
                self._tell("gave", taken)
                await taken.revert()

    async def fill(self, number: int) -> None:
        """Take addresses, for good, until there are none."""
        turn = 0
        while (taken := await self._take(f"{self._name}/fill-{number}-{turn}")) is not None:
            await taken.commit()
            turn += 1

    async def _take(self, service: str, *, cancelled: bool = False) -> Transaction | None:
        began = time.monotonic()
        asked = asyncio.ensure_future(self._allocator.allocate(service, [Want(Family.IPV4)]))
        if cancelled:
            asyncio.get_running_loop().call_later(self._rng.uniform(0, 0.2), asked.cancel)
        try:
            taken = await asked
        except asyncio.CancelledError:
            return None
        except FullError:
            self._tell("full", began=began)
            return None
        except Exception as error:  # what it may be is for the test to judge
            self._tell("failed", error=repr(error), began=began)
            return None
        self._tell("took", taken, began=began)
        return taken

    def _tell(self, event: str, taken: Transaction | None = None, **more: Any) -> None:
        address = {"address": str(taken.given[0].address)} if taken else {}
        self._log.write(json.dumps({"event": event, "at": time.monotonic(), **address, **more}) + "\n")


async def _main(number: int, config: str, cidr: str, log: TextIO, barrier: Barrier) -> None:
    async with Client(load_access(config, "")) as client:
        vars(ledgers)["PATIENCE"] = PATIENCE
        ledger = Ledger(client, ServiceRange.of(Prefix.parse(cidr)), identity=f"p{number}")
        process = Process(number, Allocator(lambda: [ledger]), log)
        await asyncio.gather(*map(process.take_turns, range(SERVICES)))
        await ledger.finish(30)
        await asyncio.to_thread(barrier.wait, 60)
        await asyncio.gather(*map(process.fill, range(SERVICES)))
        await ledger.finish(30)


def _run(number: int, config: str, cidr: str, directory: str, barrier: Barrier) -> None:
    with (Path(directory) / f"{number}.jsonl").open("w") as log:
        asyncio.run(_main(number, config, cidr, log, barrier))


def main(config: str, cidr: str, directory: str, count: str) -> int:
    """Run them all: whether any ended as it should not."""
    context = multiprocessing.get_context("fork")  # the modules are there already: 32 interpreters take seconds
    barrier = context.Barrier(int(count))
    processes = [
        context.Process(target=_run, args=(number, config, cidr, directory, barrier)) for number in range(int(count))
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    return int(any(each.exitcode for each in processes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
