"""The client on the real API server: who we are to it, tokens and certificates that change, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from cidrella.kube.access import load_access
from cidrella.kube.client import METADATA_ONLY, Client
from cidrella.kube.errors import ApiError, NoAnswerError
from tests.testenv.api import kubeconfig
from tests.testenv.certs import Authority
from tests.testenv.nodes import NODES, create_nodes, delete_nodes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from cidrella.kube.access import Access
    from tests.testenv.api import Api

RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update", "delete"]}]
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Metadata(msgspec.Struct):
    """What of an object is looked at."""

    name: str
    uid: str


class Object(msgspec.Struct):
    """Any object."""

    kind: str
    metadata: Metadata


def run(access: Access, use: Callable[[Client], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with Client(access) as client:
            return await use(client)

    return asyncio.run(scenario())


async def whoami(client: Client) -> str:
    review = await client.create(REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, dict)
    name: str = review["status"]["userInfo"]["username"]
    return name


def written(path: Path, cluster: Api, user: dict[str, object], **changed: object) -> str:
    """A kubeconfig for the cluster, with fields of the cluster's entry changed, or left out if None."""
    config = kubeconfig(cluster.server, cluster.authority.certificate, user)
    entry = {**config["clusters"][0]["cluster"], **changed}
    config["clusters"][0]["cluster"] = {key: value for key, value in entry.items() if value is not None}
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.fixture(scope="module")
def account(cluster: Api) -> str:
    """The token of a ServiceAccount."""
    client, _ = cluster.service_account("client-tests", RULES)
    return client.token


@pytest.fixture
def node(cluster: Api) -> Iterator[str]:
    """The path of a node."""
    create_nodes(cluster.admin, ["client-tests"])
    yield f"{NODES}/client-tests"
    delete_nodes(cluster.admin, ["client-tests"])


def test_client_certificate(cluster: Api) -> None:
    """The API server takes us for the owner of the client certificate."""
    _, path = cluster.user("certified")
    assert run(load_access(str(path)), whoami) == "certified"


def test_service_account_token(cluster: Api, tmp_path: Path, account: str) -> None:
    """The API server takes us for the ServiceAccount of the token."""
    path = written(tmp_path / "config", cluster, {"token": account})
    assert run(load_access(path), whoami) == "system:serviceaccount:default:client-tests"


def test_wrong_ca_is_refused(cluster: Api, tmp_path: Path, account: str) -> None:
    """An API server with another CA's certificate gets nothing from us; told to be insecure, we trust it."""
    other = tmp_path / "other"
    other.mkdir()
    user: dict[str, object] = {"token": account}
    path = written(tmp_path / "config", cluster, user, **{"certificate-authority": str(Authority(other).certificate)})
    with pytest.raises(NoAnswerError, match="the server's certificate is not trusted"):
        run(load_access(path), whoami)
    insecure = {"certificate-authority": None, "insecure-skip-tls-verify": True}
    path = written(tmp_path / "config", cluster, user, **insecure)
    assert run(load_access(path), whoami) == "system:serviceaccount:default:client-tests"


def test_in_a_pod_whose_token_is_replaced(cluster: Api, tmp_path: Path, account: str) -> None:
    """With a Pod's files we are its ServiceAccount; a token that was refused is read again, and then it works."""
    directory = tmp_path / "account"
    directory.mkdir()
    (directory / "ca.crt").write_bytes(cluster.authority.certificate.read_bytes())
    token = directory / "token"
    token.write_text(account)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port)}
    codes: list[str] = []

    async def scenario() -> None:
        access = load_access(environ=environ, account=directory)
        async with Client(access, observe=lambda _verb, code, _seconds: codes.append(code)) as client:
            assert await whoami(client) == "system:serviceaccount:default:client-tests"
            token.write_text(account + "x")
            access.rejected()
            with pytest.raises(ApiError, match="401 Unauthorized"):
                await whoami(client)
            token.write_text(account)
            assert await whoami(client) == "system:serviceaccount:default:client-tests"

    asyncio.run(scenario())
    assert codes == ["201", "401", "401", "201"]


