"""What is looked at during a soak, from outside: the processes by the kernel, the rest by the API server.

What comes and goes within a second (connections, entries of the Lease) is looked at every second, and a sample says
what was seen since the one before.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.real.site import EVENTS, LEASE
from tests.testenv.nodes import NODES, assert_no_overlap

from bench.cluster_usage import Descriptors, Memory, descriptors, memory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tests.real.site import Replica
    from tests.testenv.client import Client, Json

    from bench.soak_faults import FailingLists

    Series = tuple[str, dict[str, str], float]

INTENTS = "cidrella.dev/intents"
_SERIES = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_REQUESTS = "apiserver_request_total"
_OBJECTS = "apiserver_resource_objects"
_ALLOCATIONS = "node_ipam_controller_multicidrset_cidrs_allocations_total"
_WRITES = frozenset({"POST", "PUT", "PATCH"})
_KINDS = ("nodes", "events", "leases", "clustercidrs")


class Spread(NamedTuple):
    """Of what was seen since the sample before."""

    least: float
    middle: float
    most: float


class LeaseLook(NamedTuple):
    """One look at the Lease."""

    size: int
    intents: int
    oldest: float


@dataclass(frozen=True)
class ReplicaSample:
    """One process."""

    leads: bool
    memory: Memory
    threads: int
    descriptors: Spread
    """Open files and connections."""
    sockets: Spread
    """Of these, connections."""
    queue: float
    waiting: float
    in_flight: float
    failed_lists: dict[str, int]
    """By the way in which they failed, since the load began."""


@dataclass(frozen=True)
class Sample:
    """One look at everything."""

    at: float
    """Seconds since the load began."""
    nodes: int
    created: int
    served: int
    events: int
    events_written: int
    """Since the API server began, as the next one."""
    lease_writes: int
    lease: Spread
    """Bytes of the object, as JSON, without what it says of intents."""
    intents: Spread
    """Bytes of what it says of intents."""
    oldest: float
    """Seconds for which an entry has been seen there, the most of all."""
    objects: dict[str, int]
    """In etcd, by kind, as the API server last counted them: it does so once a minute."""
    replicas: dict[str, ReplicaSample]


@dataclass(frozen=True)
class Rest:
    """What there is without load."""

    created: int
    served: int
    intents_bytes: int
    sockets: dict[str, int]

    def exceeds(self, other: Rest) -> bool:
        """Whether something is left over that was not there before."""
        more = any(count > other.sockets[name] for name, count in self.sockets.items())
        return more or self.intents_bytes > other.intents_bytes


class LeaseWatch:
    """Looks at the Lease, and remembers since when each of its entries is there."""

    def __init__(self, admin: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._clock = clock
        self._seen: list[LeaseLook] = []
        self._since: dict[str, float] = {}

    def look(self) -> None:
        """See how it is now."""
        now, lease = self._clock(), self._admin.get(LEASE)
        self._since = {uid: self._since.get(uid, now) for uid in recorded(lease)}
        oldest = max((now - since for since in self._since.values()), default=0.0)
        self._seen.append(LeaseLook(*lease_sizes(lease), oldest))

    def take(self) -> list[LeaseLook]:
        """What was seen since the last time."""
        seen, self._seen = self._seen, []
        return seen


class Sampler:
    """Looks at a cluster with these replicas in it."""

    def __init__(self, admin: Client, replicas: Mapping[str, Replica], failing: Mapping[str, FailingLists]) -> None:
        self._admin = admin
        self._replicas = replicas
        self._failing = failing
        self._lease = LeaseWatch(admin)
        self._opened: dict[str, list[Descriptors]] = {name: [] for name in replicas}

    def look(self) -> None:
        """See what may be different in a second."""
        self._lease.look()
        for name, replica in self._replicas.items():
            self._opened[name].append(descriptors(replica.process.pid))

    def sample(self, at: float, created: int) -> Sample:
        """What there is, and what was seen since the last time. Raises AssertionError where two nodes overlap."""
        self.look()
        leases = self._lease.take()
        counted = read_series(self._admin.get("/metrics")["text"])
        nodes = self._admin.items(NODES)
        assert_no_overlap(nodes)
        replicas = {name: self._replica(name) for name in self._replicas}
        return Sample(
            at=at,
            nodes=len(nodes),
            created=created,
            served=self.served(),
            events=_count(self._admin, EVENTS),
            events_written=written(counted, "events", _WRITES),
            lease_writes=written(counted, "leases", {"PATCH"}),
            lease=spread([each.size for each in leases]),
            intents=spread([each.intents for each in leases]),
            oldest=max(each.oldest for each in leases),
            objects={kind: _objects(counted, kind) for kind in _KINDS},
            replicas=replicas,
        )

    def rest(self, created: int) -> Rest:
        """What there is now that there is no load."""
        opened = {name: descriptors(each.process.pid).sockets for name, each in self._replicas.items()}
        return Rest(created, self.served(), lease_sizes(self._admin.get(LEASE))[1], opened)

    def served(self) -> int:
        """Nodes that were given a block by any of the replicas: IPv4 blocks, as each got one."""
        return int(
            sum(
                each.value
                for replica in self._replicas.values()
                for each in replica.samples()
                if each.name == _ALLOCATIONS and ":" not in each.labels["clusterCIDR"]
            )
        )

    def _replica(self, name: str) -> ReplicaSample:
        replica = self._replicas[name]
        opened, self._opened[name] = self._opened[name], []
        gauges = {each.name: each.value for each in replica.samples() if not each.labels}
        return ReplicaSample(
            leads=gauges["cidrella_leader"] == 1,
            memory=memory(replica.process.pid),
            threads=_threads(replica.process.pid),
            descriptors=spread([each.all for each in opened]),
            sockets=spread([each.sockets for each in opened]),
            queue=gauges["cidrella_queue_depth"],
            waiting=gauges["cidrella_nodes_waiting"],
            in_flight=gauges["cidrella_writes_in_flight"],
            failed_lists=self._failing[name].failed,
        )


def lease_sizes(lease: Json) -> tuple[int, int]:
    """Bytes of a Lease without intents, and of these."""
    annotations = dict(lease["metadata"].get("annotations") or {})
    intents = annotations.pop(INTENTS, "")
    rest = {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}
    return len(json.dumps(rest, separators=(",", ":"))), len(intents)


def recorded(lease: Json) -> set[str]:
    """The uids of the nodes that a Lease says something may yet be written to."""
    annotations = lease["metadata"].get("annotations") or {}
    return {uid for uid, *_ in json.loads(annotations.get(INTENTS, "[]"))}


def read_series(text: str) -> list[Series]:
    """The series of two names, out of the thousands that an API server has."""
    return [
        (found["name"], dict(_LABEL.findall(found["labels"])), float(found["value"]))
        for found in _SERIES.finditer(text)
        if found["name"] in {_REQUESTS, _OBJECTS}
    ]


def written(series: Sequence[Series], resource: str, verbs: Collection[str]) -> int:
    """How many writes of a kind of object were granted."""
    return int(
        sum(
            value
            for name, labels, value in series
            if name == _REQUESTS
            and labels["resource"] == resource
            and labels["verb"] in verbs
            and labels["code"].startswith("2")
        )
    )


def spread(values: Sequence[float]) -> Spread:
    """The least, the median and the most."""
    return Spread(min(values), statistics.median(values), max(values))


def _objects(series: Sequence[Series], resource: str) -> int:
    counts = Counter({labels["resource"]: int(value) for name, labels, value in series if name == _OBJECTS})
    return counts[resource]


def _count(admin: Client, collection: str) -> int:
    """How many objects there are, without reading them."""
    page = admin.get(collection, limit="1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def _threads(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
