"""Find the programs that tests and benchmarks run, or build them: `python -m tests.testenv.binaries [NAMES…]`.

Looked for in this order, each program by itself:

1. the directory `KUBEBUILDER_ASSETS`, if the program there reports the minor version that go.mod pins;
2. the cache: `$CIDRELLA_CACHE`, else `$XDG_CACHE_HOME/cidrella`, else `~/.cache/cidrella`. It lies outside the work
   tree, so that another clone on the same machine need not build again. Each directory in it holds what was built from
   one state of a Go module for one kind of machine, and is named by a hash of these;
3. a build, from the modules that go.mod and go.sum pin. A program gets its place in the cache in one step: it is there
   whole or not at all. Runs that want the same wait for the one that builds it.

Paths go to standard output; all that is said on the way goes to standard error.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testenv import go

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TESTENV = Path(__file__).parents[2] / "testenv"
KUBERNETES = "k8s.io/kubernetes"
ETCD = "go.etcd.io/etcd/server/v3"


@dataclass(frozen=True)
class Module:
    """A Go module of ours."""

    directory: Path

    def pinned(self, source: str) -> str:
        """The version of another module that it is built from, as `v1.36.3`."""
        found = re.search(rf"^(?:require)?\s+{re.escape(source)} (v\S+)", self._go_mod(), re.MULTILINE)
        assert found, f"{self.directory}/go.mod does not require {source}"
        return found[1]

    def go(self) -> go.Version:
        """The Go that it asks for."""
        return go.read_version(next(line for line in self._go_mod().splitlines() if line.startswith("go ")))

    def key(self) -> str:
        """The name of its directory in the cache: system, machine, and a hash of its files and how they are built.

        Which Go builds it is left out: that changes nothing that is tested here, and a build takes minutes.
        """
        digest = hashlib.sha256(repr((go.FLAGS, go.STRIPPED, self.stamps())).encode())
        for path in self._files():
            content = path.read_bytes()
            digest.update(f"\n{path.relative_to(self.directory).as_posix()} {len(content)}\n".encode() + content)
        return f"{platform.system()}-{platform.machine()}-{digest.hexdigest()[:16]}".lower()

    def stamps(self) -> dict[str, str]:
        """The variables that hold the version that a program of Kubernetes reports."""
        version = self.pinned(KUBERNETES)
        major, minor = map(str, go.read_version(version)[:2])
        package = "k8s.io/component-base/version"
        return {f"{package}.gitVersion": version, f"{package}.gitMajor": major, f"{package}.gitMinor": minor}

    def _files(self) -> list[Path]:
        """The pins and the sources. A directory below that has a go.mod is another module."""
        inner = [path.parent for path in self.directory.rglob("go.mod") if path.parent != self.directory]
        sources = [path for path in self.directory.rglob("*.go") if not any(map(path.is_relative_to, inner))]
        return [self.directory / "go.mod", self.directory / "go.sum", *sorted(sources)]

    def _go_mod(self) -> str:
        return (self.directory / "go.mod").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Program:
    """Something to find or build."""

    module: Module
    package: str
    """Where its main is; the last part of the path is the name that Go gives the program."""
    source: str = KUBERNETES
    """The module whose version is the program's."""
    asked: tuple[str, ...] = ()
    """The arguments that make it print its version; none for what nobody but us builds."""

    @property
    def version(self) -> str:
        """The pinned version."""
        return self.module.pinned(self.source)


_CLUSTER = Module(TESTENV)
_MANAGER = Module(TESTENV / "peers" / "kube-controller-manager")

PROGRAMS = {
    "kube-apiserver": Program(_CLUSTER, f"{KUBERNETES}/cmd/kube-apiserver", asked=("--version",)),
    "etcd": Program(_CLUSTER, "./etcd", ETCD, asked=("--version",)),
    "kubectl": Program(_CLUSTER, f"{KUBERNETES}/cmd/kubectl", asked=("version", "--client")),
    "kube-controller-manager": Program(_MANAGER, f"{KUBERNETES}/cmd/kube-controller-manager", asked=("--version",)),
    "cidrset": Program(Module(TESTENV / "bench" / "cidrset"), "."),
    "multicidrset": Program(Module(TESTENV / "bench" / "multicidrset"), "."),
    "bitmap": Program(Module(TESTENV / "bench" / "bitmap"), "."),
}

