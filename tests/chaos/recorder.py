"""Records what happens in a cluster, from before the first write until all has come to rest.

with Cluster.temporary(flags=recording_flags(directory)) as cluster:
    ...apply the CRDs...
    recorder = Recorder(cluster, directory, Meta(...))
    recorder.begin()
    ...run; now and then: recorder.snapshot(), recorder.fault(...)...
    recorder.rest(leader.samples())
    ...stop every controller...
    history = recorder.finish()
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import yaml

from tests.chaos.history import COLLECTIONS, Fault, History, Rest, Sample, Snapshot, Write
from tests.chaos.reading import listed, read_changes
from tests.testenv.audit import WRITES, requests
from tests.testenv.client import ApiError, Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.chaos.history import Meta
    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

_ASK_SECONDS = 5.0

# The answers say which revision each write made. Events and what the API server tells itself are of no interest.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {
            "level": "RequestResponse",
            "verbs": sorted(WRITES),
            "resources": [
                {"group": "", "resources": ["nodes"]},
                {"group": "networking.x-k8s.io"},
                {"group": "coordination.k8s.io"},
            ],
        },
        {"level": "None"},
    ],
}


def recording_flags(directory: Path) -> dict[str, object]:
    """Flags of kube-apiserver, and a file in the directory, that make it keep all that a recorder asks for."""
    policy = directory / "audit-policy.yaml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
    return {"etcd-compaction-interval": "0", "audit-policy-file": policy, "audit-log-maxsize": 100_000}


class Recorder:
    """Of one run. `snapshot` and `fault` may be called from any thread."""

    def __init__(self, cluster: Cluster, directory: Path, meta: Meta) -> None:
        self._cluster = cluster
        self._directory = directory
        self._meta = meta
        self._starts: dict[str, tuple[int, dict[str, Json]]] = {}
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._snapshots: list[Snapshot] = []
        self._rest: Rest | None = None

    def begin(self) -> None:
        """Before the first node, pool and Lease; our CRDs are there."""
        self._starts = {collection: listed(self._cluster.admin, collection) for collection in COLLECTIONS}

    def snapshot(self) -> bool:
        """Compare later what there is now with what the history says. False while the API server does not answer."""
        admin = self._cluster.admin
        asking = Client(admin.server, admin.ca, admin.identity, admin.token, timeout=_ASK_SECONDS)
        try:
            for collection in COLLECTIONS:
                asked = time.time()
                revision, objects = listed(asking, collection)
                self._keep_snapshot(asked, collection, revision, objects)
        except (OSError, ApiError):
            return False
        finally:
            asking.close()
        return True

    def _keep_snapshot(self, asked: float, collection: str, revision: int, objects: dict[str, Json]) -> None:
        versions = {
            name: (each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for name, each in objects.items()
        }
        with self._lock:
            self._snapshots.append(Snapshot(asked, time.time(), collection, revision, versions))

    def fault(self, kind: str, begin: float, end: float, replica: str | None = None) -> None:
        """Something was done, from `begin` to `end`: `time.time()` before it began, and after it had ended."""
        with self._lock:
            self._faults.append(Fault(kind, begin, end, replica))

    def rest(self, samples: Iterable[Any], leader: str = "") -> None:
        """Nothing changes any more: take down what there is, with the leader's metrics (`Replica.samples()`)."""
        objects = {collection: listed(self._cluster.admin, collection)[1] for collection in COLLECTIONS}
        for each in (each for found in objects.values() for each in found.values()):
            each["metadata"].pop("managedFields", None)
        kept = tuple(Sample(each.name, dict(each.labels), float(each.value)) for each in samples)
        self._rest = Rest(objects, kept, leader)

    def finish(self) -> History:
        """Read the whole history, and save it. Every controller has ended; the API server is left without a cache."""
        cluster = self._cluster
        assert self.snapshot(), "the API server does not answer"
        cluster.apiserver.stop()
        cluster.apiserver = cluster.apiserver.with_flags("--watch-cache=false")
        cluster.apiserver.start()
        cluster.wait_ready()
        cluster.admin.close()
        changes, gaps = read_changes(cluster.admin, self._starts)
        history = History(
            meta=self._meta,
            changes=tuple(changes),
            writes=tuple(self._writes()),
            faults=tuple(sorted(self._faults, key=lambda fault: fault.begin)),
            snapshots=tuple(self._snapshots),
            rest=self._rest,
            gaps=tuple(gaps),
        )
        history.save(self._directory)
        return history

    def _writes(self) -> Iterator[Write]:
        for each in requests(self._cluster.audit_log):
            if each.resource in COLLECTIONS and each.verb in WRITES:
                yield Write(
                    received=each.received,
                    answered=each.answered,
                    user=each.user,
                    verb=each.verb,
                    resource=each.resource,
                    subresource=each.subresource,
                    name=each.name,
                    code=each.code,
                    body=each.body,
                    revision=each.revision,
                )
