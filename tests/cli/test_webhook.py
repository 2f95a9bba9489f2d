"""`cidrella webhook` as a person types it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cidrella.app.settings import table
from cidrella.app.webhook_settings import WebhookSettings
from tests.cli.run import in_its_own_process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella


def test_the_help_has_every_flag(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch) -> None:
    """B9: the help names every setting, under its subject."""
    monkeypatch.setenv("COLUMNS", "200")
    shown = cidrella("webhook", "--help")
    assert shown.code == 0
    for row in table(WebhookSettings).values():
        assert row.flag in shown.out
        assert row.group.value in shown.out
    assert "--cluster-cidr" not in shown.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--nonsense"], "error: unknown flag --nonsense; see cidrella webhook --help\n"),
        (["--tls-cert-file=/x"], "error: --tls-cert-file and --tls-private-key-file go together"),
        (["--service-cluster-ip-range=10.0.0.0/8"], "error: --service-cluster-ip-range: 10.0.0.0/8 is larger than"),
        (["--config=/nowhere"], "error: the config file '/nowhere' cannot be read: No such file or directory\n"),
    ],
)
def test_wrong_settings(cidrella: Cidrella, arguments: list[str], expected: str) -> None:
    """B2: wrong settings are one line and exit code 2."""
    result = cidrella("webhook", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(expected)
    assert result.err.count("\n") == 1


def test_a_process_without_a_cluster(tmp_path: Path) -> None:
    """O6: a kubeconfig that is not there is one line and exit code 2, and no traceback."""
    result = in_its_own_process(f"HOME={tmp_path} cidrella webhook --kubeconfig={tmp_path}/none")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_wrong_settings_are_told_before_anything_heavy_is_loaded() -> None:
    """What it takes to run is imported when everything else is settled, and by no other command."""
    heavy = ("aiohttp", "uvloop", "prometheus_client", "cryptography")
    code = f"import sys, cidrella.cli.webhook; sys.exit(any(each in sys.modules for each in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
