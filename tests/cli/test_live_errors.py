"""What keeps the live commands from reading a cluster is said in one line, with exit code 2."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from cidrella.cli.main import main
from tests.cli.fake_api import NODES, POOLS, SERVICES, FakeApi, kubeconfig, refusal, serving
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.run import Cidrella

COMMANDS = (["pools"], ["nodes"], ["map"], ["explain", "a"], ["plan", "--from-cluster"])


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A cluster that the environment's kubeconfig leads to."""
    with serving(tmp_path) as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_kubeconfig(cidrella: Cidrella, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    """Without a kubeconfig there is one line that says where it was looked for."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = cidrella(*command)
    assert (result.code, result.out) == (2, "")
    assert "no kubeconfig" in result.err
    assert result.err.count("\n") == 1


def test_nobody_answers(cidrella: Cidrella, tmp_path: Path) -> None:
    """A server that is not there is named, with its context."""
    path = tmp_path / "config"
    server = f"http://127.0.0.1:{free_port()}"
    path.write_text(yaml.safe_dump(kubeconfig(server)))
    result = cidrella("pools", "--kubeconfig", path)
    assert result.code == 2
    assert f"{server} (context staging) does not answer" in result.err
    assert result.err.count("\n") == 1


def test_unknown_context(cidrella: Cidrella, api: FakeApi) -> None:
    """A context that the kubeconfig does not have is named."""
    result = cidrella("pools", "--context", "production")
    assert result.code == 2
    assert "production" in result.err
    assert result.err.count("\n") == 1
    assert cidrella("pools", "--context", "staging").code == 0
    assert api.asked


@pytest.mark.parametrize(
    ("path", "refused", "message"),
    [
        (NODES, refusal(401, "Unauthorized"), "does not accept the credentials; log in again"),
        (NODES, refusal(403, "Forbidden"), "the user needs the permission to list nodes"),
        (POOLS, refusal(403, "Forbidden"), "the permission to list clustercidrs.networking.x-k8s.io"),
        (SERVICES, refusal(403, "Forbidden"), "the permission to list servicecidrs.networking.k8s.io"),
        (NODES, refusal(404, "NotFound"), "is no Kubernetes API server: it serves no nodes"),
        (NODES, refusal(500, "InternalError"), "refused: 500 InternalError: told so"),
        (NODES, (200, b"<html>\x1b[31m\nhello</html>"), "does not speak as a Kubernetes API server does"),
        (NODES, (200, b'{"kind": "Node"}'), "does not speak as a Kubernetes API server does"),
        (NODES, (200, b'{"items": [{"meta'), "does not speak as a Kubernetes API server does"),
    ],
)
def test_refused(cidrella: Cidrella, api: FakeApi, path: str, refused: tuple[int, bytes], message: str) -> None:
    """What the server says is passed on in one line, with what to do; a permission that is missing is named."""
    api.instead[path] = refused
    for command in COMMANDS:
        result = cidrella(*command)
        assert (result.code, result.out) == (2, "")
        assert message in result.err
        assert result.err.count("\n") == 1
        assert "\x1b" not in result.err


def test_all_missing_permissions_at_once(cidrella: Cidrella, api: FakeApi) -> None:
    """Whoever may do nothing learns in one go what to ask for."""
    for path in (NODES, POOLS, SERVICES):
        api.instead[path] = refusal(403, "Forbidden")
    said = cidrella("nodes").err
    assert "list clustercidrs.networking.x-k8s.io, nodes, servicecidrs.networking.k8s.io" in said


def test_crd_not_installed(cidrella: Cidrella, api: FakeApi) -> None:
    """A cluster that does not know pools is shown as one without, and how to install the CRD is said."""
    api.node("a", "10.0.0.0/24")
    api.instead[POOLS] = refusal(404, "NotFound")
    for command in COMMANDS:
        result = cidrella(*command)
        assert result.code == 0
        assert "install it with `cidrella crds | kubectl apply -f -`" in result.err
    assert "Untracked" in cidrella("nodes").out


def test_no_service_cidr_api(cidrella: Cidrella, api: FakeApi) -> None:
    """A7: a cluster that does not serve ServiceCIDRs has none, and that is not worth a word."""
    api.pool("p")
    api.instead[SERVICES] = refusal(404, "NotFound")
    result = cidrella("pools")
    assert (result.code, result.err) == (0, "")


def test_objects_that_cannot_be_read(cidrella: Cidrella, api: FakeApi) -> None:
    """A node, a service range or a pool that makes no sense is said to be so, and the others are shown."""
    api.pool("p")
    api.collections[POOLS].append({"spec": {}})
    api.node("good", "10.0.0.0/24")
    api.node("bad", labels={"a": 5})
    api.collections[SERVICES].append({"metadata": {"name": "s"}, "spec": {"cidrs": ["nonsense"]}})
    result = cidrella("nodes")
    assert result.code == 0
    assert "1 node: 1 Kept" in result.out
    assert "Node bad: cannot be read" in result.err
    assert "ServiceCIDR s: cannot be read" in result.err
    assert "ClusterCIDR without a name" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan"], "say where the objects are: -f FILE, -f - for standard input, or --from-cluster"),
        (["plan", "-f", "-", "--context", "x"], "go with --from-cluster"),
        (["pools", "-f", "-", "--context", "x"], "leave them out, or the files"),
        (["nodes", "-R"], "-R looks into directories; name one with -f"),
        (["release"], "say what to release: --finalizers"),
    ],
)
def test_command_line_that_is_wrong(cidrella: Cidrella, arguments: list[str], message: str) -> None:
    """Options that contradict each other, or say too little, are told what to do instead."""
    result = cidrella(*arguments)
    assert result.code == 2
    assert message in " ".join(result.err.replace("│", " ").split())


def test_interrupted(tmp_path: Path) -> None:
    """Whoever presses Ctrl-C while the server is silent gets exit code 130, and no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{silent.getsockname()[1]}")))
        command = [sys.executable, "-m", "cidrella", "pools", "--kubeconfig", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            connection.close()
    assert process.returncode == 130
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("program", "shown"), [("/usr/bin/kubectl-cidrella", "kubectl cidrella"), ("/usr/bin/cidrella", "cidrella")]
)
def test_usage_names_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, shown: str
) -> None:
    """The usage line is what people type, which for the kubectl plugin is `kubectl cidrella`."""
    monkeypatch.setattr(sys, "argv", [program, "pools", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert f"Usage: {shown} pools [OPTIONS]" in capsys.readouterr().out
