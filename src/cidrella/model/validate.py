"""Whether an object makes sense: C1, C2 and C4, in the same fields and with the same meaning as the CRD's rules.

What is checked here is an object of the right shape (`decode`), so the API server and `cidrella validate` can only
differ where this file and `rules` do; `tests/model/cases.py` is the table that both are held to. Every fault is
reported, not the first one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.core.selector import NAME_FIELD, Operator, parse_int64
from cidrella.model import rules
from cidrella.model.decode import Problem
from cidrella.model.objects import API_VERSION, KIND
from cidrella.model.syntax import LABEL_MAX, label_key_fault, label_value_fault, name_fault

if TYPE_CHECKING:
    from cidrella.model.chosen import Service
    from cidrella.model.objects import (
        ClusterCIDR,
        ClusterCIDRSpec,
        Node,
        NodeSelector,
        NodeSelectorRequirement,
        ObjectMeta,
        ServiceCIDR,
    )
    from cidrella.model.serviceip import IPAddress, RangeAllocation

Path: TypeAlias = tuple[str | int, ...]
Problems: TypeAlias = Iterator[Problem]

_INT32_MAX = (1 << 31) - 1
_OPERATORS = [each.value for each in Operator]
_SERVICE_RANGES_MAX = 2


def validate_cluster_cidr(obj: ClusterCIDR) -> list[Problem]:
    """Everything that keeps a ClusterCIDR from being used (C1, C2, C4); none if it is valid."""
    problems = [*_type(obj), *_metadata(obj.metadata), *_spec(obj.spec, ("spec",))]
    if obj.spec.node_selector is not None:
        problems += _selector(obj.spec.node_selector, ("spec", "nodeSelector"))
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


def _type(obj: ClusterCIDR) -> Problems:
    if obj.api_version != API_VERSION:
        yield Problem(("apiVersion",), f"must be {API_VERSION}, not {obj.api_version!r}")
    if obj.kind != KIND:
        yield Problem(("kind",), f"must be {KIND}, not {obj.kind!r}")


def _metadata(meta: ObjectMeta) -> Problems:
    yield from _name(meta.name)
    for key, value in meta.labels.items():
        for fault in (label_key_fault(key), label_value_fault(value)):
            if fault:
                yield Problem(("metadata", "labels", key), fault)


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


def _range(text: str, family: Family, path: Path) -> Prefix | Problem:
    """The range of one family, or the first thing wrong with it."""
    try:
        read = Prefix.parse(text)
    except PrefixError as error:
        return Problem(path, f"{text!r} {error}")
    if read.family is not family:
        other = str(read.family).lower()
        return Problem(path, f"{text!r} {rules.OTHER_FAMILY.format(family=family, field=other)}")
    longest = family.bits - rules.HOST_BITS_MIN
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


def _selector(selector: NodeSelector, path: Path) -> Problems:
    path = (*path, "nodeSelectorTerms")
    yield from _at_most(rules.TERMS_MAX, len(selector.node_selector_terms), path)
    for index, term in enumerate(selector.node_selector_terms):
        expressions, fields = (*path, index, "matchExpressions"), (*path, index, "matchFields")
        yield from _at_most(rules.EXPRESSIONS_MAX, len(term.match_expressions), expressions)
        for number, requirement in enumerate(term.match_expressions):
            yield from _expression(requirement, (*expressions, number))
        for number, requirement in enumerate(term.match_fields):
            yield from _field(requirement, (*fields, number))


def _at_most(limit: int, count: int, path: Path) -> Problems:
    if count > limit:
        yield Problem(path, f"may hold {limit} entries, and has {count}; use another ClusterCIDR for the rest")


def _expression(requirement: NodeSelectorRequirement, path: Path) -> Problems:
    """A requirement on labels."""
    if fault := label_key_fault(requirement.key):
        yield Problem((*path, "key"), f"{requirement.key!r} {fault}")
    if requirement.operator in _OPERATORS:
        yield from _values(Operator(requirement.operator), requirement.values, (*path, "values"))
    else:
        yield Problem((*path, "operator"), _unsupported(requirement.operator, _OPERATORS))


def _values(operator: Operator, values: list[str], path: Path) -> Problems:
    """The values of a requirement on labels: how many, and what they look like, depends on the operator."""
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield Problem(path, rules.VALUES_NEEDED)
            for index, value in enumerate(values):
                if fault := label_value_fault(value):
                    yield Problem((*path, index), f"{value!r} {fault}")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield Problem(path, rules.VALUES_FORBIDDEN)
        case Operator.GT | Operator.LT:
            if len(values) != 1:
                yield Problem(path, rules.ONE_VALUE)
            elif parse_int64(values[0]) is None or len(values[0]) > LABEL_MAX:
                yield Problem(path, rules.WHOLE_NUMBER)


def _field(requirement: NodeSelectorRequirement, path: Path) -> Problems:
    """A requirement on fields, of which there is one, compared with one name."""
    if requirement.key != NAME_FIELD:
        yield Problem((*path, "key"), _unsupported(requirement.key, [NAME_FIELD]))
    if requirement.operator not in rules.SET_OPERATORS:
        yield Problem((*path, "operator"), _unsupported(requirement.operator, rules.SET_OPERATORS))
    if len(requirement.values) != 1:
        yield Problem((*path, "values"), "must be exactly one node's name; use a term for each further one")
    for index, value in enumerate(requirement.values):
        if fault := name_fault(value):
            yield Problem((*path, "values", index), f"{value!r} {fault}")


def _unsupported(text: str, known: list[str] | tuple[str, ...]) -> str:
    return f"{text!r} is not supported; use {' or '.join(known)}"
