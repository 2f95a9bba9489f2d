"""The flags of kube-controller-manager: what they say, what contradicts what, and the pool made from them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.pool import PoolRange
from cidrella.core.prefix import Family, Prefix
from cidrella.model.convert import pool_spec
from cidrella.model.flags import (
    FLAGS_PREFIX,
    AllocatorType,
    FlagError,
    IpamFlags,
    flags_pool,
    matches_flags,
    parse_truth,
    read_ipam_flags,
)
from cidrella.model.kinds import CLUSTER_CIDR
from cidrella.model.objects import FAMILY_ORDER_ANNOTATION, ClusterCIDR
from cidrella.model.reading import read_pool
from cidrella.model.validate import validate_pool
from tests.model.manifests import pool

Flags = dict[str, Any]

OLD = AllocatorType.RANGE.value
BOTH = "10.0.0.0/16,fd00::/48"


def matches(obj: ClusterCIDR, ranges: tuple[PoolRange, ...]) -> bool:
    """Whether a pool, read back from the API, is what the flags ask for."""
    return matches_flags(read_pool(msgspec.json.encode(obj), CLUSTER_CIDR).spec, ranges)


def lengths(flags: Flags) -> list[tuple[str, int]]:
    return [(str(each.cidr), each.length) for each in read_ipam_flags(**flags).ranges]


GOOD: dict[str, tuple[Flags, list[tuple[str, int]]]] = {
    "no flags": ({}, []),
    "the defaults": ({"cluster_cidr": BOTH}, [("10.0.0.0/16", 24), ("fd00::/48", 64)]),
    "IPv6 first": ({"cluster_cidr": "fd00::/48,10.0.0.0/16"}, [("fd00::/48", 64), ("10.0.0.0/16", 24)]),
    "IPv6 alone": ({"cluster_cidr": "fd00::/48"}, [("fd00::/48", 64)]),
    "spaces": ({"cluster_cidr": " 10.0.0.0/16 , fd00::/48 "}, [("10.0.0.0/16", 24), ("fd00::/48", 64)]),
    "one mask": ({"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 26}, [("10.0.0.0/16", 26)]),
    "one mask for IPv6": ({"cluster_cidr": "fd00::/48", "node_cidr_mask_size": 80}, [("fd00::/48", 80)]),
    "one family's mask": (
        {"cluster_cidr": BOTH, "node_cidr_mask_size_ipv4": 25},
        [("10.0.0.0/16", 25), ("fd00::/48", 64)],
    ),
    "both masks": (
        {"cluster_cidr": BOTH, "node_cidr_mask_size_ipv4": 20, "node_cidr_mask_size_ipv6": 120},
        [("10.0.0.0/16", 20), ("fd00::/48", 120)],
    ),
    "one block": ({"cluster_cidr": "10.0.0.0/24"}, [("10.0.0.0/24", 24)]),
    "four host bits": ({"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 28}, [("10.0.0.0/16", 28)]),
    "very many blocks": ({"cluster_cidr": "fd00::/8", "node_cidr_mask_size": 124}, [("fd00::/8", 124)]),
    "everything": ({"cluster_cidr": "0.0.0.0/0"}, [("0.0.0.0/0", 24)]),
    "an address a node, the old way": (
        {"cluster_cidr": "10.0.0.0/30", "node_cidr_mask_size": 32, "cidr_allocator_type": OLD},
        [("10.0.0.0/30", 32)],
    ),
}


@pytest.mark.parametrize("title", GOOD)
def test_ranges_and_sizes(title: str) -> None:
    """F2, F4: ranges keep the flag's order, and blocks are a /24 and a /64 unless a mask says otherwise."""
    flags, expected = GOOD[title]
    assert lengths(flags) == expected
    assert read_ipam_flags(**flags).warnings == ()


