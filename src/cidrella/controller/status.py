"""What a pool's status says (P4), and writing it down when it changes (P5).

Theory of operation: one allocation can change the counts of many overlapping pools. Nobody keeps a list of those: when
anything changed, and at most once a second, every pool's counts, which are kept up to date anyway, are compared with
what was last written. Writes go out few at a time and within a rate for all pools together, beside everything else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import structlog

from cidrella.core.cluster import Hold
from cidrella.core.prefix import Family
from cidrella.kube.client import METADATA_ONLY, Receipt
from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.queue import WorkQueue
from cidrella.model.objects import Condition, FamilyStatus, PoolStatus, clamp_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.pool import Pool
    from cidrella.kube.client import Client
    from cidrella.kube.duty import Duty
    from cidrella.model.kinds import PoolKind
    from cidrella.model.reading import SeenPool

_log = structlog.get_logger()

ACTIVE = "Active"
TERMINATING = "Terminating"
_OURS = (ACTIVE, TERMINATING)
_NAMED = 10
"""Nodes that the message of a deleted pool names; the rest are counted (P4)."""
_MESSAGE_MAX = 1024
_PERIOD = 1.0
"""Seconds between two writes of one pool's status (P5)."""
_AGAIN = 60.0
"""Seconds after which the same is written again where the API shows something else: another may have written there."""
_WORKERS = 4
_RATE = 50.0
"""Status writes a second, all pools together: a small part of what an API server does."""
_GONE = 404


def pool_status(cluster: Cluster, seen: SeenPool, now: str) -> PoolStatus:
    """What is to be said of a pool now, which is the time `now` as the API writes it."""
    pool = cluster.pools[seen.name]
    usage = cluster.usage(pool)
    families = {
        view.family: FamilyStatus(
            capacity=clamp_count(view.capacity),
            allocated=clamp_count(usage.allocated(view.family)),
            free=clamp_count(pool.free(view.family)),
        )
        for view in pool.views
    }
    return PoolStatus(
        conditions=_dated(seen, list(conditions(pool, usage.nodes)), now),
        ipv4=families.get(Family.IPV4),
        ipv6=families.get(Family.IPV6),
        nodes=len(usage.nodes),
        free=min((each.free for each in families.values()), default=0),
    )


def conditions(pool: Pool, users: Mapping[str, int]) -> Iterator[tuple[str, str, str, str]]:
    """Type, status, reason and message of each condition (P4)."""
    spec = pool.spec
    if spec.terminating:
        yield ACTIVE, "False", "Terminating", "It is being deleted, and gives nothing any more."
        if users:
            yield TERMINATING, "True", "CIDRInUse", _in_use(users)
        else:
            yield TERMINATING, "True", "Releasing", "No node uses it: it is about to go."
    elif spec.problem:
        yield ACTIVE, "False", "Invalid", _cut(f"It is not used: {spec.problem}")
    elif full := pool.full():
        ranges = " and ".join(f"{view.block_range} has no /{view.length} left" for view in full)
        yield ACTIVE, "False", "CIDRExhausted", f"It is full: {ranges}."
    else:
        yield ACTIVE, "True", "Allocatable", "It can give blocks."


def _in_use(users: Mapping[str, int]) -> str:
    """What keeps a pool, and what an operator may wait for, or see to."""
    message = f"It goes when these nodes are gone: {_listed(users)}."
    if any(isinstance(user, Hold) for user in users):
        message += " What may yet be written to a node also ends when that node has podCIDRs, of whatever pool."
    return message


def _listed(users: Mapping[str, int]) -> str:
    names = sorted(users)
    more = len(names) - _NAMED
    return _cut(", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else ""))


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_MAX else text[: _MESSAGE_MAX - 1] + "…"


def _dated(seen: SeenPool, wanted: list[tuple[str, str, str, str]], now: str) -> list[Condition]:
    """The conditions, each with the time at which its status last changed; others' conditions stay as they are."""
    before = {each.type: each for each in (seen.status.conditions if seen.status else [])}
    made = [
        Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            observed_generation=seen.metadata.generation,
            last_transition_time=before[kind].last_transition_time
            if kind in before and before[kind].status == status
            else now,
        )
        for kind, status, reason, message in wanted
    ]
    return made + [each for kind, each in before.items() if kind not in _OURS]


