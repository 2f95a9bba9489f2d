"""The newcomer's path: every command of it on the pages, typed into a shell, prints what the page says."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.up.running import ROOT, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.up.running import Up

FENCED = re.compile(r"^```console up\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AGE = re.compile(r"\b[0-9]+(s|m|m[0-9]+s|h)(?=\s|$)")
_MOMENT = 60.0
"""Seconds after which a command that shows something else than the page is wrong, on a busy machine."""


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Each command of a page that is for a running `cidrella up`, and what it prints."""
    for session in FENCED.findall(page.read_text()):
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def normalised(text: str) -> list[list[str]]:
    """Words by line: ages differ, and with them the widths of columns."""
    return [AGE.sub("AGE", line).split() for line in text.strip().splitlines()]


def test_the_path(tmp_path: Path) -> None:
    """P2: after `make run`, a pool fills, a node waits, a pool is added, one in use stays until its last node goes."""
    path = list(steps(ROOT / "README.md"))
    commands = [command for command, _ in path]
    for word in (
        "cidrella node add",
        "cidrella explain",
        "cidrella pool add",
        "cidrella pool remove",
        "kubectl delete",
    ):
        assert any(command.startswith(word) for command in commands), word
    recipe = re.search(r"^FIRST_STEPS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    with running(tmp_path, "-f", recipe[1], "--bind-address=127.0.0.1:0") as up:
        for command, shown in path:
            walk(up, command, shown)


def walk(up: Up, command: str, shown: str) -> None:
    """One step. What only shows is tried again for a moment: a person types slower than this."""
    looks = re.match(r"(cidrella (pools|nodes|explain|map)|kubectl (get|describe))\b", command)
    end = time.monotonic() + _MOMENT
    while True:
        done = up.run(command)
        if normalised(done.stdout) == normalised(shown) or not looks or time.monotonic() > end:
            break
        time.sleep(0.1)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert normalised(done.stdout) == normalised(shown), f"$ {command}\n{done.stdout}"


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_no_other_page_has_steps(page: Path) -> None:
    """Steps are tried because they are found: those of another page would not be."""
    assert not FENCED.findall(page.read_text())
