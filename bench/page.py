"""Measure the page's server: `make bench-page`.

5,000 nodes that come and go, over 1,000 pools, and 100 who follow the stream for ten minutes, beside one who does not
read. How long the first look takes, what the server's memory does, what it costs, and whether nodes wait any longer for
their blocks while so many look. That everybody was told the same is checked before a figure counts.

The server is `cidrella run`, alone in its process; the API is another one's (`cidrella up --no-controller`).

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
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import uvloop
import yaml

from bench.cluster_usage import cpu_seconds
from bench.core import machine
from bench.page_arrivals import Wait
from bench.report import Report
from cidrella.model.crd import crds

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Iterator

NODES, POOLS, VIEWERS, MINUTES = 5_000, 1_000, 100, 10.0
WARM = 60.0
"""Seconds after which memory is looked at first: by then everything was done once."""
FIRST_LOOK, GROWTH = 2.0, 1.1
"""What it is held to: seconds until everything is to be had, and how much memory there may be at the end."""
_COMMAND = (sys.executable, "-m", "cidrella")
_UP = re.compile(r"Cidrella is up")
_PAGE = re.compile(r'"the page is served","url":"([^"]+)/"')
_SOON = 0.2
"""Seconds between two looks at whether it is so far."""
_FAR_AWAY = 536
"""Bytes of a segment: the kernel has less in store for one who seems to be far away than for one on this machine."""


class Viewer:
    """One who follows."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.told: dict[int, int] = {}
        """What each version said, as a hash."""
        self.bytes = 0
        self._event = b""

    async def follow(self, session: aiohttp.ClientSession, url: str) -> None:
        """Read until cancelled; a stream that ends is taken up again. Who has to load everything anew raises."""
        while True:
            since = f"?since={self.versions[-1]}" if self.versions else ""
            async with session.get(f"{url}/api/v1/stream{since}") as response:
                async for line in response.content:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        self.bytes += len(line)
        if line.startswith(b"event: "):
            self._event = line[7:].strip()
            if self._event == b"reload":
                raise RuntimeError("it was left behind")
        elif line.startswith(b"id: "):
            self.versions.append(int(line[4:]))
        elif line.startswith(b"data: ") and self._event == b"change":
            self.told[self.versions[-1]] = hash(line)


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


def contradictions(viewers: list[Viewer]) -> int:
    """How many versions were told to two in two ways."""
    told: dict[int, set[int]] = {}
    for viewer in viewers:
        for version, said in viewer.told.items():
            told.setdefault(version, set()).add(said)
    return sum(len(each) > 1 for each in told.values())


def resident(pid: int) -> float:
    """Megabytes that a process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6  # type: ignore[index] # Linux has it


@asynccontextmanager
async def up(options: argparse.Namespace) -> AsyncIterator[tuple[Process, str]]:
    """A server that has given every node its blocks, and where its page is."""
    async with served(options) as (process, url, _):
        yield process, url


@asynccontextmanager
async def served(options: argparse.Namespace) -> AsyncIterator[tuple[Process, str, Path]]:
    """The same, with a kubeconfig for the API beside it."""
    with tempfile.TemporaryDirectory(prefix="bench-page-") as name:
        directory = Path(name)
        files = directory / "pools.yaml"
        files.write_text(yaml.safe_dump_all([*crds().values(), *pools(options.pools)]))
        api = ["up", "--no-controller", "--no-browser", "--bind-address=127.0.0.1:0", f"--data-dir={directory}"]
        kubeconfig = directory / "kubeconfig"
        server = ["run", f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1:0"]
        async with (
            _running(_UP, *api, "--churn", f"--nodes={options.nodes}", "-f", str(files)),
            _running(_PAGE, *server) as (process, found),
        ):
            await _settled(found[1], options.nodes)
            yield process, found[1], kubeconfig


@asynccontextmanager
async def _running(sign: re.Pattern[str], *arguments: str) -> AsyncIterator[tuple[Process, re.Match[str]]]:
    """A command that has given a sign of what it is, until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout
    try:
        while not (found := sign.search((await process.stdout.readline()).decode())):
            assert process.returncode is None, "it ended"
        reading = asyncio.create_task(process.stdout.read())  # so that nobody waits for it to be read
        yield process, found
        reading.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _settled(url: str, nodes: int) -> None:
    """Wait until the nodes have their blocks. Metrics are for Prometheus: who asks for them does not look."""
    async with aiohttp.ClientSession() as session:
        while (
            await gauge(session, url, "cidrella_node_allocation_seconds_count") < nodes / 2
            or await gauge(session, url, "cidrella_queue_depth") > 0
        ):
            await asyncio.sleep(_SOON)


