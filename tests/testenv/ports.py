"""Loopback ports for the servers of tests: no two processes of any test run on this machine use the same.

The kernel gives a port that was found free and closed again to the next outgoing connection of any process. So these
ports lie below the range from which the kernel chooses. Each process has a block of them while it runs: it keeps the
first port bound, and uses the others in turn. A server can be stopped and started again on its port.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST = 11_000
"""Above the ports of the Deployments in deploy/ (10290, 10291), which test_pod uses."""
_END = 32_768
"""The first port that Linux chooses by default; macOS begins later."""
_BLOCK = 200
"""Ports per process: more than one test needs before the first of them is used again."""
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")

_locks: list[socket.socket] = []


def free_port() -> int:
    """A loopback port that belongs to this process and on which no server listens."""
    for port in islice(_ports(os.getpid()), _BLOCK):
        if (probe := _bound(port)) is not None:
            probe.close()
            return port
    raise RuntimeError("all ports of this process are in use")


@cache
def _ports(process: int) -> Iterator[int]:
    """The ports of this process, without end."""
    assert process == os.getpid()
    for first in range(_FIRST, _end() - _BLOCK, _BLOCK):
        if (lock := _bound(first)) is not None:
            _locks.append(lock)
            return cycle(range(first + 1, first + _BLOCK))
    raise RuntimeError(f"all blocks of ports from {_FIRST} to {_end()} are in use")


def _end() -> int:
    """Where the kernel's range begins, unless that leaves too few: some machines let it begin at 1024."""
    chosen = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else _END
    return chosen if chosen > _FIRST + 10 * _BLOCK else _END


def _bound(port: int) -> socket.socket | None:
    probe = socket.socket()
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        probe.close()
        return None
    return probe
