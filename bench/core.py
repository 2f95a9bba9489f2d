"""Measure the allocator: `make bench-core`.

What one allocation is: the public call that records the holder (`View.allocate`), with a pool of another block size
over the same range, so that its counts are kept too. Every timing is followed by `check()`. Times depend on the
machine; the ratios, each within one run, are what the design is held to. `bench.peers` adds those against the
allocators that clusters run today. A ratio out of bounds is shown, and fails nothing: a machine has bad days.
"""

from __future__ import annotations

import argparse
import gc
import ipaddress
import json
import os
import platform
import random
import statistics
import time
import tracemalloc
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import peers
from cidrella.core.cluster import Cluster
from cidrella.core.decision import Node
from cidrella.core.pool import PoolRange, PoolSpec
from cidrella.core.prefix import Prefix
from cidrella.core.selector import Operator, Requirement, Selector, Term
from cidrella.core.space import AddressSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.core.view import View

REPEATS = 5
BLOCKS = 65_536
MANY = 1_000_000
FEW = 1_000
NODES = 5_000
SEED = 20200617


@dataclass
class Report:
    """What was measured."""

    machine: dict[str, str]
    nanoseconds: dict[str, float] = field(default_factory=dict)
    """Per block or node."""
    bytes_per_block: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, dict[str, float]] = field(default_factory=dict)

    def time(self, name: str, seconds: float, count: int) -> float:
        """Note a time for each of so many."""
        self.nanoseconds[name] = round(seconds / count * 1e9, 1)
        return seconds / count

    def ratio(self, name: str, value: float, *, at_most: float = 0, at_least: float = 0) -> None:
        """Note a ratio and what it is held to."""
        self.ratios[name] = {"value": round(value, 2), "at_most": at_most, "at_least": at_least}


