"""The page beside a controller and an API that are really there."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.app import surroundings
from cidrella.app.page import Page
from cidrella.app.settings import Settings
from cidrella.app.surroundings import Surroundings
from cidrella.controller.controller import Controller, ControllerSettings
from cidrella.controller.metrics import Metrics
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.mirror import Change
from cidrella.model.objects import NODES_PATH, POOLS_PATH
from cidrella.model.serviceip import SeenService, SeenServiceCIDR
from cidrella.web.board import Board, News
from tests.app.embedded import embedded
from tests.app.insights import World
from tests.core.build import prefix
from tests.web.samples import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
NOBODY = "http://127.0.0.1:1"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with embedded(tmp_path) as api:
        yield api.url


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may have a bad day."""
    monkeypatch.setattr(surroundings, "_PATIENCE", 60.0)


def pool(name: str, cidr: str) -> dict[str, Any]:
    return {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "metadata": {"name": name},
        "spec": {"perNodeHostBits": 8, "ipv4": cidr},
    }


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def event(name: str, note: str, controller: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Allocate",
        "reason": "Odd",
        "regarding": {"kind": "Node", "name": "x"},
        "note": note,
        "type": "Warning",
        "reportingController": controller,
        "reportingInstance": "tests",
    }


class Viewer:
    """Who looks at the board of a page."""

    def __init__(self, board: Board) -> None:
        self.board = board

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state, as soon as it is so."""
        async with asyncio.timeout(60):
            while True:
                version = self.board.history.version
                state: dict[str, Any] = json.loads(self.board.state())
                if condition(state):
                    return state
                await self.board.history.wait(version)


def test_what_happens_is_seen(url: str) -> None:
    """N4: nodes come and are served, one waits, a second pool helps it; events, with text as it is."""

    async def scenario() -> None:
        async with Client(Access(url)) as client:
            controller = Controller(client, ControllerSettings(Settings().ipam, "tests", None), Metrics())
            page = Page(controller, client, "lab")
            working = asyncio.ensure_future(controller.run())
            async with page.kept_up():
                page._board.came()
                await look(client, Viewer(page._board))
            working.cancel()
            await asyncio.wait([working])

    async def look(client: Client, viewer: Viewer) -> None:
        await viewer.until(lambda state: state["cluster"]["leading"])
        await client.create(POOLS_PATH, pool("one", "10.10.0.0/24"), dict)
        for name in ("a", "b"):
            await client.create(NODES_PATH, node(name), dict)
        state = await viewer.until(
            lambda state: (
                sorted(each["state"] for each in state["nodes"]) == ["served", "waiting"]
                and state["pools"][0]["state"] == "full"
            )
        )
        (waiting,) = (each for each in state["nodes"] if each["state"] == "waiting")
        assert waiting["reason"] == "every pool that applies is full: one (no IPv4 /24 left)"
        await client.create(POOLS_PATH, pool("two", "10.20.0.0/24"), dict)
        state = await viewer.until(lambda state: {each["state"] for each in state["nodes"]} == {"served"})
        assert {pool for each in state["nodes"] for pool in each["pools"]} == {"one", "two"}
        await viewer.until(lambda state: [each["what"] for each in state["allocations"]] == ["given", "given"])
        await viewer.until(lambda state: "CIDRNotAvailable" in {each["reason"] for each in state["events"]})
        await client.request("DELETE", f"{NODES_PATH}/a")
        await viewer.until(lambda state: len(state["nodes"]) == 1 and state["allocations"][-1]["what"] == "released")

        await client.create(EVENTS, event("others", "not ours", "kubelet"), dict)
        await client.create(EVENTS, event("ours", MARKUP, "cidrella.dev/controller"), dict)
        state = await viewer.until(lambda state: MARKUP in {each["note"] for each in state["events"]})
        assert "not ours" not in {each["note"] for each in state["events"]}
        assert state["cluster"]["remarks"] == []

    asyncio.run(scenario())


def test_services() -> None:
    """Who has which address, in which range, as they come and go."""

    async def scenario() -> None:
        async with Client(Access(NOBODY)) as client:
            world, board = World(), Board(EXAMPLE.cluster)
            around = Surroundings(client, world.insight)
            cidr = SeenServiceCIDR("kubernetes", "u", "", (prefix("10.96.0.0/16"),), ("'x' is no CIDR",))
            world.service_ranges["kubernetes"] = cidr
            web = SeenService("default/web", "u", "ClusterIP", ("10.96.0.9",))
            around._services_changed([Change(None, web)])
            for _ in range(2):
                await around.look(news := News())
                board.post(news)
            state = json.loads(board.state())
            assert [(each["address"], each["holder"]) for each in state["services"]] == [("10.96.0.9", "default/web")]
            assert state["serviceRanges"][0]["static"]["used"] == 1
            assert around.remarks == ["ServiceCIDR kubernetes cannot be read: 'x' is no CIDR"]
            around._services_changed([Change(web, None)])
            await around.look(news := News())
            board.post(news)
            state = json.loads(board.state())
            assert (state["services"], state["serviceRanges"][0]["static"]["used"]) == ([], 0)

    asyncio.run(scenario())


def test_thousands_of_services() -> None:
    """Others have their turn while they are looked at; then all of them are there, and what came meanwhile."""

    async def scenario() -> None:
        async with Client(Access(NOBODY)) as client:
            around = Surroundings(client, World().insight)
            many = [
                SeenService(f"default/s{number}", "u", "ClusterIP", (f"10.96.{number >> 8}.{number & 255}",))
                for number in range(2000)
            ]
            around._services_changed([Change(None, each) for each in many])
            looking = asyncio.ensure_future(around.look(news := News()))
            for _ in range(3):
                await asyncio.sleep(0)
            assert not looking.done()
            around._services_changed([Change(many[0], None)])
            await looking
            shown = {each.address for each in news.services} - {*news.services_gone}
            await around.look(later := News())
            assert len(shown.difference(later.services_gone)) == 1999

    asyncio.run(scenario())


def test_the_first_look_has_everything(url: str) -> None:
    """Services and events are followed for who looks: the first one is not told that there are none."""

    async def scenario() -> None:
        async with Client(Access(url)) as client:
            await client.create(EVENTS, event("ours", MARKUP, "cidrella.dev/controller"), dict)
            controller = Controller(client, ControllerSettings(Settings().ipam, "tests", None), Metrics())
            page = Page(controller, client, "lab")
            working = asyncio.ensure_future(controller.run())
            while controller.readiness():
                await asyncio.sleep(0.01)
            async with page.kept_up():
                page._board.look()
                await asyncio.wait_for(page._board.filled.wait(), 60)
                state = json.loads(page._board.state())
                assert [each["note"] for each in state["events"]] == [MARKUP]
                assert state["cluster"]["remarks"] == []
            working.cancel()
            await asyncio.wait([working])

    asyncio.run(scenario())


def test_what_cannot_be_listed() -> None:
    """The page says so, and goes without."""

    async def scenario() -> None:
        async with Client(Access(NOBODY)) as client:
            around = Surroundings(client, World().insight)
            assert around.remarks == []
            async with around.followed():
                services, events = around.remarks
                assert services.startswith("Services are not shown: /api/v1/services")
                assert events.startswith("Events are not shown: ")
                await around.look(news := News())
                assert (news.services, news.service_ranges, news.events) == ([], [], [])
            assert around.remarks == []

    asyncio.run(scenario())


def test_what_is_not_listed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is kept waiting for long: what is missing is said to be."""
    monkeypatch.setattr(surroundings, "_PATIENCE", 0.1)

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            async with Client(Access(f"http://127.0.0.1:{silent.getsockname()[1]}")) as client:
                around = Surroundings(client, World().insight)
                async with around.followed():
                    assert around.remarks[0] == "Services are not shown yet: they are being listed"

    asyncio.run(scenario())


