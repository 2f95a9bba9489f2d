"""The allocators that clusters run today, beside ours on the same work: part of `make bench-core`.

- `cidrset`: what kube-controller-manager gives blocks with. One range and one block size; a bitmap that is searched bit
  by bit, from where the last block was found.
- `multicidrset`: what node-ipam-controller gives blocks with. Several ranges; for each node, every block that is held
  is read and compared with the candidate.

The programs around them are in testenv/bench. A run does one work and prints the nanoseconds of an allocation as JSON.
Theirs and ours take turns, and the best turn of each counts, so that a slow moment of the machine harms neither. Theirs
find and mark a block; ours records who holds it as well.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.testenv import binaries, go

from cidrella.core.prefix import Prefix
from cidrella.core.space import AddressSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.core import Report
    from cidrella.core.view import View

    Work = Callable[[], list[float]]
    """Does something anew; returns the nanoseconds of an allocation, for each of its rounds."""

RANGE = "10.0.0.0/8"
LENGTH = 24
OTHER = 23
"""The block size of a second pool over the range, where there is one. It gives nothing."""

BLOCKS = 1 << (LENGTH - 8)
ROUNDS = 200
TURNS = 7
SEED = 20200617


@dataclass(frozen=True)
class Peer:
    """A program that measures an allocator of others."""

    name: str
    path: Path

    def work(self, report: Report, **options: int) -> list[float]:
        """Do one work, and note with what."""
        command = [str(self.path), f"-range={RANGE}", f"-length={LENGTH}"]
        command += [f"-{name}={value}" for name, value in options.items()]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - a program that we built
        result = json.loads(done.stdout)
        report.machine[self.name] = f"{binaries.PROGRAMS[self.name].version} ({result['go']})"
        return [float(each) for each in result["nanoseconds"]]


@dataclass(frozen=True)
class Churn:
    """A range that is full but for some blocks. In each round, random blocks leave and as many come."""

    title: str
    free: int
    step: int
    at_least: float = 0
    """How many times as fast as theirs ours has to be."""


# With what is free spread at random, the next free block is some 100 bits away: `cidrset` is faster there than anything
# in Python can be, so this row only informs. The limit is on what its search can cost, when one block is free in all.
SPREAD = Churn("99 % full, what is free at random places", free=BLOCKS // 100, step=64)
LAST = Churn("full but for one block at a random place", free=0, step=1, at_least=30)


def benchmarks() -> Sequence[Callable[[Report], None]]:
    """Return what to run, after building the programs if need be. Nothing where that cannot be, and a line says why."""
    try:
        found = binaries.find(("cidrset", "multicidrset"))
    except (go.MissingError, go.BuildError) as error:
        print(f"LEFT OUT: the comparison with Go's cidrset and multicidrset. {error}")
        return ()
    cidrset, multicidrset = (Peer(name, path) for name, path in found.items())
    return (
        partial(in_order, cidrset),
        partial(churn, cidrset, SPREAD),
        partial(churn, cidrset, LAST),
        partial(many_held, multicidrset),
    )


def in_order(peer: Peer, report: Report) -> None:
    """A whole range, from empty to full."""
    names = [f"node-{number}" for number in range(BLOCKS)]
    theirs, single, batch = _in_turns(
        lambda: peer.work(report, count=BLOCKS),
        lambda: _whole(lambda view: deque(map(view.allocate, names), maxlen=0)),
        lambda: _whole(lambda view: view.allocate_many(names)),
    )
    title = f"{BLOCKS:,} in order"
    report.time(f"{title}: {peer.name}", theirs, 1)
    report.time(f"{title}: ours, one by one", single, 1)
    report.time(f"{title}: ours, in a batch", batch, 1)
    report.ratio(f"{title}, one by one: time against {peer.name}", single / theirs, at_most=3)
    report.ratio(f"{title}, in a batch: time against {peer.name}", batch / theirs, at_most=1)


def _whole(allocate: Callable[[View], object]) -> list[float]:
    space, view = _pool()
    began = time.perf_counter()
    allocate(view)
    elapsed = time.perf_counter() - began
    space.check()
    assert not view.free
    return [elapsed / BLOCKS * 1e9]


def churn(peer: Peer, kind: Churn, report: Report) -> None:
    """Random blocks of a range that is nearly full leave, and as many come."""
    theirs, ours = _in_turns(
        lambda: peer.work(report, free=kind.free, step=kind.step, rounds=ROUNDS, seed=SEED), lambda: _churn(kind)
    )
    report.time(f"{kind.title}: {peer.name}", theirs, 1)
    report.time(f"{kind.title}: ours", ours, 1)
    report.ratio(f"{kind.title}: times as fast as {peer.name}", theirs / ours, at_least=kind.at_least)


def _churn(kind: Churn) -> list[float]:
    draw = random.Random(SEED)
    space, view = _pool()
    held = view.allocate_many(["node"] * BLOCKS)

    def release(count: int) -> None:
        for _ in range(count):
            at = draw.randrange(len(held))
            held[at], held[-1] = held[-1], held[at]
            space.release(held.pop(), "node")

    release(kind.free)
    measured = []
    for _ in range(ROUNDS):
        release(kind.step)
        began = time.perf_counter()
        given = [view.allocate("node") for _ in range(kind.step)]
        measured.append((time.perf_counter() - began) / kind.step * 1e9)
        held += filter(None, given)
    space.check()
    assert view.free == kind.free
    return measured


def many_held(peer: Peer, report: Report) -> None:
    """One block more where so many are held. There is a second pool over the range."""
    for held, at_least in ((1_000, 0), (5_000, 100), (10_000, 0)):
        theirs, ours = _in_turns(
            partial(peer.work, report, held=held, other=OTHER, rounds=ROUNDS), partial(_one_more, held)
        )
        report.time(f"{held:,} held: {peer.name}", theirs, 1)
        report.time(f"{held:,} held: ours", ours, 1)
        report.ratio(f"{held:,} held: times as fast as {peer.name}", theirs / ours, at_least=at_least)


def _one_more(held: int) -> list[float]:
    space, view = _pool()
    space.view(view.block_range, OTHER)
    view.allocate_many(["node"] * held)
    measured = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        block = view.allocate("node")
        measured.append((time.perf_counter() - began) * 1e9)
        assert block is not None
        space.release(block, "node")
    space.check()
    return measured


def _pool() -> tuple[AddressSpace, View]:
    block_range = Prefix.parse(RANGE)
    space = AddressSpace(block_range.family)
    return space, space.view(block_range, LENGTH)


def _in_turns(*works: Work) -> list[float]:
    """Seconds of an allocation for each work: the median of its rounds, in the best of its turns."""
    best = [float("inf")] * len(works)
    for _ in range(TURNS):
        for at, work in enumerate(works):
            gc.collect()  # what the last turn left behind is not for this one to clear up
            best[at] = min(best[at], statistics.median(work()) / 1e9)
    return best
