"""The controller as `deploy/` runs it: its arguments, its account, its user id, a root that cannot be written.

The image is stood in for by the wheel, as installed, in surroundings like a container's (`pod.py`): nothing here needs
a container engine.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.pod import ROOT, contained, install_wheel
from tests.real.rbac import account_token, apply_deploy, apply_directory
from tests.real.webhook import ACCOUNT as WEBHOOK_ACCOUNT
from tests.real.webhook import CONFIGURATION, CRD, RANGES, WEBHOOK, shown_certificate
from tests.testenv.audit import requests
from tests.testenv.binaries import alone
from tests.testenv.nodes import NODES, realistic_node
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.audit import Request
    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

ACCOUNT = "system:serviceaccount:kube-system:cidrella"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"
POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cidrella"
LOOK_AROUND = """
import cidrella, json, os
(capabilities,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapBnd")]
places = ["/", "/etc", "/usr", "/var/run/secrets/kubernetes.io/serviceaccount", os.path.dirname(cidrella.__file__)]
writable = [each for each in places if not os.statvfs(each).f_flag & os.ST_RDONLY]
print(json.dumps([os.getuid(), capabilities, writable, cidrella.__file__]))
"""
STARTING_SECONDS = 180


@dataclass(frozen=True)
class Surroundings:
    """What the Deployment's container would find around it."""

    spec: Json
    root: Path
    programs: Path
    account: Path
    port: int
    """Of the API server, on loopback."""

    def command(self, *command: str) -> list[str]:
        """The command that runs another one there."""
        (container,) = self.spec["containers"]
        return contained(
            command,
            root=self.root,
            paths=[self.programs.parent],
            account=self.account,
            user=self.spec["securityContext"]["runAsUser"],
            environment={
                # Those of the image, and those that a container is given by whoever starts it.
                "PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": "/",
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(self.port),
                **{each["name"]: each["value"] for each in container.get("env", ())},
            },
        )


@dataclass(frozen=True)
class Pod:
    """The running process and what the Deployment says of it."""

    process: Process
    spec: Json

    @property
    def container(self) -> Json:
        (found,) = self.spec["containers"]
        return dict(found)

    def probe(self, kind: str) -> int:
        """Ask as the kubelet would: the status, or 0 where nobody answers."""
        asked = self.container[kind]["httpGet"]
        (port,) = [each["containerPort"] for each in self.container["ports"] if each["name"] == asked["port"]]
        return status(asked.get("host", "127.0.0.1"), port, asked["path"])


@pytest.fixture(scope="module", autouse=True)
def ports() -> Iterator[None]:
    """The ports of the Deployments, which are fixed: one test run on this machine uses them at a time."""
    with alone(Path(tempfile.gettempdir(), f"cidrella-test-pod-{os.getuid()}", ".lock")):
        yield


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the wheel was installed to."""
    return install_wheel(tmp_path_factory.mktemp("image"))


@pytest.fixture
def surroundings(cluster: Cluster, programs: Path, tmp_path: Path) -> Surroundings:
    """Return what the Deployment's container would find around it."""
    apply_deploy(cluster)
    return surroundings_of("cidrella", cluster, programs, tmp_path)


@pytest.fixture
def pod(surroundings: Surroundings, tmp_path: Path) -> Iterator[Pod]:
    """Yield the controller, running as the Deployment says."""
    spec = surroundings.spec
    (container,) = spec["containers"]
    process = Process("cidrella", surroundings.command(*entrypoint(), *container["args"]), tmp_path / "cidrella.log")
    process.start()
    try:
        yield Pod(process, spec)
    finally:
        process.stop()


@pytest.fixture
def webhook(cluster: Cluster, programs: Path, tmp_path: Path) -> Iterator[Pod]:
    """Yield the webhook, running as its own Deployment says."""
    apply_directory(cluster, WEBHOOK, CRD)
    surroundings = surroundings_of("cidrella-webhook", cluster, programs, tmp_path)
    (container,) = surroundings.spec["containers"]
    command = surroundings.command(*container["command"], *container["args"])
    process = Process("cidrella-webhook", command, tmp_path / "cidrella-webhook.log")
    process.start()
    try:
        yield Pod(process, surroundings.spec)
    finally:
        process.stop()
        for path in (CONFIGURATION, RANGES):
            cluster.admin.delete(path)


@pytest.fixture
def node(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """Yield a node, and a pool that is for it alone."""
    name = "in-need-of-a-range"
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": name, "operator": "Exists"}]}]}
    pool = {"perNodeHostBits": 8, "ipv4": "10.77.0.0/16", "nodeSelector": selector}
    cluster.admin.create(
        POOLS,
        {
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": {"name": name},
            "spec": pool,
        },
    )
    cluster.admin.create(NODES, realistic_node(name, {name: ""}))
    yield name
    cluster.admin.delete(f"{NODES}/{name}")
    if pod.process.ended is not None:
        cluster.admin.patch(f"{POOLS}/{name}", {"metadata": {"finalizers": None}})
    cluster.admin.delete(f"{POOLS}/{name}")
    cluster.admin.wait(POOLS, lambda pools: name not in pools)


def test_the_surroundings_are_those_of_the_deployment(surroundings: Surroundings) -> None:
    """What the tests below run in is what it says: the user, no capability, nothing to write to, our own wheel."""
    command = surroundings.command("python", "-c", LOOK_AROUND)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    user, capabilities, writable, package = json.loads(done.stdout)
    assert user == surroundings.spec["securityContext"]["runAsUser"]
    assert int(capabilities, 16) == 0
    assert writable == []
    assert Path(package).is_relative_to(surroundings.programs.parent)


def test_as_deployed_it_serves_a_node(cluster: Cluster, pod: Pod, node: str) -> None:
    """O2: under the Deployment's rights, user id and read-only root it gets ready, leads and gives a node its block."""
    refused_before = refusals(cluster)
    wait_ready(pod)
    assert pod.probe("livenessProbe") == http.client.OK
    found = cluster.admin.wait(NODES, lambda nodes: bool(nodes[node]["spec"].get("podCIDRs")))
    assert found[node]["spec"]["podCIDRs"] == ["10.77.0.0/24"]
    pool = cluster.admin.wait(POOLS, lambda pools: pools[node].get("status", {}).get("nodes") == 1)[node]
    assert pool["status"]["free"] == 255
    assert refusals(cluster) == refused_before


def test_as_deployed_it_goes_when_it_is_told(cluster: Cluster, pod: Pod) -> None:
    """F5: on SIGTERM it is gone before the kubelet loses patience, and leaves a Lease that anybody can take."""
    wait_ready(pod)
    deadline = time.monotonic() + STARTING_SECONDS
    while not cluster.admin.get(LEASE)["spec"].get("holderIdentity"):
        assert time.monotonic() < deadline, pod.process.tail()
        time.sleep(0.05)
    os.kill(pod.process.pid, signal.SIGTERM)
    deadline = time.monotonic() + pod.spec["terminationGracePeriodSeconds"]
    while pod.process.ended is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pod.process.ended == 0, pod.process.tail()
    assert not cluster.admin.get(LEASE)["spec"].get("holderIdentity")
    assert "Traceback" not in pod.process.tail(1000)


def test_as_deployed_the_webhook_answers(cluster: Cluster, webhook: Pod) -> None:
    """O2: with nowhere to write it makes certificates, is believed, gets ready, and ends in time when it is told."""
    wait_ready(webhook)
    assert webhook.probe("livenessProbe") == http.client.OK
    (configured,) = cluster.admin.get(CONFIGURATION)["webhooks"]
    authority = base64.b64decode(configured["clientConfig"]["caBundle"]).decode()
    (port,) = [each["containerPort"] for each in webhook.container["ports"] if each["name"] == "webhook"]
    assert shown_certificate(port, authority)
    assert refusals(cluster, WEBHOOK_ACCOUNT) == []
    os.kill(webhook.process.pid, signal.SIGTERM)
    patience = (
        webhook.spec["terminationGracePeriodSeconds"] - webhook.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    )
    deadline = time.monotonic() + patience
    while webhook.process.ended is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert webhook.process.ended == 0, webhook.process.tail()
    assert "Traceback" not in webhook.process.tail(1000)


def surroundings_of(deployment: str, cluster: Cluster, programs: Path, directory: Path) -> Surroundings:
    """What the container of a Deployment would find around it."""
    (directory / "root").mkdir()
    spec = cluster.admin.get(f"{DEPLOYMENTS}/{deployment}")["spec"]["template"]["spec"]
    return Surroundings(
        spec=spec,
        root=directory / "root",
        programs=programs,
        account=account_files(cluster, directory / "account", spec["serviceAccountName"]),
        port=cluster.port,
    )


def refusals(cluster: Cluster, account: str = ACCOUNT) -> list[Request]:
    """What the API server did not let the account do."""
    asked = requests(cluster.audit_log)
    return [each for each in asked if each.user == account and each.code == http.client.FORBIDDEN]


def entrypoint() -> list[str]:
    """What the image runs, in the Containerfile's own words."""
    (found,) = re.findall(r"^ENTRYPOINT (\[.*\])$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


def account_files(cluster: Cluster, directory: Path, account: str) -> Path:
    """The files that the kubelet mounts into a Pod for its ServiceAccount."""
    directory.mkdir(mode=0o755)
    contents = {
        "token": account_token(cluster, account),
        "ca.crt": cluster.authority.certificate.read_text(),
        "namespace": "kube-system",
    }
    for name, text in contents.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o644)
    directory.chmod(0o755)
    return directory


def wait_ready(pod: Pod) -> None:
    """Wait as the kubelet does, a little more often."""
    deadline = time.monotonic() + STARTING_SECONDS
    while (answer := pod.probe("readinessProbe")) != http.client.OK:
        assert pod.process.ended is None, f"it ended with {pod.process.ended}:\n{pod.process.tail()}"
        assert time.monotonic() < deadline, f"/readyz says {answer}:\n{pod.process.tail()}"
        time.sleep(0.05)


def status(host: str, port: int, path: str) -> int:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