def main() -> None:
    """Run every benchmark, print tables, write JSON."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", type=Path, help="where to write the figures")
    options = arguments.parse_args()
    report = Report(machine())
    console = Console()
    benchmarks = [proposals, nearly_full, in_order, random_order, selectors, mixed_sizes, memory, *peers.benchmarks()]
    for benchmark in track(benchmarks, "measuring", console=Console(stderr=True), transient=True):
        benchmark(report)
        gc.collect()
    _show(console, report)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
        console.print(f"wrote {options.json}")


def proposals(report: Report) -> None:
    """Both benchmarks of KEP-20200617, one by one and in a batch, beside the standard library."""
    names = [f"node-{number}" for number in range(BLOCKS)]
    for name, cidr, length, other in (
        ("65,536 x /24 of 10.0.0.0/8", "10.0.0.0/8", 24, 23),
        ("65,536 x /64 of a /48", "2001:db8:1234::/48", 64, 60),
    ):
        network = ipaddress.ip_network(cidr)
        # In turns, so that a slow moment of the machine meets all three.
        single, batch, library = [], [], []
        for _ in range(REPEATS):
            single.append(_timed(cidr, length, other, lambda view: [None for each in names if not view.allocate(each)]))
            batch.append(_timed(cidr, length, other, lambda view: view.allocate_many(names)))
            began = time.perf_counter()
            blocks = list(zip(range(BLOCKS), network.subnets(new_prefix=length), strict=False))
            library.append(time.perf_counter() - began)
            assert len(blocks) == BLOCKS
        report.time(f"{name}: one allocation", min(single), BLOCKS)
        one = report.time(f"{name}: in a batch", min(batch), BLOCKS)
        enumerate_one = report.time(f"{name}: ip_network.subnets", min(library), BLOCKS)
        report.ratio(f"{name}: batch against ip_network.subnets, times as fast", enumerate_one / one, at_least=3)


def nearly_full(report: Report) -> None:
    """Release and allocate at 99 % full, beside allocation in an empty pool."""
    draw = random.Random(SEED)
    step, rounds = 64, 100
    space, view = _views("10.0.0.0/8", 24, 23)
    held = view.allocate_many(["node"] * view.capacity)
    draw.shuffle(held)
    for _ in range(view.capacity // 100):
        space.release(held.pop(), "node")
    allocating, releasing, empty = [], [], []
    for _ in range(rounds):
        leaving = [held.pop(draw.randrange(len(held))) for _ in range(step)]
        began = time.perf_counter()
        for block in leaving:
            space.release(block, "node")
        between = time.perf_counter()
        given = [view.allocate("node") for _ in range(step)]
        ended = time.perf_counter()
        releasing.append(between - began)
        allocating.append(ended - between)
        held += [block for block in given if block is not None]
        empty.append(_timed("10.0.0.0/8", 24, 23, lambda fresh: [fresh.allocate("node") for _ in range(step)]))
    space.check()
    report.time("99 % full: release", statistics.median(releasing), step)
    full = report.time("99 % full: allocate", statistics.median(allocating), step)
    fresh = report.time("empty pool: allocate", statistics.median(empty), step)
    report.ratio("99 % full against an empty pool", full / fresh, at_most=5)


def in_order(report: Report) -> None:
    """One allocation at a million held blocks beside one at a thousand, handed out in order."""
    rounds = 20
    space, view = _views("10.0.0.0/8", 28, 27)
    view.allocate_many(["node"] * (MANY - rounds * FEW))
    few, many = [], []
    for _ in range(rounds):  # in turns, so that a slow moment of the machine meets both
        few.append(_timed("10.0.0.0/8", 28, 27, _allocate_few))
        began = time.perf_counter()
        _allocate_few(view)
        many.append(time.perf_counter() - began)
    space.check()
    assert len(space) == MANY
    at_few = report.time("in order, up to 1,000 held: allocate", min(few), FEW)
    at_many = report.time("in order, up to 1,000,000 held: allocate", min(many), FEW)
    report.ratio("in order, 1,000,000 held against 1,000", at_many / at_few, at_most=1.5)


def _allocate_few(view: View) -> None:
    for _ in range(FEW):
        view.allocate("node")


def random_order(report: Report) -> None:
    """The same with blocks in random order: taken by name, and handed out where a random half is held."""
    draw = random.Random(SEED)
    rounds = 10
    times: dict[tuple[str, int], list[float]] = {}
    spaces = {}
    for held, cidr in ((FEW, "10.0.0.0/18"), (MANY, "10.0.0.0/8")):
        space, view = _views(cidr, 29, 28)
        blocks = [Prefix(view.family, view.block_range.network + (number << 3), 29) for number in range(2 * held)]
        draw.shuffle(blocks)
        for block in blocks[:held]:
            space.occupy(block, "node")
        spaces[held] = space, view, blocks
    for _ in range(rounds):
        for held, (space, view, blocks) in spaces.items():
            step = FEW // rounds
            # As many leave as come, so that the number held stays what it is.
            began = time.perf_counter()
            for block in blocks[held : held + step]:
                space.occupy(block, "node")
            times.setdefault(("occupy", held), []).append(time.perf_counter() - began)
            for block in blocks[held : held + step]:
                space.release(block, "node")
            began = time.perf_counter()
            given = [view.allocate("node") for _ in range(step)]
            times.setdefault(("allocate", held), []).append(time.perf_counter() - began)
            for each in given:
                assert each is not None
                space.release(each, "node")
            spare = blocks[held:]
            draw.shuffle(spare)
            blocks[held:] = spare
    for space, _, _ in spaces.values():
        space.check()
    for call in ("occupy", "allocate"):
        few = report.time(f"random order, 1,000 held: {call}", min(times[call, FEW]), FEW // rounds)
        many = report.time(f"random order, 1,000,000 held: {call}", min(times[call, MANY]), FEW // rounds)
        report.ratio(f"random order, 1,000,000 held against 1,000: {call}", many / few, at_most=6)


def selectors(report: Report) -> None:
    """5,000 nodes over 1, 100 and 1,000 pools that select them by a zone that they share, and by their rack."""
    sizes = (1, 100, 1_000)
    singly: dict[int, list[float]] = {pools: [] for pools in sizes}
    together: dict[int, list[float]] = {pools: [] for pools in sizes}
    for _ in range(REPEATS):
        for pools in sizes:
            nodes = [Node(f"node-{number}", {"rack": f"r{number % pools}", "zone": "a"}) for number in range(NODES)]
            cluster = _racks(pools)
            began = time.perf_counter()
            for node in nodes:
                cluster.decide(node)
            singly[pools].append(time.perf_counter() - began)
            cluster.check()
            cluster = _racks(pools)
            began = time.perf_counter()
            cluster.decide_many(nodes)
            together[pools].append(time.perf_counter() - began)
            cluster.check()
    figures = {}
    for pools in sizes:
        figures[pools] = report.time(f"5,000 nodes over {pools:,} pools: decide a node", min(singly[pools]), NODES)
        report.time(f"5,000 nodes over {pools:,} pools: in a batch", min(together[pools]), NODES)
    report.ratio("a node with 1,000 pools against one with 1", figures[1_000] / figures[1], at_most=10)


def mixed_sizes(report: Report) -> None:
    """Eight pools of /21 to /28 over one range, in turns."""
    space = AddressSpace(Prefix.parse("10.0.0.0/8").family)
    views = [space.view(Prefix.parse("10.0.0.0/8"), length) for length in range(21, 29)]
    rounds = 2_000
    began = time.perf_counter()
    for _ in range(rounds):
        for view in views:
            view.allocate("node")
    elapsed = time.perf_counter() - began
    space.check()
    assert len(space) == rounds * len(views)
    report.time("mixed sizes /21 to /28, eight pools over one range: allocate", elapsed, rounds * len(views))


def memory(report: Report) -> None:
    """What a held block costs, without the holder's name."""
    for name, cidr, length, other, gap in (
        ("/24 of 10.0.0.0/8, in order", "10.0.0.0/8", 24, 23, 1),
        ("/120 of an IPv6 /16, in order", "fd00::/16", 120, 119, 1),
        ("/120 of an IPv6 /16, far apart", "fd00::/16", 120, 119, 1 << 40),
    ):
        tracemalloc.start()
        space, view = _views(cidr, length, other)
        before = tracemalloc.get_traced_memory()[0]
        if gap == 1:
            view.allocate_many(["node"] * BLOCKS)
        else:
            first = view.block_range.network
            for number in range(BLOCKS):
                space.occupy(Prefix(view.family, first + (number * gap << 8), length), "node")
        report.bytes_per_block[name] = round((tracemalloc.get_traced_memory()[0] - before) / BLOCKS, 1)
        tracemalloc.stop()
        space.check()


