"""Running the command as a person does, in this process for speed or in its own for pipes and exit codes."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cidrella.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


class _Stdin:
    """Standard input that has bytes, as the real one does."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@dataclass
class Cidrella:
    """The command, called in this process."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path, stdin: str = "") -> Result:
        self.monkeypatch.setattr(sys, "argv", ["cidrella", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", _Stdin(stdin.encode()))
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        printed = self.capsys.readouterr()
        return Result(end.value.code if isinstance(end.value.code, int) else 0, printed.out, printed.err)


def in_its_own_process(command: str) -> Result:
    """A shell line in which `cidrella` is the command."""
    line = f'set -o pipefail; cidrella() {{ "{sys.executable}" -m cidrella "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    return Result(done.returncode, done.stdout, done.stderr)
