"""`cidrella run` put together, around a controller that is not there."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
import pytest

from cidrella import __version__
from cidrella.app.running import run_controller
from cidrella.app.settings import Settings
from cidrella.app.sources import read_settings
from cidrella.cli.main import main
from tests.app.around import Ran, standing_in, write_kubeconfig
from tests.app.insights import World
from tests.testenv import without_intents
from tests.testenv.ports import free_port
from tests.testenv.without_intents import WITHOUT_INTENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class ControllerSettings:
    flags: Any
    identity: str
    election: Any
    heartbeat: Any
    records: bool


class Controller:
    """Does what a test says, and remembers what it was made from."""

    made: ClassVar[list[Controller]] = []
    work: ClassVar[Any] = None

    def __init__(self, client: object, settings: ControllerSettings, metrics: object) -> None:
        self.client = client
        self.settings = settings
        self.metrics = metrics
        self.insight = World().insight
        self.on_nodes: object = None
        self.made.append(self)

    async def run(self) -> None:
        await type(self).work(self)

    def readiness(self) -> list[str]:
        return ["nodes are not listed yet"]


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with standing_in(monkeypatch, "cidrella.controller.controller", Controller, ControllerSettings):
        yield


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A cluster that nobody will ask."""
    return write_kubeconfig(tmp_path)


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> Ran:
    given = read_settings(Settings, [*arguments], {})
    return Ran.of(run_controller(given.settings, given.warnings), capfd)


async def stop(_: Controller) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()


def test_from_start_to_end(kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """O4: one line at the start says what this process is and where it looks; told to stop, it ends well."""
    monkeypatch.setattr(Controller, "work", stop)
    ran = run(capfd, kubeconfig, "--bind-address=127.0.0.1:0", "--cluster-cidr=10.0.0.1/16,fd00::/48")
    assert ran.code == 0
    start = ran.line("cidrella starts")
    assert (start["version"], start["allocator"]) == (__version__, "MultiCIDRRangeAllocator")
    assert start["ranges"] == "10.0.0.0/16 in /24s, fd00::/48 in /64s, and pools in the API"
    assert (start["server"], start["election"]) == ("http://127.0.0.1:1", "kube-system/cidrella")
    assert "lab" in start["access"]
    assert not start["probes"].endswith(":0")
    assert ran.line("--cluster-cidr: 10.0.0.1/16")["level"] == "warning"
    assert ran.line("told to stop")["signal"] == "SIGTERM"
    assert "secret-token" not in str(ran.lines)


def test_what_the_controller_is_made_from(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F5, F6, F8: the flags and the Leases reach the controller, and every process has a name of its own."""
    monkeypatch.setattr(Controller, "work", stop)
    quiet = [kubeconfig, "--bind-address=127.0.0.1:0", "--log-level=error"]
    run(capfd, *quiet, "--allocate-node-cidrs=false")
    run(capfd, *quiet, "--leader-elect=false")
    one, other = (each.settings for each in Controller.made)
    assert (one.flags.allocate, other.flags.allocate) == (False, True)
    assert (one.election.name, other.election) == ("cidrella", None)
    assert (one.heartbeat, other.heartbeat.name) == (None, "cidrella-alone")
    assert one.identity != other.identity


def test_the_old_way_is_called_so(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: with RangeAllocator one line says that it is the old way."""
    monkeypatch.setattr(Controller, "work", stop)
    flags = ["--cidr-allocator-type=RangeAllocator", "--cluster-cidr=10.0.0.0/16", "--leader-elect=false"]
    ran = run(capfd, kubeconfig, "--bind-address=127.0.0.1:0", *flags)
    assert "the old way" in ran.line("RangeAllocator")["event"]
    assert (ran.line("cidrella starts")["ranges"], ran.line("cidrella starts")["election"]) == (
        "10.0.0.0/16 in /24s",
        "off",
    )


def test_probes_are_served_meanwhile(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """O2: health, readiness and metrics are the controller's."""
    port = free_port()
    seen = []

    async def ask(controller: Controller) -> None:
        async with aiohttp.ClientSession() as session:
            for path in ("/healthz", "/readyz", "/metrics"):
                async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                    seen.append((response.status, await response.text()))
        await stop(controller)

    monkeypatch.setattr(Controller, "work", ask)
    assert run(capfd, kubeconfig, f"--bind-address=127.0.0.1:{port}").code == 0
    assert seen[:2] == [(200, "ok"), (503, "nodes are not listed yet")]
    assert "cidrella_" in seen[2][1]


@pytest.mark.parametrize("fails", [True, False])
def test_a_controller_that_ends(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """A controller that fails, or ends by itself, is logged in one line and ends the process with code 1."""

    async def end(_: Controller) -> None:
        if fails:
            raise RuntimeError("out of\nluck")

    monkeypatch.setattr(Controller, "work", end)
    ran = run(capfd, kubeconfig, "--bind-address=127.0.0.1:0")
    assert ran.code == 1
    assert ran.line("the controller")["level"] == "error"
    assert ("RuntimeError" in ran.line("the controller").get("exception", "")) is fails


def test_a_port_that_is_taken(kubeconfig: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A port that is taken ends the process with code 1, before anything is touched."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = run(capfd, kubeconfig, f"--bind-address={address}")
    assert ran.code == 1
    (line,) = ran.lines
    assert (line["event"], line["address"]) == ("cannot listen; choose another --bind-address", address)


@pytest.mark.parametrize("flag", ["--kubeconfig=/nowhere", "--context=no-such-context"])
def test_no_way_to_a_cluster(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """A kubeconfig that does not do is wrong input: one line, exit code 2, nothing made."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ran = run(capfd, kubeconfig, flag)
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert Controller.made == []


def test_intents_are_recorded(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 27: what is sent is recorded before. Nothing in the environment changes that."""
    monkeypatch.setattr(Controller, "work", stop)
    monkeypatch.setenv("CIDRELLA_UNSAFE_WITHOUT_INTENTS", "1")
    monkeypatch.setattr("sys.argv", ["cidrella", "run", kubeconfig, "--bind-address=127.0.0.1:0"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    assert Controller.made[-1].settings.records


def test_the_entry_point_that_records_nothing(
    kubeconfig: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command line, for tests alone. Its log says what may happen."""
    monkeypatch.setattr(Controller, "work", stop)
    flags = [kubeconfig, "--bind-address=127.0.0.1:0", "--leader-elect-resource-name=other"]
    monkeypatch.setattr("sys.argv", [WITHOUT_INTENTS, "run", *flags])
    with pytest.raises(SystemExit, match=r"^0$"):
        without_intents.main()
    made = Controller.made[-1].settings
    assert (made.records, made.election.name) == (False, "other")
    assert "two nodes may get one block" in capfd.readouterr().err
    monkeypatch.setattr("sys.argv", [WITHOUT_INTENTS, "pools"])
    with pytest.raises(SystemExit, match="usage"):
        without_intents.main()
