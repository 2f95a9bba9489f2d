"""The objects of a cluster, read and never written.

Rules:

- What a command shows of a cluster comes from one look at it: paged lists of pools, nodes and service ranges, all at
  once; or of Services and what gives them addresses. Nothing is asked of a controller, and none need be running.
- A kind of pools that a cluster may well do without is not missed where it is not served (K6): whoever may not list
  such a kind is told so only where there is one.
- An address is in its RangeAllocation before a Service has it. So these are listed after the Services: what a Service
  has is then in what was listed, or is missing.
- What is wrong with an object stops nobody. An invalid pool is kept with its problem (C4), and so is a corrupt
  RangeAllocation; any other that cannot be read is a fault, to be shown beside the result.
- What keeps us from reading at all is a `ClusterError`: one line that says what to do.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from cidrella.app.inventory import ClusterError, Fault, Inventory, ServiceInventory
from cidrella.core.prefix import PrefixError
from cidrella.kube.election import read_holder
from cidrella.kube.errors import ApiError, ConfigError, KubeError, MalformedReplyError
from cidrella.kube.listing import list_all
from cidrella.kube.presence import is_absent
from cidrella.kube.wire import read_head
from cidrella.model import objects, serviceip
from cidrella.model.chosen import Service
from cidrella.model.convert import service_ranges
from cidrella.model.decode import Problem, decode
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.reading import read_pool
from cidrella.model.validate import validate_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cidrella.app.inventory import Input
    from cidrella.kube.access import Access
    from cidrella.kube.client import Client
    from cidrella.kube.election import ElectionSettings, Holder
    from cidrella.model.kinds import PoolKind, PoolObject

    Progress = Callable[[int, int], None]
    T = TypeVar("T", bound=msgspec.Struct)

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TIMEOUT: Final = 30.0
"""Seconds for a page: 500 nodes are some megabytes, and the way to the server may be a slow one."""

NOT_INSTALLED: Final = (
    f"the cluster does not know the kind {' and '.join(each.kind for each in POOL_KINDS if not each.optional)}: "
    "install it with `cidrella crds | kubectl apply -f -`"
)
_RESOURCES: Final = {
    **{each.path: each.resource for each in POOL_KINDS},
    objects.NODES_PATH: "nodes",
    objects.SERVICE_CIDRS_PATH: "servicecidrs.networking.k8s.io",
    serviceip.SERVICES_PATH: "services",
    serviceip.IP_ADDRESSES_PATH: "ipaddresses.networking.k8s.io",
    serviceip.RANGE_ALLOCATIONS_PATH: f"{serviceip.RANGE_ALLOCATION_PLURAL}.{serviceip.GROUP}",
}
_POOL_PATHS: Final = tuple(each.path for each in POOL_KINDS)
_CORE: Final = (objects.NODES_PATH, serviceip.SERVICES_PATH)
"""What every API server serves."""


@dataclass(frozen=True, slots=True)
class LeaseLook:
    """What there is to say of one of the controller's Leases: of the election (F5), or the heartbeat without one."""

    name: str
    """With its namespace before it."""
    holder: Holder | None = None
    """None where nobody holds it."""
    unknown: str = ""
    """Why it cannot be told who holds it; empty where it can."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a cluster."""

    inventory: Inventory
    installed: bool
    """Whether the cluster knows the pools that it should."""
    leases: tuple[LeaseLook, ...] = ()
    """Both Leases of the controller; empty where they were not asked for."""


def read_cluster(
    access: Access, progress: Progress = lambda _done, _total: None, lease: ElectionSettings | None = None
) -> Look:
    """Look at a cluster, and at the Leases of a controller if the election's is given. Raises `ClusterError`.

    `progress` is told how many objects are here, and of how many.
    """
    return asyncio.run(_look(access, progress, lease))


def read_services(access: Access, progress: Progress = lambda _done, _total: None) -> ServiceInventory:
    """Look at the Services of a cluster, and at what gives them addresses. Raises `ClusterError`."""
    return asyncio.run(_look_at_services(access, progress))


