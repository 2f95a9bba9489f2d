"""`cidrella webhook` put together, around a desk that is not there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
import pytest

from cidrella.app.sources import read_settings
from cidrella.app.webhook_settings import WebhookSettings
from cidrella.app.webhooking import run_webhook
from cidrella.core.prefix import Family
from cidrella.kube.issuing import issue, utc_now
from cidrella.serviceip.ranges import Ranges
from tests.app.around import Ran, standing_in, write_kubeconfig
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ISSUED = issue(("127.0.0.1",), utc_now())
QUESTION = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "7",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "services"},
        "object": {"spec": {"type": "ExternalName"}},
    },
}


@dataclass(frozen=True)
class DeskSettings:
    ranges: Any
    identity: str
    election: Any
    banded: bool
    repair_interval: float


class Desk:
    """Does what a test says, and remembers what it was made from."""

    made: ClassVar[list[Desk]] = []
    work: ClassVar[Any] = None
    ranges = Ranges()

    def __init__(self, client: object, settings: DeskSettings, registry: object) -> None:
        self.client = client
        self.settings = settings
        self.registry = registry
        self.ended = asyncio.Event()
        self.made.append(self)

    async def run(self) -> None:
        try:
            await type(self).work(self)
        finally:
            self.ended.set()

    def readiness(self) -> list[str]:
        return ["Services are not listed yet"]


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with standing_in(monkeypatch, "cidrella.serviceip.desk", Desk, DeskSettings):
        yield


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """A cluster that nobody will ask, certificates in files, and ports that are free."""
    (tmp_path / "tls.crt").write_bytes(ISSUED.pair.certificate)
    (tmp_path / "tls.key").write_bytes(ISSUED.pair.key)
    return [
        write_kubeconfig(tmp_path),
        f"--tls-cert-file={tmp_path / 'tls.crt'}",
        f"--tls-private-key-file={tmp_path / 'tls.key'}",
        "--bind-address=127.0.0.1:0",
        "--webhook-bind-address=127.0.0.1:0",
    ]


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> Ran:
    given = read_settings(WebhookSettings, [*arguments], {})
    return Ran.of(run_webhook(given.settings, given.warnings), capfd)


async def stop(_: Desk) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()


def test_from_start_to_end(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """O4: one line at the start says what this process is and where it looks; told to stop, it ends well."""
    monkeypatch.setattr(Desk, "work", stop)
    ran = run(capfd, *flags, "--service-cluster-ip-range=10.96.0.0/16", "--repair-interval=30s")
    assert ran.code == 0
    start = ran.line("cidrella webhook starts")
    assert (start["ranges"], start["bands"], start["election"]) == (
        "10.96.0.0/16",
        True,
        "kube-system/cidrella-services",
    )
    (desk,) = Desk.made
    assert [str(each) for each in desk.settings.ranges] == ["10.96.0.0/16"]
    assert (desk.settings.banded, desk.settings.repair_interval) == (True, 30.0)


def test_switches(flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """B11, F5: the gate and the election reach the desk; without ranges, ServiceCIDRs are."""
    monkeypatch.setattr(Desk, "work", stop)
    ran = run(capfd, *flags, "--feature-gates=ServiceIPStaticSubrange=false", "--leader-elect=false")
    (desk,) = Desk.made
    assert (desk.settings.banded, desk.settings.election, desk.settings.ranges) == (False, None, ())
    start = ran.line("cidrella webhook starts")
    assert (start["ranges"], start["bands"], start["election"]) == ("ServiceCIDRs", False, "off")


def test_what_is_served(flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """O2, B9: the API server is answered over TLS, and probes beside it."""
    probes, webhook = free_port(), free_port()
    seen: list[Any] = []

    async def ask(desk: Desk) -> None:
        context = ssl.create_default_context(cadata=ISSUED.bundle.decode())
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{webhook}/mutate-services"
            for _ in range(100):
                try:
                    async with session.post(url, json=QUESTION, ssl=context) as reply:
                        seen.append((await reply.json())["response"])
                        break
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.02)
            async with session.get(f"http://127.0.0.1:{probes}/readyz") as reply:
                seen.append((reply.status, await reply.text()))
        await stop(desk)

    monkeypatch.setattr(Desk, "work", ask)
    where = [f"--bind-address=127.0.0.1:{probes}", f"--webhook-bind-address=127.0.0.1:{webhook}"]
    assert run(capfd, *flags, *where).code == 0
    assert seen == [{"uid": "7", "allowed": True}, (503, "Services are not listed yet")]


def test_who_is_answered(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """B9: with a CA for clients, nobody without a certificate."""
    (tmp_path / "clients.crt").write_bytes(ISSUED.bundle)
    port = free_port()
    refused: list[Exception] = []

    async def ask(desk: Desk) -> None:
        context = ssl.create_default_context(cadata=ISSUED.bundle.decode())
        async with aiohttp.ClientSession() as session:
            while not refused:
                try:
                    await session.post(f"https://127.0.0.1:{port}/mutate-services", json=QUESTION, ssl=context)
                    break
                except aiohttp.ClientConnectorError:  # it does not listen yet
                    await asyncio.sleep(0.02)
                except aiohttp.ClientConnectionError as error:
                    refused.append(error)
        await stop(desk)

    monkeypatch.setattr(Desk, "work", ask)
    ran = run(capfd, *flags, f"--webhook-bind-address=127.0.0.1:{port}", f"--client-ca-file={tmp_path / 'clients.crt'}")
    assert ran.code == 0
    assert refused
    assert ran.line("cidrella webhook starts")["clients"].endswith("clients.crt")


def test_without_a_certificate(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """O2: where the Secret cannot be read it says so, and waits; the desk works meanwhile."""
    probes = free_port()
    seen: list[str] = []

    async def ask(desk: Desk) -> None:
        async with aiohttp.ClientSession() as session:
            while "no certificate yet: " not in "".join(seen):
                async with session.get(f"http://127.0.0.1:{probes}/readyz") as reply:
                    seen.append(await reply.text())
        await stop(desk)

    monkeypatch.setattr(Desk, "work", ask)
    self_made = ["--tls-cert-file=", "--tls-private-key-file=", f"--bind-address=127.0.0.1:{probes}"]
    assert run(capfd, *flags, *self_made).code == 0


def test_a_question_at_the_end(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: what is under way when the end comes is answered, while the desk is still there for it."""
    port = free_port()
    order: list[str] = []
    asking: list[asyncio.Task[None]] = []

    async def slow_exists(_: Desk, __: str) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.3)
        order.append("answered")
        return True

    async def ask() -> None:
        context = ssl.create_default_context(cadata=ISSUED.bundle.decode())
        question = json.loads(json.dumps(QUESTION))
        question["request"]["object"]["spec"] = {}
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    url = f"https://127.0.0.1:{port}/mutate-services"
                    async with session.post(url, json=question, ssl=context) as reply:
                        order.append(f"got {reply.status}")
                        return
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.02)

    async def work(_: Desk) -> None:
        asking.append(asyncio.create_task(ask()))
        try:
            await asyncio.Event().wait()
        finally:
            order.append("desk ended")
            await asking[0]

    monkeypatch.setattr(Desk, "work", work)
    monkeypatch.setattr(Desk, "exists", slow_exists, raising=False)
    monkeypatch.setattr(Desk, "ranges", Ranges(families=(Family.IPV4,)))
    assert run(capfd, *flags, f"--webhook-bind-address=127.0.0.1:{port}").code == 0
    assert sorted(order) == ["answered", "desk ended", "got 200"]
    assert order.index("answered") < order.index("desk ended")