BAD: dict[str, tuple[Flags, str]] = {
    "no range": ({"cluster_cidr": "ten"}, "--cluster-cidr: 'ten' has no length"),
    "no address": ({"cluster_cidr": "10.0.0/16"}, "--cluster-cidr: '10.0.0/16' is no address"),
    "a trailing comma": ({"cluster_cidr": "10.0.0.0/16,"}, "--cluster-cidr: '' has no length"),
    "only a comma": ({"cluster_cidr": ","}, "--cluster-cidr: '' has no length"),
    "two of one family": (
        {"cluster_cidr": "10.0.0.0/16,\n10.1.0.0/16"},
        "--cluster-cidr=10.0.0.0/16,10.1.0.0/16 has two ranges of one family",
    ),
    "three": ({"cluster_cidr": f"{BOTH},fd01::/48"}, "give one range, or one of each family"),
    "one mask for two": (
        {"cluster_cidr": BOTH, "node_cidr_mask_size": 24},
        "--node-cidr-mask-size cannot be used with two ranges in --cluster-cidr",
    ),
    "two masks for one": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 24, "node_cidr_mask_size_ipv4": 24},
        "--node-cidr-mask-size cannot be combined with --node-cidr-mask-size-ipv4",
    ),
    "the other family's mask beside": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 24, "node_cidr_mask_size_ipv6": 64},
        "--node-cidr-mask-size cannot be combined with --node-cidr-mask-size-ipv6",
    ),
    "a mask without its range": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size_ipv6": 64},
        "--node-cidr-mask-size-ipv6 is given without an IPv6 range in --cluster-cidr",
    ),
    "the other way round": (
        {"cluster_cidr": "fd00::/48", "node_cidr_mask_size_ipv4": 24},
        "--node-cidr-mask-size-ipv4 is given without an IPv4 range in --cluster-cidr",
    ),
    "a mask without any range": ({"node_cidr_mask_size_ipv4": 24}, "--node-cidr-mask-size-ipv4 is given without"),
    "one mask without any range": ({"node_cidr_mask_size": 24}, "--node-cidr-mask-size is given without"),
    "a mask shorter than the range's": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 15},
        "--node-cidr-mask-size=15 makes a node's block larger than --cluster-cidr=10.0.0.0/16; "
        "set --node-cidr-mask-size to a length from 16 to 28",
    ),
    "a default shorter than the range's": (
        {"cluster_cidr": "10.0.0.0/26"},
        "--node-cidr-mask-size-ipv4 is 24 by default, which makes a node's block larger than "
        "--cluster-cidr=10.0.0.0/26; set --node-cidr-mask-size-ipv4 to a length from 26 to 28",
    ),
    "three host bits": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 29},
        "--node-cidr-mask-size=29 leaves a node too few addresses of --cluster-cidr=10.0.0.0/16",
    ),
    "three host bits of IPv6": (
        {"cluster_cidr": BOTH, "node_cidr_mask_size_ipv6": 125},
        "--node-cidr-mask-size-ipv6=125 leaves a node too few addresses of --cluster-cidr=fd00::/48",
    ),
    "a negative mask": ({"cluster_cidr": "0.0.0.0/0", "node_cidr_mask_size": -1}, "a length from 0 to 28"),
    "a range too small": ({"cluster_cidr": "10.0.0.0/29"}, "--cluster-cidr=10.0.0.0/29 is too small"),
    "longer than an address, the old way": (
        {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 33, "cidr_allocator_type": OLD},
        "set --node-cidr-mask-size to a length from 16 to 32",
    ),
    "the old way without a range": (
        {"cidr_allocator_type": OLD},
        "--cidr-allocator-type=RangeAllocator gives out the ranges of --cluster-cidr; add --cluster-cidr",
    ),
    "a service range that is none": (
        {"service_cluster_ip_range": "10.96.0.0/33"},
        "--service-cluster-ip-range: '10.96.0.0/33' has the length '33'",
    ),
    "two service ranges of one family": (
        {"service_cluster_ip_range": "10.96.0.0/16,10.97.0.0/16"},
        "--service-cluster-ip-range=10.96.0.0/16,10.97.0.0/16 has two ranges of one family",
    ),
    "a terminal's escape": ({"cluster_cidr": "\x1b[31m/8"}, r"--cluster-cidr: '\x1b[31m/8' is no address"),
}


@pytest.mark.parametrize("title", BAD)
def test_contradictions(title: str) -> None:
    """F2: flags that make no sense are told in one line that names them."""
    flags, expected = BAD[title]
    with pytest.raises(FlagError) as error:
        read_ipam_flags(**flags)
    assert expected in str(error.value)
    assert str(error.value).isprintable()


BAD_TYPES: dict[str, tuple[Flags, list[str]]] = {
    "an unknown type": (
        {"cidr_allocator_type": "CloudAllocator"},
        ["'CloudAllocator'", "MultiCIDRRangeAllocator, RangeAllocator, ClusterCIDRConfigAllocator"],
    ),
    "no type": ({"cidr_allocator_type": ""}, ["--cidr-allocator-type=''"]),
    "an unknown gate": (
        {"feature_gates": "AllAlpha=true"},
        ["--feature-gates: 'AllAlpha'", "MultiCIDRRangeAllocator, ServiceIPStaticSubrange"],
    ),
    "the gate off": (
        {"feature_gates": "MultiCIDRRangeAllocator=false"},
        ["--feature-gates=MultiCIDRRangeAllocator=false", "choose --cidr-allocator-type=RangeAllocator"],
    ),
    "the gate off, by its alias": (
        {"feature_gates": "MultiCIDRRangeAllocator=0", "cidr_allocator_type": "ClusterCIDRConfigAllocator"},
        ["what --cidr-allocator-type=ClusterCIDRConfigAllocator needs"],
    ),
    "a gate without a value": ({"feature_gates": "MultiCIDRRangeAllocator"}, ["write MultiCIDRRangeAllocator=true"]),
    "a gate half open": ({"feature_gates": "MultiCIDRRangeAllocator=maybe"}, ["is neither on nor off"]),
    "a gate both ways": (
        {"feature_gates": "MultiCIDRRangeAllocator=true,MultiCIDRRangeAllocator=false"},
        ["is given both as true and as false"],
    ),
}


