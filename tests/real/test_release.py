"""F6: `cidrella release --finalizers` on the real API server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.controller.release import active_holder, find_guarded, release_all
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.election import ElectionSettings
from tests.cli.run import Cidrella

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api

POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
OURS = "networking.kubernetes.io/cluster-cidr-config-finalizer"
FOREIGN = "networking.x-k8s.io/cluster-cidr-finalizer"
OTHER = "example.com/keep"
POOL_RESOURCES = ["clustercidrs", "clustercidrconfigs"]


@pytest.fixture
def command(
    cluster: Api, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cidrella]:
    """The command, as the administrator; afterwards, neither pool nor Lease is left."""
    monkeypatch.setenv("KUBECONFIG", str(kubectl.kubeconfig))
    yield Cidrella(monkeypatch, capsys)
    for each in cluster.admin.items(POOLS):
        path = f"{POOLS}/{each['metadata']['name']}"
        cluster.admin.patch(path, {"metadata": {"finalizers": None}})
        if "deletionTimestamp" not in each["metadata"]:
            cluster.admin.delete(path)
    for each in cluster.admin.items(LEASES):
        if each["metadata"]["name"].startswith("cidrella"):
            cluster.admin.delete(f"{LEASES}/{each['metadata']['name']}")


def pool(cluster: Api, name: str, *finalizers: str) -> None:
    cluster.admin.create(
        POOLS,
        {
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": {"name": name, "finalizers": list(finalizers)},
            "spec": {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"},
        },
    )


def hold(cluster: Api, holder: str, seconds_ago: float = 0, name: str = "cidrella", seconds: int = 15) -> None:
    when = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "renewTime": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    cluster.admin.create(LEASES, {"metadata": {"name": name}, "spec": spec})


def finalizers(cluster: Api) -> dict[str, list[str]]:
    return {each["metadata"]["name"]: each["metadata"].get("finalizers", []) for each in cluster.admin.items(POOLS)}


def test_finalizers_are_taken_off(cluster: Api, command: Cidrella) -> None:
    """F6, P1: both controllers' finalizers go, others stay, and a pool that was being deleted is gone with them."""
    pool(cluster, "a", OURS)
    pool(cluster, "b", FOREIGN, OTHER)
    pool(cluster, "c")
    pool(cluster, "d", OURS, FOREIGN)
    cluster.admin.delete(f"{POOLS}/d")
    dry = command("release", "--finalizers", "--dry-run")
    assert dry.code == 0
    assert finalizers(cluster) == {"a": [OURS], "b": [FOREIGN, OTHER], "c": [], "d": [OURS, FOREIGN]}
    done = command("release", "--finalizers", "--yes")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"a: lost {OURS}",
        f"b: lost {FOREIGN}, keeps {OTHER}",
        f"d: lost {OURS}, {FOREIGN}, and is gone, for it was being deleted",
        "3 of 3 released",
    ]
    assert dry.out.splitlines() == [line.replace("lost", "would lose") for line in done.out.splitlines()[:-1]]
    assert finalizers(cluster) == {"a": [], "b": [OTHER], "c": []}
    again = command("release", "--finalizers", "--yes")
    assert (again.code, again.out) == (0, "no pool has a controller's finalizer: there is nothing to release\n")
    cluster.admin.delete(f"{POOLS}/a")
    assert "a" not in finalizers(cluster)


def test_refused_while_a_controller_runs(cluster: Api, command: Cidrella) -> None:
    """F6: while the Lease is held nothing is done, and the holder is named; a dry run may look."""
    pool(cluster, "a", OURS)
    hold(cluster, "host-1_abc", seconds_ago=3)
    refused = command("release", "--finalizers", "--yes")
    assert refused.code == 1
    assert refused.err.startswith("refused: host-1_abc holds the Lease kube-system/cidrella, renewed ")
    dry = command("release", "--finalizers", "--dry-run")
    assert dry.code == 0
    assert "would be refused now: host-1_abc holds" in dry.err
    assert finalizers(cluster) == {"a": [OURS]}
    elsewhere = command("release", "--finalizers", "--yes", "--leader-elect-resource-name", "cidrella-2")
    assert elsewhere.code == 0
    assert finalizers(cluster) == {"a": []}


