"""`cidrella up` as a person types it, without running it: what is wrong is told before anything begins."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cidrella.app import up as app
from cidrella.app.up import Ready
from cidrella.cli import up as cli
from tests.cli.run import in_its_own_process

if TYPE_CHECKING:
    from cidrella.app.up import Teller
    from cidrella.app.up_settings import UpSettings
    from tests.cli.run import Cidrella

POOL = """\
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: first}
spec:
  perNodeHostBits: 8
  ipv4: 10.10.0.0/22
"""


def at_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """What is kept in the home directory is kept there."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[UpSettings]:
    """What it would run with, without running it."""
    at_home(monkeypatch, tmp_path)
    found: list[UpSettings] = []

    def note(settings: UpSettings, _: Teller) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr(app, "run_up", note)
    return found


def test_without_any_option(cidrella: Cidrella, told: list[UpSettings]) -> None:
    """In memory, on loopback, quiet, with a controller and a range for Services; no nodes and no browser."""
    assert cidrella("up").code == 0
    (settings,) = told
    assert (settings.data_dir, settings.bind_address, settings.host) == ("", None, "127.0.0.1")
    assert (settings.nodes, settings.churn, settings.example_nodes, settings.manifests) == (0, False, 0, ())
    assert (settings.controller, settings.log_level, settings.token_auth_file) == (True, "warning", "")
    assert list(map(str, settings.service_ranges)) == ["10.96.0.0/16"]


def test_every_option(cidrella: Cidrella, told: list[UpSettings], tmp_path: Path) -> None:
    """Each reaches what runs."""
    (tmp_path / "pool.yaml").write_text(POOL)
    arguments: list[str | Path] = [
        *("--data-dir", tmp_path / "data", "-f", tmp_path / "pool.yaml", "--nodes=200", "--churn", "--no-browser"),
        *("--no-controller", "--bind-address=[::]:8443", "--service-cluster-ip-range=10.0.0.0/24,fd00::/112"),
        *("--token-auth-file=t", "--tls-cert-file=c", "--tls-private-key-file=k", "--audit-log=a", "--log-level=debug"),
    ]
    assert cidrella("up", *arguments).code == 0
    (settings,) = told
    assert (settings.data_dir, str(settings.bind_address)) == (str(tmp_path / "data"), "[::]:8443")
    assert (settings.nodes, settings.churn, settings.controller) == (200, True, False)
    assert [str(each) for each in settings.service_ranges] == ["10.0.0.0/24", "fd00::/112"]
    assert (settings.token_auth_file, settings.tls_cert_file, settings.tls_private_key_file) == ("t", "c", "k")
    assert (settings.audit_log, settings.log_level) == ("a", "debug")
    assert [(each.api_version, each.subject) for each in settings.manifests] == [
        ("networking.x-k8s.io/v1", "ClusterCIDR first")
    ]


def test_churn_needs_no_number(cidrella: Cidrella, told: list[UpSettings]) -> None:
    """Where nobody says how many nodes, there are some all the same."""
    assert cidrella("up", "--churn").code == 0
    assert told[0].example_nodes == 40


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--bind-address=here"], "'here' is no address to listen on"),
        (["--service-cluster-ip-range=10.0.0.0/33"], "--service-cluster-ip-range: '10.0.0.0/33' has the length '33'"),
        (["--service-cluster-ip-range="], "give one range, or one of each family"),
        (["--nodes=10001"], "less than or equal to 10000"),
        (["--nodes=-1"], "greater than or equal to 0"),
        (["--log-level=loud"], "'loud' is not known"),
        (["--tls-cert-file=c"], "--tls-private-key-file go together"),
        (["-R"], "-R looks into directories"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_wrong_options(
    cidrella: Cidrella, told: list[UpSettings], monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    """Exit code 2, one clear word, and nothing begins."""
    monkeypatch.setenv("COLUMNS", "200")
    result = cidrella("up", *arguments)
    assert (result.code, told) == (2, [])
    assert expected in result.err


def test_files_that_are_wrong(cidrella: Cidrella, told: list[UpSettings], tmp_path: Path) -> None:
    """C1, N7: what is wrong with objects that we know is found before anything begins, with file, line and field."""
    wrong = tmp_path / "wrong.yaml"
    node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {podCIDRs: [nonsense]}\n"
    wrong.write_text(POOL.replace("/22", "/33") + node)
    result = cidrella("up", "-f", wrong)
    assert (result.code, result.out, told) == (2, "", [])
    pool_fault, node_fault, summary = result.err.splitlines()
    assert pool_fault.startswith(f"{wrong}:6: ClusterCIDR first: spec.ipv4: ")
    assert node_fault.startswith(f"{wrong}:11: Node a: spec.podCIDRs[0]: 'nonsense' ")
    assert summary == "2 problems; nothing was done"


def test_without_the_library_for_rules(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where what checks the rules of definitions is not installed, one line says how to have it."""
    at_home(monkeypatch, tmp_path)
    monkeypatch.setattr(app, "_LIBRARY", "no_such_library")
    result = cidrella("up")
    assert (result.code, result.out) == (2, "")
    assert result.err == ("error: the embedded API needs a library that is not installed: pip install 'cidrella[up]'\n")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """One that was asked for is not exchanged for another: that is an error."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = in_its_own_process(f"cidrella up --bind-address={address} --data-dir={tmp_path}")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: cannot listen on {address}: ")
    assert result.err.endswith("; choose another --bind-address\n")


class TestTheBrowser:
    """Where one is opened, and where not."""

    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Where there is a display."""
        found: list[str] = []
        monkeypatch.setattr("webbrowser.open", found.append)
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        return found

    def tell(self, capsys: pytest.CaptureFixture[str], *, browser: bool = True, page: str = "http://here/") -> str:
        """What is printed on a terminal, after whatever is opened was."""
        ready = Ready("https://there", Path("/kubeconfig"), asks_for_token=False, page=page)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout.isatty", lambda: True)
            patch.setenv("TERM", "dumb")
            cli._Teller(browser=browser).ready(ready)
        for thread in threading.enumerate():
            if thread.daemon and thread is not threading.current_thread():
                thread.join(60)
        return capsys.readouterr().out

    def test_on_a_terminal(self, opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        """It shows the page, whose address is printed as well."""
        assert "The page: http://here/\n" in self.tell(capsys)
        assert opened == ["http://here/"]

    def test_not_where_nobody_wants_one(self, opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        """The address is enough."""
        assert "The page: http://here/\n" in self.tell(capsys, browser=False)
        assert opened == []

    def test_not_where_nobody_sits(self, opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        """Output that goes to a file is read by somebody else."""
        cli._Teller(browser=True).ready(Ready("https://there", Path("/kubeconfig"), asks_for_token=False, page="x"))
        assert "The page: x\n" in capsys.readouterr().out
        assert opened == []

    def test_not_where_there_is_no_display(
        self, opened: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A browser that took the terminal would be in the way."""
        monkeypatch.delenv("DISPLAY")
        self.tell(capsys)
        assert opened == []

    def test_not_where_there_is_no_page(self, opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        """Nothing is said of one."""
        assert "The page" not in self.tell(capsys, page="")
        assert opened == []
