"""How the table of cases is written: a manifest in one line, with what is wrong about it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Manifest = dict[str, object]
Part = Mapping[str, object]

EXPRESSION = "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]"
FIELD = "spec.nodeSelector.nodeSelectorTerms[0].matchFields[0]"


class Case(NamedTuple):
    """An object, and which of its fields are wrong."""

    title: str
    manifest: Manifest
    fields: frozenset[str]


class Update(NamedTuple):
    """Two specs, and the field for which the second may not replace the first; empty if it may."""

    title: str
    before: Manifest
    after: Manifest
    field: str


def pool(spec: object, metadata: Part | None = None, **top: object) -> Manifest:
    """A ClusterCIDR as it is written in a file."""
    meta = {"name": "pool", **(metadata or {})}
    return {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": meta, "spec": spec, **top}


def config(spec: object, metadata: Part | None = None, **top: object) -> Manifest:
    """A ClusterCIDRConfig as it is written in a file."""
    made = {"apiVersion": "networking.x-k8s.io/v1alpha1", "kind": "ClusterCIDRConfig"}
    return {**pool(spec, metadata, **top), **made}


def valid(title: str, **spec: object) -> Case:
    """A spec that is valid, with 8 host bits and an IPv4 range unless it says otherwise."""
    return Case(title, pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", **spec}), frozenset())


def wrong(title: str, field: str | Sequence[str], /, **spec: object) -> Case:
    """A spec that is wrong in a field, or in several."""
    fields = [field] if isinstance(field, str) else field
    return Case(title, pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", **spec}), frozenset(fields))


def bare(title: str, field: str, spec: object) -> Case:
    """A spec that is wrong, without anything added."""
    return Case(title, pool(spec), frozenset({field} if field else ()))


def selecting(*terms: object) -> Part:
    """A nodeSelector with these terms."""
    return {"nodeSelectorTerms": list(terms)}


def asking(key: object, operator: object, *values: object) -> Part:
    """A selector with one requirement on one label."""
    return selecting({"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]})


def naming(key: str, operator: str, *values: str) -> Part:
    """A selector with one requirement on one field."""
    return selecting({"matchFields": [{"key": key, "operator": operator, "values": list(values)}]})


def matches(title: str, selector: object) -> Case:
    """A valid selector."""
    return valid(title, nodeSelector=selector)


def mismatches(title: str, field: str | Sequence[str], selector: object) -> Case:
    """A selector that Kubernetes would not accept."""
    return wrong(title, field, nodeSelector=selector)


def called(title: str, field: str, **metadata: object) -> Case:
    """A ClusterCIDR with this metadata."""
    return Case(
        title, pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}, metadata), frozenset({field} if field else ())
    )


def services(title: str, field: str, *cidrs: object, name: str = "services") -> Case:
    """A ServiceCIDR with these ranges."""
    manifest: Manifest = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": list(cidrs)},
    }
    return Case(title, manifest, frozenset({field} if field else ()))
