"""Small histories, told step by step, for the tests of the checker.

Each step is a change at the next revision and a hundredth of a second later, with the write that made it. Two replicas
give, "r0" and "r1". A story in which each step is what a sound controller would do is a good history.
"""

from __future__ import annotations

import json
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from tests.chaos.allowance import ALLOWANCE
from tests.chaos.checker import check
from tests.chaos.history import (
    ADDED,
    CONFIGS,
    DELETED,
    LEASE_NAME,
    LEASES,
    MODIFIED,
    NODES,
    POOLS,
    Change,
    Fault,
    History,
    Meta,
    Rest,
    Sample,
    Snapshot,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.testenv.client import Json

LONG: Final = 60.0
KNOWN: Final = ALLOWANCE + 0.5
"""Seconds after which a sound controller knows."""
ADMIN: Final = "admin"
THIRD: Final = "third-party"
CONTROLLERS: Final = {"r0": "user-of-r0", "r1": "user-of-r1"}
FINALIZER: Final = "networking.kubernetes.io/cluster-cidr-config-finalizer"
SERVICES: Final = "10.96.0.0/16"
_SERIES: Final = "node_ipam_controller_multicidrset"


class Story:
    """A history in the making. Objects are named by their names; the one of that name that is there is meant."""

    def __init__(self, *, intents: bool = True) -> None:
        self.meta = Meta(1, 60, CONTROLLERS, THIRD, intents=intents, service_ranges=(SERVICES,))
        self.now = 1000.0
        self.revision = 100
        self.changes: list[Change] = []
        self.writes: list[Write] = []
        self.faults: list[Fault] = []
        self.snapshots: list[Snapshot] = []
        self.state: dict[str, dict[str, Json]] = {NODES: {}, POOLS: {}, CONFIGS: {}, LEASES: {}}
        self._intents: list[list[str]] = []
        self._put(LEASES, LEASE_NAME, {"metadata": {}, "spec": {}}, CONTROLLERS["r0"])

    def wait(self, seconds: float) -> None:
        """Nothing happens for a while."""
        self.now += seconds

    def fault(self, seconds: float, replica: str | None = None) -> None:
        """Something is wrong from now on, for so long."""
        self.faults.append(Fault("pause" if replica else "outage", self.now, self.now + seconds, replica))

    def pool(self, name: str, *, guarded: bool = True, **spec: object) -> None:
        """A ClusterCIDR of 8 host bits comes, and is guarded."""
        self._put(POOLS, name, {"metadata": {}, "spec": {"perNodeHostBits": 8, **spec}}, ADMIN)
        if guarded:
            self.guard(POOLS, name)

    def config(
        self, name: str, cidr: str, size: int, labels: Mapping[str, str] | None = None, *, guarded: bool = True
    ) -> None:
        """A ClusterCIDRConfig comes, and is guarded."""
        selector = {"nodeSelector": {"matchLabels": dict(labels)}} if labels else {}
        self._put(CONFIGS, name, {"metadata": {}, "spec": {"cidr": cidr, "perNodeMaskSize": size, **selector}}, ADMIN)
        if guarded:
            self.guard(CONFIGS, name)

    def guard(self, collection: str, name: str) -> None:
        """A pool gets its finalizer."""
        self.update(collection, name, CONTROLLERS["r0"], metadata={"finalizers": [FINALIZER]})

    def delete(self, collection: str, name: str) -> None:
        """Somebody deletes an object: a pool that is guarded is terminating from now on, all else is gone."""
        if self.state[collection][name]["metadata"].get("finalizers"):
            self.update(collection, name, ADMIN, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        else:
            self.gone(collection, name)

    def gone(self, collection: str, name: str) -> None:
        """An object is gone."""
        self._tell(collection, DELETED, name, self.state[collection].pop(name), ADMIN)

    def node(self, name: str, labels: Mapping[str, str] | None = None, blocks: str = "") -> None:
        """A node comes, perhaps with blocks that somebody else gave it."""
        spec = {"podCIDRs": blocks.split(",")} if blocks else {}
        self._put(NODES, name, {"metadata": {"labels": dict(labels or {})}, "spec": spec}, ADMIN)

    def relabel(self, name: str, labels: Mapping[str, str]) -> None:
        """A node has other labels."""
        self.update(NODES, name, ADMIN, metadata={"labels": dict(labels)})

    def seize(self, name: str, blocks: str) -> None:
        """Somebody else gives a node blocks."""
        self.update(NODES, name, THIRD, spec={"podCIDRs": blocks.split(",")})

    def record(self, name: str, pool: str, blocks: str, replica: str = "r0", *, ahead: bool = False) -> None:
        """A replica puts in the Lease what it is about to give, behind or ahead of what stands there."""
        self._intents.insert(0 if ahead else len(self._intents), [self.uid(name), pool, *blocks.split(",")])
        self._lease(replica)

    def forget(self, replica: str = "r0") -> None:
        """A replica takes all out of the Lease."""
        self._intents.clear()
        self._lease(replica)

    def settle(self, name: str, replica: str = "r0") -> None:
        """A replica takes a node out of the Lease."""
        self._intents = [each for each in self._intents if each[0] != self.uid(name)]
        self._lease(replica)

    def send(self, name: str, pool: str, blocks: str, replica: str = "r0") -> None:
        """A replica gives a node blocks, and the API server takes it."""
        self.update(
            NODES,
            name,
            CONTROLLERS[replica],
            metadata={"uid": self.uid(name), "annotations": {"cidrella.dev/pool": pool}},
            spec={"podCIDRs": blocks.split(",")},
        )

    def refused(self, name: str, blocks: str, replica: str = "r0") -> None:
        """A replica asks for blocks for a node, and the API server refuses."""
        body = {"metadata": {"uid": self.uid(name)}, "spec": {"podCIDRs": blocks.split(",")}}
        self._step()
        self._log(CONTROLLERS[replica], "patch", NODES, name, code=422, body=body, revision=None)

    def give(self, name: str, pool: str, blocks: str, replica: str = "r0") -> None:
        """All that a sound controller does to give a node blocks."""
        if self.meta.intents:
            self.record(name, pool, blocks, replica)
        self.send(name, pool, blocks, replica)
        if self.meta.intents:
            self.settle(name, replica)

    def serve(self, name: str, pool: str, blocks: str, labels: Mapping[str, str] | None = None) -> None:
        """A node comes, and is given blocks."""
        self.node(name, labels)
        self.give(name, pool, blocks)

    def lose_audit_line(self) -> None:
        """The API server was killed before it had logged the last write."""
        self.writes.pop()

    def snapshot(self, collection: str = NODES) -> Snapshot:
        """What a list says now."""
        objects = {
            name: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for name, each in self.state[collection].items()
        }
        self.snapshots.append(Snapshot(self.now, self.now, collection, self.revision, objects))
        return self.snapshots[-1]

    def uid(self, name: str) -> str:
        """Of the node of this name."""
        return str(self.state[NODES][name]["metadata"]["uid"])

    def history(self, free: Mapping[tuple[str, str], tuple[int, int]] | None = None) -> History:
        """All of it, at rest. `free`: by a pool's name and range how many blocks are said to be free, and of how many.

        Without it, the metrics say what is true, found by looking at each block: ranges are small.
        """
        samples = []
        for (name, cidr), (count, capacity) in (self._free() if free is None else free).items():
            labels = {"clusterCIDRName": name, "clusterCIDR": cidr}
            samples += [
                Sample(f"{_SERIES}_usage_cidrs", labels, 1 - count / capacity),
                Sample(f"{_SERIES}_max_cidrs", labels, capacity),
            ]
        return History(
            meta=self.meta,
            changes=tuple(self.changes),
            writes=tuple(self.writes),
            faults=tuple(self.faults),
            snapshots=tuple(self.snapshots),
            rest=Rest(self.state, tuple(samples), "r0"),
        )

    def _free(self) -> dict[tuple[str, str], tuple[int, int]]:
        taken = [each for node in self.state[NODES].values() for each in node["spec"].get("podCIDRs", [])]
        found = {}
        for name, cidr, size in self._ranges():
            around = ip_network(cidr)
            others = [each for each in map(ip_network, (*taken, SERVICES)) if each.version == around.version]
            blocks: list[Any] = list(around.subnets(new_prefix=size))
            free = [each for each in blocks if not any(each.overlaps(other) for other in others)]
            found[name, cidr] = len(free), len(blocks)
        return found

    def _ranges(self) -> Iterator[tuple[str, str, int]]:
        for name, each in self.state[POOLS].items():
            spec = each["spec"]
            if "ipv4" in spec:
                yield name, spec["ipv4"], 32 - spec["perNodeHostBits"]
            if "ipv6" in spec:
                yield name, spec["ipv6"], 128 - spec.get("perNodeHostBitsIPv6", spec["perNodeHostBits"])
        for name, each in self.state[CONFIGS].items():
            yield f"ccc/{name}", each["spec"]["cidr"], each["spec"]["perNodeMaskSize"]

    def _lease(self, replica: str) -> None:
        text = json.dumps(self._intents) if self._intents else ""
        self.update(LEASES, LEASE_NAME, CONTROLLERS[replica], metadata={"annotations": {"cidrella.dev/intents": text}})

    def _put(self, collection: str, name: str, obj: Json, user: str) -> None:
        obj["metadata"] |= {"name": name, "uid": f"{name}-{self.revision}", "creationTimestamp": str(self.revision)}
        self._tell(collection, ADDED, name, obj, user)
        self.state[collection][name] = self.changes[-1].object

    def update(self, collection: str, name: str, user: str, **parts: Json) -> None:
        """Change fields of parts of an object, as a merge patch does."""
        before = self.state[collection][name]
        obj = {**before, **{part: {**before[part], **fields} for part, fields in parts.items()}}
        self._tell(collection, MODIFIED, name, obj, user, body=parts)
        self.state[collection][name] = self.changes[-1].object

    def _tell(self, collection: str, kind: str, name: str, obj: Json, user: str, *, body: Json | None = None) -> None:
        self._step()
        self.revision += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        self.changes.append(Change(self.revision, collection, kind, name, obj))
        verb = {ADDED: "create", MODIFIED: "patch", DELETED: "delete"}[kind]
        made = None if kind == DELETED else self.revision
        self._log(user, verb, collection, name, code=200, body=body, revision=made)

    def _step(self) -> None:
        self.now += 0.01

    def _log(
        self, user: str, verb: str, resource: str, name: str, *, code: int, body: Json | None, revision: int | None
    ) -> None:
        self.writes.append(Write(self.now, self.now + 0.001, user, verb, resource, "", name, code, body, revision))


def broken(history: History) -> set[str]:
    """The invariants that the checker finds broken."""
    return {each.invariant for each in check(history)}


def selects(key: str, operator: str, *values: str) -> Json:
    """The nodeSelector of a ClusterCIDR with one requirement."""
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