WANTED_BY_TESTS = ("kube-apiserver", "etcd", "kubectl")


def find(names: Iterable[str]) -> dict[str, Path]:
    """Return where each program is, after building those that are nowhere.

    Says which versions are in use. A second or less, and minutes for a build. Raises `go.BuildError` if that fails, and
    `go.MissingError` where there is no Go to build with.
    """
    wanted = {name: PROGRAMS[name] for name in names}
    found = _from_assets(wanted)
    for module in dict.fromkeys(program.module for name, program in wanted.items() if name not in found):
        found |= _from_cache(module, [name for name in wanted if name not in found and wanted[name].module == module])
    return {name: found[name] for name in wanted}


def cache_directory() -> Path:
    """Where to keep what takes long to make, whichever clone made it."""
    if given := os.environ.get("CIDRELLA_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "cidrella").absolute()


def _from_assets(wanted: dict[str, Program]) -> dict[str, Path]:
    """Return the programs of `KUBEBUILDER_ASSETS` that have the pinned minor version; say why the others do not do."""
    found: dict[str, Path] = {}
    given = os.environ.get("KUBEBUILDER_ASSETS")
    for name, program in wanted.items() if given else ():
        if not program.asked:
            continue
        path = Path(given or "", name).absolute()
        reported = _reported(path, program.asked)
        if reported[:2] == go.read_version(program.version)[:2]:
            go.say(f"{name} v{go.write_version(reported)} of KUBEBUILDER_ASSETS: {path}")
            found[name] = path
        else:
            fault = f"reports {go.write_version(reported)}" if path.exists() else "is not there"
            go.say(f"KUBEBUILDER_ASSETS does not do for {name} {program.version}: {path} {fault}")
    return found


def _reported(path: Path, asked: tuple[str, ...]) -> go.Version:
    """The version that a program says it has, or nothing."""
    try:
        done = subprocess.run([path, *asked], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return go.read_version(done.stdout)


def _from_cache(module: Module, names: list[str]) -> dict[str, Path]:
    """Return programs of one module out of the cache, after building those that it lacks."""
    home = cache_directory() / "bin" / module.key()
    paths = {name: home / name for name in names}
    built: list[str] = []
    if not all(path.exists() for path in paths.values()):
        with alone(home / ".lock"):
            built = [name for name, path in paths.items() if not path.exists()]  # the others came while we waited
            if built:
                _build(module, built, home)
    for name, path in paths.items():
        go.say(f"{name} {PROGRAMS[name].version}, {'built just now' if name in built else 'from the cache'}: {path}")
    return paths


def _build(module: Module, names: list[str], home: Path) -> None:
    """Build programs of one module and move each to its place. The lock is held."""
    tool = go.find(module.go(), cache_directory())
    unfinished = home / ".building"
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a run that was stopped
    unfinished.mkdir()
    tool.build({name: PROGRAMS[name].package for name in names}, module.directory, unfinished, module.stamps())
    for name in names:
        (unfinished / name).replace(home / name)
    unfinished.rmdir()


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock among all runs on this machine. The kernel releases it when a run dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        waiting = go.Patience(f"waiting for another run, which holds {lock}")
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting.passes()
                time.sleep(go.LOOK_EVERY)
        yield


def main() -> int:
    """Print the path of each program that is named, or of those that the tests want."""
    arguments = argparse.ArgumentParser(description="Find the programs that the tests run on, or build them.")
    arguments.add_argument("names", nargs="*", metavar="NAMES", help=f"out of: {', '.join(PROGRAMS)}")
    names = arguments.parse_args().names or WANTED_BY_TESTS
    if unknown := [name for name in names if name not in PROGRAMS]:
        arguments.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    try:
        found = find(names)
    except (go.BuildError, go.MissingError) as error:
        go.say(str(error))
        return 1
    sys.stdout.writelines(f"{path}\n" for path in found.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
