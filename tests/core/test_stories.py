"""The examples and user stories of the proposals, told to a cluster."""

from __future__ import annotations

from itertools import groupby

from cidrella.core.decision import Outcome
from tests.core.build import cluster, give, give_many, node, nodes, overlapping_pairs, spec


def test_the_allocations_of_kep_2593() -> None:
    """S2, S3, S7: the example of allocations in KEP-2593, with two slips in its answers put right."""
    books = cluster(
        spec("default", "10.0.0.0/8 /24"),
        spec("another", "172.16.0.0/14 /24"),
        spec("n1", "10.0.0.0/8 /26", where="node=n1"),
        spec("n2", "192.168.0.0/16 /26", where="node=n2"),
        spec("n3", "5.2.0.0/16 /26", "fd12:3456:789a:1::/64 /122", where="node=n3"),
    )
    assert give_many(books, [node(name, f"node={name}") for name in ("n1", "n2", "n3", "n4")]) == [
        ["10.0.0.0/26"],
        ["192.168.0.0/26"],
        ["5.2.0.0/26", "fd12:3456:789a:1::/122"],
        ["172.16.0.0/24"],
    ]


def test_a_dual_stack_pool_serves_as_many_nodes_as_its_smaller_family() -> None:
    """S4: the example of KEP-2593: four nodes, because IPv4 has four blocks; the IPv6 left serves another pool."""
    books = cluster(spec("dual", "10.0.0.0/20 /22", "fd12:3456:789a:1::/64 /118"))
    assert give_many(books, nodes(5)) == [
        ["10.0.0.0/22", "fd12:3456:789a:1::/118"],
        ["10.0.4.0/22", "fd12:3456:789a:1::400/118"],
        ["10.0.8.0/22", "fd12:3456:789a:1::800/118"],
        ["10.0.12.0/22", "fd12:3456:789a:1::c00/118"],
        [],
    ]
    books.add_pool(spec("ipv6", "fd12:3456:789a:1::/64 /118"))
    assert give(books, node("n4")) == ["fd12:3456:789a:1::1000/118"]


def test_the_order_of_kep_2593_falls_through() -> None:
    """S3, S4: the example of the tie-break rules: each of the four serves until it is full, in that order."""
    books = cluster(
        spec("fourth", "10.0.0.0/8 /26"),
        spec("third", "192.168.128.0/17 /28", where="node=n1"),
        spec("second", "192.168.64.0/20 /28", where="node=n1"),
        spec("first", "10.5.0.0/16 /26", where="node=n1 and rack=rack1"),
    )
    decisions = books.decide_many(nodes(1024 + 256 + 2048 + 10, "node=n1 rack=rack1"))
    assert [(name, len(list(run))) for name, run in groupby(each.pool_name for each in decisions)] == [
        ("first", 1024),
        ("second", 256),
        ("third", 2048),
        ("fourth", 10),
    ]
    assert [str(each.blocks[0]) for each in decisions[-10:-8]] == ["10.0.0.0/26", "10.0.0.64/26"]


def test_the_single_tie_breaks_of_kep_2593() -> None:
    """S3: its three short examples: two labels before one, one Pod CIDR before four, 5 host bits before 7."""
    where = "node.kubernetes.io/instance-type=medium"
    labelled = cluster(
        spec("one", "10.0.0.0/16 /24", where=where), spec("two", "10.1.0.0/16 /24", where=f"{where} and rack=rack1")
    )
    to = node("n", "node.kubernetes.io/instance-type=medium rack=rack1")
    assert labelled.decide(to).pool_name == "two"
    sized = cluster(spec("four", "192.168.0.0/20 /22"), spec("one", "10.0.0.0/16 /16"))
    assert sized.decide(to).pool_name == "one"
    bits = cluster(spec("seven", "10.0.0.0/23 /25"), spec("five", "10.9.0.0/25 /27"))
    assert bits.decide(to).pool_name == "five"


def test_story_add_more_pod_ips() -> None:
    """N4: KEP-2593's first story: 16 nodes fill 10.1.0.0/20, the rest wait, and a second range serves 16 more."""
    books = cluster(spec("initial", "10.1.0.0/20 /24"))
    fleet = nodes(33)
    before = books.decide_many(fleet)
    assert [each.outcome for each in before] == [Outcome.ASSIGNED] * 16 + [Outcome.WAITING] * 17
    books.add_pool(spec("additional", "10.2.0.0/20 /24"))
    after = books.decide_many(fleet)
    assert [each.blocks for each in after[:16]] == [each.blocks for each in before[:16]]
    assert [str(each.blocks[0]) for each in after[16:32]] == [f"10.2.{number}.0/24" for number in range(16)]
    assert after[32].outcome is Outcome.WAITING


def test_story_nodes_with_higher_capabilities() -> None:
    """A1, A6: KEP-2593's second story: a /23 for large nodes from the range that gives /24s, and nothing overlaps."""
    books = cluster(spec("uniform", "10.0.0.0/16 /24"))
    assert give_many(books, nodes(3)) == [["10.0.0.0/24"], ["10.0.1.0/24"], ["10.0.2.0/24"]]
    books.add_pool(spec("large", "10.0.0.0/16 /23", where="capacity=500"))
    assert give(books, node("large", "capacity=500")) == ["10.0.4.0/23"]
    assert give_many(books, nodes(3, name="later")) == [["10.0.3.0/24"], ["10.0.6.0/24"], ["10.0.7.0/24"]]
    assert overlapping_pairs(books) == []


def test_story_discontiguous_ranges() -> None:
    """S5: KEP-2593's third story: four /21 ranges in different places serve 32 nodes with a /24 each."""
    ranges = ["10.0.8.0/21", "10.64.0.0/21", "172.20.16.0/21", "192.168.248.0/21"]
    books = cluster(*(spec(f"part-{number}", f"{cidr} /24") for number, cidr in enumerate(ranges)))
    decisions = books.decide_many(nodes(33))
    assert [each.outcome for each in decisions] == [Outcome.ASSIGNED] * 32 + [Outcome.WAITING]
    assert overlapping_pairs(books) == []


def test_story_the_size_of_blocks_changes() -> None:
    """A6, pitfall 2: story 1 of KEP-20200617: /24s become /23s over one range, a node goes, nothing overlaps."""
    books = cluster(spec("mask-24", "192.168.0.0/16 /24"))
    assert give_many(books, nodes(2)) == [["192.168.0.0/24"], ["192.168.1.0/24"]]
    books.remove_pool("mask-24")
    books.add_pool(spec("mask-23", "192.168.0.0/16 /23"))
    books.forget("n1")
    assert give(books, node("n2")) == ["192.168.2.0/23"]
    assert overlapping_pairs(books) == []
    books.forget("n0")
    assert [give(books, each)[0] for each in nodes(127, name="more")][-1] == "192.168.0.0/23"
    assert overlapping_pairs(books) == []


def test_story_the_size_of_blocks_changes_back() -> None:
    """A6, pitfall 2: the other way round, and with both sizes at once: small blocks go around the large ones held."""
    books = cluster(spec("mask-23", "192.168.0.0/22 /23"))
    assert give(books, node("large")) == ["192.168.0.0/23"]
    books.add_pool(spec("mask-24", "192.168.0.0/22 /24", where="small"))
    assert give_many(books, nodes(3, "small=yes")) == [["192.168.2.0/24"], ["192.168.3.0/24"], []]
    assert give(books, node("another-large")) == []
    assert overlapping_pairs(books) == []