@pytest.mark.parametrize("fails", [True, False])
def test_a_desk_that_ends(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """O6: a desk that fails, or ends by itself, is logged in one line and ends the process with code 1."""

    async def end(_: Desk) -> None:
        if fails:
            raise RuntimeError("out of\nluck")

    monkeypatch.setattr(Desk, "work", end)
    ran = run(capfd, *flags)
    assert ran.code == 1
    assert ran.line("the webhook")["level"] == "error"
    assert ("RuntimeError" in ran.line("the webhook").get("exception", "")) is fails


@pytest.mark.parametrize("flag", ["--bind-address", "--webhook-bind-address"])
def test_a_port_that_is_taken(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """O6: it ends the process with code 1, with one line that names the flag, and the desk ends in order."""

    async def wait(_: Desk) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Desk, "work", wait)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = run(capfd, *flags, f"{flag}={address}")
    assert ran.code == 1
    (line,) = (line for line in ran.lines if line["level"] == "error")
    assert (line["event"], line["address"]) == (f"cannot listen; choose another {flag}", address)


@pytest.mark.parametrize("flag", ["--kubeconfig=/nowhere", "--context=no-such-context"])
def test_no_way_to_a_cluster(flags: list[str], capfd: pytest.CaptureFixture[str], flag: str) -> None:
    """O6: a kubeconfig that does not do is wrong input: one line, exit code 2, nothing made."""
    ran = run(capfd, *flags, flag)
    assert (ran.code, len(ran.lines), Desk.made) == (2, 1, [])


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--tls-cert-file=/nowhere", "/nowhere: No such file or directory"),
        ("--tls-private-key-file=/dev/null", "the serving certificate and key are of no use"),
    ],
)
def test_certificates_of_no_use(flags: list[str], capfd: pytest.CaptureFixture[str], flag: str, words: str) -> None:
    """B9: wrong files are wrong input, too."""
    ran = run(capfd, *flags, flag)
    assert (ran.code, Desk.made) == (2, [])
    (line,) = ran.lines
    assert line["event"] == "--tls-cert-file and --tls-private-key-file are of no use"
    assert words in line["error"]


@pytest.mark.parametrize("file", ["/nowhere", "/dev/null"])
def test_a_ca_of_no_use(flags: list[str], capfd: pytest.CaptureFixture[str], file: str) -> None:
    """B9: so is that of clients: nobody is let in for want of it."""
    ran = run(capfd, *flags, f"--client-ca-file={file}")
    assert (ran.code, Desk.made) == (2, [])
    (line,) = ran.lines
    assert line["event"] == "--client-ca-file is of no use"
