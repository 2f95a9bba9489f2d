"""The objects of the API, with the fields in use and no others.

Rules:

- A JSON null is an absent field, as it is to Kubernetes. A field of type `Nullable[T]` reads null and holds its default
  instead, so that nobody who uses it has to ask.
- What people write for us (`ClusterCIDR`, and the kind in `configs`) has no unknown fields: a misspelt field would be a
  setting without effect. What Kubernetes writes (`Node`, `ServiceCIDR`, all metadata) has many that are none of our
  business.
- Structs say what shape an object has, and carry its schema for the CRD. Whether it makes sense is for `validate`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional, TypeVar

from msgspec import NODEFAULT, Meta, Struct, field
from msgspec.structs import fields, force_setattr

from cidrella.model import rules

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")
    Nullable = Annotated[T, "reads null, holds its default instead"]
else:
    Nullable = Optional

GROUP: Final = "networking.x-k8s.io"
VERSION: Final = "v1"
PLURAL: Final = "clustercidrs"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "ClusterCIDR"
POOLS_PATH: Final = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
NODES_PATH: Final = "/api/v1/nodes"
SERVICE_CIDRS_PATH: Final = "/apis/networking.k8s.io/v1/servicecidrs"
POOL_ANNOTATION: Final = "cidrella.dev/pool"
"""On a node: the pool that its first block came from (N3, P3)."""
FAMILY_ORDER_ANNOTATION: Final = "cidrella.dev/family-order"
"""On a pool: the order in which a node gets its blocks, as `IPv6,IPv4`; IPv4 first where it is absent (F1)."""
IPV6_FIRST: Final = "IPv6,IPv4"
FINALIZER: Final = "networking.kubernetes.io/cluster-cidr-config-finalizer"
"""On a pool: it stays until the last node that uses it is gone (P1, P2)."""
FOREIGN_FINALIZER: Final = "networking.x-k8s.io/cluster-cidr-finalizer"
"""On a pool: another controller's, which means the same and is removed like ours (P1)."""
UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
"""On a node: its cloud provider has not finished labelling it (N10)."""

_COUNT_MAX: Final = (1 << 63) - 1


def clamp_count(count: int) -> int:
    """A count as the status can hold it: what does not fit 63 bits is as good as that many (C5)."""
    return min(count, _COUNT_MAX)


@cache
def _fillers(kind: type[Struct]) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """The fields that never hold None, each with what makes its default."""
    made = []
    for each in fields(kind):
        if each.default_factory is not NODEFAULT:
            made.append((each.name, each.default_factory))
        elif each.default is not NODEFAULT and each.default is not None:
            made.append((each.name, lambda value=each.default: value))
    return tuple(made)


