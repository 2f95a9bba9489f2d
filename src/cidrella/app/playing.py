"""Nodes and pools that come and go as people say, on an embedded API: `cidrella node` and `cidrella pool`.

What becomes of them is told as `explain` tells it: from the objects, by the same core that the controller has.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from cidrella.app.embedded import require_embedded
from cidrella.app.inventory import ClusterError
from cidrella.app.live import faults_told, read_cluster
from cidrella.app.planning import Options
from cidrella.app.standing import take_stock
from cidrella.core.decision import Outcome
from cidrella.core.prefix import Family
from cidrella.kube.errors import ApiError
from cidrella.kube.listing import list_all
from cidrella.kube.wire import read_head
from cidrella.model.kinds import CLUSTER_CIDR, find_pool
from cidrella.model.objects import NODES_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from cidrella.app.standing import NodeStanding, PoolStanding
    from cidrella.core.prefix import Prefix
    from cidrella.kube.access import Access
    from cidrella.kube.client import Client

    Json = dict[str, Any]
    Progress = Callable[[int, int], None]
    T = TypeVar("T")

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_MOMENT: Final = 3.0
"""Seconds in which a controller that runs has served a node, and let a pool go that nobody uses."""
_PAUSE: Final = 0.05
"""Seconds between two looks, at first; they get rarer."""
_PAUSE_MAX: Final = 0.5


class PoolWanted(NamedTuple):
    """A pool to be made."""

    name: str
    ranges: tuple[Prefix, ...]
    """One, or one of each family."""
    lengths: Mapping[Family, int]
    """Of a node's block."""
    labels: Mapping[str, str]
    """Of the nodes that it is for; none: for any."""


def add_nodes(
    access: Access,
    names: Sequence[str],
    labels: Mapping[str, str],
    *,
    count: int = 0,
    progress: Progress,
) -> list[str]:
    """Register nodes; with a count, so many whose names begin with the one that is given. Raises `ClusterError`.

    Returns what they are called.
    """

    async def add(client: Client, version: str) -> list[str]:
        from cidrella.app.kubelet import register  # noqa: PLC0415 -- of no use to the rest

        there = {read_head(item).name for item in await list_all(client, NODES_PATH)}
        wanted = _numbered(names[0], count, there) if count else list(names)
        if taken := [name for name in wanted if name in there]:
            raise ClusterError(f"there is a node {taken[0]} already; remove it first, or choose another name")
        for done, name in enumerate(wanted, 1):
            await register(client, name, labels, version)
            progress(done, len(wanted))
        return wanted

    return _with_client(access, "create nodes", add)


def require_embedded_api(access: Access) -> None:
    """Raise `ClusterError` where this is not the embedded API."""

    async def nothing(_: Client, __: str) -> None:
        pass

    _with_client(access, "get /version", nothing)


def remove_nodes(access: Access, names: Sequence[str], *, every: bool, progress: Progress) -> list[str]:
    """Remove these nodes, or every one; the names of those that were there. Raises `ClusterError`."""

    async def remove(client: Client, _: str) -> list[str]:
        from cidrella.app.kubelet import unregister  # noqa: PLC0415 -- of no use to the rest

        wanted = [read_head(item).name for item in await list_all(client, NODES_PATH)] if every else list(names)
        gone = []
        for done, name in enumerate(wanted, 1):
            if await unregister(client, name):
                gone.append(name)
            progress(done, len(wanted))
        return gone

    return _with_client(access, "delete nodes", remove)


def follow_nodes(access: Access, names: Iterable[str], *, patiently: bool) -> Iterator[list[NodeStanding]]:
    """How these nodes stand, again and again, until each has its block or waits for a reason. Raises `ClusterError`.

    `patiently`: until each has its block. One that is gone meanwhile is left out.
    """
    wanted = set(names)
    for in_time in _looks():
        found = [
            each for each in take_stock(read_cluster(access).inventory, Options()).nodes if each.node.name in wanted
        ]
        yield found
        waiting = [each for each in found if each.decision.outcome is Outcome.WAITING]
        if not waiting:
            return
        if not patiently and (not in_time or all(each.would_get is None for each in waiting)):
            return


def add_pool(access: Access, wanted: PoolWanted) -> None:
    """Make a pool. Raises `ClusterError`."""

    async def add(client: Client, _: str) -> None:
        await client.create(CLUSTER_CIDR.path, pool_object(wanted), dict)

    _with_client(access, f"create {CLUSTER_CIDR.resource}", add)


def remove_pool(access: Access, name: str) -> PoolStanding | None:
    """Delete a pool; how it stands if it stays, because nodes use it. Raises `ClusterError`."""
    kind, object_name = find_pool(name)

    async def remove(client: Client, _: str) -> None:
        try:
            await client.delete(kind.object_path(object_name))
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            raise ClusterError(f"there is no pool {name}") from error

    _with_client(access, f"delete {kind.resource}", remove)
    standing = None
    for in_time in _looks():
        pools = take_stock(read_cluster(access).inventory, Options()).pools
        standing = next((each for each in pools if each.spec.name == name), None)
        if standing is None or standing.nodes or not in_time:
            break
    return standing


def pool_object(wanted: PoolWanted) -> Json:
    """The ClusterCIDR."""
    spec: Json = {}
    for cidr in sorted(wanted.ranges, key=lambda cidr: cidr.family.bits):
        spec["ipv4" if cidr.family is Family.IPV4 else "ipv6"] = str(cidr)
        bits = cidr.family.bits - wanted.lengths[cidr.family]
        spec["perNodeHostBitsIPv6" if "perNodeHostBits" in spec else "perNodeHostBits"] = bits
    if wanted.labels:
        terms = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.labels.items()]
        spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    kind = {"apiVersion": CLUSTER_CIDR.api_version, "kind": CLUSTER_CIDR.kind}
    return {**kind, "metadata": {"name": wanted.name}, "spec": spec}


def _numbered(base: str, count: int, there: Iterable[str]) -> list[str]:
    """So many names, numbered from the first number that nothing there has, nor any after it."""
    pattern = re.compile(rf"{re.escape(base)}-([0-9]{{1,9}})", re.ASCII)
    first = max((int(found[1]) for name in there if (found := pattern.fullmatch(name))), default=0) + 1
    return [f"{base}-{number}" for number in range(first, first + count)]


def _looks() -> Iterator[bool]:
    """When to look: at once, then less and less often. Whether it is still within the moment that things take."""
    end, pause = time.monotonic() + _MOMENT, _PAUSE
    while True:
        yield time.monotonic() < end
        time.sleep(pause)
        pause = min(_PAUSE_MAX, pause * 1.5)


def _with_client(access: Access, needed: str, work: Callable[[Client, str], Coroutine[object, object, T]]) -> T:
    """Do something with the embedded API, of this version, and with no other. Raises `ClusterError`."""

    async def run() -> T:
        from cidrella.kube.client import Client  # noqa: PLC0415 -- half of the start of every command otherwise

        async with Client(access) as client:
            version = await require_embedded(client)
            with faults_told(access, needed):
                return await work(client, version)

    return asyncio.run(run())
