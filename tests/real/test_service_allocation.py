"""Many processes give addresses of one range, behind a proxy before the API server that loses what it can."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cidrella.serviceip.errors import FullError
from tests.real.behind import proxy_before
from tests.real.conftest import KEPT_LOGS
from tests.real.desks import RANGES, Registry, RunningDesk, desk_account, install
from tests.real.site import eventually
from tests.testenv.faults import (
    answer_then_forward,
    cut,
    cut_reply,
    delay,
    html,
    reset,
    server_error,
    swallow,
    too_many_requests,
)
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.testenv.api import Api
    from tests.testenv.fault_script import Rule
    from tests.testenv.proxy import FaultProxy

PROCESSES = 32
CIDR = "10.96.128.0/24"
"""Part of the range of the API server's own allocator, so that it takes what was given."""
APART = "10.200.0.0/24"
"""A range that no API server gives addresses of."""
USABLE = 254
NEVER_USED = 10
"""Addresses that were given for Services which are not created after all: lost, but for the repairer."""
LAST = 1 << 20
"""More requests than there are."""
SECONDS = 300.0
"""For a slow day."""


class Event(NamedTuple):
    """What one process was told, or did."""

    at: float
    event: str
    address: str
    began: float
    error: str


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, server: type[Api]) -> Iterator[Api]:
    """Yield an API server of its own: what others leave in the books would be found here."""
    failed_before = request.session.testsfailed
    with server.temporary() as running:
        install(running)
        yield running
        if request.session.testsfailed > failed_before:
            running.copy_logs(KEPT_LOGS)


def test_nothing_is_given_twice(cluster: Api, tmp_path: Path) -> None:
    """B3, B6: 32 processes take and give back at once until the range is full, while replies are lost.

    No address is given twice, by what the processes were told; whoever fails does so because the range is full; and
    what they were told stands in the books.
    """
    _fill(cluster, APART, tmp_path)


def test_until_the_range_is_full(cluster: Api, tmp_path: Path) -> None:
    """B3, B6, B8: no address is given twice either by what the API server lets Services have.

    After the rounds of the repairer nothing is lost.
    """
    registry = Registry(cluster)
    config = desk_account(cluster, tmp_path)
    taken = _fill(cluster, CIDR, tmp_path)
    name = CIDR.replace("/", "-")
    held = registry.held(name)
    in_use = set(sorted(taken)[NEVER_USED:])
    with ThreadPoolExecutor(8) as pool:
        numbered = enumerate(sorted(in_use))
        given = pool.map(lambda each: registry.service(f"default/s{each[0]}", clusterIP=each[1]), numbered)
        assert set(given) == in_use, "the API server takes every one of them"
    with RunningDesk(config, CIDR, settle=0.1, identity="second") as running:
        running.ready()
        eventually(lambda: registry.held(name) == in_use, explain=lambda: f"{registry.held(name) ^ in_use}")
    with RunningDesk(config, CIDR, repair_interval=600.0, identity="third") as running:
        running.ready()
        rest = {running.give(f"default/rest-{number}") for number in range(USABLE - len(in_use))}
        assert rest | in_use == held
        with pytest.raises(FullError):
            running.give("default/one-too-many")


def _fill(cluster: Api, cidr: str, directory: Path) -> set[str]:
    """Fill a range, and check what the processes were told; the addresses that they have."""
    config = desk_account(cluster, directory)
    with RunningDesk(config, cidr, repair_interval=600.0, settle=0.1, identity="first") as running:
        running.ready()
        with proxy_before(cluster) as proxy:
            rules = _trouble(proxy)
            events = _run(desk_account(cluster, directory, proxy.url), cidr, directory)
    assert not [rule.fault for rule in rules if not rule.hits], "faults that nobody met"
    assert not [each for each in events if each.event == "failed"]
    _check_never_twice(events)
    _check_full_is_full(events)
    held = Registry(cluster).held(cidr.replace("/", "-"))
    taken = _left_with(events)
    assert len(held) == USABLE
    assert taken <= held
    return taken


def _trouble(proxy: FaultProxy) -> list[Rule]:
    """Whatever can happen to a write and its reply, and some of it to reads: each to every so-many-th."""
    writes = {
        23: swallow(),
        31: cut(),
        43: swallow(reset=True),
        53: reset(),
        61: server_error(),
        73: too_many_requests(),
        83: answer_then_forward(html(409), 0.3),
        97: answer_then_forward(html(404), 0.3),
        350: delay(4.0, even_if_gone=True),  # seldom: one that meets it twice in a row is right to give up
    }
    reads = {71: cut(), 73: cut_reply(after_bytes=200), 79: server_error()}
    return [
        proxy.add(fault, method=method, path=RANGES, nth=range(min(each, 50), LAST, each))
        for method, faults in (("PUT", writes), ("GET", reads))
        for each, fault in faults.items()
    ]


def _run(config: Path, cidr: str, directory: Path) -> list[Event]:
    """Run the processes; what they were told, in the order in which it happened."""
    logs = directory / "events"
    logs.mkdir()
    command: list[str | Path] = [sys.executable, "-m", "tests.real.allocating", config, cidr, logs, str(PROCESSES)]
    process = Process("allocating", command, directory / "allocating.log")
    process.start()
    try:
        eventually(lambda: process.ended is not None, SECONDS, process.tail)
        assert process.ended == 0, process.tail()
    finally:
        process.stop()
    files = list(logs.iterdir())
    assert len(files) == PROCESSES
    events = [_event(json.loads(line)) for file in files for line in file.read_text().splitlines()]
    return sorted(events)


def _event(line: dict[str, Any]) -> Event:
    return Event(
        line["at"], line["event"], line.get("address", ""), line.get("began", line["at"]), line.get("error", "")
    )


def _check_never_twice(events: list[Event]) -> None:
    """Whoever took an address had it until they began to give it back, and nobody else had it meanwhile."""
    turns: dict[str, list[Event]] = {}
    for each in events:
        if each.address:
            turns.setdefault(each.address, []).append(each)
    for address, told in turns.items():
        assert told[0].event == "took"
        for earlier, later in pairwise(told):
            assert earlier.event != later.event, f"{address} was given twice: {earlier}, {later}"
    assert any(len(told) > 2 for told in turns.values()), "no address was given again: this shows nothing"


def _check_full_is_full(events: list[Event]) -> None:
    """Each ends by being told that the range is full, and from the first to be told so on nobody gets anything."""
    first = min(each.at for each in events if each.event == "full")
    late = [each for each in events if each.event == "took" and each.began > first]
    assert not late, f"not full at {first}: {late}"


def _left_with(events: list[Event]) -> set[str]:
    """The addresses that somebody has in the end."""
    taken: set[str] = set()
    for each in events:
        if each.event == "took":
            taken.add(each.address)
        elif each.event == "gave":
            taken.discard(each.address)
    return taken
