"""Taking the finalizers off the pools, on the way to another allocator (F6).

With them on, a deleted pool stays until a controller lets it go, and with no controller that is for ever. So they are
taken off every pool: ours, and that of another controller which means the same (P1). Finalizers of others stay. A pool
that is being deleted already vanishes with its last finalizer; the nodes that use it keep their blocks (P7).

It is a job for when no controller runs, for a controller would put them back, and nodes may use a pool that vanishes.
Whether one runs is told by two Leases: that of the election, and the heartbeat of a controller without one. One that
has run out by the clocks of two machines is looked at for as long as it lasts, because the clocks may differ.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.kube.errors import ApiError, KubeError, MalformedReplyError
from cidrella.kube.heartbeat import read_holders
from cidrella.kube.listing import list_all
from cidrella.kube.presence import is_absent
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.objects import FINALIZER, FOREIGN_FINALIZER, ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.kube.client import Client
    from cidrella.kube.election import ElectionSettings, Holder
    from cidrella.model.kinds import PoolKind

OURS: Final = (FINALIZER, FOREIGN_FINALIZER)
_AT_ONCE: Final = 16
"""Requests under way at a time: enough to be done with thousands in seconds, and no burden for the server."""
_ATTEMPTS: Final = 10
"""Times that a pool is read anew because somebody else changed it in between."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class _Pool(msgspec.Struct):
    """Of a pool, what it is known by and kept by. Its spec may be anything: invalid pools are released, too."""

    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class Guarded:
    """A pool with finalizers to take off."""

    kind: PoolKind
    object_name: str
    version: str
    finalizers: tuple[str, ...]
    """Those to take off."""
    kept: tuple[str, ...]
    terminating: bool

    @property
    def name(self) -> str:
        """The pool's name, unique over all kinds."""
        return self.kind.pool_name(self.object_name)

    @property
    def vanishes(self) -> bool:
        """Whether the pool is gone once they are off."""
        return self.terminating and not self.kept


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a pool."""

    pool: Guarded
    """As it was last read."""
    fault: str = ""
    """Why its finalizers are still on; empty where they are off."""


async def active_holder(client: Client, settings: ElectionSettings, on_wait: Callable[[Holder], None]) -> Holder | None:
    """The holder of the election Lease or of the heartbeat Lease; None if neither is held. Raises `KubeError`.

    Where one seems to have run out, `on_wait` is called with its holder, and the answer takes as long as that lasts.
    """
    seen = await read_holders(client, settings)
    if live := first_live(seen):
        return live
    if not seen:
        return None
    for holder in seen:
        on_wait(holder)
    await asyncio.sleep(max(holder.duration for holder in seen))
    before = {holder.lease: holder for holder in seen}
    again = await read_holders(client, settings)
    return next((holder for holder in again if not _ran_out(before.get(holder.lease), holder)), None)


def first_live(holders: Sequence[Holder]) -> Holder | None:
    """The first whose Lease has not run out, by the clocks of both machines."""
    return next((holder for holder in holders if not holder.expired), None)


def _ran_out(seen: Holder | None, again: Holder) -> bool:
    """Whether a Lease was not renewed since it was first seen. Ages say nothing here: both clocks go on."""
    return seen is not None and (again.identity, again.renew_time) == (seen.identity, seen.renew_time)


async def find_guarded(client: Client, kinds: Sequence[PoolKind] = POOL_KINDS) -> list[Guarded]:
    """The pools with a finalizer to take off, terminating and invalid ones included. Raises `KubeError`.

    There are none of an optional kind that is not installed (K6).
    """
    found = [_guarded(kind, _read(item, kind).metadata) for kind in kinds for item in await _list(client, kind)]
    return [each for each in found if each.finalizers]


async def _list(client: Client, kind: PoolKind) -> list[msgspec.Raw]:
    try:
        return await list_all(client, kind.path)
    except ApiError as error:
        if not (kind.optional and await is_absent(client, kind.path, error)):
            raise
        return []


async def release_all(
    client: Client, pools: Sequence[Guarded], on_done: Callable[[], None] = lambda: None
) -> list[Released]:
    """Take the finalizers off, several at a time. What cannot be done is told in the result; the rest goes on."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def release(pool: Guarded) -> Released:
        async with limit:
            done = await _release(client, pool)
            on_done()
            return done

    return await asyncio.gather(*(release(pool) for pool in pools))


async def _release(client: Client, pool: Guarded) -> Released:
    path = pool.kind.object_path(pool.object_name)
    try:
        for _ in range(_ATTEMPTS):
            try:
                await client.patch(path, _patch(pool), _Pool)
            except ApiError as error:
                if error.code != _CONFLICT:
                    raise
                pool = _guarded(pool.kind, (await client.get(path, _Pool)).metadata)
            else:
                return Released(pool)
            if not pool.finalizers:
                return Released(pool)
    except ApiError as error:
        return Released(pool, "" if error.code == _NOT_FOUND else str(error))
    except KubeError as error:
        return Released(pool, str(error))
    return Released(pool, f"somebody else changed it {_ATTEMPTS} times in between; is a controller running?")


def _patch(pool: Guarded) -> dict[str, object]:
    """The change, which the server refuses if the pool is not the one that was read any more."""
    return {"metadata": {"resourceVersion": pool.version, "finalizers": list(pool.kept) or None}}


def _guarded(kind: PoolKind, metadata: ObjectMeta) -> Guarded:
    return Guarded(
        kind,
        metadata.name,
        metadata.resource_version,
        tuple(each for each in metadata.finalizers if each in OURS),
        tuple(each for each in metadata.finalizers if each not in OURS),
        metadata.deletion_timestamp is not None,
    )


def _read(item: msgspec.Raw, kind: PoolKind) -> _Pool:
    try:
        return msgspec.json.decode(item, type=_Pool)
    except msgspec.MsgspecError as error:
        raise MalformedReplyError(f"a {kind} cannot be read: {error}") from error
