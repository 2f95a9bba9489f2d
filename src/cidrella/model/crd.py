"""The `ClusterCIDR` custom resource definition, made from the structs.

`msgspec.inspect` tells what the structs hold; here it becomes a structural schema, which is what Kubernetes asks of a
CRD: nothing referred to, nothing nullable (an absent field is one that is not required), every list's kind stated. What
the structs cannot say (minima, patterns, CEL) they carry as pieces of schema, laid over what was made of the type.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import getdoc
from typing import TYPE_CHECKING, Final

import msgspec.inspect as types

from cidrella.model import rules
from cidrella.model.objects import GROUP, KIND, PLURAL, VERSION, ClusterCIDR, ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACTIVE: Final = '.status.conditions[?(@.type=="Active")].status'
# kubectl prints the names in capitals, and NAME before them all (C5).
_COLUMNS: Final = (
    ("PerNodeHostBits", "integer", ".spec.perNodeHostBits", "The size of a node's block, in bits"),
    ("IPv4", "string", ".spec.ipv4", "The IPv4 range"),
    ("IPv6", "string", ".spec.ipv6", "The IPv6 range"),
    ("Used", "integer", ".status.nodes", "The nodes that use it"),
    ("Free", "integer", ".status.free", "The blocks left, of the family that has fewer"),
    ("Active", "string", _ACTIVE, "Whether it can give a block"),
    ("Age", "date", ".metadata.creationTimestamp", "The time since it was created"),
)


def crds() -> list[dict[str, object]]:
    """Every custom resource definition that Cidrella brings, as `cidrella crds` prints them."""
    return [cluster_cidr_crd()]


def cluster_cidr_crd() -> dict[str, object]:
    """The definition of `ClusterCIDR`."""
    names = {"kind": KIND, "listKind": f"{KIND}List", "plural": PLURAL, "singular": KIND.lower(), "shortNames": ["cc"]}
    columns = [
        {"name": name, "type": kind, "jsonPath": path, "description": text} for name, kind, path, text in _COLUMNS
    ]
    schema = _laid_over(_schema(types.type_info(ClusterCIDR)), rules.ROOT)
    del schema["required"]  # of the spec: a rule of the root asks for it, with more care
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }


def _schema(info: types.Type) -> dict[str, object]:
    """The structural schema of a type."""
    match info:
        case types.Metadata(type=inner, extra_json_schema=extra):
            return _laid_over(_schema(inner), extra or {})
        case types.UnionType(types=members):
            (member,) = (each for each in members if not isinstance(each, types.NoneType))
            return _schema(member)
        case types.StructType(cls=cls):
            # The API server has its own idea of metadata, and takes no other.
            return {"type": "object"} if cls is ObjectMeta else _object(info)
        case types.ListType(item_type=item):
            return {"type": "array", "x-kubernetes-list-type": "atomic", "items": _schema(item)}
        case types.StrType():
            return {"type": "string"}
        case types.IntType():
            return {"type": "integer", "format": "int64"}
    raise TypeError(f"no schema for {info}")


def _object(info: types.StructType) -> dict[str, object]:
    made: dict[str, object] = {
        "type": "object",
        "description": getdoc(info.cls),
        "properties": {each.encode_name: _schema(each.type) for each in info.fields},
    }
    if required := [each.encode_name for each in info.fields if each.required]:
        made["required"] = required
    return made


def _laid_over(schema: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, object]:
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
