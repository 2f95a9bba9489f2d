"""The lives of nodes and pools, and what stood in the Lease when: a history, sorted by what it is about."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.chaos.allowance import Clock
from tests.chaos.blocks import Block, block
from tests.chaos.history import ADDED, CONFIGS, DELETED, LEASES, NODES, POOLS
from tests.chaos.pools import Pool, read_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.history import Change, History
    from tests.chaos.pools import Range
    from tests.testenv.client import Json

POOL_ANNOTATION: Final = "cidrella.dev/pool"
INTENTS_ANNOTATION: Final = "cidrella.dev/intents"

Blocks = tuple[Block, ...]


class Intent(NamedTuple):
    """An entry in the Lease: blocks of pools that may yet be written to a node."""

    uid: str
    pools: tuple[str, ...]
    blocks: Blocks


@dataclass(slots=True)
class Grant:
    """A node came to have podCIDRs."""

    revision: int
    blocks: Blocks
    pools: tuple[str, ...]
    """The names in the annotation."""
    ours: bool
    """Whether a controller wrote it, and nobody else."""
    replica: str | None
    """Which one, where that is known."""


@dataclass(slots=True)
class NodeLife:
    """A node, this very one: from when it was made until it was gone."""

    uid: str
    name: str
    labels: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    """All that it had, each since a revision, until it was given blocks."""
    grant: Grant | None = None
    gone: int | None = None

    def lives_at(self, revision: int) -> bool:
        """Whether it was there, after it was made."""
        return self.gone is None or revision < self.gone


@dataclass(slots=True)
class PoolLife:
    """A pool, this very one."""

    uid: str
    versions: list[tuple[int, Pool]] = field(default_factory=list)
    """All that it was, each since a revision: its selector may change (K2)."""
    guarded: int | None = None
    terminating: int | None = None
    gone: int | None = None

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Where its blocks come from, which never changes (C3, K1)."""
        return self.versions[0][1].ranges

    def lives_at(self, revision: int) -> bool:
        """Whether it was there, be it terminating, after it was made."""
        return self.gone is None or revision < self.gone


@dataclass(slots=True)
class Record:
    """Blocks of a node that stood in the Lease, from one revision until before another; None: until the end."""

    begin: int
    replica: str | None
    """Whose write put it there."""
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """podCIDRs that were set, and were changed."""

    revision: int
    name: str
    before: Blocks
    after: Blocks


class Past:
    """A history, by what it is about."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.clock = Clock(history)
        self.nodes: dict[str, NodeLife] = {}
        """By uid, in the order in which they were made."""
        self.pools: dict[str, list[PoolLife]] = {}
        """By name, as annotations call them; several where one was made again."""
        self.records: dict[Intent, list[Record]] = {}
        """Each time that it stood in the Lease. The same block may be meant for a node from one pool, then another."""
        self.leases: list[tuple[int, list[Intent]]] = []
        """Each revision of the Lease, and what stood in it."""
        self.rewrites: list[Rewrite] = []
        self._replicas = {user: replica for replica, user in history.meta.controllers.items()}
        self._users: dict[int, set[str]] = {}
        for write in history.writes:
            if write.revision is not None:
                self._users.setdefault(write.revision, set()).add(write.user)
        for change in history.changes:
            if change.collection == NODES:
                self._node(change)
            elif change.collection in {POOLS, CONFIGS}:
                self._pool(change)
            elif change.collection == LEASES:
                self._lease(change)

    def decided(self, life: NodeLife, grant: Grant) -> tuple[int, float, str | None]:
        """When what a node was given was decided on, at the latest: revision, time, and by which replica.

        That is when it was put in the Lease, which comes before it is sent, be it again and again; else when it was
        received.
        """
        meant = Intent(life.uid, grant.pools, grant.blocks)
        records = [each for each in self.records.get(meant, []) if each.begin < grant.revision]
        if records:
            return records[-1].begin, self.clock.received(records[-1].begin), records[-1].replica
        return grant.revision, self.clock.received(grant.revision), grant.replica

    def _node(self, change: Change) -> None:
        metadata = change.object["metadata"]
        life = self.nodes.setdefault(metadata["uid"], NodeLife(metadata["uid"], change.name))
        if change.type == DELETED:
            life.gone = change.revision
            return
        blocks = tuple(block(text) for text in change.object["spec"].get("podCIDRs", []))
        labels = metadata.get("labels", {})
        if life.grant is None and (not life.labels or life.labels[-1][1] != labels):
            life.labels.append((change.revision, labels))
        if blocks and life.grant is None:
            life.grant = self._grant(change, blocks)
        elif life.grant is not None and blocks != life.grant.blocks:
            self.rewrites.append(Rewrite(change.revision, change.name, life.grant.blocks, blocks))

    def _grant(self, change: Change, blocks: Blocks) -> Grant:
        annotation = change.object["metadata"].get("annotations", {}).get(POOL_ANNOTATION, "")
        users = self._users.get(change.revision, set())
        replicas = {self._replicas.get(user) for user in users}
        # The annotation comes with a controller's own blocks, and nobody else writes it. Without it (in a mode that has
        # no pools) the log has to tell. It may not: an API server that was killed may have logged nothing; and who
        # changed nothing, afterwards, is logged with the same revision.
        ours = bool(annotation) or (bool(replicas) and None not in replicas)
        named = tuple(name for name in annotation.split(",") if name)
        return Grant(
            change.revision, blocks, named, ours and change.type != ADDED, self._only(change.revision) if ours else None
        )

    def _only(self, revision: int) -> str | None:
        """The replica that made a revision, where it is the only one that can have."""
        users = self._users.get(revision, set())
        return self._replicas.get(next(iter(users))) if len(users) == 1 else None

    def _pool(self, change: Change) -> None:
        pool = read_pool(change.collection, change.object)
        lives = self.pools.setdefault(pool.name, [])
        if not lives or lives[-1].uid != pool.uid:
            lives.append(PoolLife(pool.uid))
        life = lives[-1]
        if change.type == DELETED:
            life.gone = change.revision
            # One without a finalizer goes at once, and was never seen terminating.
            life.terminating = life.terminating or change.revision
            return
        if not life.versions or life.versions[-1][1] != pool:
            life.versions.append((change.revision, pool))
        if pool.guarded and life.guarded is None:
            life.guarded = change.revision
        if pool.terminating and life.terminating is None:
            life.terminating = change.revision

    def _lease(self, change: Change) -> None:
        entries = [] if change.type == DELETED else intents(change.object)
        before = set(self.leases[-1][1]) if self.leases else set()
        for entry in set(entries) - before:
            self.records.setdefault(entry, []).append(Record(change.revision, self._only(change.revision)))
        for entry in before - set(entries):
            self.records[entry][-1].end = change.revision
        self.leases.append((change.revision, entries))


def intents(lease: Json) -> list[Intent]:
    """What the Lease says may yet be written."""
    text = lease["metadata"].get("annotations", {}).get(INTENTS_ANNOTATION, "")
    return [
        Intent(uid, tuple(filter(None, pools.split(","))), tuple(block(each) for each in blocks))
        for uid, pools, *blocks in (json.loads(text) if text else [])
    ]