class ApiStruct(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """The base of all: camelCase in JSON, defaults left out, and null read as absent."""

    def __post_init__(self) -> None:
        for name, default in _fillers(type(self)):
            if getattr(self, name) is None:
                force_setattr(self, name, default())


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """Standard object metadata."""

    name: Nullable[str] = ""
    uid: Nullable[str] = ""
    labels: Nullable[dict[str, str]] = field(default_factory=dict)
    annotations: Nullable[dict[str, str]] = field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    generation: Nullable[int] = 0
    resource_version: Nullable[str] = ""
    finalizers: Nullable[list[str]] = field(default_factory=list)


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: Nullable[str] = ""
    effect: Nullable[str] = ""


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    """What a node's spec says about its blocks."""

    pod_cidr: Nullable[str] = field(default="", name="podCIDR")
    pod_cidrs: Nullable[list[str]] = field(default_factory=list, name="podCIDRs")
    taints: Nullable[list[Taint]] = field(default_factory=list)


class Node(ApiStruct, frozen=True, kw_only=True):
    """A core/v1 Node."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[NodeSpec] = field(default_factory=NodeSpec)


class LeanTaint(Struct):
    """A taint, by its key."""

    key: str


class LeanMeta(Struct, rename="camel"):
    """What is in use of a node's metadata."""

    name: str
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class LeanNodeSpec(Struct):
    """What is in use of a node's spec."""

    pod_cidr: str | None = field(default=None, name="podCIDR")
    pod_cidrs: list[str] | None = field(default=None, name="podCIDRs")
    taints: list[LeanTaint] | None = None


class LeanNode(Struct):
    """A Node with nothing done to what comes in, null included: thousands do, again and again."""

    metadata: LeanMeta
    spec: LeanNodeSpec | None = None


class ServiceCIDRSpec(ApiStruct, frozen=True, kw_only=True):
    """The ranges that Services get their addresses from."""

    cidrs: Nullable[list[str]] = field(default_factory=list)


class ServiceCIDRCondition(ApiStruct, frozen=True, kw_only=True):
    """One aspect of the state of a ServiceCIDR."""

    type: Nullable[str] = ""
    status: Nullable[str] = ""


class ServiceCIDRStatus(ApiStruct, frozen=True, kw_only=True):
    """What Kubernetes says of a ServiceCIDR."""

    conditions: Nullable[list[ServiceCIDRCondition]] = field(default_factory=list)


class ServiceCIDR(ApiStruct, frozen=True, kw_only=True):
    """A networking.k8s.io/v1 ServiceCIDR (A7)."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[ServiceCIDRSpec] = field(default_factory=ServiceCIDRSpec)
    status: Nullable[ServiceCIDRStatus] = field(default_factory=ServiceCIDRStatus)


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition on one label or field of a node."""

    key: Annotated[str, Meta(description="The label, or in matchFields the field, that is looked at.")]
    operator: Annotated[
        str, Meta(description="How the values are compared with what the node has.", extra_json_schema=rules.OPERATOR)
    ]
    values: Annotated[
        Nullable[list[str]],
        Meta(description="In, NotIn: one or more. Exists, DoesNotExist: none. Gt, Lt: one whole number."),
    ] = field(default_factory=list)


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requirements that a node must meet together; a term without any matches no node."""

    match_expressions: Annotated[
        Nullable[list[Annotated[NodeSelectorRequirement, Meta(extra_json_schema=rules.EXPRESSION)]]],
        Meta(description="Requirements on the node's labels.", extra_json_schema=rules.EXPRESSIONS),
    ] = field(default_factory=list)
    match_fields: Annotated[
        Nullable[list[Annotated[NodeSelectorRequirement, Meta(extra_json_schema=rules.FIELD)]]],
        Meta(description="Requirements on the node's fields, of which metadata.name is the only one known."),
    ] = field(default_factory=list)


class NodeSelector(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Terms of which a node must match one."""

    node_selector_terms: Annotated[
        Nullable[list[Annotated[NodeSelectorTerm, Meta(extra_json_schema=rules.ATOMIC)]]],
        Meta(description="Alternatives. None at all is as no nodeSelector.", extra_json_schema=rules.TERMS),
    ] = field(default_factory=list)


class ClusterCIDRSpec(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ranges of a pool, the size of a node's block, and the nodes it is for. Nothing in it can be changed."""

    per_node_host_bits: Annotated[
        int,
        Meta(
            description="The size of a node's block, in bits of the address: 8 gives each node 256 addresses, an IPv4 "
            "/24 and an IPv6 /120. At least 4. Immutable.",
            extra_json_schema=rules.HOST_BITS,
        ),
    ]
    per_node_host_bits_ipv6: Annotated[
        int | None,
        Meta(
            description="A size of its own for IPv6 blocks: 64 gives each node a /64. Absent: perNodeHostBits counts "
            "for both families. Immutable.",
            extra_json_schema=rules.HOST_BITS,
        ),
    ] = field(default=None, name="perNodeHostBitsIPv6")
    ipv4: Annotated[
        Nullable[str],
        Meta(
            description="The IPv4 range that blocks are taken from, as 10.1.0.0/16. Empty is as absent. Immutable.",
            extra_json_schema=rules.IPV4,
        ),
    ] = ""
    ipv6: Annotated[
        Nullable[str],
        Meta(
            description="The IPv6 range that blocks are taken from, as fd12:3456:789a::/48. Empty is as absent. "
            "Immutable.",
            extra_json_schema=rules.IPV6,
        ),
    ] = ""
    node_selector: Annotated[
        NodeSelector | None,
        Meta(
            description="The nodes that this pool is for. Absent: any node that no pool with a selector serves. "
            "Immutable.",
            extra_json_schema=rules.ATOMIC,
        ),
    ] = None


class Condition(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One aspect of the state of an object."""

    type: Annotated[str, Meta(description="Active or Terminating.")]
    status: Annotated[str, Meta(extra_json_schema=rules.CONDITION_STATUS)]
    reason: Annotated[Nullable[str], Meta(description="Why, in one CamelCase word.")] = ""
    message: Annotated[Nullable[str], Meta(description="Why, for people.")] = ""
    observed_generation: Annotated[Nullable[int], Meta(description="The generation that this was said of.")] = 0
    last_transition_time: Annotated[
        str | None, Meta(description="When the status last changed.", extra_json_schema=rules.DATE_TIME)
    ] = None


def _count() -> int:
    """A count in the status. Made by a factory, for a default proper would be left out, and 0 must show as 0."""
    return field(default_factory=int)


class FamilyStatus(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many blocks there are of one family. The three need not add up: others may hold addresses of the range."""

    capacity: Annotated[Nullable[int], Meta(description="The blocks that the range is divided into.")] = _count()
    allocated: Annotated[Nullable[int], Meta(description="Those that nodes of this pool touch.")] = _count()
    free: Annotated[Nullable[int], Meta(description="Those that could be given right now.")] = _count()


class PoolStatus(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the controller says about a pool. Counts that do not fit 63 bits are given as 2^63-1."""

    conditions: Annotated[Nullable[list[Condition]], Meta(extra_json_schema=rules.CONDITIONS)] = field(
        default_factory=list
    )
    ipv4: Annotated[FamilyStatus | None, Meta(description="The blocks of the IPv4 range.")] = None
    ipv6: Annotated[FamilyStatus | None, Meta(description="The blocks of the IPv6 range.")] = None
    nodes: Annotated[Nullable[int], Meta(description="The nodes that use this pool.")] = _count()
    free: Annotated[Nullable[int], Meta(description="The free blocks of the family that has fewer.")] = _count()


class ClusterCIDR(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool of Pod addresses: ranges, from which each node that the pool is for gets a block of a fixed size."""

    # Made by a factory, for a default proper would be left out of the JSON.
    api_version: Nullable[str] = field(default_factory=lambda: API_VERSION)
    kind: Nullable[str] = field(default_factory=lambda: KIND)
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Annotated[ClusterCIDRSpec, Meta(extra_json_schema=rules.SPEC)]
    status: PoolStatus | None = None