def test_plugin_whose_token_is_refused_runs_again(cluster: Api, tmp_path: Path, account: str) -> None:
    """A 401 has the plugin run again, and the request succeeds with what it gives then."""
    marker = tmp_path / "ran"
    plugin = tmp_path / "plugin"
    first, then = ({"token": each} for each in ("stale", account))
    api = "client.authentication.k8s.io/v1"
    plugin.write_text(
        f"#!{sys.executable} -IS\nimport json, pathlib\nran = pathlib.Path({str(marker)!r})\n"
        f"status = {then!r} if ran.exists() else {first!r}\nran.touch()\n"
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {api!r}, 'status': status}}))\n"
    )
    plugin.chmod(0o755)
    path = written(tmp_path / "config", cluster, {"exec": {"command": "./plugin", "apiVersion": api}})
    assert run(load_access(path), whoami) == "system:serviceaccount:default:client-tests"


def test_plugin_with_a_certificate(cluster: Api, tmp_path: Path) -> None:
    """A certificate that a plugin prints is shown to the server."""
    identity = cluster.authority.client("by-plugin")
    api = "client.authentication.k8s.io/v1beta1"
    status = {
        "clientCertificateData": identity.certificate.read_text(),
        "clientKeyData": identity.key.read_text(),
        "expirationTimestamp": "2999-01-01T00:00:00Z",
    }
    (tmp_path / "credential").write_text(json.dumps({"kind": "ExecCredential", "apiVersion": api, "status": status}))
    spec = {"command": "cat", "apiVersion": api, "args": [str(tmp_path / "credential")]}
    path = written(tmp_path / "config", cluster, {"exec": spec})
    assert run(load_access(path), whoami) == "by-plugin"


def test_verbs(cluster: Api, tmp_path: Path, account: str, node: str) -> None:
    """Read, patch for metadata only, replace, delete by uid, and refusals with their reasons."""

    async def use(client: Client) -> None:
        got = await client.get(node, dict)
        patched = await client.patch(node, {"metadata": {"labels": {"a": "b"}}}, Object, accept=METADATA_ONLY)
        assert (patched.kind, patched.metadata.uid) == ("PartialObjectMetadata", got["metadata"]["uid"])
        with pytest.raises(ApiError, match="409 Conflict") as stale:
            await client.replace(node, got, dict)
        assert not stale.value.unsettled
        fresh = await client.get(node, dict)
        assert (await client.replace(node, fresh, dict))["metadata"]["labels"]["a"] == "b"
        with pytest.raises(ApiError, match="409 Conflict"):
            await client.delete(node, uid="another")
        await client.delete(node, uid=patched.metadata.uid)
        with pytest.raises(ApiError, match="404 NotFound"):
            await client.get(node, dict)

    run(load_access(written(tmp_path / "config", cluster, {"token": account})), use)


def test_without_the_right_to(cluster: Api, tmp_path: Path, account: str) -> None:
    """What nobody gave us the right to is refused, and the refusal says so."""

    async def use(client: Client) -> None:
        with pytest.raises(ApiError, match="403 Forbidden"):
            await client.get("/api/v1/pods", dict)

    run(load_access(written(tmp_path / "config", cluster, {"token": account})), use)


def test_watch(cluster: Api, tmp_path: Path, account: str, node: str) -> None:
    """A watch begins before anything happens, gives events as they happen, and can be left at any time."""

    async def use(client: Client) -> None:
        async with asyncio.timeout(60), client.watch(NODES, {"resourceVersion": "0"}) as chunks:
            text = b""
            while b'"client-tests"' not in text:
                text += await anext(chunks)
            await client.patch(node, {"metadata": {"labels": {"seen": "yes"}}}, dict)
            while b'"seen":"yes"' not in text:
                text += await anext(chunks)
        with pytest.raises(ApiError, match="resourceVersion: Invalid value"):
            async with client.watch(NODES, {"resourceVersion": "rubbish"}):
                pass

    run(load_access(written(tmp_path / "config", cluster, {"token": account})), use)