async def gauge(session: aiohttp.ClientSession, url: str, name: str) -> float:
    """What the server says of itself: the sum over all labels; 0 where it says nothing."""
    async with session.get(f"{url}/metrics") as response:
        lines = (await response.text()).splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}[ {{]", line))


async def measure(options: argparse.Namespace, report: Report) -> None:
    """Look, follow, and see what that costs."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        served(options) as (process, url, kubeconfig),
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
    ):
        print(f"{options.nodes:,} nodes over {options.pools:,} pools are there; some more come", flush=True)
        await _have_arrivals(report, kubeconfig, "nobody looks")
        await _look_first(session, url, options, report)
        viewers = [Viewer() for _ in range(options.viewers)]
        with _deaf(url):
            async with asyncio.TaskGroup() as group:
                following = [group.create_task(each.follow(session, url)) for each in viewers]
                while await gauge(session, url, "cidrella_web_viewers") < options.viewers:
                    await asyncio.sleep(_SOON)
                await _have_arrivals(report, kubeconfig, "all look")
                await asyncio.sleep(min(WARM, options.minutes * 30))
                print(f"{options.viewers} look, for {options.minutes:g} minutes", flush=True)
                await _watch(process.pid, options, report)
                for task in following:
                    task.cancel()
            dropped = await gauge(session, url, "cidrella_web_viewers_dropped_total")
    assert all(gaps(each.versions) == 0 for each in viewers), "somebody missed a change"
    assert contradictions(viewers) == 0, "two were told different things"
    report.figure("changes told to each", max(len(each.versions) for each in viewers))
    report.figure("megabytes told to each", max(each.bytes for each in viewers) / 1e6)
    report.ratio("dropped, of the one that does not read", dropped, at_least=1)


async def _have_arrivals(report: Report, kubeconfig: Path, when: str) -> None:
    """In a process of its own, which has nobody's stream to read."""
    command = (sys.executable, "-m", "bench.page_arrivals", str(kubeconfig), when.replace(" ", "-"))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    wait = Wait(*json.loads(printed))
    report.figure(f"milliseconds that half of the nodes wait for their blocks at most, while {when}", wait.half)
    report.figure(f"milliseconds that 99 of 100 wait at most, while {when}", wait.most)


async def _look_first(session: aiohttp.ClientSession, url: str, options: argparse.Namespace, report: Report) -> None:
    began = time.perf_counter()
    async with session.get(f"{url}/api/v1/state") as response:
        data = await response.read()
    report.ratio("seconds until everything is to be had", time.perf_counter() - began, at_most=FIRST_LOOK)
    state = json.loads(data)
    assert len(state["pools"]) == options.pools
    report.figure("nodes at first", len(state["nodes"]))
    report.figure("megabytes of the state", len(data) / 1e6)


async def _watch(pid: int, options: argparse.Namespace, report: Report) -> None:
    memory, used, began = resident(pid), cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(options.minutes * 60)
    took = time.monotonic() - began
    report.figure("megabytes at the beginning", memory)
    report.figure("megabytes at the end", resident(pid))
    report.ratio("memory at the end, of that at the beginning", resident(pid) / memory, at_most=GROWTH)
    report.figure("per cent of a core, the controller's work included", (cpu_seconds(pid) - used) / took * 100)


def _deaf(url: str) -> socket.socket:
    """One who asks for the stream, and does not read it."""
    host, port = url.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _FAR_AWAY)
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
    report.show(options.json)


if __name__ == "__main__":
    main()