@contextmanager
def faults_told(access: Access, needed: str) -> Iterator[None]:
    """Turn what goes wrong between us and the server into a `ClusterError`. `needed` is what one must be allowed."""
    try:
        yield
    except KubeError as error:
        raise ClusterError(_told(error, access, needed)) from error


async def _look(access: Access, progress: Progress, lease: ElectionSettings | None) -> Look:
    sums = _Sums(progress)
    from cidrella.kube.client import Client  # noqa: PLC0415 -- half of the start of every command otherwise

    async with Client(access, timeout=_TIMEOUT) as client:
        found = await _list(client, (*_POOL_PATHS, objects.NODES_PATH, objects.SERVICE_CIDRS_PATH), sums)
        await _excuse_absent(client, found)
        *pools, nodes, services = _served(found, access)
        asked = () if lease is None else (lease, lease.heartbeat)
        held = tuple([await _look_at(client, each) for each in asked])
    inventory = Inventory(place=_place(access))
    for kind, items in zip(POOL_KINDS, pools, strict=True):
        _take_pools(inventory, kind, items or ())
    _take(inventory, nodes or (), objects.Node, inventory.nodes)
    _take(inventory, services or (), objects.ServiceCIDR, inventory.services)
    installed = all(kind.optional or items is not None for kind, items in zip(POOL_KINDS, pools, strict=True))
    return Look(inventory, installed, held)


async def _look_at_services(access: Access, progress: Progress) -> ServiceInventory:
    sums = _Sums(progress)
    from cidrella.kube.client import Client  # noqa: PLC0415 -- as above

    async with Client(access, timeout=_TIMEOUT) as client:
        paths = serviceip.SERVICES_PATH, objects.SERVICE_CIDRS_PATH, serviceip.IP_ADDRESSES_PATH
        found = await _list(client, paths, sums) | await _list(client, (serviceip.RANGE_ALLOCATIONS_PATH,), sums)
    services, cidrs, addresses, allocations = _served(found, access)
    inventory = ServiceInventory(place=_place(access))
    _take(inventory, services or (), Service, inventory.services)
    _take(inventory, cidrs or (), objects.ServiceCIDR, inventory.cidrs)
    _take(inventory, addresses or (), serviceip.IPAddress, inventory.addresses)
    _take_allocations(inventory, allocations or ())
    return inventory


async def _list(client: Client, paths: tuple[str, ...], sums: _Sums) -> dict[str, list[msgspec.Raw] | BaseException]:
    """Several collections at once, each with what came of it."""
    lists = [list_all(client, path, progress=sums.part(path)) for path in paths]
    return dict(zip(paths, await asyncio.gather(*lists, return_exceptions=True), strict=True))


async def _excuse_absent(client: Client, found: dict[str, list[msgspec.Raw] | BaseException]) -> None:
    """Take an optional kind that one may not list for what it is, if the server does not serve it: not there (K6)."""
    for kind in POOL_KINDS:
        error = found[kind.path]
        if kind.optional and isinstance(error, ApiError) and await is_absent(client, kind.path, error):
            found[kind.path] = []


def _served(found: dict[str, list[msgspec.Raw] | BaseException], access: Access) -> list[list[msgspec.Raw] | None]:
    """What was listed, None for each collection that the server does not serve. Raises `ClusterError`."""
    _refuse(found, access)
    return [each if isinstance(each, list) else None for each in found.values()]


def _place(access: Access) -> str:
    return f"the cluster {access.context}" if access.context else "the cluster"


async def _look_at(client: Client, lease: ElectionSettings) -> LeaseLook:
    """Who holds a Lease. Not to be told is no reason to tell nothing else."""
    name = f"{lease.namespace}/{lease.name}"
    try:
        return LeaseLook(name, await read_holder(client, lease))
    except ApiError as error:
        if error.code == _FORBIDDEN:
            return LeaseLook(name, unknown="the user needs the permission to get leases.coordination.k8s.io there")
        return LeaseLook(name, unknown=str(error))
    except KubeError as error:
        return LeaseLook(name, unknown=str(error))


