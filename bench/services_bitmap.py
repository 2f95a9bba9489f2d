"""The bitmap beside that of Kubernetes' API server: part of `make bench-services`.

The work is one range, from empty to full, one dynamic allocation after the other: a random start in the upper band, and
when that is exhausted the same in the lower one. The first tenth of the allocations are those of an empty range. The
last thousandth are those beyond 99.9 % full: there, Kubernetes' looks at the whole upper band bit by bit before it goes
on to the lower. The program around it is in testenv/bench/bitmap. Theirs and ours take turns.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.testenv import binaries, go

from cidrella.core.bands import Band, ServiceRange
from cidrella.core.bitmap import Bitmap
from cidrella.core.draw import draw
from cidrella.core.prefix import Prefix

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.report import Report

RANGES = ("10.96.0.0/16", "10.96.0.0/12")
TIMES_AS_FAST = 50
"""What ours is held to beyond 99.9 %."""
LARGEST = 1 << 20
"""Addresses: a smaller range is filled as often as it fits in. The last allocations of a /16 take so little time
altogether that whatever else the machine does would be most of it."""
SEED = 3070
_PEER = "bitmap"


@dataclass(frozen=True)
class Fill:
    """Nanoseconds of an allocation."""

    empty: float
    full: float


def compare_bitmaps(report: Report, rounds: int) -> None:
    """Ours beside theirs, and ours alone where theirs cannot be built; a line says why."""
    try:
        path = binaries.find((_PEER,))[_PEER]
    except (go.MissingError, go.BuildError) as error:
        print(f"LEFT OUT: the comparison with Go's bitmap. {error}")
        return
    for cidr in RANGES:
        services = ServiceRange.of(Prefix.parse(cidr))
        title = f"a /{services.cidr.length}"
        theirs, ours = [], []
        turns = rounds * max(1, LARGEST // services.cidr.size)
        print(f"bitmap: {title}, {turns} turns", flush=True)
        for number in range(turns):
            theirs.append(fill_theirs(report, path, services))
            ours.append(fill_ours(services, random.Random(SEED + number).randrange))
        note_fills(report, title, theirs, ours)


def note_fills(report: Report, title: str, theirs: list[Fill], ours: list[Fill]) -> None:
    """The medians of both, and how many times as fast ours is."""
    empty = statistics.median(each.empty for each in theirs), statistics.median(each.empty for each in ours)
    full = statistics.median(each.full for each in theirs), statistics.median(each.full for each in ours)
    for when, (go_, own) in ((f"{title}, empty", empty), (f"{title}, beyond 99.9 % full", full)):
        report.figure(f"{when}: Go's bitmap, µs", go_ / 1e3)
        report.figure(f"{when}: ours, µs", own / 1e3)
    report.ratio(f"{title}, empty: times as fast as Go's bitmap", empty[0] / empty[1])
    report.ratio(f"{title}, beyond 99.9 %: times as fast as Go's bitmap", full[0] / full[1], at_least=TIMES_AS_FAST)


def parts_of(services: ServiceRange) -> tuple[int, int]:
    """How many allocations count as those of an empty range, and as those beyond 99.9 %."""
    return services.usable // 10, services.usable - services.usable * 999 // 1000


def fill_theirs(report: Report, path: Path, services: ServiceRange) -> Fill:
    """Have theirs do it, and note with what."""
    early, late = parts_of(services)
    command = [str(path), f"-size={services.usable}", f"-band={services.static}", f"-early={early}", f"-late={late}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - a program that we built
    result = json.loads(done.stdout)
    report.machine["Go's bitmap"] = f"{binaries.PROGRAMS[_PEER].version} ({result['go']})"
    return Fill(result["empty"], result["full"])


def fill_ours(services: ServiceRange, below: Callable[[int], int]) -> Fill:
    """Do it with ours. Fails if an address is given twice, or left."""
    early, late = parts_of(services)
    bitmap = Bitmap(services.usable)
    gc.collect()
    empty = _allocate(bitmap, services, below, early)
    _allocate(bitmap, services, below, services.usable - early - late)
    full = _allocate(bitmap, services, below, late)
    bitmap.check()
    assert bitmap.count == bitmap.size
    return Fill(empty, full)


def _allocate(bitmap: Bitmap, services: ServiceRange, below: Callable[[int], int], number: int) -> float:
    """The nanoseconds of an allocation, the mean of so many."""
    upper, lower = services.bounds(Band.DYNAMIC), services.bounds(Band.STATIC)
    began = time.perf_counter()
    for _ in range(number):
        offset = draw(bitmap, upper, below)
        if offset is None:
            offset = draw(bitmap, lower, below)
        assert offset is not None
        bitmap.add(offset)
    return (time.perf_counter() - began) / number * 1e9