@pytest.mark.parametrize("title", BAD_TYPES)
def test_types_and_gates_that_are_refused(title: str) -> None:
    """F7: an unknown type or gate names the known ones, and the gate that is off cannot go with its type."""
    flags, expected = BAD_TYPES[title]
    with pytest.raises(FlagError) as error:
        read_ipam_flags(**flags)
    for each in expected:
        assert each in str(error.value)


@pytest.mark.parametrize(
    ("flags", "allocator"),
    [
        ({}, AllocatorType.MULTI),
        ({"cidr_allocator_type": "ClusterCIDRConfigAllocator"}, AllocatorType.MULTI),
        ({"feature_gates": " MultiCIDRRangeAllocator = True ,ServiceIPStaticSubrange=f,"}, AllocatorType.MULTI),
        ({"cidr_allocator_type": OLD, "cluster_cidr": BOTH}, AllocatorType.RANGE),
        (
            {"cidr_allocator_type": OLD, "cluster_cidr": BOTH, "feature_gates": "MultiCIDRRangeAllocator=false"},
            AllocatorType.RANGE,
        ),
    ],
)
def test_types_and_gates(flags: Flags, allocator: AllocatorType) -> None:
    """F7, F4: the type has an alias, gates are known, and the old type does not need the gate."""
    assert read_ipam_flags(**flags).allocator is allocator


def test_what_is_read_otherwise_than_written_is_told() -> None:
    """F2: a range with host bits set is masked, with a warning."""
    read = read_ipam_flags(cluster_cidr="10.0.0.7/16,fd00::/48", service_cluster_ip_range="010.96.0.0/12")
    assert [str(each.cidr) for each in read.ranges] == ["10.0.0.0/16", "fd00::/48"]
    assert [str(each) for each in read.service_ranges] == ["10.96.0.0/12"]
    assert read.warnings == (
        "--cluster-cidr: 10.0.0.7/16 is read as 10.0.0.0/16",
        "--service-cluster-ip-range: 010.96.0.0/12 is read as 10.96.0.0/12",
    )


def test_switches() -> None:
    """F8, N10: nodes are given blocks, and wait for their cloud provider, unless flags say otherwise."""
    assert read_ipam_flags() == IpamFlags()
    read = read_ipam_flags(allocate_node_cidrs=False, wait_for_cloud_provider=False)
    assert (IpamFlags().allocate, IpamFlags().cloud_provider_wait) == (True, 60.0)
    assert (read.allocate, read.cloud_provider_wait) == (False, 0.0)
    assert read_ipam_flags(wait_for_cloud_provider_timeout=5.0).cloud_provider_wait == 5.0
    old_way = read_ipam_flags(cluster_cidr="10.0.0.0/16", cidr_allocator_type="RangeAllocator")
    assert old_way.cloud_provider_wait == 0.0


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("T", True), ("0", False), ("yes", None), ("", None)])
def test_truths(text: str, truth: bool | None) -> None:
    """Booleans are spelt as Go's flags spell them."""
    assert parse_truth(text) is truth


@st.composite
def pool_ranges(draw: st.DrawFn) -> tuple[PoolRange, ...]:
    """Ranges that flags can ask for: one family or both, in either order."""
    families = draw(st.lists(st.sampled_from(Family), min_size=1, max_size=2, unique=True))
    made = []
    for family in families:
        length = draw(st.integers(0, family.bits - 4))
        address = draw(st.integers(0, (1 << family.bits) - 1))
        cidr = Prefix.masked(family, address, length)
        if cidr.family is Family.IPV6 and cidr.network >> 32 == 0xFFFF:
            cidr = Prefix.parse("fd00::/48")  # an IPv4-mapped range is no range of an object
        made.append(PoolRange(cidr, draw(st.integers(cidr.length, family.bits - 4))))
    return tuple(made)


@given(ranges=pool_ranges())
def test_the_pool_is_what_the_flags_say(ranges: tuple[PoolRange, ...]) -> None:
    """F1: the pool of the flags is valid, means the flags, and matches them, also after a way through JSON."""
    made = flags_pool(ranges)
    assert validate_pool(made) == []
    assert pool_spec(made).ranges == ranges
    assert matches(made, ranges)