def _views(cidr: str, length: int, other: int) -> tuple[AddressSpace, View]:
    """A space with the pool to measure, and one of another size over the same range."""
    block_range = Prefix.parse(cidr)
    space = AddressSpace(block_range.family)
    view = space.view(block_range, length)
    space.view(block_range, other)
    return space, view


def _timed(cidr: str, length: int, other: int, work: Callable[[View], object]) -> float:
    space, view = _views(cidr, length, other)
    began = time.perf_counter()
    work(view)
    elapsed = time.perf_counter() - began
    space.check()
    return elapsed


def _racks(pools: int) -> Cluster:
    """A pool for each rack, large enough for all of its nodes."""
    cluster = Cluster()
    for number in range(pools):
        wanted = Requirement("zone", Operator.IN, ("a",)), Requirement("rack", Operator.IN, (f"r{number}",))
        cidr = Prefix.parse("10.0.0.0/8") if pools == 1 else Prefix.parse(f"10.{number // 8}.{number % 8 * 32}.0/19")
        cluster.add_pool(PoolSpec(f"rack-{number}", (PoolRange(cidr, 26),), Selector((Term(wanted),))))
    return cluster


def machine() -> dict[str, str]:
    """What it runs on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "processor": model,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
    }


def _show(console: Console, report: Report) -> None:
    console.print(", ".join(f"{key} {value}" for key, value in report.machine.items()))
    times = Table("measured", "ns each", title="Times (best of several)")
    for name, nanoseconds in report.nanoseconds.items():
        times.add_row(name, f"{nanoseconds:,.0f}")
    sizes = Table("held block", "bytes", title="Memory")
    for name, size in report.bytes_per_block.items():
        sizes.add_row(name, f"{size:,.0f}")
    ratios = Table("ratio within the run", "value", "held to", "", title="Ratios")
    for name, each in report.ratios.items():
        ratios.add_row(name, f"{each['value']:.2f}", *judge(**each))
    console.print(times, sizes, ratios)


def judge(value: float, at_most: float, at_least: float) -> tuple[str, str]:
    """What a ratio is held to, and whether it keeps to it; nothing for one that only informs."""
    if not at_most and not at_least:
        return "", ""
    kept = value <= at_most if at_most else value >= at_least
    return f"at most {at_most:g}" if at_most else f"at least {at_least:g}", "kept" if kept else "[bold red]broken"


if __name__ == "__main__":
    main()
