"""What a process has used so far, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """What a process has resident, in units of 1,000,000 bytes."""

    resident: float
    shared_out: float
    """What is shared counts in part, by how many share it (PSS)."""
    own: float
    """What is shared does not count (USS)."""


class Descriptors(NamedTuple):
    """What a process has open."""

    all: int
    sockets: int


def cpu_seconds(pid: int) -> float:
    """User and system time of all of its threads."""
    return parse_cpu(Path(f"/proc/{pid}/stat").read_text())


def peak_megabytes(pid: int) -> float:
    """The most memory it ever had resident, in units of 1,000,000 bytes."""
    return parse_peak(Path(f"/proc/{pid}/status").read_text())


def memory(pid: int) -> Memory:
    """What it has resident now."""
    return parse_memory(Path(f"/proc/{pid}/smaps_rollup").read_text())


def descriptors(pid: int) -> Descriptors:
    """What it has open now. What is closed while this looks counts as a file."""
    opened = list(Path(f"/proc/{pid}/fd").iterdir())
    return Descriptors(len(opened), sum(_target(each).startswith("socket:") for each in opened))


def parse_cpu(stat: str) -> float:
    """Seconds out of the text of /proc/PID/stat. The program's name comes before, and may hold anything."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def parse_peak(status: str) -> float:
    """Megabytes out of the text of /proc/PID/status."""
    kibibytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kibibytes) * 1024 / 1e6


def parse_memory(rollup: str) -> Memory:
    """Megabytes out of the text of /proc/PID/smaps_rollup, of which the first line is an address."""
    kibibytes = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
    own = kibibytes["Private_Clean"] + kibibytes["Private_Dirty"]
    return Memory(*(each * 1024 / 1e6 for each in (kibibytes["Rss"], kibibytes["Pss"], own)))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""
