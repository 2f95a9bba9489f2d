"""The page as `cidrella run` serves it: to whom, where, and what is said of it at the start."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.app import test_running
from tests.app.around import standing_in, write_kubeconfig
from tests.app.test_running import Controller, ControllerSettings, run
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.app.around import Ran

GUARDED = ("/", "/api/v1/state", "/api/v1/stream", "/metrics", "/static/app.js")


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with standing_in(monkeypatch, "cidrella.controller.controller", Controller, ControllerSettings):
        yield


class Site:
    """What is served while a controller runs that does nothing but ask for it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig = write_kubeconfig(tmp_path)
        self.monkeypatch = monkeypatch
        self.capfd = capfd
        self.port = free_port()

    def ask(self, *paths: str, flags: tuple[str, ...] = (), host: str = "127.0.0.1", **headers: str) -> tuple[Ran, Any]:
        """Run with these flags, and ask for each path: the log, and for each path status and text."""
        answers: dict[str, tuple[int, str]] = {}

        async def work(controller: Controller) -> None:
            async with aiohttp.ClientSession() as session:
                for path in paths:
                    url = path if path.startswith("http") else f"http://127.0.0.1:{self.port}{path}"
                    async with session.get(url, headers=headers, allow_redirects=False) as response:
                        endless = path.endswith("/stream") and response.status == 200
                        answers[path] = response.status, "" if endless else await response.text()
            await test_running.stop(controller)

        self.monkeypatch.setattr(Controller, "work", work)
        ran = run(self.capfd, self.kubeconfig, f"--bind-address={host}:{self.port}", *flags)
        return ran, answers


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Site:
    return Site(tmp_path, monkeypatch, capfd)


def test_on_loopback(site: Site) -> None:
    """It is for everybody on this machine, and the start says where it is."""
    ran, answers = site.ask("/api/v1/state", "/api/v1/explain/nobody", "/metrics", "/healthz")
    assert ran.code == 0
    assert [status for status, _ in answers.values()] == [200, 404, 200, 200]
    state = json.loads(answers["/api/v1/state"][1])
    assert ("lab" in state["cluster"]["name"], state["cluster"]["replica"]) == (True, "tests")
    line = ran.line("the page is served")
    assert line["url"] == f"http://127.0.0.1:{site.port}/"
    assert "only this machine" in line["asks_for"]
    assert "cidrella_web_viewers" in answers["/metrics"][1]


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_wider_and_nothing_to_know_people_by(site: Site, host: str) -> None:
    """There is no page, and a line says why; whoever asked for health and metrics before is answered as before."""
    ran, answers = site.ask("/", "/api/v1/state", "/metrics", "/healthz", "/readyz", host=host)
    assert [status for status, _ in answers.values()] == [403, 403, 200, 200, 503]
    line = ran.line("the page is not served")
    assert line["level"] == "warning"
    assert "--web-token-file" in line["event"]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("kind", ["token", "password"])
def test_with_a_secret(site: Site, tmp_path: Path, host: str, kind: str) -> None:
    """Without it there is nothing but health, wherever one is; the start says what is asked for."""
    (tmp_path / "secret").write_text("sesame\n")
    flags = (f"--web-{kind}-file={tmp_path / 'secret'}",)
    ran, answers = site.ask(*GUARDED, "/healthz", "/readyz", flags=flags, host=host)
    assert [status for status, _ in answers.values()] == [303, 401, 401, 401, 401, 200, 503]
    assert ran.line("the page is served")["asks_for"] == f"a {kind}"
    assert "sesame" not in str(ran.lines)
    # Without TLS, others on the way see what is shown; on this machine nobody is on the way.
    assert [line["level"] for line in ran.lines if "in clear" in line["event"]] == ["warning"] * (host != "127.0.0.1")
    _, answers = site.ask("/api/v1/state", "/metrics", flags=flags, host=host, Authorization="Bearer sesame")
    assert {status for status, _ in answers.values()} == ({200} if kind == "token" else {401})