class StatusWriter:
    """Keeps the status of pools true while duty is on. `clock` says what time it is, as the API writes it."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        pools: Mapping[str, SeenPool],
        duty: Duty,
        clock: Callable[[], str],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._pools = pools
        self._duty = duty
        self._clock = clock
        self._without: frozenset[PoolKind] = frozenset()
        """The kinds whose installed CRD has no status to write to (C4), as far as is known."""
        self._changed = asyncio.Event()
        self._queue: WorkQueue[str] = WorkQueue(base=1.0, cap=60.0)
        self._written: dict[str, tuple[str, float, PoolStatus]] = {}
        """For a pool: its uid, when its status was last written, and what it was."""
        self._failing: set[str] = set()
        """The pools whose last write failed, and which are tried again when their delay is over."""
        self._next_write = 0.0
        self._looked_at: dict[str, tuple[object, ...]] = {}
        """For a pool: what its status depends on, as it was when it was last found to be true."""

    def leave_out(self, kinds: frozenset[PoolKind]) -> None:
        """Of these kinds, and of no others, no status is written from now on."""
        if kinds != self._without:
            self._without = kinds
            self._looked_at.clear()
            self.touch()

    def touch(self) -> None:
        """Something changed that a status may speak of."""
        self._changed.set()

    def resume(self) -> None:
        """This replica leads, again perhaps: others may have written since it did."""
        self._written.clear()
        self._looked_at.clear()
        self.touch()

    def pool_gone(self, name: str) -> None:
        """A pool is gone from the API."""
        self._written.pop(name, None)
        self._looked_at.pop(name, None)
        self._failing.discard(name)
        self._queue.discard(name)

    async def run(self) -> None:
        """Write what changed, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look())
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _look(self) -> None:
        """Find the pools whose status is out of date, when anything changed and at most once a second."""
        while True:
            await self._duty.wait()
            await self._changed.wait()
            self._changed.clear()
            for name, seen in self._pools.items():
                self._look_at(name, seen)
            await asyncio.sleep(_PERIOD)

    def _look_at(self, name: str, seen: SeenPool) -> None:
        """O(1) for a pool of which nothing changed, so that ten thousand can be looked at every second."""
        pool = self._cluster.pools[name]
        usage = self._cluster.usage(pool)
        counts = [(view.free, usage.allocated(view.family)) for view in pool.views]
        # A spec may be written in another way and mean the same (K2): the status says which one it was made from.
        basis = (pool.spec, seen.metadata.generation, seen.status, len(usage.nodes), *counts)
        # Of a deleted pool the status names nodes, which may change while their number does not.
        if pool.spec.terminating or self._looked_at.get(name) != basis:
            if self._stale(seen) is None:
                self._looked_at[name] = basis
            elif name not in self._failing:
                self._queue.add(name)

    def _stale(self, seen: SeenPool) -> PoolStatus | None:
        """The status that a pool ought to have; None where it has it, was told so already, or cannot be told yet.

        Of a pool that is about to be guarded there is nothing true to say but that it gives nothing for a moment (P1).
        Where the API server made something else of what was sent, that is not sent again at once: a server that drops a
        field must not be written to for ever.
        """
        if seen.kind in self._without or not (seen.spec.guarded or seen.spec.terminating or seen.spec.problem):
            return None
        wanted = pool_status(self._cluster, seen, self._clock())
        if seen.status is not None and _same(wanted, seen.status):
            return None
        uid, at, written = self._written.get(seen.name, ("", 0.0, None))
        now = asyncio.get_running_loop().time()
        if uid == seen.uid and written is not None and _same(wanted, written) and now - at < _AGAIN:
            return None
        return wanted

    async def _work(self) -> None:
        while True:
            (name,) = await self._queue.take()
            try:
                await self._write(name)
            finally:
                self._queue.done(name)

    async def _write(self, name: str) -> None:
        await self._turn()
        self._failing.discard(name)
        seen = self._pools.get(name)
        if seen is None or not self._duty.on or (wanted := self._stale(seen)) is None:
            self._queue.forget(name)
            return
        now = asyncio.get_running_loop().time()
        uid, at, _ = self._written.get(name, ("", 0.0, None))
        if uid == seen.uid and now - at < _PERIOD:
            self._queue.add_after(name, at + _PERIOD - now)
            return
        self._written[name] = seen.uid, now, wanted
        try:
            await self._send(seen, wanted)
        except KubeError as error:
            self._written.pop(name, None)
            if not (isinstance(error, ApiError) and error.code == _GONE):
                self._failing.add(name)
                _log.warning("a pool's status cannot be written", pool=name, error=str(error))
                self._queue.retry(name)
        else:
            self._queue.forget(name)

    async def _turn(self) -> None:
        """Wait for this write's turn among all of them."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_write)
        self._next_write = at + 1 / _RATE
        if at > now:
            await asyncio.sleep(at - now)

    async def _send(self, seen: SeenPool, status: PoolStatus) -> None:
        plain = msgspec.to_builtins(status)
        for family in ("ipv4", "ipv6"):
            plain.setdefault(family, None)  # a merge patch removes what it says is null
        body = {"metadata": {"uid": seen.uid}, "status": plain}
        await self._client.patch(f"{seen.path}/status", body, Receipt, accept=METADATA_ONLY)


def _same(one: PoolStatus, two: PoolStatus) -> bool:
    """Whether two say the same, whenever it came to be so."""
    return _undated(one) == _undated(two)


def _undated(status: PoolStatus) -> PoolStatus:
    conditions = [msgspec.structs.replace(each, last_transition_time=None) for each in status.conditions]
    return msgspec.structs.replace(status, conditions=sorted(conditions, key=lambda each: each.type))
