"""What a process has used so far, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all of its threads."""
    return parse_cpu(Path(f"/proc/{pid}/stat").read_text())


def peak_megabytes(pid: int) -> float:
    """The most memory it ever had resident, in units of 1,000,000 bytes."""
    return parse_peak(Path(f"/proc/{pid}/status").read_text())


def parse_cpu(stat: str) -> float:
    """Seconds out of the text of /proc/PID/stat. The program's name comes before, and may hold anything."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def parse_peak(status: str) -> float:
    """Megabytes out of the text of /proc/PID/status."""
    kibibytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kibibytes) * 1024 / 1e6
