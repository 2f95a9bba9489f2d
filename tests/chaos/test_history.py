"""The recorder finds out all that happened in a real cluster, or says that it did not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.chaos.checker import check
from tests.chaos.history import ADDED, COLLECTIONS, CONFIGS, DELETED, LEASES, MODIFIED, NODES, POOLS, History, Meta
from tests.chaos.recorder import Recorder, recording_flags
from tests.real.rbac import apply_deploy
from tests.real.site import eventually
from tests.testenv.api import ADMIN
from tests.testenv.audit import requests
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

META = Meta(seed=1, seconds=1, controllers={}, third_party="")
MANY = 130
"""More changes than a watch cache begins with room for."""
SPECS = {
    NODES: {},
    POOLS: {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"},
    CONFIGS: {"cidr": "10.2.0.0/16", "perNodeMaskSize": 24},
    LEASES: {},
}
KINDS = {
    NODES: ("v1", "Node"),
    POOLS: ("networking.x-k8s.io/v1", "ClusterCIDR"),
    CONFIGS: ("networking.x-k8s.io/v1alpha1", "ClusterCIDRConfig"),
    LEASES: ("coordination.k8s.io/v1", "Lease"),
}


class Scribe:
    """Changes objects of every collection, and remembers what it did. All are called as the Lease is."""

    def __init__(self, cluster: Cluster) -> None:
        self._admin = cluster.admin
        self.did: dict[str, list[tuple[str, str | None]]] = {collection: [] for collection in COLLECTIONS}
        """By collection: the type of each change, and the label that it left."""

    def create(self) -> None:
        for collection, path in COLLECTIONS.items():
            version, kind = KINDS[collection]
            body = {"apiVersion": version, "kind": kind, "metadata": {"name": "cidrella"}, "spec": SPECS[collection]}
            self._admin.create(path, body)
            self.did[collection].append((ADDED, None))

    def label(self, value: str) -> None:
        for collection, path in COLLECTIONS.items():
            self._admin.patch(f"{path}/cidrella", {"metadata": {"labels": {"at": value}}})
            self.did[collection].append((MODIFIED, value))

    def delete(self) -> None:
        for collection, path in COLLECTIONS.items():
            self._admin.delete(f"{path}/cidrella")
            self.did[collection].append((DELETED, self.did[collection][-1][1]))


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that keeps everything, unless a test asks for other flags."""
    flags = {**recording_flags(tmp_path), **getattr(request, "param", {})}
    with Cluster.temporary(flags=flags) as running:
        apply_deploy(running)
        yield running


def test_all_of_it(cluster: Cluster, tmp_path: Path) -> None:
    """Every change of every collection, also from before the API server and etcd were killed and started again.

    What there was when it began is in it, too.
    """
    scribe, recorder = Scribe(cluster), Recorder(cluster, tmp_path, META)
    scribe.create()
    recorder.begin()
    for number in range(MANY):
        scribe.label(str(number))
    assert recorder.snapshot()
    cluster.restart(cluster.apiserver)
    scribe.delete()
    scribe.create()
    assert recorder.snapshot()
    cluster.restart(cluster.etcd)
    scribe.label("etcd")
    recorder.fault("etcd", 1.0, 2.0)
    recorder.rest([])
    scribe.delete()
    history = recorder.finish()
    found = {
        collection: [
            (each.type, each.object["metadata"].get("labels", {}).get("at"))
            for each in history.changes
            if each.collection == collection
        ]
        for collection in COLLECTIONS
    }
    assert found == scribe.did
    assert {each.invariant for each in check(history)} <= {"leak", "unserved"}, "what no controller has seen to"
    made = {each.revision for each in history.writes if each.user == ADMIN and each.answered >= each.received > 0}
    assert made >= {each.revision for each in history.changes if each.type != DELETED}
    assert History.load(tmp_path) == history


@pytest.mark.parametrize("cluster", [{"etcd-compaction-interval": "1s"}], indirect=True)
def test_what_etcd_has_forgotten(cluster: Cluster, tmp_path: Path) -> None:
    """A history of which etcd has compacted the beginning has a gap in every collection, and is flagged for it."""
    scribe, recorder = Scribe(cluster), Recorder(cluster, tmp_path, META)
    recorder.begin()
    before = cluster.admin.get(COLLECTIONS[NODES])["metadata"]["resourceVersion"]
    scribe.create()
    scribe.label("1")
    eventually(lambda: _is_forgotten(cluster, before), 60)
    recorder.rest([])
    history = recorder.finish()
    assert len(history.gaps) == len(COLLECTIONS)
    assert all("410" in each for each in history.gaps), history.gaps
    assert "gap" in {each.invariant for each in check(history)}


def _is_forgotten(cluster: Cluster, revision: str) -> bool:
    for collection in COLLECTIONS.values():
        try:
            cluster.admin.get(collection, resourceVersion=revision, resourceVersionMatch="Exact", limit="1")
        except ApiError as error:
            if error.code != 410:
                raise
        else:
            return False
    return True


def test_no_answer(tmp_path: Path) -> None:
    """A list that is not answered says so, and leaves no part of itself behind that could be taken for a gap."""
    cluster = Cluster(tmp_path / "cluster")
    recorder = Recorder(cluster, tmp_path, META)
    assert not recorder.snapshot()


def test_an_audit_log_that_was_cut_short(tmp_path: Path) -> None:
    """A line that a killed API server did not end is left out, and what comes behind it is read."""
    line = json.dumps(
        {
            "kind": "Event",
            "user": {"username": "me"},
            "verb": "patch",
            "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
            "stageTimestamp": "2026-01-01T00:00:00.500000Z",
            "responseObject": {"metadata": {"resourceVersion": "7"}},
        },
        separators=(",", ":"),
    )
    log = tmp_path / "audit.log"
    log.write_text(f"{line}\n{line[:40]}{line}\n{line[:20]}\n{line[:30]}")
    found = [(each.revision, each.answered - each.received) for each in requests(log)]
    assert found == [(7, 0.5), (7, 0.5)]
