"""Loopback ports for the servers of tests. No other process takes them, in this test run or in another one.

The kernel gives a port that was found free and closed again to the next outgoing connection of any process. So these
ports lie below the range from which the kernel chooses. Each process locks a block of them for as long as it runs, and
uses them in turn. A server can be stopped and started again on its port.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST = 11_000
"""Above the ports of the Deployments in deploy/ (10290, 10291), which test_pod uses."""
_BLOCK = 200
"""Ports per process: more than one test needs before the first of them is used again."""
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL_ELSEWHERE = 49_152
"""The first port that the kernel chooses, on systems without that file (RFC 6335)."""
_LOCKS = Path(tempfile.gettempdir(), f"cidrella-test-ports-{os.getuid()}")


def free_port() -> int:
    """A loopback port that belongs to this process and on which no server listens."""
    return next(port for port in _ports(os.getpid()) if _is_free(port))


@cache
def _ports(process: int) -> Iterator[int]:
    """The ports of this process, without end. Locked until the process ends."""
    assert process == os.getpid()
    _LOCKS.mkdir(exist_ok=True)
    for first in range(_FIRST, _first_ephemeral() - _BLOCK + 1, _BLOCK):
        if _lock(_LOCKS / str(first)):
            return cycle(range(first, first + _BLOCK))
    raise RuntimeError(f"all blocks of ports are locked: {_LOCKS}")


def _first_ephemeral() -> int:
    return int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else _EPHEMERAL_ELSEWHERE


def _lock(path: Path) -> bool:
    """Lock a file; the kernel unlocks it when the process ends."""
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
