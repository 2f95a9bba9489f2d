"""What others wrote, and what is said of it: foreign, shared and unreadable blocks, and service ranges."""

from __future__ import annotations

import pytest

from cidrella.core.decision import Node, Outcome, Reason, ServiceRange
from cidrella.core.prefix import Family
from cidrella.core.space import Holding
from tests.core.build import (
    cluster,
    free,
    give,
    give_many,
    node,
    nodes,
    prefix,
    spec,
    story,
    texts,
)


class TestWhatIsFound:
    """N5, N6, N7: blocks that somebody else wrote."""

    def test_a_foreign_block_is_reported_and_held(self) -> None:
        """N5, pitfall 10: podCIDRs in no pool are no failure: they are reported, held, and never given to another."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        decision = books.decide(node("a", has="192.0.2.0/24,10.0.0.0/24,2001:db8::/64"))
        assert story(decision) == (
            Outcome.UNTRACKED,
            ["192.0.2.0/24", "10.0.0.0/24", "2001:db8::/64"],
            [None, "p", None],
            Reason.UNTRACKED,
            "in no pool: 192.0.2.0/24, 2001:db8::/64",
        )
        assert decision.reason.value == "CIDRUntracked"
        assert decision.pool_name == "p"
        books.add_pool(spec("late", "192.0.2.0/23 /24", where="late"))
        assert give_many(books, nodes(2, "late=1"))[0] == ["192.0.3.0/24"]

    def test_a_block_partly_in_a_pool_is_foreign(self) -> None:
        """N5: a block larger than the range, or around it, is in no pool, and held all the same."""
        books = cluster(spec("p", "10.0.0.0/24 /26"))
        assert books.decide(node("a", has="10.0.0.0/23")).outcome is Outcome.UNTRACKED
        assert free(books, "p") == [0]

    def test_a_terminating_pool_still_tracks(self) -> None:
        """N5: a block in a pool that is being deleted is tracked; one in an invalid pool is not."""
        books = cluster(
            spec("going", "10.0.0.0/24 /26", terminating=True), spec("invalid", "10.1.0.0/24 /26", problem="odd")
        )
        assert books.decide(node("a", has="10.0.0.0/26")).outcome is Outcome.KEPT
        assert books.decide(node("b", has="10.1.0.0/26")).outcome is Outcome.UNTRACKED

    def test_an_ipv6_block_meets_an_ipv4_pool(self) -> None:
        """S7, N5, pitfall 7: an IPv6 block on a node of a cluster with IPv4 pools only is reported and held."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        assert books.decide(node("a", has="fd00::/64")).outcome is Outcome.UNTRACKED
        assert give(books, node("b")) == ["10.0.0.0/24"]
        books.check()

    def test_two_nodes_with_one_block_hear_of_each_other(self) -> None:
        """N6, pitfall 20: both nodes are told, each names the other with its block, and nothing is revoked."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        one, two = books.decide_many([node("a", has="10.0.0.0/24"), node("b", has="10.0.0.128/25")])
        assert story(one) == (
            Outcome.CONFLICT,
            ["10.0.0.0/24"],
            ["p"],
            Reason.CONFLICT,
            "also held by b (10.0.0.128/25)",
        )
        assert story(two)[4] == "also held by a (10.0.0.0/24)"
        assert one.reason.value == "CIDRConflict"
        assert list(books.conflicts("a")) == [Holding(prefix("10.0.0.128/25"), "b")]
        assert list(books.conflicts("b")) == [Holding(prefix("10.0.0.0/24"), "a")]

    def test_a_shared_block_is_free_when_both_are_gone(self) -> None:
        """N6: an address is free again when no remaining node holds it, and the last one has no conflict left."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.decide_many([node("a", has="10.0.0.0/24"), node("b", has="10.0.0.0/24")])
        books.forget("a")
        assert books.decide(node("b", has="10.0.0.0/24")).outcome is Outcome.KEPT
        assert give(books, node("c")) == []
        books.forget("b")
        assert give(books, node("c")) == ["10.0.0.0/24"]

    @pytest.mark.parametrize(
        ("others", "ending"),
        [(5, "b4 (10.0.0.4/32)"), (6, "b4 (10.0.0.4/32) and more"), (9, "b4 (10.0.0.4/32) and more")],
    )
    def test_five_conflicts_are_named(self, others: int, ending: str) -> None:
        """N6: a message stays short: five by name, and that there are more."""
        books = cluster()
        books.decide_many([node(f"b{number}", has=f"10.0.0.{number}/32") for number in range(others)])
        message = books.decide(node("a", has="10.0.0.0/24")).message
        assert message.startswith("also held by b0 (10.0.0.0/32), b1 (10.0.0.1/32)")
        assert message.endswith(ending)

    def test_ones_own_blocks_are_no_conflict(self) -> None:
        """N6: a node whose own podCIDRs overlap, or are written twice, is in conflict with nobody."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        decision = books.decide(node("a", has="10.0.0.0/24,10.0.0.0/25,10.0.0.7/24"))
        assert story(decision)[:2] == (Outcome.KEPT, ["10.0.0.0/24", "10.0.0.0/25"])
        books.check()
        books.forget("a")
        assert free(books, "p") == [256]

    def test_one_holding_is_named_once(self) -> None:
        """N6: what another holds around two of a node's blocks is one conflict, named once."""
        books = cluster()
        books.decide(node("b", has="10.0.0.0/23"))
        assert books.decide(node("a", has="10.0.0.0/24,10.0.1.0/24")).message == "also held by b (10.0.0.0/23)"

    def test_podcidrs_are_read_leniently(self) -> None:
        """N7: host bits set and leading zeros are masked and read, and the block that is meant is held."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        assert give(books, node("a", has="010.00.0.7/24")) == ["10.0.0.0/24"]
        assert give(books, node("b")) == ["10.0.1.0/24"]

    def test_what_cannot_be_read_is_reported(self) -> None:
        """N7: unreadable podCIDRs are reported with what is wrong, the readable ones held, and all others served."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        one, two = books.decide_many([node("a", has="10.0.0.0/24,rubbish,10.0.0.0/99"), node("b")])
        assert story(one) == (
            Outcome.INVALID,
            ["10.0.0.0/24"],
            ["p"],
            Reason.INVALID,
            "cannot be read: 'rubbish' has no length, '10.0.0.0/99' has the length '99', which is none of IPv4",
        )
        assert one.reason.value == "CIDRInvalid"
        assert texts(two) == ["10.0.1.0/24"]

    @pytest.mark.parametrize(
        "text", ["", "/", "x", "10.0.0.0", "10.0.0.0/-1", "10.0.0.0/\u0668", "10.0.0.0/" + "9" * 5000]
    )
    def test_nothing_that_stands_on_a_node_stops_the_others(self, text: str) -> None:
        """N7, N1: whatever text a podCIDR is, the node is given nothing and the next node is served."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        one, two = books.decide_many([Node("a", pod_cidrs=(text,)), node("b")])
        assert (one.outcome, one.blocks) == (Outcome.INVALID, ())
        assert texts(two) == ["10.0.0.0/24"]
        books.check()


class TestServiceRanges:
    """A7: what Services have is never given to nodes."""

    def test_a_pool_created_later_honours_them(self) -> None:
        """A7, pitfall 12: a service range known before the pool is not given out by it, whatever the block's size."""
        books = cluster()
        assert books.add_service_range(prefix("10.0.0.0/23"), "flag") == []
        books.add_pool(spec("p", "10.0.0.0/22 /24"))
        books.add_pool(spec("larger", "10.0.0.0/20 /22", where="size"))
        assert give_many(books, nodes(3)) == [["10.0.2.0/24"], ["10.0.3.0/24"], []]
        assert give(books, node("big", "size=1")) == ["10.0.4.0/22"]

    def test_one_added_later_is_honoured(self) -> None:
        """A7, pitfall 12: once a service range is added nothing of it is given, and when it goes it is free."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        books.decide(node("a"))
        books.add_service_range(prefix("10.0.1.0/24"), "object")
        books.add_service_range(prefix("10.0.3.128/25"), "object")
        assert give_many(books, nodes(2)) == [["10.0.2.0/24"], []]
        books.remove_service_range(prefix("10.0.1.0/24"), "object")
        assert give(books, node("n1")) == ["10.0.1.0/24"]

    def test_one_over_a_held_block_revokes_nothing(self) -> None:
        """A7: a service range over what a node has comes back with it; the node keeps it and is told."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        books.observe(node("a", has="10.0.1.0/24"))
        assert books.add_service_range(prefix("10.0.0.0/23"), "kubernetes") == [Holding(prefix("10.0.1.0/24"), "a")]
        decision = books.decide(node("a", has="10.0.1.0/24"))
        assert story(decision) == (
            Outcome.CONFLICT,
            ["10.0.1.0/24"],
            ["p"],
            Reason.CONFLICT,
            "also held by service range kubernetes (10.0.0.0/23)",
        )
        books.forget("a")
        assert give(books, node("b")) == ["10.0.2.0/24"]
        books.check()

    def test_only_nodes_come_back(self) -> None:
        """A7: adding the same range under a second name tells of no node, because none holds any of it."""
        books = cluster()
        books.add_service_range(prefix("10.0.0.0/16"), "flag")
        assert books.add_service_range(prefix("10.0.0.0/16"), "object") == []

    def test_two_names_for_one_range(self) -> None:
        """A7: a range given by flag and by object is free when both have gone, in IPv6 as in IPv4."""
        books = cluster(spec("p", "fd00::/64 /64"))
        books.add_service_range(prefix("fd00::/108"), "flag")
        books.add_service_range(prefix("fd00::/108"), "object")
        books.remove_service_range(prefix("fd00::/108"), "flag")
        assert give(books, node("a")) == []
        books.remove_service_range(prefix("fd00::/108"), "object")
        assert give(books, node("a")) == ["fd00::/64"]

    def test_a_node_named_like_a_service_range_is_another_holder(self) -> None:
        """A7, N2: service ranges and nodes have names of their own kinds, which cannot be taken for each other."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.observe(node("kubernetes", has="10.0.0.0/24"))
        books.add_service_range(prefix("10.0.0.0/24"), "kubernetes")
        books.check()
        books.forget("kubernetes")
        assert free(books, "p") == [0]
        assert list(books.spaces[Family.IPV4]) == [Holding(prefix("10.0.0.0/24"), ServiceRange("kubernetes"))]
