"""Events on the real API server, as kubectl shows them: series, limits, odd names and what it refuses (O3)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.events import EventSettings, Recorder, Reference
from tests.testenv import audit
from tests.testenv.nodes import NODES, create_nodes, delete_nodes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Json

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
RULES = [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]
USER = "system:serviceaccount:default:reporter"
QUICK = EventSettings(update_period=0.5)
PATIENCE = 180.0


@pytest.fixture(scope="module")
def account(cluster: Api) -> Path:
    """A kubeconfig file of one who may make events and change them, and do nothing else."""
    client, path = cluster.service_account("reporter", RULES)
    client.close()
    return path


@pytest.fixture
def node(cluster: Api) -> Iterator[Reference]:
    """A node, gone afterwards with its events."""
    create_nodes(cluster.admin, ["eventful"])
    yield Reference("v1", "Node", "eventful", cluster.admin.get(f"{NODES}/eventful")["metadata"]["uid"])
    delete_nodes(cluster.admin, ["eventful"])
    cluster.admin.delete(EVENTS)


@contextlib.asynccontextmanager
async def recording(kubeconfig: Path, settings: EventSettings) -> AsyncIterator[Recorder]:
    """A recorder that runs, and has said its last words afterwards."""
    async with Client(load_access(str(kubeconfig))) as client:
        recorder = Recorder(client, instance="test_1", settings=settings)
        task = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def about(cluster: Api, object_: Reference) -> list[Json]:
    """The events about an object, by its uid."""
    return [each for each in cluster.admin.items(EVENTS) if each.get("regarding", {}).get("uid") == object_.uid]


async def until(condition: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not condition():
        await asyncio.sleep(0.05)
        assert loop.time() - begun < PATIENCE, "it did not come to pass"


def test_people_see_it(cluster: Api, kubectl: Kubectl, account: Path, node: Reference) -> None:
    """O3: what is recorded shows in `kubectl get events` and under the node that it is about."""

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            recorder.record(node, "CIDRNotAvailable", "no pool has a free block")
            recorder.record(node, "CIDRAssigned", "10.1.0.0/24", type="Normal")
            await until(lambda: len(about(cluster, node)) == 2)

    asyncio.run(scenario())
    listed = kubectl("get", "events", "-A").stdout
    assert "CIDRNotAvailable" in listed
    assert "node/eventful" in listed
    described = kubectl("describe", "node", "eventful").stdout
    line = next(line for line in described.splitlines() if "CIDRNotAvailable" in line)
    assert line.split()[0] == "Warning"
    assert "no pool has a free block" in line
    assert "cidrella.dev/controller" in line


def test_a_thousand_of_the_same(cluster: Api, kubectl: Kubectl, account: Path, node: Reference) -> None:
    """O3: the same event a thousand times in a row costs a few requests, and its count says a thousand."""
    before = len(audit.writes(cluster.audit_log, USER))

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            for _ in range(1000):
                recorder.record(node, "CIDRNotAvailable", "no pool has a free block")
                await asyncio.sleep(0.001)
            await until(lambda: [each.get("series", {}).get("count") for each in about(cluster, node)] == [1000])
            assert recorder.dropped == 0

    asyncio.run(scenario())
    sent = audit.writes(cluster.audit_log, USER)[before:]
    assert [each.verb for each in sent][:2] == ["create", "patch"]
    assert len(sent) <= 20
    assert "x1000" in kubectl("describe", "node", "eventful").stdout


@pytest.mark.parametrize("letter", ["x", "ü", "漢", "\U0001f600"])
def test_long_notes_are_cut(cluster: Api, account: Path, node: Reference, letter: str) -> None:
    """O3: a note of 5,000 characters of any alphabet arrives, cut to what the API takes."""

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            recorder.record(node, "TooLong", letter * 5000)
            await until(lambda: bool(about(cluster, node)))

    asyncio.run(scenario())
    (event,) = about(cluster, node)
    assert event["note"].startswith(letter * 250)
    assert 1021 <= len(event["note"].encode()) <= 1024


@pytest.mark.parametrize("name", ["n" * 253, f"{'a' * 230}.{'b' * 22}", "Not_Valid/At all", "ends-with-", "ü", ""])
def test_odd_names_and_words(cluster: Api, account: Path, name: str, node: Reference) -> None:
    """O3: whatever the object is called and whatever is said of it, the API takes the event."""
    odd = node._replace(name=name)

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            recorder.record(odd, "R" * 500, 'quotes " and \\, \x00\x1b[31m\u2028\ud800 and\nlines', action="A" * 500)
            await until(lambda: bool(about(cluster, odd)))
            assert recorder.dropped == 0

    asyncio.run(scenario())
    (event,) = about(cluster, odd)
    assert event["regarding"].get("name", "") == name
    assert "and\nlines" in event["note"]


def test_an_event_that_is_gone(cluster: Api, account: Path, node: Reference) -> None:
    """O3: when the API has forgotten an event that happens again, it is made anew with its count."""

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            recorder.record(node, "CIDRNotAvailable", "no pool has a free block")
            await until(lambda: bool(about(cluster, node)))
            cluster.admin.delete(EVENTS)
            recorder.record(node, "CIDRNotAvailable", "no pool has a free block")
            await until(lambda: bool(about(cluster, node)))

    asyncio.run(scenario())
    (event,) = about(cluster, node)
    assert event["series"]["count"] == 2


def test_refusals_are_nobodys_trouble(cluster: Api, account: Path, node: Reference) -> None:
    """O3: without the right, or without the namespace, events are dropped and counted, and nothing else happens."""
    nobody, path = cluster.service_account("no-reporter")
    nobody.close()

    async def scenario() -> None:
        nowhere = EventSettings(namespace="events-nowhere")
        async with recording(path, QUICK) as refused, recording(account, nowhere) as lost:
            for recorder in (refused, lost):
                recorder.record(node, "CIDRNotAvailable", "no pool has a free block")
            await until(lambda: refused.dropped == 1 and lost.dropped == 1)

    asyncio.run(scenario())
    assert about(cluster, node) == []


def test_last_words(cluster: Api, account: Path, node: Reference) -> None:
    """O3: what is recorded right before the end is still told."""

    async def scenario() -> None:
        async with recording(account, QUICK) as recorder:
            recorder.record(node, "Staying", "so that there is a connection")
            await until(lambda: bool(about(cluster, node)))
            recorder.record(node, "Leaving", "the last thing that is seen")

    asyncio.run(scenario())
    assert {each["reason"] for each in about(cluster, node)} == {"Staying", "Leaving"}
