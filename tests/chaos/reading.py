"""The whole history of a cluster, from its API server.

An API server with a watch cache remembers the last few changes only. Without one, a watch is answered by etcd, which
remembers all since it was last compacted. So each collection is watched from the version before the first write, up to
an object that is made last of all. What is missing is a gap, and is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.chaos.history import ADDED, COLLECTIONS, CONFIGS, DELETED, LEASE_NAME, LEASES, NODES, POOLS, Change, Snapshot
from tests.testenv.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.testenv.client import Client, Json

LAST: Final = "chaos-end"
"""The name of the object that is made last in each collection."""
_SECONDS: Final = 60.0
_LASTS: Final[Mapping[str, Json]] = {
    NODES: {"apiVersion": "v1", "kind": "Node"},
    POOLS: {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "spec": {"perNodeHostBits": 8, "ipv4": "192.0.2.0/24"},
    },
    CONFIGS: {
        "apiVersion": "networking.x-k8s.io/v1alpha1",
        "kind": "ClusterCIDRConfig",
        "spec": {"cidr": "192.0.2.0/24", "perNodeMaskSize": 24},
    },
    LEASES: {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}},
}


def listed(admin: Client, collection: str) -> tuple[int, dict[str, Json]]:
    """What a collection holds, and at which revision."""
    found = admin.get(COLLECTIONS[collection])
    objects = {each["metadata"]["name"]: each for each in found["items"] if _is_recorded(collection, each)}
    return int(found["metadata"]["resourceVersion"]), objects


def read_changes(admin: Client, starts: Mapping[str, tuple[int, Mapping[str, Json]]]) -> tuple[list[Change], list[str]]:
    """All that happened since `starts`, by collection what `listed` said before, and what could not be found out.

    The API server has no watch cache, and nobody writes any more. Makes the last object of each collection.
    """
    changes: list[Change] = []
    gaps: list[str] = []
    for collection, (revision, objects) in starts.items():
        admin.create(COLLECTIONS[collection], {**_LASTS[collection], "metadata": {"name": LAST}})
        changes += [_change(collection, ADDED, each) for each in objects.values()]
        try:
            changes += _watched(admin, collection, revision)
        except (ApiError, EOFError, OSError) as error:
            gaps.append(f"{collection} since revision {revision}: {error}")
    return sorted(changes, key=lambda change: change.revision), gaps


def _watched(admin: Client, collection: str, revision: int) -> Iterator[Change]:
    for event in admin.watch(COLLECTIONS[collection], str(revision), _SECONDS):
        if event["type"] == "ERROR":
            raise EOFError(f"{event['object'].get('code')} {event['object'].get('message')}")
        if event["object"]["metadata"]["name"] == LAST:
            return
        if _is_recorded(collection, event["object"]):
            yield _change(collection, event["type"], event["object"])
    raise EOFError("the watch ended before its end was seen")


def _is_recorded(collection: str, each: Json) -> bool:
    return collection != LEASES or each["metadata"]["name"] == LEASE_NAME


def _change(collection: str, kind: str, each: Json) -> Change:
    metadata = each["metadata"]
    metadata.pop("managedFields", None)  # long, and of no interest
    return Change(int(metadata["resourceVersion"]), collection, kind, metadata["name"], each)


def replay_gaps(changes: Sequence[Change], snapshots: Sequence[Snapshot]) -> Iterator[str]:
    """Where the changes contradict themselves, or what was seen at a revision."""
    state: dict[str, dict[str, tuple[str, str]]] = {collection: {} for collection in COLLECTIONS}
    waiting = sorted(snapshots, key=lambda each: each.revision, reverse=True)
    for change in changes:
        while waiting and waiting[-1].revision < change.revision:
            yield from _differences(waiting.pop(), state)
        objects = state[change.collection]
        seen = (change.object["metadata"]["uid"], change.object["metadata"]["resourceVersion"])
        before = objects.get(change.name, ("", ""))
        if (change.type == ADDED) == bool(before[0]) or (change.type != ADDED and before[0] != seen[0]):
            yield f"{change.collection}/{change.name} is {change.type} at {change.revision}, where {before} was known"
        if change.type == DELETED:
            objects.pop(change.name, None)
        else:
            objects[change.name] = seen
    for each in reversed(waiting):
        yield from _differences(each, state)


def _differences(snapshot: Snapshot, state: Mapping[str, Mapping[str, tuple[str, str]]]) -> Iterator[str]:
    replayed = state[snapshot.collection]
    different = {name for name in {*replayed, *snapshot.objects} if replayed.get(name) != snapshot.objects.get(name)}
    if different:
        names = ", ".join(sorted(different)[:5])
        yield f"{snapshot.collection} at {snapshot.revision}: {len(different)} differ from what was listed: {names}"