def test_asks_before_it_acts(cluster: Api, command: Cidrella) -> None:
    """Without a terminal to ask on, `--yes` is needed; on one, no means no and yes means yes."""
    pool(cluster, "a", OURS)
    program = [sys.executable, "-m", "cidrella", "release", "--finalizers"]
    mute = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, timeout=180, check=False)
    assert mute.returncode == 2
    for answer, code, left in (("n", 1, [OURS]), ("y", 0, [])):
        keyboard, terminal = os.openpty()
        os.write(keyboard, f"{answer}\n".encode())
        asked = subprocess.run(program, stdin=terminal, capture_output=True, text=True, timeout=180, check=False)
        assert asked.returncode == code, asked.stderr
        assert "take the finalizers off 1 pool, at" in asked.stderr
        assert finalizers(cluster) == {"a": left}
        os.close(keyboard)
        os.close(terminal)
    assert command("release", "--finalizers").code == 0, "with nothing to release there is nothing to ask"


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("name", ["cidrella-late", "cidrella-late-alone"])
def test_lease_that_ran_out(cluster: Api, name: str) -> None:
    """F6: a Lease that ran out is believed only after nobody renewed it while we looked on: clocks may differ.

    It is looked at for as long as it says that it lasts, whatever its reader would have it say. So is the heartbeat.
    """
    settings = ElectionSettings(name="cidrella-late")
    hold(cluster, "dead", seconds_ago=60, name=name, seconds=2)
    told: list[str] = []

    async def scenario() -> list[Any]:
        async with Client(load_access(str(cluster.kubeconfig))) as client:
            dead = await active_holder(client, settings, lambda holder: told.append(holder.identity))

            def renew(_holder: object) -> None:
                spec = {"renewTime": (datetime.now(UTC) - timedelta(seconds=50)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
                cluster.admin.patch(f"{LEASES}/{name}", {"spec": spec})

            return [dead, await active_holder(client, settings, renew)]

    dead, alive = asyncio.run(scenario())
    assert dead is None
    assert told == ["dead"]
    assert alive is not None
    assert (alive.identity, alive.lease) == ("dead", f"kube-system/{name}")


@pytest.mark.usefixtures("command")
def test_changed_by_others_in_between(cluster: Api) -> None:
    """A pool that changes or goes after it was read is read again, and what others added to it stays."""
    for name in ("a", "b", "c"):
        pool(cluster, name, OURS)

    async def scenario() -> list[Any]:
        async with Client(load_access(str(cluster.kubeconfig))) as client:
            found = await find_guarded(client)
            cluster.admin.patch(f"{POOLS}/a", {"metadata": {"finalizers": [OTHER, OURS]}})
            cluster.admin.patch(f"{POOLS}/b", {"metadata": {"finalizers": None}})
            cluster.admin.delete(f"{POOLS}/b")
            cluster.admin.patch(f"{POOLS}/c", {"metadata": {"finalizers": None, "labels": {"x": "y"}}})
            return await release_all(client, found)

    results = asyncio.run(scenario())
    assert [(each.pool.name, each.fault) for each in results] == [("a", ""), ("b", ""), ("c", "")]
    assert finalizers(cluster) == {"a": [OTHER], "c": []}


def test_refusal_for_one_pool_is_told(cluster: Api, command: Cidrella) -> None:
    """Who may list pools but not change them is told so for each, with exit code 1."""
    pool(cluster, "a", OURS)
    client, path = cluster.user(
        "release-reader",
        [
            {"apiGroups": ["networking.x-k8s.io"], "resources": POOL_RESOURCES, "verbs": ["get", "list"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        ],
    )
    client.close()
    result = command("release", "--finalizers", "--yes", "--kubeconfig", path)
    assert result.code == 1
    assert "a: not released: 403 Forbidden" in result.out
    assert "0 of 1 released" in result.out
