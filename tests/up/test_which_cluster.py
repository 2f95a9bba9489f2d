"""Commands beside a running `cidrella up`, on a machine with a ~/.kube/config that leads to another cluster."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.fake_api import SERVICES, serving
from tests.up.running import Up, running
from tests.up.test_running import ANY_PORT, ended, nodes

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.fake_api import FakeApi

READS = (
    "pools -o json",
    "nodes -o json",
    "map",
    "explain far",
    "services -o json",
    "plan --from-cluster -o json",
    "release --finalizers --dry-run",
)
CHANGES = ("node add here", "node remove --all", "pool add more 10.9.0.0/16", "pool remove all")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeApi]:
    """A cluster that is not ours: only its /version, its lists and one node that `cidrella up` does not have."""
    with serving(tmp_path) as api:
        api.objects["/version"] = {"gitVersion": "v1.36.3"}
        api.collections["/api/v1/services"] = []
        api.collections[SERVICES].append({"metadata": {"name": "s"}, "spec": {"cidrs": ["10.96.0.0/16"]}})
        api.pool("far-pool", "10.0.0.0/16")
        api.node("far", "10.0.0.0/24")
        yield api


def configure(up: Up, cluster: FakeApi) -> Path:
    """Make the cluster that of ~/.kube/config."""
    path = up.home / ".kube" / "config"
    path.parent.mkdir(exist_ok=True)
    shutil.copy(cluster.kubeconfig, path)
    return path


def unset(up: Up, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where nothing names a cluster."""
    return up.run(f"cidrella {command}", kubeconfig=False)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a command wrote on stderr, but for what `release --dry-run` says while `cidrella up` runs."""
    return [line for line in done.stderr.splitlines() if not line.startswith("would be refused now: ")]


def server(path: Path) -> str:
    (line,) = (line for line in path.read_text().splitlines() if "server:" in line)
    return line.split("server: ")[1]


def test_every_command_uses_one_cluster(tmp_path: Path, cluster: FakeApi) -> None:
    """What changes `cidrella up` and what shows a cluster act on the same one: that of kubectl, or none."""
    with running(tmp_path, ANY_PORT) as up:
        config = configure(up, cluster)
        export = f"for the running cidrella up: export KUBECONFIG={up.kubeconfig}"
        named = f"cluster: staging ({server(config)}), from {config}; {export}"
        up.out("cidrella pool add all 10.0.0.0/16")
        for command in CHANGES:
            done = unset(up, command)
            assert (done.returncode, done.stdout) == (2, ""), command
            first, second = done.stderr.splitlines()
            assert first == named, command
            assert "is a cluster (v1.36.3), not an embedded API" in second, command
        assert nodes(up) == {}
        assert [each.split()[1] for each in cluster.asked] == ["/version"] * len(CHANGES)
        for command in READS:
            done = unset(up, command)
            assert (done.returncode, done.stderr.splitlines()) == (0, [named]), command
            if "json" in command:
                json.loads(done.stdout)
        assert "far" in unset(up, "nodes").stdout


def test_named_by_the_environment(tmp_path: Path, cluster: FakeApi) -> None:
    """With KUBECONFIG as `cidrella up` says, every command is about it, and prints nothing about which it is."""
    with running(tmp_path, ANY_PORT) as up:
        configure(up, cluster)
        assert up.run("cidrella pool add all 10.0.0.0/16").stderr == ""
        assert up.run("cidrella node add here").stdout == "here has 10.0.0.0/24 from all\n"
        for command in READS:
            done = up.run(f"cidrella {command.replace('far', 'here')}")
            assert (done.returncode, lines(done)) == (0, []), command
        (node,) = json.loads(up.out("cidrella nodes -o json"))["nodes"]
        assert node["name"] == "here"
        assert cluster.asked == []


def test_no_other_cluster(tmp_path: Path, cluster: FakeApi) -> None:
    """Without ~/.kube/config every command finds the running one and names it; after its end none is found."""
    up = Up(tmp_path, ANY_PORT)
    try:
        up.start()
        kubeconfig = up.kubeconfig
        named = f"cluster: cidrella ({server(kubeconfig)}), from {kubeconfig} (cidrella up)"
        for command in ("pool add all 10.0.0.0/16", "node add here", *READS, "node remove here"):
            done = unset(up, command.replace("far", "here"))
            assert (done.returncode, lines(done)) == (0, [named]), command
        up.process.kill()
        assert kubeconfig.exists(), "nothing is left behind by one that was killed: this shows nothing"
        for command in ("node add here", "nodes"):
            done = unset(up, command)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.endswith(", and no cidrella up runs here without --data-dir\n")
        named = f"cluster: staging ({server(configure(up, cluster))}), from {up.home}/.kube/config\n"
        assert unset(up, "nodes").stderr == named
        assert unset(up, "node add here").returncode == 2
    finally:
        up.process.stop()


def test_one_with_a_data_dir_is_not_found_by_itself(tmp_path: Path) -> None:
    """Of several, only the one without a data directory is found; the others have to be named."""
    with running(tmp_path, "--data-dir", tmp_path / "data", ANY_PORT) as named:
        done = unset(named, "nodes")
        assert (done.returncode, done.stdout) == (2, "")
        up = Up(tmp_path, ANY_PORT)
        up.process.log = tmp_path / "second.log"
        try:
            up.start()
            assert unset(up, "node add second").returncode == 0
            assert named.run("cidrella node add first").returncode == 0
            assert (list(nodes(named)), list(nodes(up))) == (["first"], ["second"])
            ended(up, signal.SIGTERM)
        finally:
            up.process.stop()
        assert unset(named, "nodes").returncode == 2
