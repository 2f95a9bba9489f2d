"""Running `cidrella up` as a person does: in a home directory of its own, with commands beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testenv.binaries import find
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
READY = "Ctrl-C ends it."
"""The last line that it prints when it can be used."""
_READY_SECONDS = 120
_COMMAND_SECONDS = 180


class Up:
    """One `cidrella up`, and a shell beside it whose KUBECONFIG and PATH are as it says."""

    def __init__(self, directory: Path, *arguments: str | Path) -> None:
        self.home = directory / "home"
        self.home.mkdir(exist_ok=True)
        self.arguments = arguments
        at_home = ["env", "-u", "XDG_STATE_HOME", "-u", "KUBECONFIG", f"HOME={self.home}"]
        self.process = Process(
            "cidrella up", [*at_home, sys.executable, "-m", "cidrella", "up", *arguments], directory / "up.log"
        )

    @property
    def printed(self) -> str:
        """All that it has said so far, of all of its runs."""
        return self.process.log.read_text() if self.process.log.exists() else ""

    @property
    def kubeconfig(self) -> Path:
        """Where it says that it is."""
        (line,) = (line for line in self.printed.splitlines() if "export KUBECONFIG=" in line)
        return Path(line.partition("=")[2])

    def start(self) -> float:
        """Start it, and wait until it is ready; the seconds that took."""
        before = self.printed.count(READY)
        began = time.monotonic()
        self.process.start()
        while self.printed.count(READY) == before:
            assert self.process.ended is None, f"it ended with {self.process.ended}:\n{self.printed}"
            assert time.monotonic() < began + _READY_SECONDS, f"it is not ready:\n{self.printed}"
            time.sleep(0.01)
        return time.monotonic() - began

    def run(self, command: str, *, kubeconfig: bool = True) -> subprocess.CompletedProcess[str]:
        """A line of shell, in the root of the project."""
        own = Path(sys.executable).parent
        environ = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(own), str(find(["kubectl"])["kubectl"].parent), os.environ["PATH"]]),
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
        }
        if kubeconfig:
            environ["KUBECONFIG"] = str(self.kubeconfig)
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )

    def out(self, command: str) -> str:
        """What a command prints that has to succeed."""
        done = self.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def running(directory: Path, *arguments: str | Path) -> Iterator[Up]:
    """One that is ready, and gone afterwards."""
    up = Up(directory, *arguments)
    try:
        up.start()
        yield up
    finally:
        up.process.stop()
