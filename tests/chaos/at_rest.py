"""What must hold when all faults have ended and nothing changes any more.

`unserved`, `leak`, `intent-left`, `undeletable`, and `rest` where it never came to that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.chaos.blocks import Block, block, count_touched, meet
from tests.chaos.broken import Broken
from tests.chaos.history import CONFIGS, LEASE_NAME, LEASES, NODES, POOLS
from tests.chaos.past import POOL_ANNOTATION, intents
from tests.chaos.pools import Pool, Range, read_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.chaos.history import History, Rest
    from tests.chaos.past import Intent
    from tests.testenv.client import Json

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
_SERIES: Final = "node_ipam_controller_multicidrset"
_EXACT: Final = 1 << 50
"""Up to so many blocks a part of them, as a float, tells exactly how many."""


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    uid: str
    labels: Mapping[str, str]
    blocks: tuple[Block, ...]
    annotation: str
    terminating: bool
    """Such a node is given nothing (N8)."""
    uninitialized: bool


class _Rest:
    """What there was, read.

    Blocks that may yet be written to a node and could not be given to it any more are *held*: nobody is given them, and
    they count towards their pools like those that nodes have. That ends with the node, or when it has blocks.
    """

    def __init__(self, rest: Rest, service_ranges: tuple[str, ...]) -> None:
        self.nodes = [_read_node(each) for each in rest.objects[NODES].values()]
        self.pools = [read_pool(kind, each) for kind in (POOLS, CONFIGS) for each in rest.objects[kind].values()]
        lease = rest.objects[LEASES].get(LEASE_NAME)
        self.intents = intents(lease) if lease else []
        self._taken = [given for node in self.nodes for given in node.blocks] + [block(each) for each in service_ranges]
        self.held = [each for each in self.intents if self._is_held(each)]
        self._taken += [given for each in self.held for given in each.blocks]
        self._free: dict[Range, int] = {}

    def _is_held(self, intent: Intent) -> bool:
        """Whether an entry is of a node without blocks, and could not be given to it."""
        waiting = any(node.uid == intent.uid and not node.blocks for node in self.nodes)
        giving = {pool.name for pool in self.pools if pool.gives}
        return waiting and (not giving.issuperset(intent.pools) or meet(intent.blocks, self._taken))

    def free(self, given: Range) -> int:
        """How many blocks of a range could be given (A8)."""
        if given not in self._free:
            self._free[given] = given.capacity - count_touched(given.around, given.length, self._taken)
        return self._free[given]

    def users(self, pool: Pool) -> list[str]:
        """The nodes with a block that counts towards a pool, or may yet have one (P3)."""
        uses = [(node.name, node.blocks, tuple(node.annotation.split(","))) for node in self.nodes]
        uses += [(each.uid, each.blocks, each.pools) for each in self.held]
        return [
            name for name, blocks, pools in uses if any(self._counts_towards(each, pools) == pool for each in blocks)
        ]

    def _counts_towards(self, given: Block, named: tuple[str, ...]) -> Pool | None:
        around = {pool.name: pool for pool in self.pools if any(each.around.contains(given) for each in pool.ranges)}
        for name in named:
            if name in around:
                return around[name]
        of_its_size = [pool for pool in around.values() if any(each.gives(given) for each in pool.ranges)]
        return min(of_its_size or around.values(), key=lambda pool: (pool.created, pool.name), default=None)

    def may_wait(self, node: _Node) -> bool:
        """Whether labels could give a node with the taint another pool that has room (N10).

        Members let nodes wait for longer than a run takes.
        """
        return node.uninitialized and any(
            pool.gives and not pool.selects(node.name, node.labels) and all(self.free(each) for each in pool.ranges)
            for pool in self.pools
        )

    def could_get(self, node: _Node) -> list[str]:
        """The pools that could serve a node: one that gives alone, or one of each family (S4, K3)."""
        giving = [pool for pool in self.pools if pool.gives and pool.selects(node.name, node.labels)]
        with_room = [pool for pool in giving if all(self.free(each) for each in pool.ranges)]
        alone = [pool.name for pool in with_room if not pool.one_family]
        families = {pool.ranges[0].around.version for pool in giving if pool.one_family}
        joined = {pool.ranges[0].around.version: pool.name for pool in with_room if pool.one_family}
        return alone or (list(joined.values()) if families == joined.keys() else [])


def at_rest(history: History) -> Iterator[Broken]:
    """All of it."""
    if history.rest is None:
        yield Broken("rest", None, "it never came to rest")
        return
    found = _Rest(history.rest, history.meta.service_ranges)
    yield from _unserved(found)
    yield from _undeletable(found)
    yield from _leaks(found, history.rest)
    yield from _intents_left(found)


def _intents_left(found: _Rest) -> Iterator[Broken]:
    """Pitfall 27: at rest nothing may yet be written, but for what is held for nodes that nothing can be given."""
    for each in found.intents:
        if each not in found.held:
            yield Broken("intent-left", None, f"{' and '.join(map(str, each.blocks))} for {each.uid}")


def _unserved(found: _Rest) -> Iterator[Broken]:
    """N4: a node has no block only where no pool could give it one."""
    for node in found.nodes:
        if not node.blocks and not node.terminating and not found.may_wait(node):
            pools = found.could_get(node)
            if pools:
                yield Broken("unserved", None, f"{node.name} has none, though {' and '.join(pools)} has room")


def _undeletable(found: _Rest) -> Iterator[Broken]:
    """P2: a deleted pool is there only while nodes use it."""
    for pool in found.pools:
        if pool.terminating and not found.users(pool):
            yield Broken("undeletable", None, f"{pool.name} is deleted, used by none, and still there")


def _leaks(found: _Rest, rest: Rest) -> Iterator[Broken]:
    """A8, O1: the leader's counts are those of what there is, and of nothing else."""
    told: dict[str, dict[tuple[str, Block], float]] = {f"{_SERIES}_usage_cidrs": {}, f"{_SERIES}_max_cidrs": {}}
    for sample in rest.samples:
        if sample.name in told:
            told[sample.name][sample.labels["clusterCIDRName"], block(sample.labels["clusterCIDR"])] = sample.value
    usage, most = told.values()
    ranges = {(pool.name, each.around): each for pool in found.pools for each in pool.ranges}
    for name, around in sorted(usage.keys() ^ ranges.keys()):
        yield Broken("leak", None, f"{name} {around}: {'no such pool' if (name, around) in usage else 'no metrics'}")
    for key in sorted(usage.keys() & ranges.keys()):
        given = ranges[key]
        free = found.free(given)
        # A float cannot tell every count of a large range.
        exact = given.capacity <= _EXACT
        right = (
            round((1 - usage[key]) * given.capacity) == free
            if exact
            else math.isclose(usage[key], 1 - free / given.capacity, abs_tol=1e-12)
        )
        if not right or most.get(key) != given.capacity:
            says = f"{(1 - usage[key]) * given.capacity:.0f} of {most.get(key)}"
            yield Broken("leak", None, f"{key[0]} {key[1]}: {says} are said to be free, {free} of {given.capacity} are")


def _read_node(obj: Json) -> _Node:
    metadata, spec = obj["metadata"], obj.get("spec", {})
    taints = [taint["key"] for taint in spec.get("taints", [])]
    return _Node(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels", {}),
        blocks=tuple(block(text) for text in spec.get("podCIDRs", [])),
        annotation=metadata.get("annotations", {}).get(POOL_ANNOTATION, ""),
        terminating="deletionTimestamp" in metadata,
        uninitialized=UNINITIALIZED in taints,
    )
