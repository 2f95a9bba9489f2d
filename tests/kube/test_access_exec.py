"""Credential plugins, as small programs: what they are told, what they may say, and when they run again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.kube import execplugin
from cidrella.kube.access import load_access
from cidrella.kube.errors import ConfigError
from cidrella.kube.execplugin import ExecPlugin
from cidrella.kube.kubeconfig_file import Exec
from tests.kube.test_access import kubeconfig, write

if TYPE_CHECKING:
    from collections.abc import Mapping

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def script(directory: Path, body: str) -> Path:
    """A program in Python; `api` in it is the plugin's version, `runs` how often it ran before."""
    path = directory / "plugin"
    path.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, os, sys, time\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "log = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'runs'), 'a+')\n"
        "log.seek(0); runs = len(log.read()); log.write('x'); log.close()\n"
        "def say(**status):\n"
        "    print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'], 'status': status}))\n" + body
    )
    path.chmod(0o755)
    return path


def runs(directory: Path) -> int:
    return (directory / "runs").stat().st_size


def plugin(path: Path, cluster: Mapping[str, object] | None = None, clock: Any = None, **spec: Any) -> ExecPlugin:
    """A plugin without a terminal."""
    made = Exec(**{"command": str(path), "api_version": V1, **spec})
    return ExecPlugin(made, str(path), cluster, clock=clock or (lambda: 0.0), terminal=False)


def token(made: ExecPlugin) -> str:
    return asyncio.run(made.proof()).authorization


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_token(tmp_path: Path, version: str) -> None:
    """A plugin of either version gives a token, which is kept for as long as it has no expiry."""
    made = plugin(script(tmp_path, "say(token='t')"), api_version=version)
    assert [token(made), token(made)] == ["Bearer t", "Bearer t"]
    assert runs(tmp_path) == 1


def test_from_a_kubeconfig(tmp_path: Path) -> None:
    """Arguments and environment are handed over as they stand; a command with a path is relative to its file."""
    script(tmp_path, "say(token='+'.join([*sys.argv[1:], os.environ['A'], os.environ['HOME']]))")
    spec = {"command": "./plugin", "apiVersion": V1, "args": ["$(a)", "b;c"], "env": [{"name": "A", "value": "d"}]}
    path = write(tmp_path / "config", kubeconfig(user={"exec": spec}, cluster={"server": "http://h"}))
    access = load_access(path)
    assert asyncio.run(access.credentials()).authorization == f"Bearer $(a)+b;c+d+{os.environ['HOME']}"


def test_told_of_the_cluster(tmp_path: Path) -> None:
    """With provideClusterInfo the plugin is told the server, its CA as data and the extension meant for it."""
    script(tmp_path, "say(token=json.dumps(info))")
    (tmp_path / "ca").write_text("CA")
    cluster = {
        "server": "http://h:1",
        "certificate-authority": "ca",
        "tls-server-name": "name",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"x": 1}}],
    }
    spec = {"command": "./plugin", "apiVersion": V1, "interactiveMode": "Never", "provideClusterInfo": True}
    access = load_access(write(tmp_path / "config", kubeconfig(user={"exec": spec}, cluster=cluster)))
    told = json.loads(asyncio.run(access.credentials()).authorization.removeprefix("Bearer "))
    assert told["apiVersion"] == V1
    assert told["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "http://h:1",
            "tls-server-name": "name",
            "certificate-authority-data": "Q0E=",
            "config": {"x": 1},
        },
    }


def test_runs_again_before_the_expiry(tmp_path: Path) -> None:
    """What expires is renewed a minute before, and not earlier."""
    path = script(
        tmp_path, "say(token=f't{runs}', expirationTimestamp=['1970-01-01T01:00:00Z', '1970-01-01T02:00:00Z'][runs])"
    )
    now = [0.0]
    made = plugin(path, clock=lambda: now[0])
    assert token(made) == "Bearer t0"
    now[0] = 3539.0
    assert token(made) == "Bearer t0"
    now[0] = 3541.0
    assert token(made) == "Bearer t1"


def test_an_expired_credential_is_not_asked_for_all_the_time(tmp_path: Path) -> None:
    """A plugin whose clock is behind runs once a second at most."""
    made = plugin(script(tmp_path, "say(token='t', expirationTimestamp='1969-01-01T00:00:00Z')"))
    assert [token(made), token(made)] == ["Bearer t", "Bearer t"]
    assert runs(tmp_path) == 1


