"""TLS to the server: who is trusted, what is shown, and certificates and tokens that change while we run."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from cidrella.kube import files
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import ConfigError, NoAnswerError
from cidrella.kube.files import Fixed, WatchedFile
from cidrella.kube.tls import Tls
from cidrella.kube.tokens import TokenFile
from tests.kube.serving import server_context, serving
from tests.kube.test_access import kubeconfig, write
from tests.testenv.certs import Authority

if TYPE_CHECKING:
    from tests.testenv.certs import Identity


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A CA."""
    return directory_authority(tmp_path / "pki")


def directory_authority(directory: Path) -> Authority:
    directory.mkdir()
    return Authority(directory)


async def whoami(request: web.Request) -> web.Response:
    """Tell the client whom it showed itself to be."""
    assert request.transport
    shown = request.transport.get_extra_info("peercert") or {}
    subject = {key: value for part in shown.get("subject", ()) for key, value in part}
    return web.json_response(
        {"certificate": subject.get("commonName", ""), "header": request.headers.get("Authorization", "")}
    )


async def asked(access: Access) -> dict[str, str]:
    async with Client(access) as client:
        return await client.get("/", dict)


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def ask(
    tmp_path: Path, serving_as: Identity, cluster: dict[str, Any], user: dict[str, Any] | None = None, **server: Any
) -> dict[str, str]:
    """Ask a TLS server through a kubeconfig; `server` in the cluster is added here."""

    async def scenario() -> dict[str, str]:
        async with serving(whoami, server_context(serving_as, **server)) as url:
            path = write(tmp_path / "config", kubeconfig(user=user, cluster={"server": url, **cluster}))
            return await asked(load_access(path))

    return asyncio.run(scenario())


def test_ca_in_a_file_and_as_data(tmp_path: Path, authority: Authority) -> None:
    """A server whose certificate is of the named CA is trusted, wherever the CA stands."""
    identity = authority.server("server")
    assert ask(tmp_path, identity, {"certificate-authority": "pki/ca.crt"})
    assert ask(tmp_path, identity, {"certificate-authority-data": data(authority.certificate)})


def test_wrong_ca_is_refused(tmp_path: Path, authority: Authority) -> None:
    """A server with another CA's certificate is not spoken to, nor is one that only the system could vouch for."""
    other = directory_authority(tmp_path / "other")
    with pytest.raises(NoAnswerError, match=r"the server's certificate is not trusted: .*certificate"):
        ask(tmp_path, authority.server("server"), {"certificate-authority": "other/ca.crt"})
    assert other.certificate.exists()
    with pytest.raises(NoAnswerError, match="not trusted"):
        ask(tmp_path, authority.server("server"), {})


def test_wrong_name_is_refused(tmp_path: Path, authority: Authority) -> None:
    """A certificate for another name is refused; tls-server-name says which name it has to have."""
    identity, ca = authority.server("server"), {"certificate-authority": "pki/ca.crt"}
    with pytest.raises(NoAnswerError, match=r"not trusted: .*[Hh]ostname"):
        ask(tmp_path, identity, {**ca, "tls-server-name": "elsewhere"})
    assert ask(tmp_path, identity, {**ca, "tls-server-name": "localhost"})


def test_insecure_trusts_anyone(tmp_path: Path, authority: Authority) -> None:
    """insecure-skip-tls-verify does what it says."""
    assert ask(tmp_path, authority.server("server"), {"insecure-skip-tls-verify": True})


def test_client_certificate_in_files_and_as_data(tmp_path: Path, authority: Authority) -> None:
    """A client certificate is shown to the server, wherever it stands, next to a token if there is one."""
    identity, client = authority.server("server"), authority.client("alice")
    cluster = {"certificate-authority": "pki/ca.crt"}
    ca = {"client_ca": authority.certificate}
    user = {"client-certificate": "pki/alice.crt", "client-key": "pki/alice.key", "token": "t"}
    assert ask(tmp_path, identity, cluster, user, **ca) == {"certificate": "alice", "header": "Bearer t"}
    user = {"client-certificate-data": data(client.certificate), "client-key-data": data(client.key)}
    assert ask(tmp_path, identity, cluster, user, **ca) == {"certificate": "alice", "header": ""}


