"""The pool that `--cluster-cidr` asks for: exactly one, and none of earlier flags (F1).

A pool of earlier flags is deleted, and goes when its last node does. If its name is the one that the flags of today
lead to, as it is after there and back again, the next name is taken: a start is never held up by what is still going.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog
from msgspec.structs import replace

from cidrella.kube.errors import ApiError, KubeError
from cidrella.model.flags import FLAGS_PREFIX, flags_pool, matches_flags
from cidrella.model.kinds import kind_of
from cidrella.model.objects import FINALIZER
from cidrella.model.reading import read_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.pool import PoolRange
    from cidrella.kube.client import Client
    from cidrella.model.kinds import PoolKind
    from cidrella.model.reading import SeenPool

_log = structlog.get_logger()

_CONFLICT = 409
_NOT_FOUND = 404
_NAMES_MAX = 1000
"""Names tried. There are as many pools of earlier flags still going as flags were changed while nodes used them."""


class CannotHoldError(KubeError):
    """The API server would make another pool of the one that it is given."""


async def ensure_flags_pool(client: Client, pools: Mapping[str, SeenPool], ranges: tuple[PoolRange, ...]) -> str:
    """Have one undeleted pool that matches the flags, and delete the others that were made from flags.

    Without ranges nothing is touched, nor where the installed CRD cannot hold the pool. Returns why it is not so, in
    words for people, and "" where it is. Raises nothing: what the API refuses now it may take later.
    """
    if not ranges:
        return ""
    made = [pool for pool in pools.values() if pool.name.startswith(FLAGS_PREFIX) and not pool.spec.terminating]
    matching = sorted((pool for pool in made if matches_flags(pool.spec, ranges)), key=lambda pool: pool.name)
    try:
        kept = matching[0].name if matching else await _create(client, pools, ranges)
        for pool in made:
            if pool.name != kept:
                await _delete(client, pool)
    except (KubeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        return str(error)
    return ""


async def _create(client: Client, pools: Mapping[str, SeenPool], ranges: tuple[PoolRange, ...]) -> str:
    """The name of the pool that was made."""
    for attempt in range(_NAMES_MAX):
        wanted = flags_pool(ranges, attempt)
        name = wanted.metadata.name
        if name in pools:
            continue
        # With its finalizer from the start, so that it can give as soon as it is seen (P1).
        guarded = replace(wanted, metadata=replace(wanted.metadata, finalizers=[FINALIZER]))
        kind = kind_of(guarded)
        body = msgspec.json.encode(guarded)
        try:
            await _rehearse(client, kind, body, ranges)
            await client.request("POST", kind.path, body=body)
        except ApiError as error:
            if error.code != _CONFLICT:
                raise
            found = read_pool(await client.request("GET", kind.object_path(name)), kind)
            if matches_flags(found.spec, ranges) and not found.spec.terminating:
                return name
        else:
            _log.info("made a pool from --cluster-cidr", pool=name)
            return name
    raise CannotHoldError(f"{_NAMES_MAX} names for the pool are taken by pools of earlier flags")


async def _rehearse(client: Client, kind: PoolKind, body: bytes, ranges: tuple[PoolRange, ...]) -> None:
    """See what the API server would store: an older CRD drops a field without a word, and once there it would give."""
    stored = read_pool(await client.request("POST", kind.path, params={"dryRun": "All"}, body=body), kind)
    if not matches_flags(stored.spec, ranges):
        raise CannotHoldError(f"the installed {kind} CRD cannot hold sizes that differ between the families")


async def _delete(client: Client, pool: SeenPool) -> None:
    try:
        await client.delete(pool.path, uid=pool.uid)
    except ApiError as error:
        if error.code not in (_NOT_FOUND, _CONFLICT):
            raise
    else:
        _log.info("deleted a pool of earlier flags; it goes with its last node", pool=pool.name)
