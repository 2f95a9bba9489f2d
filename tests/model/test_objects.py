"""The structs: what they read, what they leave out, and what they write."""

import msgspec
import pytest

from cidrella.model.objects import (
    API_VERSION,
    KIND,
    ClusterCIDR,
    ClusterCIDRSpec,
    FamilyStatus,
    Node,
    NodeSelectorTerm,
    ObjectMeta,
    PoolStatus,
    ServiceCIDR,
    clamp_count,
)
from tests.model.manifests import pool

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node-1",
        "uid": "7f9c",
        "labels": {"size": "big"},
        "annotations": {"cidrella.dev/pool": "big-nodes"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 3,
        "resourceVersion": "41",
        "finalizers": ["example.com/wait"],
        "managedFields": [{"manager": "kubelet", "operation": "Update"}],
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
        "providerID": "cloud:///zone/node-1",
        "taints": [{"key": "example.com/new", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
    },
    "status": {"capacity": {"cpu": "8"}},
}


def read(raw: object) -> ClusterCIDR:
    return msgspec.convert(raw, ClusterCIDR)


def test_a_node_as_the_api_sends_it() -> None:
    """N7: a real node is read whatever else it holds, from bytes and from plain data alike."""
    node = msgspec.json.decode(msgspec.json.encode(NODE), type=Node)
    assert node == msgspec.convert(NODE, Node)
    assert (node.metadata.name, node.metadata.uid, node.metadata.generation) == ("node-1", "7f9c", 3)
    assert (node.metadata.resource_version, node.metadata.finalizers) == ("41", ["example.com/wait"])
    assert (node.spec.pod_cidr, node.spec.pod_cidrs) == ("10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"])
    assert [(taint.key, taint.effect) for taint in node.spec.taints] == [("example.com/new", "NoSchedule")]


@pytest.mark.parametrize("raw", [{}, {"metadata": None, "spec": None}])
def test_a_node_with_nothing_in_it(raw: object) -> None:
    """N7: a node without podCIDRs, labels or taints has empty ones, however their absence is written."""
    node = msgspec.convert(raw, Node)
    assert (node.metadata.labels, node.spec.pod_cidrs, node.spec.pod_cidr, node.spec.taints) == ({}, [], "", [])


def test_null_is_absent_in_metadata() -> None:
    """C4: every field of the metadata may be null, as it may be to the API server."""
    nulls = {each.encode_name: None for each in msgspec.structs.fields(ObjectMeta)}
    assert msgspec.convert(nulls, ObjectMeta) == ObjectMeta()


def test_null_is_absent_in_a_pool() -> None:
    """C1, C4: every optional field of a ClusterCIDR may be null, and then holds what an absent one would."""
    term = {"matchExpressions": None, "matchFields": None}
    spec = {"perNodeHostBits": 8, "perNodeHostBitsIPv6": None, "ipv4": None, "ipv6": "fd00::/64"}
    raw = pool({**spec, "nodeSelector": {"nodeSelectorTerms": [term]}}, status=None)
    obj = read(raw)
    assert (obj.spec.ipv4, obj.spec.per_node_host_bits_ipv6, obj.status) == ("", None, None)
    assert obj.spec.node_selector is not None
    assert obj.spec.node_selector.node_selector_terms == [NodeSelectorTerm()]
    assert read(pool({**spec, "nodeSelector": None})).spec.node_selector is None


def test_defaults_are_not_shared() -> None:
    """S1: two nodes without labels do not come to share them."""
    first, second = msgspec.convert({"labels": None}, ObjectMeta), ObjectMeta()
    first.labels["size"] = "big"
    assert second.labels == ObjectMeta().labels == {}


@pytest.mark.parametrize("raw", [pool({"perNodeHostBits": 8}, extra=1), pool({"perNodeHostBits": 8, "extra": 1})])
def test_a_pool_has_no_unknown_fields(raw: object) -> None:
    """C4: a field of a ClusterCIDR that is not known is an error, not a setting without effect."""
    with pytest.raises(msgspec.ValidationError):
        read(raw)


def test_the_api_servers_metadata_is_taken() -> None:
    """C4: metadata that the API server adds to a ClusterCIDR is no unknown field."""
    raw = pool({"perNodeHostBits": 8}, {"managedFields": [], "selfLink": "", "ownerReferences": []})
    assert read(raw).metadata.name == "pool"


def test_a_pool_is_written_with_its_kind_and_without_what_is_unset() -> None:
    """C1: what is written can be read by the API server: kind and version are there, absent fields are not."""
    obj = ClusterCIDR(metadata=ObjectMeta(name="pool"), spec=ClusterCIDRSpec(per_node_host_bits=8, ipv4="10.1.0.0/16"))
    assert msgspec.to_builtins(obj) == pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"})
    assert (obj.api_version, obj.kind) == (API_VERSION, KIND)
    assert read(msgspec.to_builtins(obj)) == obj


def test_the_size_for_ipv6_has_the_name_people_write() -> None:
    """C2, pitfall 11: the size of IPv6 blocks goes by perNodeHostBitsIPv6, both ways."""
    obj = read(pool({"perNodeHostBits": 9, "perNodeHostBitsIPv6": 64, "ipv6": "fd00::/48"}))
    assert obj.spec.per_node_host_bits_ipv6 == 64
    assert msgspec.to_builtins(obj.spec)["perNodeHostBitsIPv6"] == 64


def test_a_count_of_zero_is_written() -> None:
    """C5: a pool that is full, or used by nobody, shows 0 and not an empty column."""
    status = PoolStatus(ipv4=FamilyStatus(capacity=16, allocated=16))
    assert msgspec.to_builtins(status) == {
        "ipv4": {"capacity": 16, "allocated": 16, "free": 0},
        "nodes": 0,
        "free": 0,
    }


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, 2**63 - 1), (2**124, 2**63 - 1)])
def test_counts_beyond_63_bits(count: int, shown: int) -> None:
    """C5: counts that do not fit 63 bits are given as 2^63-1, which JSON and the API server can hold."""
    assert clamp_count(count) == shown
    assert msgspec.json.decode(msgspec.json.encode(FamilyStatus(capacity=clamp_count(count)))) == {
        "capacity": shown,
        "allocated": 0,
        "free": 0,
    }


def test_a_service_cidr_as_the_api_sends_it() -> None:
    """A7: a ServiceCIDR is read with its status and whatever else it has."""
    raw = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}, "status": {"conditions": []}}
    assert msgspec.convert(raw, ServiceCIDR).spec.cidrs == ["10.96.0.0/16"]
