"""From objects of the API to what the core reasons about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core import decision
from cidrella.core.pool import PoolRange, PoolSpec
from cidrella.core.prefix import Prefix
from cidrella.core.selector import Operator, Requirement, Selector, Term
from cidrella.model.objects import (
    FAMILY_ORDER_ANNOTATION,
    FINALIZER,
    IPV6_FIRST,
    POOL_ANNOTATION,
    UNINITIALIZED_TAINT,
    LeanNodeSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cidrella.model.objects import (
        ClusterCIDR,
        ClusterCIDRSpec,
        LeanNode,
        Node,
        NodeSelector,
        NodeSelectorRequirement,
        ServiceCIDR,
    )


_NO_SPEC = LeanNodeSpec()


def pool_spec(obj: ClusterCIDR, *, live: bool = False) -> PoolSpec:
    """The pool that a valid ClusterCIDR describes. One that lives in a cluster gives only with its finalizer (P1)."""
    return PoolSpec(
        name=obj.metadata.name,
        ranges=_in_order(tuple(_ranges(obj.spec)), obj.metadata.annotations.get(FAMILY_ORDER_ANNOTATION, "")),
        selector=_selector(obj.spec.node_selector),
        created=obj.metadata.creation_timestamp or "",
        terminating=obj.metadata.deletion_timestamp is not None,
        guarded=not live or FINALIZER in obj.metadata.finalizers,
    )


def node_facts(obj: Node | LeanNode) -> decision.Node:
    """What bears on the blocks of a node. Its podCIDRs are handed on as they stand (N7)."""
    metadata, spec = obj.metadata, obj.spec or _NO_SPEC
    return decision.Node(
        metadata.name,
        metadata.labels or {},
        metadata.uid or "",
        tuple(spec.pod_cidrs or ((spec.pod_cidr,) if spec.pod_cidr else ())),
        (metadata.annotations or {}).get(POOL_ANNOTATION, ""),
        metadata.deletion_timestamp is not None,
        any(taint.key == UNINITIALIZED_TAINT for taint in spec.taints or ()),
    )


def service_ranges(obj: ServiceCIDR) -> list[Prefix]:
    """The ranges of a ServiceCIDR (A7). Raises `PrefixError` for one that cannot be read at all, as no valid one has.

    Read leniently, since Services get addresses from it whatever its spelling.
    """
    return [Prefix.parse_lenient(text) for text in obj.spec.cidrs]


def _ranges(spec: ClusterCIDRSpec) -> Iterator[PoolRange]:
    """IPv4 first, as in `podCIDRs`."""
    if spec.ipv4:
        yield _range(spec.ipv4, spec.per_node_host_bits)
    if spec.ipv6:
        own = spec.per_node_host_bits_ipv6
        yield _range(spec.ipv6, spec.per_node_host_bits if own is None else own)


def _in_order(ranges: tuple[PoolRange, ...], order: str) -> tuple[PoolRange, ...]:
    """IPv6 first where the annotation says so (F1). Anything else that it may say is as if it were absent."""
    return ranges[::-1] if order == IPV6_FIRST else ranges


def _range(text: str, host_bits: int) -> PoolRange:
    cidr = Prefix.parse(text)
    return PoolRange(cidr, cidr.family.bits - host_bits)


def _selector(selector: NodeSelector | None) -> Selector | None:
    """The selector, or None where it is absent or has no terms (S2)."""
    if selector is None or not selector.node_selector_terms:
        return None
    return Selector(
        tuple(
            Term(_requirements(term.match_expressions), _requirements(term.match_fields))
            for term in selector.node_selector_terms
        )
    )


def _requirements(requirements: Iterable[NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, Operator(each.operator), tuple(each.values)) for each in requirements)
