"""Ports of tests: one process each, and none that the kernel gives to a connection."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.testenv.ports import free_port

ROOT = Path(__file__).parents[2]
MANY = 500
"""More than a process has."""
IN_A_PROCESS = f"from tests.testenv.ports import free_port; print(*{{free_port() for _ in range({MANY})}})"


def test_processes_share_no_port() -> None:
    """Two test runs side by side, or two workers of one, never get the same port."""
    ours = {free_port() for _ in range(MANY)}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    theirs = set(map(int, done.stdout.split()))
    assert ours
    assert theirs
    assert not ours & theirs


def test_no_connection_takes_a_port() -> None:
    """The kernel chooses the ports of outgoing connections from another range."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        chosen = {server.getsockname()[1], client.getsockname()[1]}
    assert max(free_port() for _ in range(MANY)) < min(chosen)


def test_a_port_in_use_is_left_out() -> None:
    """A server that listens keeps its port."""
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] not in {free_port() for _ in range(MANY)}
