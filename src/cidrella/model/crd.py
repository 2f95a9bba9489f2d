"""The custom resource definitions of the kinds of pools and of `RangeAllocation`, made from the structs.

`msgspec.inspect` tells what the structs hold; here it becomes a structural schema, which is what Kubernetes asks of a
CRD: nothing referred to, nothing nullable (an absent field is one that is not required), every list's kind stated. What
the structs cannot say (minima, patterns, CEL) they carry as pieces of schema, laid over what was made of the type.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import getdoc
from typing import TYPE_CHECKING, Final

import msgspec.inspect as types

from cidrella.model import objects, rules, serviceip
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cidrella.model.kinds import PoolKind
    from cidrella.model.rules import Schema

_ACTIVE: Final = '.status.conditions[?(@.type=="Active")].status'
# kubectl prints the names in capitals, and NAME before them all (C5).
_AGE: Final = ("Age", "date", ".metadata.creationTimestamp", "The time since it was created")
_SPEC_COLUMNS: Final = {
    CLUSTER_CIDR: (
        ("PerNodeHostBits", "integer", ".spec.perNodeHostBits", "The size of a node's block, in bits"),
        ("IPv4", "string", ".spec.ipv4", "The IPv4 range"),
        ("IPv6", "string", ".spec.ipv6", "The IPv6 range"),
    ),
    CLUSTER_CIDR_CONFIG: (
        ("CIDR", "string", ".spec.cidr", "The range"),
        ("PerNodeMaskSize", "integer", ".spec.perNodeMaskSize", "The length of a node's block"),
    ),
}
_STATUS_COLUMNS: Final = (
    ("Used", "integer", ".status.nodes", "The nodes that use it"),
    ("Free", "integer", ".status.free", "The blocks left, of the family that has fewer"),
    ("Active", "string", _ACTIVE, "Whether it can give a block"),
    _AGE,
)
_ALLOCATION_COLUMNS: Final = (("Range", "string", ".range", "The range"), _AGE)
_PLAIN: Final[Mapping[type[types.Type], Schema]] = {
    types.StrType: {"type": "string"},
    types.BytesType: {"type": "string"},  # in base64
    types.IntType: {"type": "integer", "format": "int64"},
}


def crds() -> dict[str, Schema]:
    """Every custom resource definition that Cidrella brings, by name, in the order of `cidrella crds`."""
    return {
        **{each.resource: pool_crd(each) for each in POOL_KINDS},
        f"{serviceip.RANGE_ALLOCATION_PLURAL}.{serviceip.GROUP}": range_allocation_crd(),
    }


def pool_crd(kind: PoolKind) -> Schema:
    """The definition of a kind of pools."""
    schema = _laid_over(_schema(types.type_info(kind.struct)), rules.ROOT)
    del schema["required"]  # of the spec: a rule of the root asks for it, with more care
    columns = (*_SPEC_COLUMNS[kind], *_STATUS_COLUMNS)
    version = _version(kind.version, schema, columns, {"subresources": {"status": {}}})
    return _definition(kind.group, kind.kind, kind.plural, version, {"shortNames": [kind.short]})


def range_allocation_crd() -> Schema:
    """The definition of `RangeAllocation` (B5)."""
    schema = _schema(types.type_info(serviceip.RangeAllocation))
    version = _version(serviceip.VERSION, schema, _ALLOCATION_COLUMNS, {})
    kind, plural = serviceip.RANGE_ALLOCATION_KIND, serviceip.RANGE_ALLOCATION_PLURAL
    return _definition(serviceip.GROUP, kind, plural, version, {})


def _definition(group: str, kind: str, plural: str, version: Schema, more_names: Schema) -> Schema:
    """The definition of a kind of cluster-wide objects, of which there is one version."""
    names: Schema = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": names | more_names,
            "scope": "Cluster",
            "versions": [version],
        },
    }


def _version(name: str, schema: Schema, columns: Iterable[tuple[str, str, str, str]], more: Schema) -> Schema:
    return {
        "name": name,
        "served": True,
        "storage": True,
        **more,
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, "description": text} for name, kind, path, text in columns
        ],
        "schema": {"openAPIV3Schema": schema},
    }


def _schema(info: types.Type) -> Schema:
    """The structural schema of a type."""
    match info:
        case types.Metadata(type=inner, extra_json_schema=extra):
            return _laid_over(_schema(inner), extra or {})
        case types.UnionType(types=members):
            (member,) = (each for each in members if not isinstance(each, types.NoneType))
            return _schema(member)
        case types.StructType(cls=cls):
            # The API server has its own idea of metadata, and takes no other.
            return {"type": "object"} if cls is objects.ObjectMeta else _object(info)
        case types.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value)}
        case types.ListType(item_type=item):
            return {"type": "array", "x-kubernetes-list-type": "atomic", "items": _schema(item)}
    if type(info) not in _PLAIN:
        raise TypeError(f"no schema for {info}")
    return dict(_PLAIN[type(info)])


def _object(info: types.StructType) -> Schema:
    made: Schema = {
        "type": "object",
        "description": getdoc(info.cls),
        "properties": {each.encode_name: _schema(each.type) for each in info.fields},
    }
    if required := [each.encode_name for each in info.fields if each.required]:
        made["required"] = required
    return made


def _laid_over(schema: Mapping[str, object], extra: Mapping[str, object]) -> Schema:
    """The schema with more said: what both have and is a mapping is joined, else the extra one counts.

    Nothing is shared with either: whoever gets the definition may change it, and YAML has no need of aliases.
    """
    made = dict(schema)
    for key, value in extra.items():
        below = made.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            made[key] = _laid_over(below, value)
        else:
            made[key] = deepcopy(value)
    return made
