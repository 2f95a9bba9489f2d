"""From the bytes of the API to what is kept: what can be used, what cannot, and what is no object at all."""

from __future__ import annotations

import json
from functools import partial

import msgspec
import pytest

from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS
from cidrella.model.objects import FAMILY_ORDER_ANNOTATION, FINALIZER, PoolStatus
from cidrella.model.reading import SeenPool, read_node, read_pool
from cidrella.model.serviceip import read_service_cidr
from tests.model.cases_config import FOUR

GOOD = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", "ipv6": "fd00::/64"}


def pool(spec: object, status: object = None, **metadata: object) -> SeenPool:
    raw = {"metadata": {"name": "p", "uid": "u", **metadata}, "spec": spec, "status": status}
    return read_pool(json.dumps(raw).encode(), CLUSTER_CIDR)


def seen_config(spec: object, status: object = None, **metadata: object) -> SeenPool:
    raw = {"metadata": {"name": "p", "uid": "u", **metadata}, "spec": spec, "status": status}
    return read_pool(json.dumps(raw).encode(), CLUSTER_CIDR_CONFIG)


def test_a_pool_gives_only_with_its_finalizer() -> None:
    """P1: what lives in a cluster is guarded when it has the finalizer, and not before."""
    assert not pool(GOOD).spec.guarded
    assert pool(GOOD, finalizers=["else", FINALIZER]).spec.gives
    assert (pool(GOOD).name, pool(GOOD).uid) == ("p", "u")


def test_the_order_of_the_families() -> None:
    """F1: the annotation puts IPv6 first; what it says otherwise has no meaning."""
    for text, first in (("IPv6,IPv4", "fd00::/64"), ("IPv4,IPv6", "10.1.0.0/16"), ("rubbish", "10.1.0.0/16")):
        seen = pool(GOOD, annotations={FAMILY_ORDER_ANNOTATION: text})
        assert str(seen.spec.ranges[0].cidr) == first


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"perNodeHostBits": 2, "ipv4": "10.1.0.0/16"}, "perNodeHostBits"),
        ({"perNodeHostBits": 8, "ipv4": "10.1.0.1/16"}, "host bits set"),
        ({"perNodeHostBits": "8", "ipv4": "10.1.0.0/16"}, "must be a whole number"),
        ({**GOOD, "perNodeHostBit": 8}, "is no known field"),
        (None, "is required"),
        (7, "must be a mapping"),
        ([], "must be a mapping"),
    ],
)
def test_an_invalid_pool_is_a_pool_with_a_problem(spec: object, said: str) -> None:
    """C4, S6: what an older CRD let through is kept, gives nothing, and says why."""
    seen = pool(spec, deletionTimestamp="2026-01-01T00:00:00Z")
    assert said in seen.spec.problem
    assert not seen.spec.gives
    assert seen.spec.terminating
    assert seen.spec.ranges == ()


def test_a_size_with_a_point_is_a_size() -> None:
    """C2, C4: what Kubernetes takes for a whole number is one, and such a pool is as good as any."""
    seen = pool({**GOOD, "perNodeHostBits": 8.0}, finalizers=[FINALIZER])
    assert seen.spec.gives
    assert [each.length for each in seen.spec.ranges] == [24, 120]
    assert not pool({**GOOD, "perNodeHostBits": 2.0}, finalizers=[FINALIZER]).spec.gives


def test_another_controllers_status_is_no_fault() -> None:
    """C4: a status that somebody else wrote in a way of his own does not make a pool invalid."""
    for status in ({"phase": "Ready"}, "rubbish", 7):
        seen = pool(GOOD, status)
        assert seen.status is None
        assert not seen.spec.problem
    known = pool(GOOD, {"nodes": 3, "free": 2}).status
    assert known is not None
    assert known.nodes == 3


def test_both_kinds_are_pools() -> None:
    """K1, K5: of either kind it is known what the pool is called, which object it is, and where that is in the API."""
    one, other = pool(GOOD), seen_config(FOUR)
    assert (one.name, one.object_name, one.kind) == ("p", "p", CLUSTER_CIDR)
    assert (other.name, other.object_name, other.kind) == ("ccc/p", "p", CLUSTER_CIDR_CONFIG)
    assert one.path == "/apis/networking.x-k8s.io/v1/clustercidrs/p"
    assert other.path == "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs/p"


def test_a_config_is_guarded_as_any_pool() -> None:
    """K5, P1: without the finalizer it gives nothing, with it it does; a status like ours is read."""
    assert not seen_config(FOUR).spec.gives
    seen = seen_config({**FOUR, "perNodeMaskSize": 24.0}, {"nodes": 3, "free": 2}, finalizers=[FINALIZER])
    assert seen.spec.gives
    assert seen.status == PoolStatus(nodes=3, free=2)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({**FOUR, "perNodeMaskSize": 8}, "at least 16"),
        ({**FOUR, "cidr": "10.1.0.1/16"}, "host bits set"),
        ({**FOUR, "nodeSelector": {"matchLabels": {"a b": "c"}}}, "is no label key"),
        (GOOD, "is no known field"),
        (None, "is required"),
        ("rubbish", "must be a mapping"),
    ],
)
def test_an_invalid_config_is_a_pool_with_a_problem(spec: object, said: str) -> None:
    """K1, C4, S6: what an older CRD let through is kept under its own name, gives nothing, and says why."""
    seen = seen_config(spec, "rubbish", finalizers=[FINALIZER])
    assert said in seen.spec.problem
    assert (seen.name, seen.spec.ranges, seen.spec.gives, seen.status) == ("ccc/p", (), False, None)


@pytest.mark.parametrize(
    "read", [read_node, read_service_cidr, *(partial(read_pool, kind=kind) for kind in POOL_KINDS)]
)
@pytest.mark.parametrize("raw", [b"{}", b'{"metadata":{}}', b'{"metadata":{"name":5}}', b"[]", b"7", b'{"spec":{}}'])
def test_what_has_no_name_is_no_object(read: object, raw: bytes) -> None:
    """C4, N7: rubbish raises, for there is nobody whom it could be about."""
    assert callable(read)
    with pytest.raises(msgspec.ValidationError):
        read(raw)


def test_a_service_range_is_read_leniently() -> None:
    """A7: ranges count whatever their spelling; what cannot be read is told, and takes nothing else with it."""
    raw = {"metadata": {"name": "s", "uid": "u"}, "spec": {"cidrs": ["10.96.0.1/16", "rubbish"]}}
    seen = read_service_cidr(json.dumps(raw).encode())
    assert [str(each) for each in seen.ranges] == ["10.96.0.0/16"]
    assert len(seen.unreadable) == 1
    assert "rubbish" in seen.unreadable[0]