def test_runs_again_after_a_refusal_once_for_all(tmp_path: Path) -> None:
    """Many requests that are refused at the same time run the plugin once, and all get the new token."""
    script(tmp_path, "time.sleep(0.05); say(token=f't{runs}')")
    spec = {"command": "./plugin", "apiVersion": V1}
    access = load_access(write(tmp_path / "config", kubeconfig(user={"exec": spec}, cluster={"server": "http://h"})))

    async def scenario() -> None:
        first = await access.credentials()

        async def refused() -> str:
            access.rejected(first)
            return (await access.credentials()).authorization

        assert set(await asyncio.gather(*(refused() for _ in range(20)))) == {"Bearer t1"}
        assert await refused() == "Bearer t1"

    asyncio.run(scenario())
    assert runs(tmp_path) == 2


def test_certificate(tmp_path: Path) -> None:
    """A certificate and its key are handed on as they are."""
    made = plugin(script(tmp_path, "say(clientCertificateData='C', clientKeyData='K')"))
    assert asyncio.run(made.proof()) == ("", (b"C", b"K"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('no ' + 'luck')", "failed with 1: no luck"),
        ("sys.stderr.write('a' * 100_000 + 'the end'); sys.exit(3)", "failed with 3: a+the end$"),
        ("os.kill(os.getpid(), 9)", "failed with -9"),
        ("pass", "printed no ExecCredential"),
        ("print('<html>')", "printed no ExecCredential"),
        ("print('null')", "printed no ExecCredential"),
        ("sys.stdout.buffer.write(b'\\xff')", "printed no ExecCredential"),
        ("say()", "neither a token nor a certificate"),
        ("say(token='')", "neither a token nor a certificate"),
        ("say(clientCertificateData='C')", "neither a token nor a certificate"),
        ("say(token=5)", "printed no ExecCredential"),
        ("say(token='a\\nb')", "characters that no token has"),
        ("say(token='t', expirationTimestamp='soon')", "printed no ExecCredential"),
        ("info['apiVersion'] = 'v2'; say(token='t')", "printed v2 ExecCredential, not"),
    ],
)
def test_failures_are_said(tmp_path: Path, body: str, message: str) -> None:
    """A plugin that fails or prints rubbish is a ConfigError with the plugin's name and its last words."""
    with pytest.raises(ConfigError, match=message) as raised:
        token(plugin(script(tmp_path, body)))
    assert "exec plugin" in str(raised.value)


def test_missing_command(tmp_path: Path) -> None:
    """A command that is not there shows the hint on how to install it."""
    with pytest.raises(ConfigError, match="cannot be run: No such file or directory\nInstall it"):
        token(plugin(tmp_path / "missing", install_hint="Install it"))


def test_terminal(tmp_path: Path) -> None:
    """`interactiveMode: Always` without a terminal is an error, an unknown one too; `Never` gets no terminal."""
    path = script(tmp_path, "say(token=f\"{info['spec']['interactive']}\")")
    with pytest.raises(ConfigError, match="there is no terminal"):
        plugin(path, interactive_mode="Always")
    with pytest.raises(ConfigError, match="interactiveMode Sometimes"):
        plugin(path, interactive_mode="Sometimes")
    spec = Exec(command=str(path), api_version=V1, interactive_mode="Never")
    assert token(ExecPlugin(spec, str(path), None, terminal=True)) == "Bearer False"
    spec = Exec(command=str(path), api_version=V1, interactive_mode="Always")
    assert token(ExecPlugin(spec, str(path), None, terminal=True)) == "Bearer True"


def test_a_plugin_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that does not end is ended, with all that it started, and said to hang."""
    monkeypatch.setattr(execplugin, "TIMEOUT", 3.0)
    body = (
        "import subprocess\n"
        "open(sys.argv[0] + '.pid', 'w').write(str(subprocess.Popen(['sleep', '300']).pid))\n"
        "time.sleep(300)"
    )
    with pytest.raises(ConfigError, match=r"did not end within 3 s"):
        token(plugin(script(tmp_path, body)))
    assert ends(int((tmp_path / "plugin.pid").read_text()))


def test_cancelling_ends_the_plugin(tmp_path: Path) -> None:
    """Whoever is cancelled while the plugin runs is cancelled, and the plugin is ended."""
    made = plugin(script(tmp_path, "open(sys.argv[0] + '.pid', 'w').write(str(os.getpid())); time.sleep(300)"))
    pid = tmp_path / "plugin.pid"

    async def scenario() -> None:
        asking = asyncio.create_task(made.proof())
        while not (pid.exists() and pid.read_text()):
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(scenario())
    assert ends(int(pid.read_text()))


def ends(pid: int) -> bool:
    """Whether a process, which would run for minutes, ends within one: who is killed is gone a moment later."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
