"""From the bytes of the API to the little that is kept of each object: thousands of nodes have to fit into memory.

Whatever comes is read as far as it makes sense. A pool that cannot be used is still a pool, with its problem (C4): only
an object without a name is none at all, and raises `msgspec.ValidationError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from cidrella.core.pool import PoolSpec
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.model.convert import node_facts, pool_spec
from cidrella.model.decode import decode
from cidrella.model.objects import (
    ClusterCIDR,
    ClusterCIDRSpec,
    ClusterCIDRStatus,
    LeanNode,
    ObjectMeta,
    ServiceCIDR,
)
from cidrella.model.validate import validate_cluster_cidr

if TYPE_CHECKING:
    from cidrella.core import decision
    from cidrella.model.decode import Problem

    Json = bytes | msgspec.Raw


K = TypeVar("K", LeanNode, ClusterCIDR, ServiceCIDR)


class SeenPool(NamedTuple):
    """A ClusterCIDR as it stands in the API."""

    metadata: ObjectMeta
    spec: PoolSpec
    status: ClusterCIDRStatus | None
    """None where there is none, or one that somebody else wrote in a way of his own."""

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.metadata.uid


class SeenServiceRanges(NamedTuple):
    """A ServiceCIDR as it stands in the API (A7)."""

    name: str
    uid: str
    ranges: tuple[Prefix, ...]
    unreadable: tuple[str, ...]


class _Pool(msgspec.Struct):
    metadata: ObjectMeta
    spec: ClusterCIDRSpec
    status: msgspec.Raw = msgspec.Raw(b"null")


class _AnyPool(msgspec.Struct):
    metadata: ObjectMeta
    status: msgspec.Raw = msgspec.Raw(b"null")


_NODE = msgspec.json.Decoder(LeanNode)
_POOL = msgspec.json.Decoder(_Pool)
_ANY_POOL = msgspec.json.Decoder(_AnyPool)
_STATUS: msgspec.json.Decoder[ClusterCIDRStatus | None] = msgspec.json.Decoder(ClusterCIDRStatus | None)
_SERVICE = msgspec.json.Decoder(ServiceCIDR)


def read_node(raw: Json) -> decision.Node:
    """What bears on the blocks of a node."""
    return node_facts(_named(_NODE.decode(raw)))


def read_pool(raw: Json) -> SeenPool:
    """A pool, valid or not."""
    try:
        seen = _POOL.decode(raw)
    except msgspec.ValidationError:
        return _read_slowly(raw)
    return _seen(_named(ClusterCIDR(metadata=seen.metadata, spec=seen.spec)), seen.status)


def read_service_ranges(raw: Json) -> SeenServiceRanges:
    """The ranges of a ServiceCIDR, read leniently, since Services get addresses from it whatever its spelling."""
    return seen_service_ranges(_SERVICE.decode(raw))


def seen_service_ranges(obj: ServiceCIDR) -> SeenServiceRanges:
    """The same of one that is decoded."""
    _named(obj)
    ranges: list[Prefix] = []
    unreadable: list[str] = []
    for text in obj.spec.cidrs:
        try:
            ranges.append(Prefix.parse_lenient(text))
        except PrefixError as error:
            unreadable.append(f"{text!r} {error}")
    return SeenServiceRanges(obj.metadata.name, obj.metadata.uid, tuple(ranges), tuple(unreadable))


def _named(obj: K) -> K:
    if not obj.metadata.name:
        raise msgspec.ValidationError("it has no metadata.name")
    return obj


def _seen(obj: ClusterCIDR, status: msgspec.Raw) -> SeenPool:
    problems = validate_cluster_cidr(obj)
    spec = _unusable(obj.metadata, problems) if problems else pool_spec(obj, live=True)
    return SeenPool(obj.metadata, spec, _status(status))


def _read_slowly(raw: Json) -> SeenPool:
    """A pool that is not quite of the right shape, if that: a size may be written as 8.0."""
    seen = _ANY_POOL.decode(raw)
    if not seen.metadata.name:
        raise msgspec.ValidationError("it has no metadata.name")
    fields = msgspec.json.decode(raw)
    # What others wrote into the status, or the API server into the metadata, is no fault of the pool.
    decoded = decode({"metadata": {"name": seen.metadata.name}, "spec": fields.get("spec")}, ClusterCIDR)
    if isinstance(decoded, list):
        return SeenPool(seen.metadata, _unusable(seen.metadata, decoded), _status(seen.status))
    return _seen(ClusterCIDR(metadata=seen.metadata, spec=decoded.spec), seen.status)


def _unusable(metadata: ObjectMeta, problems: list[Problem]) -> PoolSpec:
    return PoolSpec(
        metadata.name,
        (),
        created=metadata.creation_timestamp or "",
        terminating=metadata.deletion_timestamp is not None,
        problem="; ".join(map(str, problems)),
    )


def _status(raw: msgspec.Raw) -> ClusterCIDRStatus | None:
    try:
        return _STATUS.decode(raw)
    except msgspec.ValidationError:
        return None
