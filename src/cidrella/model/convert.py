"""From objects of the API to what the core reasons about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core import decision
from cidrella.core.pool import PoolRange, PoolSpec
from cidrella.core.prefix import Prefix
from cidrella.core.selector import Operator, Requirement, Selector, Term
from cidrella.model.configs import ClusterCIDRConfigSpec
from cidrella.model.kinds import kind_of
from cidrella.model.objects import (
    FAMILY_ORDER_ANNOTATION,
    FINALIZER,
    IPV6_FIRST,
    POOL_ANNOTATION,
    UNINITIALIZED_TAINT,
    ClusterCIDRSpec,
    LeanNodeSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cidrella.model.configs import LabelSelector, LabelSelectorRequirement
    from cidrella.model.decode import Problem
    from cidrella.model.kinds import PoolKind, PoolObject, PoolObjectSpec
    from cidrella.model.objects import (
        LeanNode,
        Node,
        NodeSelector,
        NodeSelectorRequirement,
        ObjectMeta,
        ServiceCIDR,
    )

_NO_SPEC = LeanNodeSpec()


def pool_spec(obj: PoolObject, *, live: bool = False) -> PoolSpec:
    """The pool that a valid object describes. One that lives in a cluster gives only with its finalizer (P1)."""
    return pool_of(kind_of(obj), obj.metadata, obj.spec, live=live)


def pool_of(kind: PoolKind, metadata: ObjectMeta, spec: PoolObjectSpec, *, live: bool) -> PoolSpec:
    """The same of the parts of an object."""
    match spec:
        case ClusterCIDRSpec():
            ranges = _in_order(tuple(_ranges(spec)), metadata.annotations.get(FAMILY_ORDER_ANNOTATION, ""))
            selector, composed = _node_selector(spec.node_selector), False
        case ClusterCIDRConfigSpec():
            ranges = (PoolRange(Prefix.parse(spec.cidr), spec.per_node_mask_size),)
            selector, composed = _label_selector(spec.node_selector), True
    return PoolSpec(
        name=kind.pool_name(metadata.name),
        ranges=ranges,
        selector=selector,
        created=metadata.creation_timestamp or "",
        terminating=metadata.deletion_timestamp is not None,
        guarded=not live or FINALIZER in metadata.finalizers,
        composed=composed,
    )


def unusable_pool(kind: PoolKind, metadata: ObjectMeta, problems: Iterable[Problem]) -> PoolSpec:
    """What is left of a pool that is invalid: that it is there, and why it is not used (C4)."""
    return PoolSpec(
        kind.pool_name(metadata.name),
        (),
        created=metadata.creation_timestamp or "",
        terminating=metadata.deletion_timestamp is not None,
        problem="; ".join(map(str, problems)),
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


def _node_selector(selector: NodeSelector | None) -> Selector | None:
    """The selector, or None where it is absent or has no terms (S2)."""
    if selector is None or not selector.node_selector_terms:
        return None
    return Selector(
        tuple(
            Term(_requirements(term.match_expressions), _requirements(term.match_fields))
            for term in selector.node_selector_terms
        )
    )


def _label_selector(selector: LabelSelector | None) -> Selector | None:
    """The same of labels: one term, of all that it asks. None where it asks nothing."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    labels = tuple(Requirement(key, Operator.IN, (value,)) for key, value in selector.match_labels.items())
    return Selector((Term(labels + _requirements(selector.match_expressions)),))


def _requirements(
    requirements: Iterable[NodeSelectorRequirement | LabelSelectorRequirement],
) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, Operator(each.operator), tuple(each.values)) for each in requirements)