def test_what_cannot_be_followed_any_more(url: str) -> None:
    """What was seen is shown, and that it may be old."""

    async def scenario() -> None:
        async with Client(Access(url)) as client:
            around = Surroundings(client, World().insight)
            async with around.followed():
                assert around.remarks == []
                around._reflectors["Services"].trouble = "the server is away"
                assert around.remarks == ["Services may have changed since they were seen: the server is away"]

    asyncio.run(scenario())


def test_nothing_is_followed_while_nobody_looks(url: str) -> None:
    """A cluster where nobody uses the page, or any more, is asked for nothing on its account; nothing is kept."""

    async def scenario() -> None:
        asked: list[str] = []
        async with Client(Access(url), observe=lambda verb, _code, _seconds: asked.append(verb)) as client:
            await client.create(EVENTS, event("ours", MARKUP, "cidrella.dev/controller"), dict)
            asked.clear()
            around = Surroundings(client, World().insight)
            await asyncio.sleep(0.1)
            assert asked == []
            for _ in range(2):
                async with around.followed():
                    await around.look(news := News())
                    assert [each.note for each in news.events] == [MARKUP]
                assert asked.count("list") == 2
                asked.clear()
                assert not any("Reflector" in repr(task) for task in asyncio.all_tasks())
                await around.look(news := News())
                assert news.events == []

    asyncio.run(scenario())
