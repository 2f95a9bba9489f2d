"""The test environment itself: what the other tests on the real thing rely on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import CRDS, ROOT
from tests.testenv import audit
from tests.testenv.client import ApiError, Client
from tests.testenv.cluster import Cluster
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, delete_nodes, realistic_node

if TYPE_CHECKING:
    from pathlib import Path

READ_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
PATCH_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]


def pod_cidrs(text: str) -> dict[str, object]:
    return {"spec": {"podCIDR": text, "podCIDRs": [text]}}


def test_users_may_do_what_their_rules_say(cluster: Cluster) -> None:
    """RBAC is on: a user and a ServiceAccount may do what they were given, and nothing else."""
    for client, kubeconfig in (cluster.user("reader", READ_NODES), cluster.service_account("reader", READ_NODES)):
        assert client.items(NODES) == []
        with pytest.raises(ApiError) as refused:
            client.create(NODES, realistic_node("n"))
        assert refused.value.code == 403
        listed = subprocess.run(
            [cluster.kubectl_path, "--kubeconfig", kubeconfig, "get", "nodes"], capture_output=True, check=False
        )
        assert listed.returncode == 0
        client.close()


def test_nobody_gets_in_without_a_name(cluster: Cluster) -> None:
    """TLS is real: a client without a certificate or token is nobody, and may do nothing."""
    client = Client(cluster.server, cluster.authority.certificate)
    with pytest.raises(ApiError) as refused:
        client.items(NODES)
    assert refused.value.code in (401, 403)
    client.close()


def test_many_realistic_nodes(cluster: Cluster) -> None:
    """Nodes are created as large as real ones, many at a time, and deleted again; a watch sees both."""
    names = [f"many-{number}" for number in range(200)]
    made = create_nodes(cluster.admin, names)
    assert [each["metadata"]["name"] for each in made] == names
    assert len(made[0]["status"]["images"]) == 30
    cluster.admin.wait(NODES, lambda found: set(names) <= found.keys())
    delete_nodes(cluster.admin, [*names, "never-was"])
    cluster.admin.wait(NODES, lambda found: not set(names) & found.keys())


def test_wait_says_what_it_saw(cluster: Cluster) -> None:
    """A condition that is never met ends in an error that says what there was."""
    with pytest.raises(TimeoutError, match="not met within 1 s"):
        cluster.admin.wait(NODES, lambda found: "no-such-node" in found, timeout=1)


def test_overlap_is_found() -> None:
    """A1: two nodes that share an address are told, whatever lies between them; neighbours and families are not."""
    made = [realistic_node(name, podCIDRs=texts) for name, texts in _PLAIN.items()]
    assert_no_overlap(made)
    for text in ("10.0.3.0/24", "10.0.0.0/16", "fd00:0:0:1::/64"):
        with pytest.raises(AssertionError, match="overlaps"):
            assert_no_overlap([*made, realistic_node("other", podCIDRs=[text])])


_PLAIN = {"a": ["10.0.0.0/24", "fd00::/64"], "b": ["10.0.1.0/24", "fd00:0:0:1::/64"], "c": ["10.0.2.0/23"]}


def test_audit_log_shows_what_was_sent(cluster: Cluster) -> None:
    """N1: a second podCIDR for a node is seen in the log although the API server refused it."""
    client, _ = cluster.user("writer", PATCH_NODES)
    create_nodes(cluster.admin, ["audited"])
    client.patch(f"{NODES}/audited", pod_cidrs("10.0.0.0/24"))
    client.patch(f"{NODES}/audited", pod_cidrs("10.0.0.0/24"))
    audit.assert_pod_cidrs_written_once(cluster.audit_log, "writer")
    with pytest.raises(ApiError) as refused:
        client.patch(f"{NODES}/audited", pod_cidrs("10.0.1.0/24"))
    assert refused.value.code == 422
    sent = audit.writes(cluster.audit_log, "writer", "nodes")
    assert [(each.verb, each.name, each.code) for each in sent] == [
        ("patch", "audited", 200),
        ("patch", "audited", 200),
        ("patch", "audited", 422),
    ]
    with pytest.raises(AssertionError, match="audited"):
        audit.assert_pod_cidrs_written_once(cluster.audit_log, "writer")
    delete_nodes(cluster.admin, ["audited"])
    client.close()


def test_faults_of_processes() -> None:
    """Both processes can be killed, paused, resumed and started again; what was written is still there."""
    with Cluster.temporary() as cluster:
        create_nodes(cluster.admin, ["stays"])
        cluster.restart(cluster.apiserver)
        cluster.restart(cluster.etcd)
        assert [each["metadata"]["name"] for each in cluster.admin.items(NODES)] == ["stays"]
        cluster.apiserver.pause()
        asked = subprocess.Popen(
            [cluster.kubectl_path, "--kubeconfig", cluster.kubeconfig, "get", "nodes", "-o", "name"],
            stdout=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            asked.communicate(timeout=1)
        cluster.apiserver.resume()
        assert asked.communicate(timeout=30)[0] == "node/stays\n"
        pids = [cluster.apiserver.pid, cluster.etcd.pid]
    assert not any(_alive(pid) for pid in pids)


def test_failed_start_shows_the_log(tmp_path: Path) -> None:
    """A server that does not come up is reported with the end of its log, and leaves nothing running."""
    with (
        pytest.raises(RuntimeError, match="kube-apiserver ended with 1"),
        socket.create_server(("127.0.0.1", 0)) as taken,
        Cluster.temporary(port=taken.getsockname()[1], keep_logs_in=tmp_path),
    ):
        pytest.fail("two servers on one port")
    assert [*tmp_path.glob("*/kube-apiserver.log")]


def test_command_runs_until_stopped(tmp_path: Path) -> None:
    """`python -m tests.testenv up` applies, says ready, serves, and leaves nothing running, stopped or killed."""
    for stop in (signal.SIGTERM, signal.SIGKILL):
        kubeconfig = tmp_path / f"kubeconfig-{stop.name}"
        command = [sys.executable, "-m", "tests.testenv", "up", "--kubeconfig", str(kubeconfig)]
        command += ["--apply", str(CRDS)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            said = []
            for line in running.stdout:
                said.append(line.strip())
                if said[-1] == "ready":
                    break
            assert said[-1] == "ready", said
            children = _children(running.pid)
            assert len(children) == 2
            running.send_signal(stop)
            running.wait(30)
        _until_gone(children)


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True)
    return [int(each) for each in listed.stdout.split()]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(map(_alive, pids)):
        assert time.monotonic() < deadline, "a process was left running"
        time.sleep(0.05)
