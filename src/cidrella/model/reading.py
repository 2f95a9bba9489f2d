"""From the bytes of the API to the little that is kept of each object: thousands of nodes have to fit into memory.

Whatever comes is read as far as it makes sense. A pool that cannot be used is still a pool, with its problem (C4): only
an object without a name is none at all, and raises `msgspec.ValidationError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from cidrella.model.configs import ClusterCIDRConfigSpec
from cidrella.model.convert import node_facts, pool_of, unusable_pool
from cidrella.model.decode import decode
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, PoolKind
from cidrella.model.objects import ClusterCIDRSpec, LeanNode, ObjectMeta, PoolStatus
from cidrella.model.validate import validate_pool_parts

if TYPE_CHECKING:
    from cidrella.core import decision
    from cidrella.core.pool import PoolSpec
    from cidrella.model.kinds import PoolObjectSpec

    Json = bytes | msgspec.Raw


S = TypeVar("S")


class SeenPool(NamedTuple):
    """A pool as it stands in the API."""

    metadata: ObjectMeta
    spec: PoolSpec
    status: PoolStatus | None
    """None where there is none, or one that somebody else wrote in a way of his own."""
    kind: PoolKind

    @property
    def name(self) -> str:
        """The pool's name, unique over all kinds."""
        return self.spec.name

    @property
    def object_name(self) -> str:
        """The object's name, unique among those of its kind."""
        return self.metadata.name

    @property
    def path(self) -> str:
        """Where the object is in the API."""
        return self.kind.object_path(self.metadata.name)

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.metadata.uid


class _Pool(msgspec.Struct, Generic[S]):
    metadata: ObjectMeta
    spec: S
    status: msgspec.Raw = msgspec.Raw(b"null")


class _AnyPool(msgspec.Struct):
    metadata: ObjectMeta
    status: msgspec.Raw = msgspec.Raw(b"null")


_NODE = msgspec.json.Decoder(LeanNode)
_POOLS: dict[PoolKind, msgspec.json.Decoder[_Pool[PoolObjectSpec]]] = {
    CLUSTER_CIDR: msgspec.json.Decoder(_Pool[ClusterCIDRSpec]),
    CLUSTER_CIDR_CONFIG: msgspec.json.Decoder(_Pool[ClusterCIDRConfigSpec]),
}
_ANY_POOL = msgspec.json.Decoder(_AnyPool)
_STATUS: msgspec.json.Decoder[PoolStatus | None] = msgspec.json.Decoder(PoolStatus | None)


def read_node(raw: Json) -> decision.Node:
    """What bears on the blocks of a node."""
    node = _NODE.decode(raw)
    _require_name(node.metadata.name)
    return node_facts(node)


def read_pool(raw: Json, kind: PoolKind) -> SeenPool:
    """A pool of this kind, valid or not."""
    try:
        seen = _POOLS[kind].decode(raw)
    except msgspec.ValidationError:
        return _read_slowly(raw, kind)
    return _seen(kind, seen.metadata, seen.spec, seen.status)


def _require_name(name: str) -> None:
    if not name:
        raise msgspec.ValidationError("it has no metadata.name")


def _seen(kind: PoolKind, metadata: ObjectMeta, spec: PoolObjectSpec, status: msgspec.Raw) -> SeenPool:
    _require_name(metadata.name)
    problems = validate_pool_parts(metadata, spec)
    made = unusable_pool(kind, metadata, problems) if problems else pool_of(kind, metadata, spec, live=True)
    return SeenPool(metadata, made, _status(status), kind)


def _read_slowly(raw: Json, kind: PoolKind) -> SeenPool:
    """A pool that is not quite of the right shape, if that: a size may be written as 8.0."""
    seen = _ANY_POOL.decode(raw)
    _require_name(seen.metadata.name)
    fields = msgspec.json.decode(raw)
    # What others wrote into the status, or the API server into the metadata, is no fault of the pool.
    decoded = decode({"metadata": {"name": seen.metadata.name}, "spec": fields.get("spec")}, kind.struct)
    if isinstance(decoded, list):
        return SeenPool(seen.metadata, unusable_pool(kind, seen.metadata, decoded), _status(seen.status), kind)
    return _seen(kind, seen.metadata, decoded.spec, seen.status)


def _status(raw: msgspec.Raw) -> PoolStatus | None:
    try:
        return _STATUS.decode(raw)
    except msgspec.ValidationError:
        return None
