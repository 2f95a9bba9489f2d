"""Which browser the page is looked at with: there is always one."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.page import chromium

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that would have been run."""
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(chromium, "_run", lambda *command: commands.append(command))
    return commands


def there(monkeypatch: pytest.MonkeyPatch, *, uid: int, debian: Path, answers: list[str | None]) -> None:
    """A machine: who we are on it, whether it is Debian, and where a browser is found, look by look."""
    looks = iter(answers)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(chromium, "_DEBIAN", debian)
    monkeypatch.setattr(chromium, "_NAMES", ("chromium-headless-shell",))
    monkeypatch.setattr(shutil, "which", lambda _: next(looks))


def test_the_one_that_is_there(monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, ...]], tmp_path: Path) -> None:
    """Nothing is installed where there is one."""
    there(monkeypatch, uid=0, debian=tmp_path, answers=["/usr/bin/chromium-headless-shell"])
    assert chromium.find_chromium() == "/usr/bin/chromium-headless-shell"
    assert ran == []


def test_debians(monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, ...]], tmp_path: Path) -> None:
    """Root on Debian gets Debian's package."""
    there(monkeypatch, uid=0, debian=tmp_path, answers=[None, None, "/usr/bin/chromium-headless-shell"])
    assert chromium.find_chromium() == "/usr/bin/chromium-headless-shell"
    assert [command[:2] for command in ran] == [("apt-get", "update"), ("apt-get", "install")]


@pytest.mark.parametrize(("uid", "debian"), [(1000, "."), (0, "no-such-file")])
def test_playwrights_own(
    monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, ...]], tmp_path: Path, uid: int, debian: str
) -> None:
    """Everybody else gets Playwright's own."""
    there(monkeypatch, uid=uid, debian=tmp_path / debian, answers=[None, None])
    assert chromium.find_chromium() is None
    assert ran == [(sys.executable, "-m", "playwright", "install", "chromium")]


def test_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where none can be installed, that is an error, and no reason to look away."""
    there(monkeypatch, uid=0, debian=tmp_path, answers=[None, None, None])
    monkeypatch.setattr(chromium, "_run", failing)
    with pytest.raises(RuntimeError, match="no network"):
        chromium.find_chromium()


def failing(*_: str) -> None:
    raise RuntimeError("no network")
