"""The page's server: what it answers, and how."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from cidrella.kube.listening import CODING_REFUSED
from cidrella.web import server as server_module
from cidrella.web.assets import Assets
from cidrella.web.board import Board
from cidrella.web.doors import GuardedDoor
from cidrella.web.server import HEADERS
from tests.web.samples import EXAMPLE, Asker, everything, serve

if TYPE_CHECKING:
    from pathlib import Path


def empty() -> Board:
    return Board(EXAMPLE.cluster)


def test_documents() -> None:
    """Each of the API's documents is JSON of this moment, and part of the same state."""

    async def scenario(ask: Asker, _: Board) -> None:
        state = (await ask("/api/v1/state")).json
        assert [each["name"] for each in state["nodes"]] == [each.name for each in EXAMPLE.nodes]
        for path, keys in (
            ("pools", {"pools"}),
            ("nodes", {"nodes"}),
            ("services", {"services", "serviceRanges"}),
        ):
            answer = await ask(f"/api/v1/{path}")
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.json == {key: state[key] for key in keys | {"version"}}

    serve(scenario)


def test_explanations() -> None:
    """Why a node has what it has, by its name, however that is spelt; of nobody there is nothing to explain."""

    async def scenario(ask: Asker, _: Board) -> None:
        answer = await ask("/api/v1/explain/node%2d1")
        assert (answer.status, answer.json["node"]["name"], answer.json["labels"]) == (200, "node-1", {"rack": "<b>"})
        answer = await ask("/api/v1/explain/nobody")
        assert (answer.status, answer.json) == (404, {"error": "there is no node nobody"})

    serve(scenario)


def test_the_first_to_look_waits_for_something_to_see() -> None:
    """It is drawn for those who look: the first one has it drawn."""

    async def scenario(ask: Asker, board: Board) -> None:
        async def draw() -> None:
            await board.wait_looked_at()
            board.post(everything())

        drawing = asyncio.ensure_future(draw())
        assert len((await ask("/api/v1/state")).json["nodes"]) == len(EXAMPLE.nodes)
        await drawing

    serve(scenario, board=empty)


def test_nothing_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody draws, those who look do not wait for ever."""
    monkeypatch.setattr(server_module, "_PATIENCE", 0.01)

    async def scenario(ask: Asker, _: Board) -> None:
        for path in ("state", "explain/node-1"):
            answer = await ask(f"/api/v1/{path}")
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")

    serve(scenario, board=empty)


def test_health_and_metrics() -> None:
    """O2: what a kubelet and a Prometheus ask is answered beside the page."""

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask("/healthz")).text == "ok"
        assert (await ask("/readyz")).status == 503
        assert "cidrella_web_viewers 0.0" in (await ask("/metrics")).text

    serve(scenario)


def test_metrics_elsewhere() -> None:
    """O1: metrics that have an address of their own are not here."""

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask("/metrics")).status == 404

    serve(scenario, metrics=False)


@pytest.mark.parametrize("path", ["/", "/api/v1/state", "/static/nowhere.js", "/nowhere"])
def test_headers(path: str) -> None:
    """Whatever is answered: nothing from elsewhere runs in the page, and nobody else's page can use it."""

    async def scenario(ask: Asker, _: Board) -> None:
        answer = await ask(path, headers={"Origin": "https://elsewhere.example"})
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert not any(name.lower().startswith("access-control") for name in answer.headers)
        assert "Server" not in answer.headers

    serve(scenario)


@pytest.mark.parametrize("path", ["/", "/api/v1/state", "/api/v1/stream", "/static/style.css"])
def test_nothing_is_written(path: str) -> None:
    """It is read-only."""

    async def scenario(ask: Asker, _: Board) -> None:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = await ask(path, method)
            assert (answer.status, answer.json) == (405, {"error": "Method Not Allowed"})
            assert "GET" in answer.headers["Allow"]

    serve(scenario)


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/state", "/login", "/nowhere"])
def test_content_codings_are_refused(path: str) -> None:
    """In the form of every other error, before any credential is looked at."""

    async def scenario(ask: Asker, _: Board) -> None:
        answer = await ask(path, "POST", headers={"Content-Encoding": "gzip"})
        assert (answer.status, answer.json) == (415, {"error": CODING_REFUSED})
        assert answer.headers["Accept-Encoding"] == "identity"

    serve(scenario)
    serve(scenario, door=lambda series: GuardedDoor([], series))


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/..%2fserver.py",
        "/static/../server.py",
        "/static/__init__.py",
        "/api/v1/",
        "/api/v2/state",
        "/login",
        "/logout",
    ],
)
def test_anything_else(path: str) -> None:
    """There is nothing else to be found; where nobody is asked who they are, no login either."""

    async def scenario(ask: Asker, _: Board) -> None:
        answer = await ask(path)
        assert (answer.status, answer.json) == (404, {"error": "Not Found"})

    serve(scenario)


def test_files_of_the_page() -> None:
    """Whatever the package has is served, with its type."""
    names = [each.name for each in (files("cidrella.web") / "page").iterdir() if each.name.endswith((".js", ".css"))]

    async def scenario(ask: Asker, _: Board) -> None:
        answer = await ask("/")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        for name in names:
            answer = await ask(f"/static/{name}")
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("text/javascript" if name.endswith(".js") else "text/css")

    assert names
    serve(scenario)


def test_files_that_a_browser_has_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is asked for again each time, and sent again when it is another."""
    (tmp_path / "index.html").write_text("<!doctype html>one")
    (tmp_path / "notes.txt").write_text("not for browsers")
    (tmp_path / "more").mkdir()
    monkeypatch.setattr(server_module, "Assets", lambda: Assets(tmp_path))

    async def scenario(ask: Asker, _: Board) -> None:
        first = await ask("/")
        assert first.text == "<!doctype html>one"
        again = await ask("/", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.text, again.headers["ETag"]) == (304, "", first.headers["ETag"])
        other = await ask("/", headers={"If-None-Match": '"other"'})
        assert (other.status, other.headers["Cache-Control"]) == (200, "no-cache")
        assert (await ask("/static/notes.txt")).status == 404
        assert (await ask("/static/more")).status == 404

    serve(scenario)


def test_a_package_without_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API goes on where the files are missing."""
    monkeypatch.setattr(server_module, "Assets", lambda: Assets(tmp_path / "nowhere"))

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask("/")).status == 404
        assert json.loads((await ask("/api/v1/state")).text)["nodes"]

    serve(scenario)