def test_an_encrypted_key_asks_nobody(authority: Authority) -> None:
    """A key with a password is an error, and no question on the terminal."""
    client = authority.client("alice")
    key = serialization.load_pem_private_key(client.key.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    tls = Tls(None, Fixed(client.certificate.read_bytes()), Fixed(locked))
    with pytest.raises(ConfigError, match="encrypted"):
        tls.context(None)


class Rotated:
    """A directory as the kubelet mounts it: files are links into another directory, which is exchanged as a whole."""

    def __init__(self, directory: Path, **contents: bytes) -> None:
        self.directory = directory
        self._generation = 0
        directory.mkdir()
        self.rotate(**contents)
        for name in contents:
            (directory / name).symlink_to(Path("..data", name))

    def rotate(self, **contents: bytes) -> None:
        self._generation += 1
        target = self.directory / f"..{self._generation}"
        target.mkdir()
        for name, content in contents.items():
            (target / name).write_bytes(content)
        link = self.directory / "..new"
        link.symlink_to(target.name)
        link.rename(self.directory / "..data")


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_a_period(self) -> None:
        self.now += files.PERIOD


def test_token_is_rotated(tmp_path: Path) -> None:
    """A token that the kubelet replaced is in use a few seconds later, and the file is not read all the time."""
    clock = Clock()
    mount = Rotated(tmp_path / "account", token=b"one\n")
    access = Access("http://h", identity=TokenFile(WatchedFile(mount.directory / "token", clock=clock)))
    assert asyncio.run(access.credentials()).authorization == "Bearer one"
    mount.rotate(token=b"two\n")
    first = asyncio.run(access.credentials())
    assert first.authorization == "Bearer one"
    clock.pass_a_period()
    assert asyncio.run(access.credentials()).authorization == "Bearer two"


def test_token_is_read_at_once_after_a_refusal(tmp_path: Path) -> None:
    """A 401 has the file read again without waiting; a token that is of no use leaves the old one."""
    mount = Rotated(tmp_path / "account", token=b"one\n")
    access = Access("http://h", identity=TokenFile(WatchedFile(mount.directory / "token", clock=Clock())))
    for content, expected in ((b"two", "Bearer two"), (b"", "Bearer two"), (b"three", "Bearer three")):
        access.rejected(asyncio.run(access.credentials()))
        mount.rotate(token=content)
        assert asyncio.run(access.credentials()).authorization == expected
    (mount.directory / "token").unlink()
    access.rejected()
    assert asyncio.run(access.credentials()).authorization == "Bearer three"


def test_credentials_are_the_same_object_while_nothing_changes(tmp_path: Path, authority: Authority) -> None:
    """The ssl context is made once, and not for each request; looking at unchanged files changes nothing."""
    clock = Clock()
    mount = Rotated(tmp_path / "account", token=b"one\n", ca=authority.certificate.read_bytes())
    ca = WatchedFile(mount.directory / "ca", clock=clock)
    token = TokenFile(WatchedFile(mount.directory / "token", clock=clock))
    access = Access("https://h", tls=Tls(ca), identity=token)
    first = asyncio.run(access.credentials())
    clock.pass_a_period()
    assert asyncio.run(access.credentials()) is first
    access.rejected()
    assert asyncio.run(access.credentials()) is first


def test_client_certificate_is_rotated(tmp_path: Path, authority: Authority) -> None:
    """A new client certificate is shown on new connections; half of a rotation leaves the old one in use."""
    clock = Clock()
    alice, bob = authority.client("alice"), authority.client("bob")
    cert, key = alice.certificate.read_bytes(), alice.key.read_bytes()
    mount = Rotated(tmp_path / "mount", cert=cert, key=key, ca=authority.certificate.read_bytes())
    parts = [WatchedFile(mount.directory / name, clock=clock) for name in ("ca", "cert", "key")]

    async def scenario() -> None:
        context = server_context(authority.server("server"), authority.certificate)
        async with serving(whoami, context) as url, Client(Access(url, tls=Tls(*parts))) as client:
            assert (await client.get("/", dict))["certificate"] == "alice"
            mount.rotate(cert=bob.certificate.read_bytes(), key=key, ca=authority.certificate.read_bytes())
            clock.pass_a_period()
            assert (await client.get("/", dict))["certificate"] == "alice"
            mount.rotate(
                cert=bob.certificate.read_bytes(), key=bob.key.read_bytes(), ca=authority.certificate.read_bytes()
            )
            clock.pass_a_period()
            assert (await client.get("/", dict))["certificate"] == "bob"

    asyncio.run(scenario())


def test_ca_is_rotated(tmp_path: Path, authority: Authority) -> None:
    """A server that changed to a new CA is trusted as soon as the CA's file says so."""
    clock = Clock()
    other = directory_authority(tmp_path / "other")
    mount = Rotated(tmp_path / "mount", ca=authority.certificate.read_bytes())
    access_to = Tls(WatchedFile(mount.directory / "ca", clock=clock))

    async def scenario() -> None:
        context = server_context(other.server("server"))
        async with serving(whoami, context) as url, Client(Access(url, tls=access_to)) as client:
            with pytest.raises(NoAnswerError, match="not trusted"):
                await client.get("/", dict)
            mount.rotate(ca="# später\n".encode() + other.certificate.read_bytes())
            clock.pass_a_period()
            assert await client.get("/", dict)

    asyncio.run(scenario())


def test_in_cluster(tmp_path: Path, authority: Authority) -> None:
    """From a Pod's files to a reply: the token is sent, the CA checked."""

    async def scenario() -> dict[str, str]:
        account = tmp_path / "account"
        account.mkdir()
        (account / "token").write_text("pod-token")
        (account / "ca.crt").write_bytes(authority.certificate.read_bytes())
        async with serving(whoami, server_context(authority.server("server"))) as url:
            host, _, port = url.removeprefix("https://").partition(":")
            environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
            return await asked(load_access(environ=environ, account=account))

    assert asyncio.run(scenario())["header"] == "Bearer pod-token"
