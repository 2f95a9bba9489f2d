"""The order in which pools are tried, point by point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cidrella.core.index import PoolIndex
from cidrella.core.pool import Rank, rank
from tests.core.build import node, pool, spec, tried

if TYPE_CHECKING:
    from cidrella.core.decision import Node
    from cidrella.core.pool import PoolSpec


def order(of: Node, *specs: PoolSpec) -> list[str]:
    """Return the names of the pools that apply to a node, as they are tried."""
    index = PoolIndex()
    for each in specs:
        index.add(pool(each))
    return [each.name for each in tried(index, of.name, of.labels)]


def both_ways(of: Node, *specs: PoolSpec) -> list[str]:
    """Return the same, after making sure that it does not depend on who came first."""
    result = order(of, *specs)
    assert order(of, *reversed(specs)) == result
    return result


NODE = node("n1", "type=medium rack=rack1")


def test_selectors_before_defaults() -> None:
    """S2, S3: a default comes after every pool whose selector matches, however small it is."""
    assert both_ways(
        NODE,
        spec("a-default", "10.0.0.0/28 /28"),
        spec("matching", "10.0.0.0/8 /28", where="rack=rack1"),
        spec("not-matching", "10.0.0.0/28 /28", where="rack=rack2"),
    ) == ["matching", "a-default"]


def test_more_matched_first() -> None:
    """S3: the pool that matches more requirements is tried first, before one with fewer Pod CIDRs."""
    assert both_ways(
        NODE,
        spec("a-one", "10.0.0.0/28 /28", where="type=medium"),
        spec("two", "10.0.0.0/8 /28", where="type=medium and rack=rack1"),
    ) == ["two", "a-one"]


def test_the_largest_matching_term_counts() -> None:
    """S3: a pool is as good as its largest term that matches; terms that do not match, or are smaller, add nothing."""
    assert both_ways(
        NODE,
        spec("a-many", "10.0.0.0/24 /28", where="type=medium or rack=rack1 or type and rack=rack2 and !gpu"),
        spec("b-field", "10.0.0.0/24 /28", where="type=medium and rack and @metadata.name=n1"),
        spec("c-two", "10.0.0.0/24 /28", where="type=medium or type=medium and rack=rack1"),
    ) == ["b-field", "c-two", "a-many"]


def test_fewer_pod_cidrs_first() -> None:
    """S3: among equal matches the pool with fewer Pod CIDRs in all comes first, before one with fewer host bits."""
    assert both_ways(NODE, spec("a-four", "192.168.0.0/20 /22"), spec("one", "10.0.0.0/16 /16")) == ["one", "a-four"]


def test_the_smaller_family_counts() -> None:
    """S3: the Pod CIDRs of a dual-stack pool are those of the family that has fewer."""
    assert both_ways(
        NODE,
        spec("a-eight", "10.0.0.0/16 /19"),
        spec("b-few-ipv6", "10.0.0.0/8 /24", "fd00::/62 /64"),
        spec("c-few-ipv4", "10.0.0.0/23 /24", "fd00::/16 /64"),
    ) == ["c-few-ipv4", "b-few-ipv6", "a-eight"]


def test_capacity_not_what_is_left() -> None:
    """S3, A5: the order is by what a pool has in all, not by what is free of it now, and so never changes."""
    index = PoolIndex()
    small, large = pool(spec("small", "10.0.0.0/24 /28")), pool(spec("large", "10.1.0.0/20 /28"))
    index.add(large)
    index.add(small)
    for number in range(255):
        large.views[0].allocate(f"n{number}")
    assert large.views[0].free < small.views[0].free
    assert tried(index, "n1", {}) == [small, large]


def test_fewer_host_bits_first() -> None:
    """S3: with as many Pod CIDRs, the pool that gives a node fewer addresses comes first: 5 bits before 7."""
    assert both_ways(NODE, spec("a-seven", "10.0.0.0/23 /25"), spec("five", "10.9.0.0/25 /27")) == ["five", "a-seven"]


def test_host_bits_are_those_of_ipv4_where_there_is_ipv4() -> None:
    """S3: a dual-stack pool is compared by its IPv4 bits whatever their place, one of IPv6 alone by its IPv6 bits."""
    assert both_ways(
        NODE,
        spec("a-ipv6", "fd00::/54 /56"),
        spec("b-dual", "fd00::/62 /64", "10.0.0.0/23 /25"),
        spec("c-ipv4", "10.0.0.0/22 /24"),
        spec("d-ipv6", "fd00::/122 /124"),
    ) == ["d-ipv6", "b-dual", "c-ipv4", "a-ipv6"]


def test_then_the_text_of_the_selector() -> None:
    """S3: with all else equal the canonical text of the selector decides, before address and name."""
    assert both_ways(
        NODE,
        spec("a", "10.0.0.0/24 /28", where="type=medium"),
        spec("b", "10.1.0.0/24 /28", where="rack=rack2|rack1"),
        spec("c", "10.2.0.0/24 /28", where="rack=rack1"),
    ) == ["c", "b", "a"]


def test_then_the_first_address_as_a_number() -> None:
    """S3, pitfall 23: 10.2.0.0 comes before 10.10.0.0, and the IPv4 address is the one that is compared."""
    assert both_ways(
        NODE,
        spec("a", "10.10.0.0/24 /28"),
        spec("b", "10.2.0.0/24 /28"),
        spec("c", "fd00::/60 /64", "10.9.0.0/24 /28"),
    ) == ["b", "c", "a"]


def test_then_the_name() -> None:
    """S3: pools alike in everything but their name are tried by name."""
    assert both_ways(NODE, spec("b", "10.0.0.0/24 /28"), spec("a", "10.0.0.0/24 /28")) == ["a", "b"]


def test_defaults_are_ordered_too() -> None:
    """S5, pitfall 5: default pools are tried by the same rules: fewer Pod CIDRs, fewer host bits, address, name."""
    assert both_ways(
        NODE,
        spec("a", "10.0.0.0/16 /24"),
        spec("b", "10.10.0.0/24 /28"),
        spec("c", "10.2.0.0/24 /28"),
        spec("d", "10.0.0.0/20 /24"),
        spec("e", "10.2.0.0/24 /28"),
    ) == ["c", "e", "b", "d", "a"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (spec("p", "10.0.0.0/16 /24"), Rank(256, 8, "", 10 << 24, "p")),
        (spec("p", "10.0.0.0/24 /24"), Rank(1, 8, "", 10 << 24, "p")),
        (spec("p", "fd00::/48 /64"), Rank(65536, 64, "", 0xFD << 120, "p")),
        (spec("p", "fd00::/48 /64", "10.0.0.0/16 /23"), Rank(128, 9, "", 10 << 24, "p")),
        (
            spec("p", "10.0.0.0/16 /28", "fd00::/63 /64", where="b or a"),
            Rank(2, 4, "(a Exists) or (b Exists)", 10 << 24, "p"),
        ),
    ],
)
def test_rank(written: PoolSpec, expected: Rank) -> None:
    """S3: a pool's rank is its smaller capacity, its host bits, its selector's text, its first address, its name."""
    assert rank(written) == expected


def test_a_pool_at_work_shows_its_name() -> None:
    """S3: in a list of pools, as failures print it, each is told by its name."""
    assert repr(pool(spec("p", "10.0.0.0/24 /28"))) == "Pool(p)"