def test_several(site: Site, tmp_path: Path) -> None:
    """Each of them will do, and all are named."""
    for each in ("token", "password"):
        (tmp_path / each).write_text(each)
    files = (f"--web-token-file={tmp_path / 'token'}", f"--web-password-file={tmp_path / 'password'}")
    ran, answers = site.ask("/api/v1/state", flags=(*files, "--web-auth=kubernetes"), Authorization="Bearer token")
    assert answers["/api/v1/state"][0] == 200
    assert ran.line("the page is served")["asks_for"] == "a token or a password or a token of the cluster"


def test_a_cluster_that_cannot_be_asked(site: Site) -> None:
    """Whose token it is, nobody can tell; nobody is let in."""
    _, answers = site.ask("/api/v1/state", flags=("--web-auth=kubernetes",), Authorization="Bearer token")
    assert answers["/api/v1/state"][0] == 503


@pytest.mark.parametrize("content", [None, "\n"])
@pytest.mark.parametrize("kind", ["token", "password"])
def test_a_file_that_is_of_no_use(site: Site, tmp_path: Path, content: str | None, kind: str) -> None:
    """It is wrong input: one line that names it, exit code 2, and nothing was served."""
    if content is not None:
        (tmp_path / "secret").write_text(content)
    ran, answers = site.ask("/healthz", flags=(f"--web-{kind}-file={tmp_path / 'secret'}",))
    assert (ran.code, answers) == (2, {})
    assert str(tmp_path / "secret") in ran.line("who may see the page cannot be told")["error"]


def test_without_the_page(site: Site) -> None:
    """O2: there is what there was before there was one."""
    ran, answers = site.ask("/", "/api/v1/state", "/healthz", "/metrics", flags=("--web=false",))
    assert [status for status, _ in answers.values()] == [404, 404, 200, 200]
    assert "cidrella_web" not in answers["/metrics"][1]
    assert not any("the page" in line["event"] for line in ran.lines)


@pytest.mark.parametrize("web", ["true", "false"])
def test_metrics_apart(site: Site, tmp_path: Path, web: str) -> None:
    """O1: they are at their own address, for everybody who can connect, and not with the rest."""
    (tmp_path / "secret").write_text("sesame")
    port = free_port()
    apart = f"http://127.0.0.1:{port}"
    flags = [f"--metrics-bind-address=127.0.0.1:{port}", f"--web={web}"]
    if web == "true":
        flags.append(f"--web-token-file={tmp_path / 'secret'}")
    paths = "/metrics", f"{apart}/metrics", f"{apart}/healthz", f"{apart}/"
    ran, answers = site.ask(*paths, flags=tuple(flags), Authorization="Bearer sesame")
    assert [status for status, _ in answers.values()] == [404, 200, 404, 404]
    assert "cidrella_" in answers[f"{apart}/metrics"][1]
    assert ran.line("metrics have an address of their own")["url"] == f"{apart}/metrics"


def test_an_address_for_metrics_that_is_taken(site: Site) -> None:
    """It is told by its flag, before anything is touched."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran, answers = site.ask("/healthz", flags=(f"--metrics-bind-address=127.0.0.1:{taken.getsockname()[1]}",))
    assert (ran.code, answers) == (1, {})
    assert ran.line("cannot listen")["event"] == "cannot listen; choose another --metrics-bind-address"


def test_who_follows_does_not_hold_up_the_end(site: Site) -> None:
    """O4: told to stop, it stops, whoever looks."""

    async def work(_: Controller) -> None:
        url = f"http://127.0.0.1:{site.port}/api/v1/stream"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert response.status == 200
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    site.monkeypatch.setattr(Controller, "work", work)
    assert run(site.capfd, site.kubeconfig, f"--bind-address=127.0.0.1:{site.port}").code == 0
