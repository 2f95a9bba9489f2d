"""`cidrella up` as a process: how it begins, what it keeps, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.testenv.binaries import find
from tests.up.running import READY, ROOT, Up, running

if TYPE_CHECKING:
    from pathlib import Path

ANY_PORT = "--bind-address=127.0.0.1:0"
FIRST = ROOT / "examples" / "first-steps" / "first.yaml"


def nodes(up: Up) -> dict[str, list[str]]:
    """What each node has."""
    found = json.loads(up.out("kubectl get nodes -o json"))["items"]
    return {each["metadata"]["name"]: each["spec"].get("podCIDRs", []) for each in found}


def ended(up: Up, number: signal.Signals) -> float:
    """Send a signal; the seconds until the end, which has to be a good one."""
    began = time.monotonic()
    os.kill(up.process.pid, number)
    while up.process.ended is None:
        assert time.monotonic() < began + 10, "it does not end"
        time.sleep(0.01)
    assert up.process.ended == 0, up.printed
    up.process.stop()
    return time.monotonic() - began


def test_without_any_option(tmp_path: Path) -> None:
    """It begins at once, says what to type, serves a node and a Service, and ends at once with nothing left behind."""
    up = Up(tmp_path)
    try:
        assert up.start() < 10  # it is one or two; this is no place to measure
        url = re.search(r"Cidrella is up at (https://127\.0\.0\.1:[0-9]+)$", up.printed, re.MULTILINE)
        assert url
        assert up.kubeconfig == up.home / ".local/state/cidrella/up/kubeconfig"
        assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600
        assert url[1] in up.kubeconfig.read_text()
        for command in ("cidrella node add", "cidrella pools", "cidrella explain", "cidrella map", "kubectl get nodes"):
            assert f"  {command}" in up.printed
        assert "\x1b" not in up.printed
        assert up.out("kubectl get service kubernetes -o jsonpath={.spec.clusterIP}") == "10.96.0.1"
        up.out("cidrella pool add all 10.0.0.0/16")
        assert up.run("cidrella node add a", kubeconfig=False).stdout == "a has 10.0.0.0/24 from all\n"
        up.out("kubectl create service clusterip front --tcp=80")
        assert up.out("kubectl get service front -o jsonpath={.spec.clusterIP}").startswith("10.96.")
        kubeconfig = up.kubeconfig
        assert ended(up, signal.SIGINT) < 5
        assert not kubeconfig.exists()
        assert up.printed.endswith(f"{READY}\n")
    finally:
        up.process.stop()


def test_those_who_watch_do_not_hold_it_up(tmp_path: Path) -> None:
    """A client that would watch for ever is no reason to stay; it is told, and ends by itself."""
    with running(tmp_path, ANY_PORT) as up:
        environ = {"HOME": str(up.home), "KUBECONFIG": str(up.kubeconfig)}
        command = [str(find(["kubectl"])["kubectl"]), "get", "namespaces", "--watch", "--output=name"]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watching:
            assert watching.stdout
            assert watching.stdout.readline() == b"namespace/default\n"
            assert ended(up, signal.SIGTERM) < 5
            watching.stdout.read()


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    """With a data directory, all is as it was after SIGTERM and after `kill -9`; blocks stay with their nodes."""
    up = Up(tmp_path, "--data-dir", tmp_path / "data", "-f", FIRST, ANY_PORT)
    try:
        up.start()
        assert up.printed.count(f"export KUBECONFIG={tmp_path}/data/kubeconfig") == 1
        up.process.log.write_text("")
        up.process.stop()
        up.start()
        up.out("cidrella node add --count 5")
        before = nodes(up)
        ca = (tmp_path / "data" / "ca.crt").read_bytes()
        assert sorted(map(len, before.values())) == [0, 1, 1, 1, 1]
        assert ended(up, signal.SIGTERM) < 5
        for _ in range(2):
            up.process.log.write_text("")
            up.start()
            assert nodes(up) == before
            up.process.kill()
        assert (tmp_path / "data" / "ca.crt").read_bytes() == ca
        up.process.log.write_text("")
        up.start()
        up.out("cidrella node remove node-1")
        assert up.out("cidrella node add x").startswith("x waits: ")
        assert nodes(up)["node-5"] == before["node-1"]
    finally:
        up.process.stop()


def test_two_at_a_time(tmp_path: Path) -> None:
    """One directory is for one; with directories of their own both run, the second on another port."""
    with running(tmp_path, "--data-dir", tmp_path / "data") as first:
        second = first.run(f"cidrella up --data-dir {tmp_path}/data")
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.startswith(f"error: another cidrella up runs in {tmp_path}/data (process ")
        (tmp_path / "other").mkdir()
        with running(tmp_path / "other", "--data-dir", tmp_path / "other" / "data") as other:
            other.out("cidrella node add here")
            assert (list(nodes(first)), list(nodes(other))) == ([], ["here"])


def test_a_home_is_for_one_without_a_directory(tmp_path: Path) -> None:
    """Both would write the one kubeconfig that commands look for."""
    with running(tmp_path, ANY_PORT) as first:
        second = first.run("cidrella up")
        assert second.returncode == 2
        assert "give this one a --data-dir of its own" in second.stderr


def test_others_need_a_token(tmp_path: Path) -> None:
    """Where others can connect there is a token, in the kubeconfig and nowhere else; without it nobody gets in."""
    with running(tmp_path, "--bind-address=0.0.0.0:0") as up:
        assert "It asks for a token" in up.printed
        assert up.out("kubectl get namespaces -o name").count("\n") == 4
        server = up.out("kubectl config view --minify -o jsonpath={.clusters[0].cluster.server}")
        asked = up.run(f"curl -sk -o /dev/null -w '%{{http_code}}' {server}/api/v1/nodes")
        assert asked.stdout == "401"
        (token,) = re.findall("token: (.*)", up.kubeconfig.read_text())
        assert token not in up.printed


def test_what_the_api_refuses(tmp_path: Path) -> None:
    """What only the API can know to be wrong is told with its place, and it does not stay up."""
    file = tmp_path / "objects.yaml"
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: nowhere}\nspec: {ports: [{port: 80}]}\n"
    file.write_text(f"{service}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: b}}\n")
    up = Up(tmp_path)
    done = up.run(f"cidrella up -f {file} {ANY_PORT}", kubeconfig=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f'{file}:1: Service a: the API refuses it: namespaces "nowhere" not found',
        f"{file}:6: Deployment b: apiVersion: apps/v1 is not served by the embedded API",
        "2 problems; the API stays down",
    ]


def test_an_example_that_lives(tmp_path: Path) -> None:
    """`--nodes` has its nodes and pools at once; with `--churn` they come and go, and no two share a block."""
    with running(tmp_path, "--nodes=30", "--churn", ANY_PORT) as up:
        first = nodes(up)
        assert abs(len(first) - 30) <= 2
        deadline = time.monotonic() + 20
        while (now := nodes(up)).keys() == first.keys() or not first.keys() - now.keys():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        blocks = [block for held in now.values() for block in held]
        assert len(set(blocks)) == len(blocks) >= 15
        assert {line.split()[0] for line in up.out("cidrella pools").splitlines()[1:]} == {
            *("zone-a", "zone-b", "zone-c", "large", "all-nodes")
        }


def test_without_a_controller(tmp_path: Path) -> None:
    """The API alone: the kinds of pools are for whoever brings a controller, Services have their addresses."""
    with running(tmp_path, "--no-controller", "--nodes=2", ANY_PORT) as up:
        assert up.out("kubectl get crds -o name").split() == [
            "customresourcedefinition.apiextensions.k8s.io/rangeallocations.cidrella.dev"
        ]
        assert nodes(up) == {"worker-001": [], "worker-002": []}
        up.out("kubectl create service clusterip front --tcp=80")
        assert up.out("kubectl get service front -o jsonpath={.spec.clusterIP}").startswith("10.96.")


def test_release_is_refused_while_it_runs(tmp_path: Path) -> None:
    """F6: its controller, which holds no election, is found by its heartbeat Lease."""
    with running(tmp_path, ANY_PORT) as up:
        up.out("cidrella pool add all 10.0.0.0/16")
        up.out("cidrella node add a")
        refused = up.run("cidrella release --finalizers --yes")
        assert refused.returncode == 1
        holder = up.out("kubectl -n kube-system get lease cidrella-alone -o jsonpath={.spec.holderIdentity}")
        assert refused.stderr.startswith(f"refused: {holder} holds the Lease kube-system/cidrella-alone, renewed ")
        assert "finalizer" in up.out("kubectl get clustercidr all -o jsonpath={.metadata.finalizers}")


def test_a_file_with_everything(tmp_path: Path) -> None:
    """The example of the first page: blocks that nodes have stay, the others get theirs as `plan` says."""
    with running(tmp_path, "-f", ROOT / "examples" / "getting-started", ANY_PORT) as up:
        planned = json.loads(up.out("cidrella plan examples/getting-started -o json"))["nodes"]
        expected = {each["name"]: each["podCIDRs"] for each in planned}
        deadline = time.monotonic() + 5
        while (found := nodes(up)) != expected and time.monotonic() < deadline:
            time.sleep(0.1)
        assert found == expected


def test_on_a_terminal_it_is_coloured(tmp_path: Path) -> None:
    """What to type stands out."""
    reader, terminal = os.openpty()
    command = [sys.executable, "-m", "cidrella", "up", ANY_PORT]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environ) as running_one:
        shown = b""
        while READY.encode() not in shown:
            shown += os.read(reader, 4096)
        running_one.send_signal(signal.SIGINT)
        assert running_one.wait(10) == 0
    assert b"\x1b[" in shown
    os.close(terminal)
    os.close(reader)
