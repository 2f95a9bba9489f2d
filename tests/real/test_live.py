"""The live commands on the real API server, as a user who may only read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.run import Cidrella
from tests.testenv import audit
from tests.testenv.nodes import create_nodes, delete_nodes, realistic_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Json

POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
FINALIZER = "networking.kubernetes.io/cluster-cidr-config-finalizer"
READER = "live-reader"
KINDS = ["clustercidrs", "clustercidrconfigs"]
READ_ONLY = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    {"apiGroups": ["networking.x-k8s.io"], "resources": KINDS, "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["servicecidrs"], "verbs": ["get", "list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
]


@pytest.fixture(scope="module")
def reader(cluster: Api) -> Path:
    """The kubeconfig of a user who may read what the commands need, and nothing else."""
    client, path = cluster.user(READER, READ_ONLY)
    client.close()
    return path


@pytest.fixture(scope="module")
def nobody(cluster: Api) -> Path:
    """The kubeconfig of a user who may do nothing."""
    client, path = cluster.user("live-nobody")
    client.close()
    return path


@pytest.fixture(scope="module")
def populated(cluster: Api, kubectl: Kubectl) -> Iterator[list[str]]:
    """Two pools, a node that holds a block and one that waits, and 520 more that hold one: more than a page."""
    assert kubectl("get", "cc").stdout == ""
    for name, ipv4 in (("live-all", "10.128.0.0/12"), ("live-small", "10.3.0.0/24")):
        spec = {"perNodeHostBits": 8, "ipv4": ipv4}
        metadata = {"name": name, "finalizers": [FINALIZER]}
        kind = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR"}
        cluster.admin.create(POOLS, {**kind, "metadata": metadata, "spec": spec})
    held = {f"live-{number:03}": f"10.{128 + number // 256}.{number % 256}.0/24" for number in range(520)}
    held["live-first"] = "10.3.0.0/24"
    names = [*held, "live-waits"]
    create_nodes(cluster.admin, names, lambda name: _node(name, held.get(name)))
    yield names
    delete_nodes(cluster.admin, names)
    for name in ("live-all", "live-small"):
        cluster.admin.patch(f"{POOLS}/{name}", {"metadata": {"finalizers": None}})
        cluster.admin.delete(f"{POOLS}/{name}")


def _node(name: str, block: str | None) -> Json:
    return realistic_node(name, podCIDR=block, podCIDRs=[block]) if block else realistic_node(name)


def test_read_only(
    cluster: Api,
    populated: list[str],
    reader: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every live command works with the right to read alone, and sends nothing but reads."""
    monkeypatch.setenv("KUBECONFIG", str(reader))
    cidrella = Cidrella(monkeypatch, capsys)
    pools = {each["name"]: each for each in json.loads(cidrella("pools", "-o", "json").out)["pools"]}
    assert pools["live-all"]["ipv4"]["allocated"] == 520
    assert pools["live-all"]["state"] == "Active"
    assert pools["live-small"]["state"] == "Full"
    assert pools["live-small"]["nodes"] == 1
    nodes = json.loads(cidrella("nodes", "-o", "json").out)["nodes"]
    assert sorted(each["name"] for each in nodes) == sorted(populated)
    (waiting,) = json.loads(cidrella("nodes", "--waiting", "-o", "json").out)["nodes"]
    assert waiting["name"] == "live-waits"
    offer = {"podCIDRs": ["10.130.8.0/24"], "clusterCIDR": "live-all", "pools": ["live-all"]}
    assert waiting["wouldGet"] == offer
    explained = cidrella("explain", "live-waits").out
    assert "it would get 10.130.8.0/24 from live-all\nno controller holds the Lease kube-system/cidrella" in explained
    drawn = cidrella("map").out
    assert "10.128.0.0/12" in drawn
    assert "10.96.0.0/16" in drawn, "the API server's own ServiceCIDR"
    planned = json.loads(cidrella("plan", "--from-cluster", "--add-nodes", "3", "-o", "json").out)
    assert planned["whatIf"]["fit"] == 3
    sent = [each for each in audit.requests(cluster.audit_log) if each.user == READER]
    assert {each.verb for each in sent} == {"get", "list"}
    assert not audit.writes(cluster.audit_log, READER)
    assert not [each for each in sent if each.code >= 400 and each.resource != "leases"]
    assert len([each for each in sent if each.resource == "nodes"]) >= 12, "two pages for each of six commands"


@pytest.mark.usefixtures("kubectl")
def test_refused_in_words(nobody: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who may not read is told which permissions are missing; who does not trust the server, that it is TLS."""
    cidrella = Cidrella(monkeypatch, capsys)
    result = cidrella("nodes", "--kubeconfig", nobody)
    assert result.code == 2
    pools = ", ".join(f"{each}.networking.x-k8s.io" for each in KINDS)
    assert f"list {pools}, nodes, servicecidrs.networking.k8s.io" in result.err
    stranger = nobody.with_name("stranger.kubeconfig")
    stranger.write_text(nobody.read_text().replace("certificate-authority:", "x-certificate-authority:"))
    result = cidrella("nodes", "--kubeconfig", stranger)
    assert result.code == 2
    assert "certificate" in result.err.lower()
    assert result.err.count("\n") == 1


@pytest.mark.usefixtures("populated")
def test_kubectl_plugin(cluster: Api, reader: Path) -> None:
    """`kubectl cidrella` runs the commands, shows its own name in the usage line, and passes exit codes on."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "KUBECONFIG": str(reader)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(cluster.kubectl_path), "cidrella", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)

    listed = run("pools")
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", "live-all", "live-small"]
    assert "Usage: kubectl cidrella pools" in run("pools", "--help").stdout
    assert run("explain", "no-such-node").returncode == 2
