"""`cidrella run` as a person types it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cidrella.app.settings import table
from tests.cli.run import in_its_own_process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella


def test_the_help_has_every_flag(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help names every setting, under its subject."""
    monkeypatch.setenv("COLUMNS", "200")
    shown = cidrella("run", "--help")
    assert shown.code == 0
    for row in table().values():
        assert row.flag in shown.out
        assert row.group.value in shown.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--controllers=*"], "error: unknown flag --controllers; see cidrella run --help\n"),
        (["--leader-elect", "false"], "error: unexpected argument 'false'; write --leader-elect=false if it belongs"),
        (["--cluster-cidr=10.0.0.0/16,10.1.0.0/16"], "error: --cluster-cidr=10.0.0.0/16,10.1.0.0/16 has two ranges"),
        (["--cidr-allocator-type=CloudAllocator"], "error: --cidr-allocator-type='CloudAllocator' is not known"),
        (["--feature-gates=MultiCIDRRangeAllocator=false"], "error: --feature-gates=MultiCIDRRangeAllocator=false"),
        (["--config=/nowhere"], "error: the config file '/nowhere' cannot be read: No such file or directory\n"),
    ],
)
def test_wrong_settings(cidrella: Cidrella, arguments: list[str], expected: str) -> None:
    """F2, F7: wrong settings are one line and exit code 2."""
    result = cidrella("run", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(expected)
    assert result.err.count("\n") == 1


def test_the_environment_counts(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are read from the environment of the process."""
    monkeypatch.setenv("CIDRELLA_LOG_FORMAT", "xml")
    assert cidrella("run").err == "error: CIDRELLA_LOG_FORMAT='xml' is not known; choose auto or json or text\n"


def test_a_process_without_a_cluster(tmp_path: Path) -> None:
    """A kubeconfig that is not there is one line and exit code 2, and no traceback."""
    result = in_its_own_process(f"HOME={tmp_path} cidrella run --kubeconfig={tmp_path}/none")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_wrong_settings_are_told_before_anything_heavy_is_loaded() -> None:
    """What it takes to run is imported when everything else is settled, and by no other command."""
    heavy = ("aiohttp", "uvloop", "prometheus_client")
    code = f"import sys, cidrella.cli.run; sys.exit(any(each in sys.modules for each in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
