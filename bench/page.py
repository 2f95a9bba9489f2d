"""Measure the page's server: `make bench-page`.

`cidrella up` with 5,000 nodes that come and go, over 1,000 pools, and 100 who follow the stream for ten minutes, beside
one who does not read. How long the first look takes, what the server's memory does, and what it costs in all. That
everybody was told the same is checked before a figure counts.

Times depend on the machine. What is out of bounds is shown, and fails nothing: a machine has bad days.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import uvloop
import yaml
from rich.console import Console

from bench.cluster_usage import cpu_seconds
from bench.core import machine
from bench.services_report import Report

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Iterator

NODES, POOLS, VIEWERS, MINUTES = 5_000, 1_000, 100, 10.0
WARM = 60.0
"""Seconds after which memory is looked at first: by then everything was done once."""
FIRST_LOOK, GROWTH = 2.0, 1.1
"""What it is held to: seconds until everything is to be had, and how much memory there may be at the end."""
_PAGE = re.compile(r"The page: (http://\S+)/")
_DROPPED = re.compile(r"^cidrella_web_viewers_dropped_total (\S+)$", re.MULTILINE)


class Viewer:
    """One who follows."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.bytes = 0

    async def follow(self, session: aiohttp.ClientSession, url: str) -> None:
        """Read until cancelled; a stream that ends is taken up again."""
        while True:
            since = f"?since={self.versions[-1]}" if self.versions else ""
            async with session.get(f"{url}/api/v1/stream{since}") as response:
                async for line in response.content:
                    self.bytes += len(line)
                    if line.startswith(b"id: "):
                        self.versions.append(int(line[4:]))


def pools(count: int) -> Iterator[dict[str, object]]:
    """Pools of eight blocks for every node, side by side."""
    for number in range(count):
        cidr = f"10.{number >> 5}.{(number & 31) << 3}.0/21"
        yield {
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": {"name": f"pool-{number:04}"},
            "spec": {"perNodeHostBits": 8, "ipv4": cidr},
        }


def gaps(versions: list[int]) -> int:
    """How many changes one was not told of, in between."""
    return sum(later - earlier - 1 for earlier, later in pairwise(versions))


def resident(pid: int) -> float:
    """Megabytes that a process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6  # type: ignore[index] # Linux has it


@asynccontextmanager
async def up(options: argparse.Namespace) -> AsyncIterator[tuple[Process, str]]:
    """`cidrella up` as it is told to be, and where its page is."""
    with tempfile.TemporaryDirectory(prefix="bench-page-") as directory:
        files = Path(directory) / "pools.yaml"
        files.write_text(yaml.safe_dump_all(pools(options.pools)))
        command = [sys.executable, "-m", "cidrella", "up", "--no-browser", "--bind-address=127.0.0.1:0", "--churn"]
        process = await asyncio.create_subprocess_exec(
            *command, f"--nodes={options.nodes}", "-f", files, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        try:
            while not (found := _PAGE.search((await process.stdout.readline()).decode())):
                assert process.returncode is None, "it ended"
            yield process, found[1]
        finally:
            process.terminate()
            await process.wait()


async def measure(options: argparse.Namespace, report: Report) -> None:
    """Look, follow, and see what that costs."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with up(options) as (process, url), aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        began = time.perf_counter()
        async with session.get(f"{url}/api/v1/state") as response:
            data = await response.read()
        report.ratio("seconds until everything is to be had", time.perf_counter() - began, at_most=FIRST_LOOK)
        state = json.loads(data)
        assert len(state["pools"]) == options.pools
        report.figure("nodes at first", len(state["nodes"]))
        report.figure("megabytes of the state", len(data) / 1e6)
        viewers = [Viewer() for _ in range(options.viewers)]
        with _deaf(url):
            async with asyncio.TaskGroup() as group:
                following = [group.create_task(each.follow(session, url)) for each in viewers]
                await asyncio.sleep(min(WARM, options.minutes * 30))
                await _watch(process.pid, options, report)
                for task in following:
                    task.cancel()
        async with session.get(f"{url}/metrics") as response:
            dropped = _DROPPED.search(await response.text())
    told = {(tuple(each.versions[:1]), len(each.versions)) for each in viewers}
    assert all(gaps(each.versions) == 0 for each in viewers), "somebody missed a change"
    report.figure("changes told to each", max(count for _, count in told))
    report.figure("megabytes told to each", max(each.bytes for each in viewers) / 1e6)
    report.figure("dropped because they did not read", float(dropped[1]) if dropped else 0)


async def _watch(pid: int, options: argparse.Namespace, report: Report) -> None:
    memory, used, began = resident(pid), cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(options.minutes * 60)
    took = time.monotonic() - began
    report.figure("megabytes at the beginning", memory)
    report.figure("megabytes at the end", resident(pid))
    report.ratio("memory at the end, of that at the beginning", resident(pid) / memory, at_most=GROWTH)
    report.figure("per cent of a core, all of `cidrella up`", (cpu_seconds(pid) - used) / took * 100)


def _deaf(url: str) -> socket.socket:
    """One who asks for the stream, and does not read it."""
    host, port = url.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((host, int(port)))
    made.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return made


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Measure the page's server.")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pools", type=int, default=POOLS)
    parser.add_argument("--viewers", type=int, default=VIEWERS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, show, and write it down if asked to."""
    options = read_options()
    report = Report(machine())
    uvloop.run(measure(options, report))
    report.show(Console())
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(asdict(report), indent=2))


if __name__ == "__main__":
    main()