@given(ranges=pool_ranges())
def test_the_flags_of_a_pool_can_be_given_again(ranges: tuple[PoolRange, ...]) -> None:
    """F1: written as flags and read back, ranges and sizes are the same, and so is the name."""
    masks = {f"node_cidr_mask_size_ipv{each.cidr.family.value}": each.length for each in ranges if each.length}
    if len(masks) == len(ranges):
        read = read_ipam_flags(cluster_cidr=",".join(str(each.cidr) for each in ranges), **masks)  # type: ignore[arg-type]
        assert read.ranges == ranges
        assert flags_pool(read.ranges) == flags_pool(ranges)


@given(one=pool_ranges(), other=pool_ranges(), attempt=st.integers(0, 5))
def test_names(one: tuple[PoolRange, ...], other: tuple[PoolRange, ...], attempt: int) -> None:
    """F1: the same flags have the same name; others, and another attempt, have another."""
    name = flags_pool(one, attempt).metadata.name
    assert re.fullmatch(rf"{FLAGS_PREFIX}[0-9a-f]{{12}}", name)
    assert (flags_pool(other, attempt).metadata.name == name) is (one == other)
    assert flags_pool(one, attempt + 1).metadata.name != name
    assert flags_pool(one, attempt + 1).spec == flags_pool(one, attempt).spec
    assert matches(flags_pool(one), other) is (one == other)


def test_a_name_never_changes() -> None:
    """F1: names are the same in every version, or an upgrade would replace the pool."""
    ranges = read_ipam_flags(cluster_cidr=BOTH).ranges
    assert flags_pool(ranges).metadata.name == "created-from-flags-c0667d04fc3a"
    assert flags_pool(ranges, 1).metadata.name == "created-from-flags-cdaf09b2e756"


def test_sizes_of_their_own() -> None:
    """F1, pitfall 11: with the default flags a node gets a /24 and a /64, not a /120."""
    spec = flags_pool(read_ipam_flags(cluster_cidr=BOTH).ranges).spec
    assert (spec.per_node_host_bits, spec.per_node_host_bits_ipv6) == (8, 64)
    alike = flags_pool(read_ipam_flags(cluster_cidr=BOTH, node_cidr_mask_size_ipv6=120).ranges).spec
    assert (alike.per_node_host_bits, alike.per_node_host_bits_ipv6) == (8, None)
    alone = flags_pool(read_ipam_flags(cluster_cidr="fd00::/48").ranges).spec
    assert (alone.per_node_host_bits, alone.per_node_host_bits_ipv6, alone.ipv4) == (64, None, "")


@pytest.mark.parametrize(("text", "order"), [(BOTH, None), ("fd00::/48,10.0.0.0/16", "IPv6,IPv4"), ("fd00::/48", None)])
def test_the_order_of_families(text: str, order: str | None) -> None:
    """F1: the order is noted where it is not the usual one."""
    annotations = flags_pool(read_ipam_flags(cluster_cidr=text).ranges).metadata.annotations
    assert annotations.get(FAMILY_ORDER_ANNOTATION) == order


BOTH_SIZES = {"perNodeHostBits": 8, "perNodeHostBitsIPv6": 8, "ipv4": "10.0.0.0/16", "ipv6": "FD00:0::/48"}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (BOTH_SIZES, True),
        ({**BOTH_SIZES, "nodeSelector": {"nodeSelectorTerms": []}}, True),
        ({**BOTH_SIZES, "nodeSelector": SELECTOR}, False),
        ({**BOTH_SIZES, "perNodeHostBitsIPv6": 64}, False),
        ({**BOTH_SIZES, "ipv4": ""}, False),
        ({**BOTH_SIZES, "ipv4": "10.0.0.1/16"}, False),
        ({**BOTH_SIZES, "ipv4": "nonsense"}, False),
    ],
)
def test_pools_that_match(spec: dict[str, object], expected: bool) -> None:
    """F1: what counts is what a pool gives and to whom, not how it is spelt; an invalid one matches nothing."""
    ranges = read_ipam_flags(cluster_cidr=BOTH, node_cidr_mask_size_ipv6=120).ranges
    assert matches(msgspec.convert(pool(spec), ClusterCIDR), ranges) is expected


def test_another_order_is_another_pool() -> None:
    """F1: a pool that gives IPv6 first does not match flags that name IPv4 first."""
    ranges = read_ipam_flags(cluster_cidr=BOTH).ranges
    assert not matches(flags_pool(ranges[::-1]), ranges)
    assert flags_pool(ranges[::-1]).spec == flags_pool(ranges).spec
