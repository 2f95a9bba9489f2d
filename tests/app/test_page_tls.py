"""The page, health and metrics over TLS, as `cidrella run` serves them with a certificate from files."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from cidrella.kube.issuing import issue, utc_now
from cidrella.webhook.certificates import CertificateFiles
from tests.app.around import standing_in, write_kubeconfig
from tests.app.test_running import Controller, ControllerSettings, run
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from cidrella.kube.issuing import Issued
    from tests.app.around import Ran


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with standing_in(monkeypatch, "cidrella.controller.controller", Controller, ControllerSettings):
        yield


class Site:
    """A process with a certificate, until the scenario is over."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.directory = tmp_path
        self.monkeypatch = monkeypatch
        self.capfd = capfd
        self.kubeconfig = write_kubeconfig(tmp_path)
        self.port = free_port()

    def certify(self) -> Issued:
        """Put a new certificate in place of the one that there is."""
        made = issue(["127.0.0.1"], utc_now())
        (self.directory / "tls.crt").write_bytes(made.pair.certificate)
        (self.directory / "tls.key").write_bytes(made.pair.key)
        return made

    def run(self, scenario: Callable[[], Awaitable[None]], *flags: str, host: str = "127.0.0.1") -> Ran:
        async def work(_: Controller) -> None:
            try:
                await scenario()
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

        self.monkeypatch.setattr(Controller, "work", work)
        files = f"--tls-cert-file={self.directory / 'tls.crt'}", f"--tls-private-key-file={self.directory / 'tls.key'}"
        return run(self.capfd, self.kubeconfig, f"--bind-address={host}:{self.port}", *files, *flags)

    async def ask(self, path: str, authority: Issued, method: str = "GET", **options: Any) -> aiohttp.ClientResponse:
        """Over a connection of its own, trusting nobody else."""
        trust = ssl.create_default_context(cadata=authority.bundle.decode())
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(
                method, f"https://127.0.0.1:{self.port}{path}", ssl=trust, allow_redirects=False, **options
            ) as response,
        ):
            await response.read()
            return response


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Site:
    return Site(tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize("web", ["true", "false"])
def test_everything_there_speaks_it(site: Site, web: str) -> None:
    """Health, metrics and the page; what is no TLS is not answered."""
    made = site.certify()
    codes: list[int] = []

    async def scenario() -> None:
        paths = ("/healthz", "/readyz", "/metrics", "/api/v1/state")
        codes.extend([(await site.ask(path, made)).status for path in paths])
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"http://127.0.0.1:{site.port}/healthz")

    ran = site.run(scenario, f"--web={web}")
    assert codes == [200, 503, 200, 200 if web == "true" else 404]
    assert ran.line("cidrella starts")["probes"] == f"https://127.0.0.1:{site.port}"


def test_other_names_are_refused_as_ever(site: Site) -> None:
    """A page of somebody else's learns nothing over TLS, either."""
    made = site.certify()
    codes: list[int] = []

    async def scenario() -> None:
        hosts = ("localhost", "evil.example")
        codes.extend([(await site.ask("/api/v1/state", made, headers={"Host": host})).status for host in hosts])

    site.run(scenario)
    assert codes == [200, 403]


def test_a_session(site: Site) -> None:
    """Its cookie is for TLS only, and nothing is said of listeners on the way."""
    made = site.certify()
    (site.directory / "password").write_text("sesame")
    found: list[Any] = []

    async def scenario() -> None:
        answer = await site.ask("/login", made, "POST", data={"password": "sesame"})
        found.append(SimpleCookie(answer.headers["Set-Cookie"])["cidrella-session"])
        headers = {"Cookie": f"cidrella-session={found[0].value}"}
        found.append((await site.ask("/api/v1/state", made, headers=headers)).status)

    ran = site.run(scenario, f"--web-password-file={site.directory / 'password'}", host="0.0.0.0")
    assert (found[0]["secure"], found[0]["httponly"], found[0]["samesite"]) == (True, True, "Lax")
    assert found[1] == 200
    assert ran.line("the page is served")["url"] == f"https://0.0.0.0:{site.port}/"
    assert not any("in clear" in line["event"] for line in ran.lines)


def test_a_new_certificate(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown when the files hold it, to whoever connects from then on; half of one is not."""
    monkeypatch.setattr(CertificateFiles, "period", 0.01)
    monkeypatch.setattr("cidrella.kube.files.PERIOD", 0.0)
    monkeypatch.setattr("cidrella.webhook.certificates._SOON", 0.01)
    first = site.certify()

    async def scenario() -> None:
        assert (await site.ask("/healthz", first)).status == 200
        (site.directory / "tls.key").write_text("half")
        assert (await site.ask("/healthz", first)).status == 200
        second = site.certify()
        for _ in range(6000):
            try:
                assert (await site.ask("/healthz", second)).status == 200
                break
            except aiohttp.ClientConnectorCertificateError:
                await asyncio.sleep(0.01)
        else:
            pytest.fail("the new one was never shown")

    assert site.run(scenario).code == 0


@pytest.mark.parametrize("wrong", ["no file", "no certificate", "another key"])
def test_files_that_are_of_no_use(site: Site, wrong: str) -> None:
    """It is wrong input: one line, exit code 2, and nothing was served."""
    match wrong:
        case "no certificate":
            (site.directory / "tls.crt").write_text("x")
            (site.directory / "tls.key").write_text("y")
        case "another key":
            key = site.certify().pair.key
            site.certify()
            (site.directory / "tls.key").write_bytes(key)

    async def scenario() -> None:
        raise AssertionError

    ran = site.run(scenario)
    assert ran.code == 2
    assert ran.line("--tls-cert-file and --tls-private-key-file are of no use")["error"]
