"""Where the API server is and who we are: kubeconfigs as kubectl reads them, and a Pod's own files."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cidrella.kube.access import load_access
from cidrella.kube.errors import ConfigError, KubeError

if TYPE_CHECKING:
    from cidrella.kube.access import Access


def kubeconfig(name: str = "test", user: Any = None, cluster: Any = None, **more: Any) -> dict[str, Any]:
    """A kubeconfig for one context, cluster and user, all of one name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster or {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        **more,
    }


def write(path: Path, config: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return str(path)


def load(kubeconfig: str = "", context: str = "", account: Path = Path("/nonexistent"), **environ: str) -> Access:
    """Load in surroundings of our own making."""
    return load_access(kubeconfig, context, environ=environ, account=account)


def authorization(access: Access) -> str:
    return asyncio.run(access.credentials()).authorization


def test_named_file(tmp_path: Path) -> None:
    """A file that is named is read, with its current context; the namespace is `default` if it has none."""
    access = load(write(tmp_path / "config", kubeconfig()))
    assert (access.server, access.namespace, access.context) == ("https://test:6443", "default", "test")


def test_context_and_namespace(tmp_path: Path) -> None:
    """A context that is named comes before the current one, and brings its namespace."""
    config = kubeconfig()
    config["contexts"].append({"name": "other", "context": {"cluster": "test", "user": "", "namespace": "mine"}})
    access = load(write(tmp_path / "config", config), "other")
    assert (access.context, access.namespace) == ("other", "mine")


def test_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    """$KUBECONFIG is a list: the first file with a name or a current context has it; missing files are skipped."""
    first = kubeconfig("a", {"token": "first"})
    second = kubeconfig("a", {"token": "second"}, {"server": "https://elsewhere:1"})
    more = kubeconfig("b", {"token": "b"})
    paths = [
        str(tmp_path / "missing"),
        write(tmp_path / "1", first),
        write(tmp_path / "2", second),
        write(tmp_path / "3", more),
        "",
    ]
    listed = os.pathsep.join(paths)
    access = load(KUBECONFIG=listed)
    assert (access.server, authorization(access)) == ("https://a:6443", "Bearer first")
    assert authorization(load(context="b", KUBECONFIG=listed)) == "Bearer b"


def test_context_in_one_file_and_user_in_another(tmp_path: Path) -> None:
    """What a context names may stand in any of the files."""
    one, two = kubeconfig(users=None), kubeconfig(user={"token": "t"}, clusters=None, contexts=[])
    del one["current-context"]
    listed = os.pathsep.join([write(tmp_path / "1", one), write(tmp_path / "2", two)])
    assert authorization(load(KUBECONFIG=listed)) == "Bearer t"


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    """A relative path means the directory of the file that it stands in, not where we run."""
    write(tmp_path / "x" / "tokens" / "t", "secret\n")
    access = load(
        write(tmp_path / "x" / "config", kubeconfig(user={"tokenFile": "tokens/t"}, cluster={"server": "http://a"}))
    )
    assert authorization(access) == "Bearer secret"


def test_home_is_the_default(tmp_path: Path) -> None:
    """With nothing named and no Pod around us it is ~/.kube/config."""
    write(tmp_path / ".kube" / "config", kubeconfig("home"))
    assert load(HOME=str(tmp_path)).server == "https://home:6443"


def test_order_in_a_pod(tmp_path: Path) -> None:
    """In a Pod its own account comes before ~/.kube/config, and after a kubeconfig or a context that is named."""
    account = tmp_path / "account"
    write(account / "token", "pod")
    write(tmp_path / ".kube" / "config", kubeconfig("home"))
    named = write(tmp_path / "named", kubeconfig("named"))
    pod = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load(account=account, **pod).server == "https://10.96.0.1"
    assert load(named, account=account, **pod).server == "https://named:6443"
    assert load(account=account, KUBECONFIG=named, **pod).server == "https://named:6443"
    assert load(context="home", account=account, **pod).server == "https://home:6443"


def test_nothing_found(tmp_path: Path) -> None:
    """Without any of them the message says where it was looked for."""
    with pytest.raises(ConfigError, match=r"no kubeconfig \(.*/\.kube/config\), and this is not a Pod"):
        load(HOME=str(tmp_path))
    with pytest.raises(ConfigError, match="no home directory"):
        load()
    with pytest.raises(ConfigError, match="missing: No such file"):
        load(str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="/nonexistent/config"):
        load(KUBECONFIG="/nonexistent/config")


class TestPod:
    """What a Pod is given."""

    def account(self, directory: Path) -> Path:
        account = directory / "account"
        for name, text in (("token", "one\n"), ("namespace", "kube-system\n"), ("ca.crt", "")):
            write(account / name, text)
        return account

    def test_address(self, tmp_path: Path) -> None:
        """An IPv6 host is put into brackets; the namespace is the Pod's."""
        account = self.account(tmp_path)
        access = load(account=account, KUBERNETES_SERVICE_HOST="fd00::1", KUBERNETES_SERVICE_PORT="6443")
        assert (access.server, access.namespace) == ("https://[fd00::1]:6443", "kube-system")

    def test_rubbish_address(self, tmp_path: Path) -> None:
        """An address that is none is said to be so."""
        with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST"):
            load(account=self.account(tmp_path), KUBERNETES_SERVICE_HOST="10.0.0.1", KUBERNETES_SERVICE_PORT="x")

    def test_no_namespace_file(self, tmp_path: Path) -> None:
        """Without a namespace file it is `default`."""
        account = self.account(tmp_path)
        (account / "namespace").unlink()
        assert load(account=account, KUBERNETES_SERVICE_HOST="10.0.0.1").namespace == "default"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, ""),
        ({"token": "t"}, "Bearer t"),
        ({"token": "  t\n"}, "Bearer t"),
        ({"username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"token": "t", "tokenFile": "missing"}, "Bearer t"),
        ({"token": None, "username": None, "exec": None}, ""),
    ],
)
def test_users_with_a_header(tmp_path: Path, user: dict[str, Any], expected: str) -> None:
    """Tokens, passwords and nobody at all, as the header that is sent; null is as good as absent."""
    access = load(write(tmp_path / "config", kubeconfig(user=user, cluster={"server": "http://a"})))
    assert authorization(access) == expected


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"auth-provider": {"name": "gcp"}}, None, "auth-provider is gone from Kubernetes"),
        ({"as": "boss"}, None, "impersonation"),
        ({"token": "a\u00e9"}, None, "the token has characters"),
        ({"token": " "}, None, "the token is empty"),
        ({"token": 5}, None, r"Expected `str \| null`, got `int`"),
        ({"client-certificate-data": "AA=="}, None, "go together"),
        ({"client-key": "k"}, None, "go together"),
        ({"client-key-data": "?", "client-certificate": "c"}, None, "client-key-data is not base64"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            None,
            "v1alpha1 is not one of",
        ),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, None, "missing required field `command`"),
        ({}, {"server": "test:6443"}, "is not the URL of a server"),
        ({}, {"server": "https://"}, "is not the URL of a server"),
        ({}, {"server": "https://host:port"}, "is not the URL of a server"),
        ({}, {"server": "https://user@host"}, "is not the URL of a server"),
        ({}, {}, "is not the URL of a server"),
        ({}, {"server": "https://h", "proxy-url": "socks5://p"}, "proxy-url 'socks5://p' is not supported"),
        (
            {},
            {"server": "https://h", "insecure-skip-tls-verify": True, "certificate-authority": "x"},
            "exclude each other",
        ),
        ({}, {"server": "https://h", "insecure-skip-tls-verify": "yes"}, "Expected `bool"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, user: Any, cluster: Any, message: str) -> None:
    """What cannot work, or is not supported, is a ConfigError that names the file."""
    config = kubeconfig(user=user, cluster=cluster)
    if cluster is not None:
        config["clusters"][0]["cluster"] = cluster
    with pytest.raises(ConfigError, match=message) as raised:
        load(write(tmp_path / "config", config))
    assert str(tmp_path) in str(raised.value) or "exec plugin" in str(raised.value)
    assert not raised.value.unsettled


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"tokenFile": "missing"}, {"server": "http://h"}, "missing: No such file"),
        ({}, {"server": "https://h", "certificate-authority": "missing"}, "missing: No such file"),
        ({}, {"server": "https://h", "certificate-authority-data": "cnViYmlzaA=="}, "not a certificate in PEM"),
        (
            {"client-certificate-data": "cnViYmlzaA==", "client-key-data": "cnViYmlzaA=="},
            {"server": "https://h"},
            "the client certificate and key are of no use",
        ),
    ],
)
def test_what_is_wrong_in_files_is_said_when_they_are_read(
    tmp_path: Path, user: Any, cluster: Any, message: str
) -> None:
    """Files and certificates are read when they are needed, and are ConfigErrors then."""
    access = load(write(tmp_path / "config", kubeconfig(user=user, cluster=cluster)))
    with pytest.raises(ConfigError, match=message):
        asyncio.run(access.credentials())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "there is no current-context; name one of: test"),
        ({"current-context": "gone"}, "there is no context 'gone', but: test"),
        ({"contexts": None}, "there is no context 'test', but: none"),
        ({"clusters": None}, "is for cluster 'test', which is not there"),
        ({"users": None}, "is for user 'test', which is not there"),
        ({"clusters": [{"name": "test"}]}, "server '' is not the URL"),
    ],
)
def test_references_that_lead_nowhere(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """A context, cluster or user that is not there is named."""
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path / "config", {**kubeconfig(), **change}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "null",
        "5",
        "[]",
        "{",
        "a: b: c",
        "clusters: 5",
        "clusters: [5]",
        "clusters: {a: b}",
        "users: [{name: {}}]",
        "? [a, b]\n: c",
        "1: 2\n2020-01-01: x",
        "a: 2020-99-99",
        "a: !!timestamp x",
        "a: !!python/object:os.system x",
        "a: &x [*x]",
        "[" * 100_000,
        "- " * 100_000,
        "a: " + "9" * 10_000,
        "a: 1:99999999999999999999:1",
        "---\na: 1\n---\nb: 2",
        "#" * (1 << 20) + "\n",
        "\ud800",
    ],
)
def test_rubbish_is_never_a_traceback(tmp_path: Path, text: str) -> None:
    """Whatever stands in the file, the outcome is a ConfigError that names it."""
    path = tmp_path / "config"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ConfigError, match=str(path)):
        load(str(path))


def test_a_directory_is_no_kubeconfig(tmp_path: Path) -> None:
    """A directory, and a path that no system takes, are ConfigErrors."""
    with pytest.raises(ConfigError, match="directory"):
        load(str(tmp_path))
    with pytest.raises(KubeError, match="null byte"):
        load("a\0b")