class _Sums:
    """The progress of several lists as one."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts: dict[str, tuple[int, int]] = {}

    def part(self, path: str) -> Progress:
        def told(done: int, total: int) -> None:
            self._parts[path] = done, total
            self._progress(*map(sum, zip(*self._parts.values(), strict=True)))

        return told


def _refuse(found: dict[str, list[msgspec.Raw] | BaseException], access: Access) -> None:
    """Raise for what keeps us from going on. A collection that the server does not serve is no such thing."""
    errors = {path: each for path, each in found.items() if isinstance(each, BaseException)}
    absent = {path for path, each in errors.items() if isinstance(each, ApiError) and each.code == _NOT_FOUND}
    for path in absent.intersection(_CORE):
        raise ClusterError(
            f"what answers at {access.server} is no Kubernetes API server: it serves no {_RESOURCES[path]}"
        )
    forbidden = {path for path, each in errors.items() if isinstance(each, ApiError) and each.code == _FORBIDDEN}
    worst = sorted((path for path in errors if path not in absent), key=lambda path: path in forbidden)
    if worst:
        with faults_told(access, f"list {', '.join(_RESOURCES[path] for path in errors if path in forbidden)}"):
            raise errors[worst[0]]


def _told(error: KubeError, access: Access, needed: str) -> str:
    """An error in one line, with what to do."""
    server = f"{access.server} (context {access.context})" if access.context else access.server
    match error:
        case ConfigError():
            return str(error)
        case ApiError(code=401):
            return f"{server} does not accept the credentials; log in again, or choose another --context"
        case ApiError(code=403):
            return f"not allowed at {server}: the user needs the permission to {needed}"
        case ApiError():
            return f"{server} refused: {error}"
        case MalformedReplyError():
            return f"what answers at {server} does not speak as a Kubernetes API server does: {error}"
        case _:
            return f"{server} does not answer: {error}; is it up, and is this the right --context?"


def _take_pools(inventory: Inventory, kind: PoolKind, items: Iterable[msgspec.Raw]) -> None:
    """Valid pools, and invalid ones with what is wrong with them. A status is some controller's, and may be any."""
    for item in items:
        fields = msgspec.json.decode(item)
        if isinstance(fields, dict):
            fields.pop("status", None)
        pool: PoolObject | list[Problem] = decode(fields, kind.struct)
        if not isinstance(pool, list) and not validate_pool(pool):
            inventory.pools.append(pool)
            continue
        try:
            unusable = read_pool(item, kind).spec
        except msgspec.ValidationError as error:
            _note(inventory, kind.kind, item, str(error))
        else:
            _note(inventory, kind.kind, item, f"is invalid: {unusable.problem}")
            inventory.invalid.append(unusable)


def _take(inventory: Input, items: Iterable[msgspec.Raw], kind: type[T], into: list[T]) -> None:
    for item in items:
        try:
            decoded: T | list[Problem] = msgspec.json.decode(item, type=kind)
        except msgspec.ValidationError:
            decoded = decode(msgspec.json.decode(item), kind)
        problems = decoded if isinstance(decoded, list) else _unusable(decoded)
        if isinstance(decoded, list) or problems:
            _note(inventory, kind.__name__, item, f"cannot be read: {'; '.join(map(str, problems))}")
        else:
            into.append(decoded)


def _take_allocations(inventory: ServiceInventory, items: Iterable[msgspec.Raw]) -> None:
    for item in items:
        try:
            inventory.allocations.append(serviceip.read_range_allocation(item))
        except msgspec.ValidationError as error:
            _note(inventory, serviceip.RANGE_ALLOCATION_KIND, item, str(error))


def _unusable(obj: msgspec.Struct) -> list[Problem]:
    """Why an object of the right shape is of no use: a service range is taken in any spelling, but must be one."""
    try:
        if isinstance(obj, objects.ServiceCIDR):
            service_ranges(obj)
    except PrefixError as error:
        return [Problem(("spec", "cidrs"), str(error))]
    return []


def _note(inventory: Input, kind: str, item: msgspec.Raw, problem: str) -> None:
    name = read_head(item).name or "without a name"
    inventory.faults.append(Fault(inventory.place, None, f"{kind} {name}", "", problem))
