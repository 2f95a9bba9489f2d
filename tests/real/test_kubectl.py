"""What a person does with kubectl works with the real one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cidrella.model.kinds import POOL_KINDS
from tests.cli.run import Cidrella
from tests.real.conftest import ROOT
from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api

POOLS = [kind.path for kind in POOL_KINDS]
SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
PRINTED = {"services.yaml"}
"""What a cluster printed, with uids and the API server's own ServiceCIDR: it is for reading, not for applying."""
EXAMPLES = sorted(each for each in (ROOT / "examples").iterdir() if each.name not in PRINTED)


@pytest.fixture
def clean(cluster: Api, kubectl: Kubectl) -> Iterator[None]:
    """Afterwards, nothing that a test applied is left: finalizers go first, for nobody is there to remove them."""
    assert kubectl("get", "cc").stdout == ""
    kept = {each["metadata"]["name"] for each in cluster.admin.items(SERVICE_CIDRS)}
    yield
    for collection, spare in ((NODES, set()), *((path, set()) for path in POOLS), (SERVICE_CIDRS, kept)):
        for each in cluster.admin.items(collection):
            if each["metadata"]["name"] not in spare:
                path = f"{collection}/{each['metadata']['name']}"
                cluster.admin.patch(path, {"metadata": {"finalizers": None}})
                cluster.admin.delete(path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
@pytest.mark.usefixtures("clean")
def test_examples_can_be_applied_and_planned(
    kubectl: Kubectl, example: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What kubectl applied and prints again is planned the same as the files themselves."""
    applied = kubectl("apply", "-f", str(example))
    assert applied.returncode == 0, applied.stderr
    printed = kubectl("get", "nodes,clustercidrs,clustercidrconfigs,servicecidrs", "-o", "yaml")
    assert printed.returncode == 0, printed.stderr
    cidrella = Cidrella(monkeypatch, capsys)
    live = json.loads(cidrella("plan", "-f", "-", "-o", "json", stdin=printed.stdout).out)
    files = json.loads(cidrella("plan", "-f", str(example), "-o", "json").out)
    # kubectl sorts by name, and a deletionTimestamp cannot be applied: who gets which block may differ, not how many.
    assert {each["name"] for each in live["nodes"]} == {each["name"] for each in files["nodes"]}
    assert {each["name"] for each in live["pools"]} == {each["name"] for each in files["pools"]}
    assert not [each for each in live["nodes"] if each["outcome"] not in ("Assigned", "Kept")]


@pytest.mark.usefixtures("clean")
def test_columns(kubectl: Kubectl) -> None:
    """C5: `kubectl get cc` shows the columns, filled from the status, with a count beyond 63 bits as the largest."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}
    made = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": "a"}, "spec": spec}
    assert kubectl("create", "-f", "-", stdin=json.dumps(made)).returncode == 0
    status = {"nodes": 3, "free": 2**63 - 1, "conditions": [{"type": "Active", "status": "True"}]}
    patched = kubectl("patch", "cc", "a", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert patched.returncode == 0, patched.stderr
    header, row = kubectl("get", "cc").stdout.splitlines()
    assert header.split() == ["NAME", "PERNODEHOSTBITS", "IPV4", "IPV6", "USED", "FREE", "ACTIVE", "AGE"]
    assert row.split()[:3] == ["a", "8", "10.1.0.0/16"]
    assert row.split()[3:6] == ["3", "9223372036854775807", "True"]


def test_explain(kubectl: Kubectl) -> None:
    """`kubectl explain` describes every field of the spec."""
    explained = kubectl("explain", "clustercidr.spec")
    assert explained.returncode == 0, explained.stderr
    for field in ("perNodeHostBits", "perNodeHostBitsIPv6", "ipv4", "ipv6", "nodeSelector"):
        assert field in explained.stdout
    assert "<no description>" not in explained.stdout
