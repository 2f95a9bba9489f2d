"""`cidrella release`, between the command line and the cluster (F6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cidrella.app.inventory import ClusterError
from cidrella.app.live import NOT_INSTALLED, faults_told
from cidrella.controller.release import active_holder, find_guarded, first_live, release_all
from cidrella.kube.errors import ApiError
from cidrella.kube.heartbeat import read_holders
from cidrella.model.kinds import POOL_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.controller.release import Guarded, Released
    from cidrella.kube.access import Access
    from cidrella.kube.client import Client
    from cidrella.kube.election import ElectionSettings, Holder
    from cidrella.model.kinds import PoolKind

_NOT_FOUND = 404


def _client(access: Access) -> Client:
    from cidrella.kube.client import Client  # noqa: PLC0415 -- half of the start of every command otherwise

    return Client(access)


@dataclass(frozen=True, slots=True)
class Found:
    """Who is in the way, and what there is to release."""

    holder: Holder | None
    """None also where a Lease seems to have run out: `release` finds out."""
    pools: list[Guarded]


@dataclass(frozen=True, slots=True)
class Done:
    """Who was in the way, so that nothing was done; or what was done."""

    holder: Holder | None
    results: list[Released]


def look(access: Access, lease: ElectionSettings) -> Found:
    """See what there is to do, and do nothing. Raises `ClusterError`."""

    async def find() -> Found:
        async with _client(access) as client:
            with faults_told(access, _may_read_lease(lease)):
                holder = first_live(await read_holders(client, lease))
            return Found(holder, await _find(client, access))

    return asyncio.run(find())


def release(
    access: Access, lease: ElectionSettings, *, on_wait: Callable[[Holder], None], on_done: Callable[[], None]
) -> Done:
    """Take the finalizers off, unless a controller holds a Lease. Raises `ClusterError` for what is wrong with all.

    `on_wait` is called where it takes a while to find out whether one does, `on_done` after each pool.
    """

    async def carry_out() -> Done:
        async with _client(access) as client:
            with faults_told(access, _may_read_lease(lease)):
                holder = await active_holder(client, lease, on_wait)
            if holder is not None:
                return Done(holder, [])
            return Done(None, await release_all(client, await _find(client, access), on_done))

    return asyncio.run(carry_out())


async def _find(client: Client, access: Access) -> list[Guarded]:
    return [each for kind in POOL_KINDS for each in await _find_of(client, access, kind)]


async def _find_of(client: Client, access: Access, kind: PoolKind) -> list[Guarded]:
    with faults_told(access, f"list {kind.resource}"):
        try:
            return await find_guarded(client, (kind,))
        except ApiError as error:
            if error.code == _NOT_FOUND and not kind.optional:
                raise ClusterError(NOT_INSTALLED) from error
            raise


def _may_read_lease(lease: ElectionSettings) -> str:
    names = f"{lease.name} and {lease.heartbeat.name}"
    return f"get leases.coordination.k8s.io ({names}) in {lease.namespace}"
