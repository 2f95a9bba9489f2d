"""Whether an object makes sense: C1, C2, C4 and K1, in the same fields and with the same meaning as the CRD's rules.

What is checked here is an object of the right shape (`decode`), so the API server and `cidrella validate` can only
differ where this file and `rules` do; `tests/model` has the tables that both are held to. Every fault is
reported, not the first one only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model import rules
from cidrella.model.configs import ClusterCIDRConfigSpec
from cidrella.model.decode import Problem
from cidrella.model.kinds import kind_of
from cidrella.model.objects import ClusterCIDRSpec
from cidrella.model.selectors import label_problems, label_selector_problems, node_selector_problems
from cidrella.model.syntax import name_fault

if TYPE_CHECKING:
    from cidrella.model.chosen import Service
    from cidrella.model.kinds import PoolObject, PoolObjectSpec
    from cidrella.model.objects import Node, ObjectMeta, ServiceCIDR
    from cidrella.model.selectors import Path, Problems
    from cidrella.model.serviceip import IPAddress, RangeAllocation

_INT32_MAX = (1 << 31) - 1
_LONGEST = rules.longest(6)
_SERVICE_RANGES_MAX = 2


def validate_pool(obj: PoolObject) -> list[Problem]:
    """Everything that keeps a pool from being used (C1, C2, C4, K1); none if it is valid."""
    return [*_type(obj), *validate_pool_parts(obj.metadata, obj.spec)]


def validate_pool_parts(metadata: ObjectMeta, spec: PoolObjectSpec) -> list[Problem]:
    """The same of what is known to be of the kind that the spec is for."""
    problems = list(_metadata(metadata))
    match spec:
        case ClusterCIDRSpec():
            problems += _spec(spec, ("spec",))
            if spec.node_selector is not None:
                problems += node_selector_problems(spec.node_selector, ("spec", "nodeSelector"))
        case ClusterCIDRConfigSpec():
            problems += _config_spec(spec, ("spec",))
            if spec.node_selector is not None:
                problems += label_selector_problems(spec.node_selector, ("spec", "nodeSelector"))
    return problems


def validate_node(obj: Node) -> list[Problem]:
    """What is wrong with a node's name. Its podCIDRs are read leniently, whatever they are (N7)."""
    return list(_name(obj.metadata.name))


def validate_service_cidr(obj: ServiceCIDR) -> list[Problem]:
    """Everything for which Kubernetes would refuse a ServiceCIDR: one range, or one of each family."""
    problems = list(_name(obj.metadata.name))
    path = ("spec", "cidrs")
    ranges = []
    for index, text in enumerate(obj.spec.cidrs):
        try:
            ranges.append(Prefix.parse(text))
        except PrefixError as error:
            problems.append(Problem((*path, index), f"{text!r} {error}"))
    if not obj.spec.cidrs:
        problems.append(Problem(path, "must hold a range; give one, or one of each family"))
    elif len(obj.spec.cidrs) > _SERVICE_RANGES_MAX or len({each.family for each in ranges}) < len(ranges):
        problems.append(Problem(path, "may hold one range of each family; move the rest to another ServiceCIDR"))
    return problems


def validate_name(obj: Service | IPAddress | RangeAllocation) -> list[Problem]:
    """What is wrong with the name of an object of which nothing else is asked."""
    return list(_name(obj.metadata.name))


def validate_ip_address(obj: IPAddress) -> list[Problem]:
    """An IPAddress is named by the address."""
    try:
        Address.parse_lenient(obj.metadata.name)
    except PrefixError as error:
        return [Problem(("metadata", "name"), f"{obj.metadata.name!r} {error}")]
    return []


def _type(obj: PoolObject) -> Problems:
    kind = kind_of(obj)
    if obj.api_version != kind.api_version:
        yield Problem(("apiVersion",), f"must be {kind.api_version}, not {obj.api_version!r}")
    if obj.kind != kind.kind:
        yield Problem(("kind",), f"must be {kind.kind}, not {obj.kind!r}")


def _metadata(meta: ObjectMeta) -> Problems:
    yield from _name(meta.name)
    yield from label_problems(meta.labels, ("metadata", "labels"))


def _name(name: str) -> Problems:
    if not name:
        yield Problem(("metadata", "name"), "is required; add it")
    elif fault := name_fault(name):
        yield Problem(("metadata", "name"), f"{name!r} {fault}")


def _spec(spec: ClusterCIDRSpec, path: Path) -> Problems:
    if not spec.ipv4 and not spec.ipv6:
        yield Problem(path, rules.NO_RANGE)
    ranges: dict[Family, Prefix] = {}
    for family, text in ((Family.IPV4, spec.ipv4), (Family.IPV6, spec.ipv6)):
        if text:
            read = _range(text, family, (*path, str(family).lower()))
            if isinstance(read, Problem):
                yield read
            else:
                ranges[family] = read
    shared = [Family.IPV4] if spec.per_node_host_bits_ipv6 is not None else [Family.IPV4, Family.IPV6]
    yield from _host_bits(
        spec.per_node_host_bits, [ranges[each] for each in shared if each in ranges], (*path, "perNodeHostBits")
    )
    if spec.per_node_host_bits_ipv6 is not None:
        own = (*path, "perNodeHostBitsIPv6")
        yield from _host_bits(spec.per_node_host_bits_ipv6, [ranges[Family.IPV6]] if Family.IPV6 in ranges else [], own)
        if not spec.ipv6:
            yield Problem(own, rules.IPV6_BITS_ALONE)


def _config_spec(spec: ClusterCIDRConfigSpec, path: Path) -> Problems:
    read = _range(spec.cidr, None, (*path, "cidr"))
    length, own = spec.per_node_mask_size, (*path, "perNodeMaskSize")
    if isinstance(read, Problem):
        yield read
        if not 0 <= length <= _LONGEST:
            yield Problem(own, f"must be from 0 to {_LONGEST}, not {length}")
    elif length > (most := rules.longest(read.family.value)):
        yield Problem(own, f"must be at most {most} for {read.family}, not {length}; a block has 16 addresses or more")
    elif length < read.length:
        yield Problem(own, f"must be at least {read.length}, not {length}, to leave at least one block in {read}")


def _range(text: str, family: Family | None, path: Path) -> Prefix | Problem:
    """A range, which may have to be of one family, or the first thing wrong with it."""
    try:
        read = Prefix.parse(text)
    except PrefixError as error:
        return Problem(path, f"{text!r} {error}")
    if family is not None and read.family is not family:
        other = str(read.family).lower()
        return Problem(path, f"{text!r} {rules.OTHER_FAMILY.format(family=family, field=other)}")
    longest = rules.longest(read.family.value)
    if read.length > longest:
        return Problem(path, f"{text!r} {rules.TOO_SMALL.format(length=longest)}")
    return read


def _host_bits(bits: int, ranges: list[Prefix], path: Path) -> Problems:
    """Whether blocks of this size have their minimum, and room in each of the ranges (C2)."""
    if bits < rules.HOST_BITS_MIN:
        yield Problem(path, f"must be at least {rules.HOST_BITS_MIN}, not {bits}; a block has 16 addresses or more")
    if not ranges and bits > _INT32_MAX:
        yield Problem(path, f"must be at most {Family.IPV6.bits}, not {bits}; no address has more bits")
    for each in ranges:
        if bits > each.host_bits:
            yield Problem(path, f"must be at most {each.host_bits}, not {bits}, to leave at least one block in {each}")
