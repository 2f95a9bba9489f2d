"""What tells the kinds of pools apart, and that nothing else does."""

import msgspec
import pytest

from cidrella.model.configs import ClusterCIDRConfig
from cidrella.model.decode import decode
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS, PoolKind, find_pool, kind_of, pool_name
from cidrella.model.objects import POOLS_PATH, ClusterCIDR
from cidrella.model.syntax import name_fault
from cidrella.model.validate import validate_pool
from tests.model import cases, cases_config
from tests.model.manifests import config, pool

ONE = msgspec.convert(pool(cases.ONE), ClusterCIDR)
OTHER = msgspec.convert(config(cases_config.FOUR), ClusterCIDRConfig)


def test_an_object_knows_its_kind() -> None:
    """K1: what an object is decoded as tells its kind, and what its pool is called."""
    assert (kind_of(ONE), kind_of(OTHER)) == (CLUSTER_CIDR, CLUSTER_CIDR_CONFIG)
    assert (pool_name(ONE), pool_name(OTHER)) == ("pool", "ccc/pool")
    assert [str(each) for each in POOL_KINDS] == ["ClusterCIDR", "ClusterCIDRConfig"]


def test_names_of_pools_differ_over_all_kinds() -> None:
    """K3: no two pools are called the same, for no object's name holds what one kind's pools are told by."""
    assert len({each.prefix for each in POOL_KINDS}) == len(POOL_KINDS)
    assert all(name_fault(each.pool_name("a")) for each in POOL_KINDS if each.prefix)


@pytest.mark.parametrize("kind", POOL_KINDS, ids=str)
def test_a_pool_is_found_by_its_name(kind: PoolKind) -> None:
    """K5: from the name of a pool, as annotations, events and people say it, the object is found."""
    assert find_pool(kind.pool_name("pods-v6.example.com")) == (kind, "pods-v6.example.com")


def test_where_the_objects_are() -> None:
    """C5, K1: each kind has its collection, its definition and its version."""
    assert CLUSTER_CIDR.path == POOLS_PATH
    assert CLUSTER_CIDR_CONFIG.path == "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs"
    assert CLUSTER_CIDR_CONFIG.resource == "clustercidrconfigs.networking.x-k8s.io"
    assert CLUSTER_CIDR_CONFIG.api_version == OTHER.api_version
    assert CLUSTER_CIDR_CONFIG.spec_fields == ("cidr", "perNodeMaskSize", "nodeSelector")


def test_only_one_kind_is_optional() -> None:
    """K6: a cluster may do without the one, and not without the other."""
    assert [each.kind for each in POOL_KINDS if each.optional] == ["ClusterCIDRConfig"]


@pytest.mark.parametrize("kind", POOL_KINDS, ids=str)
def test_stand_ins_make_nothing_wrong(kind: PoolKind) -> None:
    """C4: with a value for each field that must be there, the rest of a spec can be judged."""
    raw = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "spec": dict(kind.stand_ins)}
    if kind is CLUSTER_CIDR:
        raw["spec"] = {**kind.stand_ins, "ipv4": "10.0.0.0/28", "ipv6": "fd00::/124"}
    made = decode(raw, kind.struct)
    assert not isinstance(made, list)
    assert validate_pool(made) == []
