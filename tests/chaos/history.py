"""What happened in a run, as plain data: told by the API server's own history and audit log, not by our code.

A directory holds one: `meta.json`, and `history.jsonl` with a line for each change, write, fault and snapshot.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.testenv.client import Json

NODES: Final = "nodes"
POOLS: Final = "clustercidrs"
CONFIGS: Final = "clustercidrconfigs"
LEASES: Final = "leases"
LEASE_NAME: Final = "cidrella"
COLLECTIONS: Final = {
    NODES: "/api/v1/nodes",
    POOLS: "/apis/networking.x-k8s.io/v1/clustercidrs",
    CONFIGS: "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs",
    LEASES: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
}
"""What is recorded, by the name of the resource. Of the Leases it is the controllers' alone."""
ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class Meta:
    """What was known before a run began."""

    seed: int
    seconds: float
    controllers: Mapping[str, str]
    """The user name of each replica in the audit log, by the replica's name, by which faults call it as well."""
    third_party: str
    """User name of who writes podCIDRs beside them."""
    intents: bool = True
    """Whether controllers record in the Lease what they are about to send."""
    service_ranges: tuple[str, ...] = ()
    """What no pool may give, as texts: the API server's ranges, and those of flags."""
    lease_seconds: float = 3.0
    """How long a leader is one without renewing."""
    flags: tuple[str, ...] = ()
    """The controllers', for whoever reads."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of Kubernetes, Python, Cidrella: for whoever reads."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an object, as a watch tells it. `object` is what it was then; of one deleted, what it was last."""

    revision: int
    collection: str
    type: str
    name: str
    object: Json


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the API server answered, granted or not. Times in seconds since 1970."""

    received: float
    answered: float
    user: str
    verb: str
    resource: str
    subresource: str
    name: str
    code: int
    body: Any
    revision: int | None = None
    """Of the object that was answered; None where there was none."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was done to the cluster or to a replica. Times in seconds since 1970."""

    kind: str
    begin: float
    end: float
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a collection held at a revision, by name: uid and resourceVersion. Asked for past every proxy."""

    asked: float
    answered: float
    collection: str
    revision: int
    objects: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a controller's metrics."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Rest:
    """What was found when all faults had ended and nothing changed any more, by collection and name."""

    objects: Mapping[str, Mapping[str, Json]]
    samples: tuple[Sample, ...]
    """The leader's."""
    leader: str = ""
    """Its name, for whoever reads."""


@dataclass(frozen=True, slots=True)
class History:
    """One run."""

    meta: Meta
    changes: tuple[Change, ...]
    """In the order of their revisions."""
    writes: tuple[Write, ...] = ()
    """In the order in which they were answered."""
    faults: tuple[Fault, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    rest: Rest | None = None
    """None for a run that never came to rest."""
    gaps: tuple[str, ...] = ()
    """What the recorder could not find out."""

    def save(self, directory: Path) -> None:
        """Write it down."""
        directory.mkdir(parents=True, exist_ok=True)
        rest = asdict(self.rest) if self.rest else None
        head = {"meta": asdict(self.meta), "gaps": self.gaps, "rest": rest}
        (directory / "meta.json").write_text(json.dumps(head, indent=1))
        with (directory / "history.jsonl").open("w") as file:
            for kind, each in self._lines():
                file.write(json.dumps({kind: {name: getattr(each, name) for name in each.__slots__}}) + "\n")

    def _lines(self) -> Iterator[tuple[str, Change | Write | Fault | Snapshot]]:
        for kind in _LINES:
            for each in getattr(self, kind):
                yield kind, each

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read what `save` wrote. Raises OSError, ValueError or TypeError for what it did not."""
        head = json.loads((directory / "meta.json").read_text())
        found: dict[str, list[Any]] = {kind: [] for kind in _LINES}
        with (directory / "history.jsonl").open() as lines:
            for line in lines:
                for kind, values in json.loads(line).items():
                    found[kind].append(_LINES[kind](**values))
        snapshots = [
            Snapshot(each.asked, each.answered, each.collection, each.revision, _pairs(each.objects))
            for each in found.pop("snapshots")
        ]
        rest = head["rest"] and Rest(
            head["rest"]["objects"], tuple(Sample(**each) for each in head["rest"]["samples"]), head["rest"]["leader"]
        )
        return cls(
            meta=_meta(head["meta"]),
            snapshots=tuple(snapshots),
            rest=rest,
            gaps=tuple(head["gaps"]),
            **{kind: tuple(each) for kind, each in found.items()},
        )


_LINES: Final[dict[str, Any]] = {"changes": Change, "writes": Write, "faults": Fault, "snapshots": Snapshot}


def _pairs(objects: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    return {name: (uid, version) for name, (uid, version) in objects.items()}


def _meta(values: Json) -> Meta:
    read: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in values.items()}
    return Meta(**read)
