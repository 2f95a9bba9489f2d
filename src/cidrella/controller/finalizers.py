"""A pool stays as long as it is used: finalizers come on sight and go with the last node (P1, P2).

What is to be done to a pool follows from what the API and the books say of it now, and from nothing else, so that a
restart in between changes nothing.

A pool that has just come is about to be guarded, and nodes wait the moment that it takes. Else those that were there
before would get their blocks for life from whatever pool happened to be guarded first, and not from the first in order
(S3). A pool whose finalizer the API does not take holds up nobody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from cidrella.kube.client import METADATA_ONLY, Receipt
from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.queue import WorkQueue
from cidrella.model.objects import FINALIZER, FOREIGN_FINALIZER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.kube.client import Client
    from cidrella.kube.duty import Duty
    from cidrella.model.reading import SeenPool

_log = structlog.get_logger()

_WORKERS = 8
"""Pools written at a time: a thousand new ones are guarded within seconds, and nodes' PATCHes hardly notice."""
_PAUSE = 0.05
_PATIENCE = 3.0
"""Seconds that nodes wait for pools to be guarded, at most: enough for a thousand that come at once."""
_GONE = 404
_CONFLICT = 409
"""Somebody else wrote to the pool, perhaps we its status: the watch brings it as it is now."""


class Finalizers:
    """Puts the finalizer on pools, and takes it off those that are deleted and unused."""

    def __init__(self, client: Client, cluster: Cluster, pools: Mapping[str, SeenPool], duty: Duty) -> None:
        self._client = client
        self._cluster = cluster
        self._pools = pools
        self._duty = duty
        self._terminating: set[str] = set()
        self._unused: set[str] = set()
        """Those of the deleted pools that were found unused, and are in the queue or tried again by it."""
        self._coming: set[str] = set()
        """The pools that are about to be guarded."""
        self._failed: set[str] = set()
        """Those that the API did not let be guarded when it was last tried."""
        self._settled = asyncio.Event()
        self._settled.set()
        self.queue: WorkQueue[str] = WorkQueue(base=0.05, cap=30.0)

    def pool_seen(self, pool: SeenPool) -> None:
        """A pool is new or has changed. The books know already."""
        if pool.spec.terminating:
            self._terminating.add(pool.name)
        else:
            self._terminating.discard(pool.name)
        wanted = self._wanted(pool)
        if wanted is not None:
            self.queue.add(pool.name)
        self._expect(pool.name, wanted is not None and FINALIZER in wanted and pool.name not in self._failed)

    def pool_gone(self, name: str) -> None:
        """A pool is gone from the API."""
        self._terminating.discard(name)
        self._unused.discard(name)
        self._failed.discard(name)
        self._expect(name, False)
        self.queue.discard(name)

    def look(self) -> None:
        """Some node may have gone: deleted pools may be unused now. O(deleted pools)."""
        for name in self._terminating:
            if self._used(name):
                self._unused.discard(name)
            elif name not in self._unused:
                self._unused.add(name)
                self.queue.add(name)

    async def wait_guarded(self) -> None:
        """Wait until no pool is about to be guarded. Not for ever: whatever it is, others can be served."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._settled.wait()
        except TimeoutError:
            _log.warning("pools cannot be guarded; nodes wait for them no longer", pools=sorted(self._coming)[:10])
            self._failed |= self._coming
            self._coming.clear()
            self._settled.set()

    def _expect(self, name: str, coming: bool) -> None:
        if coming:
            self._coming.add(name)
            self._settled.clear()
        else:
            self._coming.discard(name)
            if not self._coming:
                self._settled.set()

    async def run(self) -> None:
        """Write finalizers, for ever."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(_WORKERS):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._duty.wait()
            (name,) = await self.queue.take()
            try:
                if self._duty.on:
                    await self._reconcile(name)
                else:
                    self.queue.add(name)
                    await asyncio.sleep(_PAUSE)
            finally:
                self.queue.done(name)

    async def _reconcile(self, name: str) -> None:
        pool = self._pools.get(name)
        wanted = None if pool is None else self._wanted(pool)
        if pool is None or wanted is None:
            self.queue.forget(name)
            return
        try:
            await self._write(pool, wanted)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.code in (_GONE, _CONFLICT)):
                self._failed.add(name)
                self._expect(name, False)
                _log.warning("a pool's finalizers cannot be written", pool=name, error=str(error))
            self.queue.retry(name)
        else:
            self._failed.discard(name)
            self.queue.forget(name)
            added = FINALIZER in wanted
            _log.info("a pool is guarded now" if added else "a deleted pool is unused, and may go", pool=name)

    def _wanted(self, pool: SeenPool) -> list[str] | None:
        """The finalizers that a pool ought to have; None where it has them."""
        has = pool.metadata.finalizers
        if not pool.spec.terminating:
            return [*has, FINALIZER] if not pool.spec.problem and FINALIZER not in has else None
        kept = [each for each in has if each not in (FINALIZER, FOREIGN_FINALIZER)]
        return kept if len(kept) < len(has) and not self._used(pool.name) else None

    def _used(self, name: str) -> bool:
        pool = self._cluster.pools.get(name)
        return pool is not None and bool(self._cluster.usage(pool).nodes)

    async def _write(self, pool: SeenPool, finalizers: list[str]) -> None:
        """Only if the pool is still as it was seen: others have finalizers, too."""
        metadata = {
            "uid": pool.uid,
            "resourceVersion": pool.metadata.resource_version,
            "finalizers": finalizers or None,
        }
        await self._client.patch(pool.path, {"metadata": metadata}, Receipt, accept=METADATA_ONLY)
