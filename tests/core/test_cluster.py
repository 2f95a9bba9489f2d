"""The books of a cluster, rule by rule: what nodes hold, what they are given, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.decision import Decision, Node, Outcome, Reason, ServiceRange
from cidrella.core.prefix import Family
from cidrella.core.space import Holding, NotHeldError
from tests.core.build import (
    allocated,
    cluster,
    free,
    give,
    give_many,
    node,
    nodes,
    overlapping_pairs,
    prefix,
    spec,
    texts,
)

if TYPE_CHECKING:
    from cidrella.core.cluster import Cluster


def users(books: Cluster, name: str) -> set[str]:
    """Return the nodes that use a pool."""
    return set(books.usage(books.pools[name]).nodes)


def story(decision: Decision) -> tuple[Outcome, list[str], list[str | None], Reason, str]:
    """Return all that a decision says, with pools by name."""
    names = [pool.name if pool else None for pool in decision.pools]
    return decision.outcome, texts(decision), names, decision.reason, decision.message


class TestWhatANodeHas:
    """N1, N2: what stands on a node stays, and is held by what it is."""

    def test_it_is_kept(self) -> None:
        """N1: a node with podCIDRs keeps just those, whatever its pools, labels and the room there is say."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        decision = books.decide(node("a", has="10.0.7.0/24"))
        assert story(decision) == (Outcome.KEPT, ["10.0.7.0/24"], ["p"], Reason.NONE, "")
        books.add_pool(spec("better", "10.9.0.0/24 /28", where="size=big"))
        assert give(books, node("a", "size=big", has="10.0.7.0/24")) == ["10.0.7.0/24"]

    @given(
        st.lists(st.sampled_from(["10.0.0.0/24", "10.0.3.0/26", "fd00::/64", "192.0.2.0/24"]), min_size=1, max_size=2)
    )
    def test_no_decision_adds_to_it(self, has: list[str]) -> None:
        """N1: never is a node with podCIDRs given a block, not even of a family that it has none of."""
        books = cluster(spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"))
        for _ in range(2):
            decision = books.decide(node("a", has=",".join(has)))
            assert decision.outcome is not Outcome.ASSIGNED
            assert set(texts(decision)) == set(has)
        books.check()
        assert {str(holding.prefix) for family in Family for holding in books.spaces[family]} == set(has)

    def test_it_is_not_given_again(self) -> None:
        """N2, A1: what a node has is stepped around, in whichever order pools and nodes are told."""
        books = cluster()
        books.observe(node("a", has="10.0.0.0/24"))
        books.add_pool(spec("p", "10.0.0.0/16 /24"))
        books.observe(node("b", has="10.0.1.0/24"))
        assert give(books, node("c")) == ["10.0.2.0/24"]

    def test_relabelling_changes_nothing(self) -> None:
        """N2, P3, pitfall 3: a node relabelled away from its pool still holds its block there, after a restart too."""
        pools = (
            spec("big", "10.0.0.0/23 /24", where="size=big"),
            spec("small", "10.1.0.0/23 /24", where="size=small"),
        )
        books = cluster(*pools)
        block = give(books, node("a", "size=big"))
        assert block == ["10.0.0.0/24"]
        relabelled = node("a", "size=small", has="10.0.0.0/24", annotation="big")
        assert give(books, relabelled) == block
        restarted = cluster(*pools)
        assert restarted.decide_many([relabelled, node("b", "size=big")])[1].blocks == (prefix("10.0.1.0/24"),)
        for each in (books, restarted):
            assert "a" in users(each, "big")
            assert users(each, "small") == set()

    def test_a_new_pool_knows_the_nodes_that_were_there(self) -> None:
        """N2, pitfall 16: a pool is added over blocks that nodes have, and gives none of them out."""
        books = cluster(spec("old", "10.0.0.0/24 /26"))
        books.decide_many(nodes(2))
        books.observe(node("found", has="10.0.1.0/24"))
        books.add_pool(spec("new", "10.0.0.0/23 /25", where="new"))
        assert free(books, "new") == [1]
        assert give_many(books, nodes(2, "new=1", "m")) == [["10.0.0.128/25"], []]
        assert overlapping_pairs(books) == []

    def test_what_is_held_is_taken_in_before_anything_is_given(self) -> None:
        """N2, pitfall 16: in one call, the blocks of nodes that come last are held before the first is served."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        fleet = [node("new"), *(node(f"old{number}", has=f"10.0.{number}.0/24") for number in range(3))]
        assert give_many(books, fleet)[0] == ["10.0.3.0/24"]

    def test_a_pool_that_vanishes_leaves_its_nodes_their_blocks(self) -> None:
        """N2: a pool removed while it is used revokes nothing, and its blocks stay held for a pool that follows."""
        books = cluster(spec("p", "10.0.0.0/23 /24"))
        books.decide(node("a"))
        books.observe(node("a", has="10.0.0.0/24", annotation="p"))
        books.remove_pool("p")
        assert books.decide(node("a", has="10.0.0.0/24")).outcome is Outcome.UNTRACKED
        books.add_pool(spec("q", "10.0.0.0/23 /24"))
        assert give_many(books, nodes(2)) == [["10.0.1.0/24"], []]


class TestReservations:
    """N3, N9, A5: what was decided is held until somebody says how it ended."""

    def test_asked_again_it_is_the_same(self) -> None:
        """N9: a node that shows nothing is given its reservation again, however often it asks, and no other."""
        books = cluster(spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"))
        first = books.decide(node("a"))
        assert first.outcome is Outcome.ASSIGNED
        for again in (books.decide(node("a")), *books.decide_many([node("a")])):
            assert story(again) == story(first)
        books.observe(node("a"))
        assert give(books, node("b")) == ["10.0.1.0/24", "fd00:0:0:1::/64"]
        assert give(books, node("a")) == texts(first)
        books.check()

    def test_relabelled_in_flight_it_is_the_same(self) -> None:
        """N9: a reservation does not follow the labels: the PATCH that is under way may still land."""
        books = cluster(spec("p", "10.0.0.0/16 /24"), spec("q", "10.1.0.0/16 /24", where="size=big"))
        assert give(books, node("a")) == ["10.0.0.0/24"]
        assert give(books, node("a", "size=big")) == ["10.0.0.0/24"]

    def test_it_is_not_given_to_another(self) -> None:
        """N9, A1: while the outcome of a PATCH is unknown its block is neither free nor given twice."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.decide(node("a"))
        books.observe(node("a"))
        assert free(books, "p") == [0]
        assert give(books, node("b")) == []

    def test_it_becomes_a_holding(self) -> None:
        """N3, N9: when the node shows what was reserved, it holds it; nothing is counted twice."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide(node("a"))
        landed = node("a", has="10.0.0.0/24", annotation="p")
        assert story(books.decide(landed)) == (Outcome.KEPT, ["10.0.0.0/24"], ["p"], Reason.NONE, "")
        assert free(books, "p") == [255]
        assert allocated(books, "p") == [1]
        books.forget("a")
        assert free(books, "p") == [256]
        books.check()

    def test_other_blocks_than_reserved_replace_it(self) -> None:
        """N3: a node that shows up with other podCIDRs holds those, and what was reserved for it is free."""
        books = cluster(spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"))
        assert give(books, node("a")) == ["10.0.0.0/24", "fd00::/64"]
        assert give(books, node("a", has="10.0.9.0/24,fd00::/64")) == ["10.0.9.0/24", "fd00::/64"]
        books.check()
        assert free(books, "p") == [255, 65535]
        assert [str(each.prefix) for each in books.spaces[Family.IPV4]] == ["10.0.9.0/24"]
        assert [str(each.prefix) for each in books.spaces[Family.IPV6]] == ["fd00::/64"]

    def test_larger_and_smaller_blocks_than_reserved_replace_it(self) -> None:
        """N3: where what the node shows overlaps what was reserved, exactly what it shows is held."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide(node("a"))
        books.observe(node("a", has="10.0.0.0/23"))
        assert free(books, "p") == [254]
        books.observe(node("a", has="10.0.0.0/26"))
        assert free(books, "p") == [255]
        assert [str(each.prefix) for each in books.spaces[Family.IPV4]] == ["10.0.0.0/26"]
        books.check()

    def test_refused_it_is_free(self) -> None:
        """N9: a definite refusal frees both families, and the node can be decided on anew."""
        books = cluster(spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"))
        books.decide(node("a"))
        books.cancel("a")
        books.check()
        assert free(books, "p") == [256, 65536]
        assert users(books, "p") == set()
        assert books.decide(node("a")).outcome is Outcome.ASSIGNED

    def test_refused_it_does_not_move_the_cursor(self) -> None:
        """A5, N9: after a refusal the next node gets the very blocks that were refused, in both families."""
        books = cluster(spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"))
        books.decide(node("a"))
        assert give(books, node("b")) == ["10.0.1.0/24", "fd00:0:0:1::/64"]
        books.cancel("b")
        assert give(books, node("c")) == ["10.0.1.0/24", "fd00:0:0:1::/64"]

    def test_refused_after_its_pool_has_gone(self) -> None:
        """N9: the refusal frees the blocks even where the pool that gave them is gone, or another one has its place."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide_many(nodes(2))
        books.remove_pool("p")
        books.cancel("n0")
        books.check()
        books.add_pool(spec("q", "10.0.0.0/16 /24"))
        assert users(books, "q") == {"n1"}
        assert give(books, node("a")) == ["10.0.0.0/24"]
        books.cancel("n1")
        books.check()
        assert free(books, "q") == [255]
        assert give(books, node("b")) == ["10.0.1.0/24"]

    def test_refused_after_its_pool_has_gone_it_moves_no_cursor(self) -> None:
        """A5: the pool that a refused block counts towards goes on where it stood, though it once gave that block."""
        books = cluster(spec("p", "10.0.0.0/24 /26"), spec("q", "10.0.0.0/24 /26", where="q"))
        assert give(books, node("a")) == ["10.0.0.0/26"]
        books.forget("a")
        assert give(books, node("b", "q=1")) == ["10.0.0.0/26"]
        books.remove_pool("q")
        books.cancel("b")
        assert give(books, node("c")) == ["10.0.0.64/26"]

    def test_refused_after_its_pool_was_made_again_with_another_size(self) -> None:
        """A2, A5: a pool of the same name but other blocks goes on where it stood, and never outside of its range."""
        books = cluster(spec("p", "1.0.0.0/8 /24"))
        books.add_service_range(prefix("1.0.0.0/9"), "lower")
        for length in range(10, 25):
            upper = (1 << 24) + (1 << 24) - (1 << (32 - length + 1))
            books.add_service_range(prefix(f"1.{upper >> 16 & 255}.{upper >> 8 & 255}.0/{length}"), f"upper-{length}")
        assert give(books, node("a")) == ["1.255.255.0/24"]
        books.remove_pool("p")
        books.remove_service_range(prefix("1.0.0.0/9"), "lower")
        books.add_pool(spec("p", "1.0.0.0/8 /25"))
        books.cancel("a")
        assert give(books, node("b")) == ["1.0.0.0/25"]

    def test_refused_after_its_pool_was_made_again(self) -> None:
        """A5: a pool that was made anew starts at its lowest block, whatever becomes of an old reservation."""
        books = cluster(spec("p", "10.0.0.0/30 /32"))
        books.decide_many(nodes(4))
        for name in ("n0", "n1", "n2"):
            books.forget(name)
        books.remove_pool("p")
        books.add_pool(spec("p", "10.0.0.0/30 /32"))
        books.cancel("n3")
        assert give(books, node("a")) == ["10.0.0.0/32"]

    def test_what_a_node_has_cannot_be_refused(self) -> None:
        """N1: only a reservation can be taken back, not what stands on a node, and not what nobody has."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide(node("a", has="10.0.0.0/24"))
        for name in ("a", "never heard of"):
            with pytest.raises(NotHeldError, match=f"^nothing is reserved for {name}$"):
                books.cancel(name)
        books.check()
        assert allocated(books, "p") == [1]

    def test_gone_it_is_free(self) -> None:
        """N9, N8: when the node is gone its reservation is free, and forgetting it again is no error."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.decide(node("a"))
        books.forget("a")
        books.forget("a")
        books.forget("never heard of")
        assert give(books, node("b")) == ["10.0.0.0/24"]
        books.check()

    def test_another_uid_is_another_node(self) -> None:
        """N3, N8: a node made again under its old name gets a decision of its own; the predecessor's block is free."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        assert give(books, node("a", uid="1")) == ["10.0.0.0/24"]
        assert give(books, node("a", uid="2")) == ["10.0.1.0/24"]
        books.check()
        assert free(books, "p") == [255]
        assert give(books, node("a", uid="3", has="10.0.2.0/24")) == ["10.0.2.0/24"]
        books.observe(node("a", uid="4"))
        assert free(books, "p") == [256]

    def test_a_reservation_counts_as_use(self) -> None:
        """P3: a block in flight counts towards the pool that it comes from, in its number of blocks and of nodes."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide_many(nodes(3))
        assert allocated(books, "p") == [3]
        assert users(books, "p") == {"n0", "n1", "n2"}


class TestManyAtOnce:
    """A1: what is asked together is asked of different nodes."""

    def test_names_must_differ(self) -> None:
        """A1: two nodes of one name in one call are refused before anything is taken in or given."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        with pytest.raises(ValueError, match=r"^two nodes have the same name$"):
            books.decide_many([node("a"), node("b"), node("a", has="10.0.0.0/25")])
        assert free(books, "p") == [2]


class TestNodesThatWait:
    """N4, N8, N10: who is given nothing now, and when that changes."""

    def test_served_at_once_when_a_pool_is_added(self) -> None:
        """N4: a node that waited is served when it is asked for again after a pool was added."""
        books = cluster(spec("full", "10.0.0.0/24 /24"))
        books.decide(node("a"))
        decision = books.decide(node("b"))
        assert story(decision) == (
            Outcome.WAITING,
            [],
            [],
            Reason.NOT_AVAILABLE,
            "every pool that applies is full: full (no IPv4 /24 left)",
        )
        assert decision.reason.value == "CIDRNotAvailable"
        books.add_pool(spec("more", "10.1.0.0/24 /24"))
        assert give(books, node("b")) == ["10.1.0.0/24"]

    @pytest.mark.parametrize("how", ["node gone", "service range gone", "reservation refused"])
    def test_served_at_once_when_room_appears(self, how: str) -> None:
        """N4: a node that waited is served when it is asked for again after anything in its pool became free."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        books.observe(node("a", has="10.0.0.0/25"))
        if how == "service range gone":
            books.add_service_range(prefix("10.0.0.128/25"), "services")
        else:
            books.decide(node("b"))
        assert books.decide(node("waiting")).outcome is Outcome.WAITING
        if how == "node gone":
            books.forget("a")
        elif how == "service range gone":
            books.remove_service_range(prefix("10.0.0.128/25"), "services")
        else:
            books.cancel("b")
        assert give(books, node("waiting")) == ["10.0.0.0/25" if how == "node gone" else "10.0.0.128/25"]

    def test_served_at_once_when_its_labels_change(self) -> None:
        """N4: … after it was given labels that a pool selects."""
        books = cluster(spec("p", "10.0.0.0/24 /25", where="size=big"))
        assert books.decide(node("a")).message == "no pool applies to it"
        assert give(books, node("a", "size=big")) == ["10.0.0.0/25"]

    def test_being_deleted_it_is_given_none(self) -> None:
        """N8: a node that is being deleted and has no block is given none, and the reason is its own."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        decision = books.decide(node("a", terminating=True))
        assert story(decision) == (
            Outcome.WAITING,
            [],
            [],
            Reason.TERMINATING,
            "it is being deleted, and is given none",
        )
        assert free(books, "p") == [2]

    def test_being_deleted_it_keeps_its_block(self) -> None:
        """N8, pitfall 1: a deletionTimestamp releases nothing; the block is free when the node is gone."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.decide(node("a", has="10.0.0.0/24"))
        decision = books.decide(node("a", has="10.0.0.0/24", terminating=True))
        assert decision.outcome is Outcome.KEPT
        assert give(books, node("b")) == []
        books.forget("a")
        assert give(books, node("b")) == ["10.0.0.0/24"]

    def test_being_deleted_it_keeps_its_reservation(self) -> None:
        """N8, N9, pitfall 1: a reservation may still land on a node that is being deleted, and is kept for it."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.decide(node("a"))
        books.decide(node("a", terminating=True))
        assert give(books, node("b")) == []

    def test_uninitialized_it_waits_for_its_labels(self) -> None:
        """N10: a node that its cloud provider has yet to initialise waits until the taint goes."""
        books = cluster(spec("p", "10.0.0.0/24 /25"), spec("q", "10.1.0.0/24 /25", where="size=big"))
        decision = books.decide(node("a", uninitialized=True))
        assert story(decision) == (
            Outcome.WAITING,
            [],
            [],
            Reason.UNINITIALIZED,
            "its cloud provider has yet to initialise it, and may add labels that choose its pool",
        )
        assert story(books.decide_many([node("a", uninitialized=True)])[0]) == story(decision)
        assert give(books, node("a", "size=big")) == ["10.1.0.0/25"]

    def test_uninitialized_nodes_can_be_served(self) -> None:
        """N10: a flag turns the waiting off, but not for nodes that are being deleted."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        served = books.decide(node("a", uninitialized=True), wait_for_labels=False)
        assert texts(served) == ["10.0.0.0/25"]
        both = [node("b", uninitialized=True, terminating=True), node("c", uninitialized=True)]
        decisions = books.decide_many(both, wait_for_labels=False)
        assert [each.reason for each in decisions] == [Reason.TERMINATING, Reason.NONE]
        assert [each.reason for each in books.decide_many([node("d", uninitialized=True, terminating=True)])] == [
            Reason.TERMINATING
        ]

    def test_uninitialized_it_keeps_what_it_has(self) -> None:
        """N10, N1: the taint bears only on nodes without a block."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        assert books.decide(node("a", has="10.0.0.0/25", uninitialized=True)).outcome is Outcome.KEPT


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
        assert decision.pool_name == ""
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


class TestPools:
    """S6, A8, P3: pools that come, go, and give nothing."""

    @pytest.mark.parametrize("where", [None, "size"])
    @pytest.mark.parametrize(("terminating", "problem"), [(True, ""), (False, "host bits"), (True, "host bits")])
    def test_terminating_and_invalid_pools_give_nothing(
        self, where: str | None, terminating: bool, problem: str
    ) -> None:
        """S6, pitfall 5: a pool that is being deleted, or invalid, gives no block, with a selector or without one."""
        books = cluster(spec("p", "10.0.0.0/16 /24", where=where, terminating=terminating, problem=problem))
        assert books.decide(node("a", "size=1")).message == "no pool applies to it"
        assert "p" in books.pools
        books.check()
        books.remove_pool("p")
        assert books.pools == {}
        books.check()

    @pytest.mark.parametrize("where", [None, "size"])
    def test_a_pool_that_turns_terminating_stops_giving(self, where: str | None) -> None:
        """S6, pitfall 5: from one moment to the next, though it has room and a waiting node matches it."""
        books = cluster(spec("p", "10.0.0.0/16 /24", where=where))
        books.decide(node("a", "size=1"))
        books.remove_pool("p")
        books.add_pool(spec("p", "10.0.0.0/16 /24", where=where, terminating=True))
        assert books.decide(node("b", "size=1")).outcome is Outcome.WAITING
        assert users(books, "p") == {"a"}
        assert give(books, node("a", "size=1")) == ["10.0.0.0/24"]

    def test_an_invalid_pool_need_not_have_ranges(self) -> None:
        """S6: an object whose ranges cannot be read is a pool without ranges, that gives nothing and stops nothing."""
        books = cluster(spec("broken", problem="has no length"), spec("p", "10.0.0.0/16 /24"))
        assert give(books, node("a")) == ["10.0.0.0/24"]
        books.check()
        books.remove_pool("broken")

    def test_free_is_what_a_pool_gives(self) -> None:
        """A8, S6: what could be given right now is a family's free blocks, and none where the pool gives nothing."""
        books = cluster(
            spec("p", "10.0.0.0/24 /25", "fd00::/62 /64"),
            spec("going", "10.0.0.0/24 /25", terminating=True),
            spec("odd", "10.0.0.0/24 /25", problem="odd"),
        )
        books.observe(node("a", has="10.0.0.0/25"))
        assert [books.pools["p"].free(family) for family in Family] == [1, 4]
        assert [books.pools[name].free(Family.IPV4) for name in ("going", "odd")] == [0, 0]

    def test_names_are_unique(self) -> None:
        """S6: a pool that changes is removed and added again; a second one of its name is a mistake."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        with pytest.raises(AssertionError, match=r"^there is a pool p already$"):
            books.add_pool(spec("p", "10.1.0.0/16 /24"))

    def test_counts(self) -> None:
        """A8: allocated are the blocks that users touch, free those that could be given; they need not add up."""
        books = cluster(spec("p", "10.0.0.0/24 /27"), spec("q", "10.0.0.0/24 /26", where="q"))
        books.decide_many([node("a"), node("b"), node("c", "q=1")])
        books.add_service_range(prefix("10.0.0.128/27"), "services")
        books.observe(node("found", has="10.0.0.192/30", annotation="p"))
        assert allocated(books, "p") == [3]
        assert free(books, "p") == [2]
        assert allocated(books, "q") == [1]
        assert free(books, "q") == [0]
        assert [books.pools["p"].views[0].capacity, books.pools["q"].views[0].capacity] == [8, 4]

    def test_what_is_free_can_be_given_and_nothing_more(self) -> None:
        """A8: as many nodes as a pool reports free are served, and the next one waits."""
        books = cluster(spec("p", "10.0.0.0/22 /26"))
        books.add_service_range(prefix("10.0.1.16/28"), "services")
        books.observe(node("found", has="10.0.2.0/25"))
        assert free(books, "p") == [13]
        outcomes = [each.outcome for each in books.decide_many(nodes(14))]
        assert outcomes == [Outcome.ASSIGNED] * 13 + [Outcome.WAITING]

    def test_a_node_counts_once_among_overlapping_pools(self) -> None:
        """A1, P3, pitfall 17: a block counts towards one pool, and when released is gone from all counts."""
        books = cluster(
            spec("p", "10.0.0.0/16 /24"), spec("q", "10.0.0.0/17 /24", where="q"), spec("r", "10.0.0.0/8 /24")
        )
        books.decide(node("a"))
        assert [allocated(books, name) for name in "pqr"] == [[1], [0], [0]]
        assert [free(books, name) for name in "pqr"] == [[255], [127], [65535]]
        books.forget("a")
        assert [allocated(books, name) for name in "pqr"] == [[0], [0], [0]]
        assert [free(books, name) for name in "pqr"] == [[256], [128], [65536]]

    def test_the_annotated_pool_counts(self) -> None:
        """P3: a block counts towards the pool that the node's annotation names, where that contains it."""
        books = cluster(
            spec("old", "10.0.0.0/16 /24", created="2024"),
            spec("young", "10.0.0.0/16 /24", created="2025"),
            spec("elsewhere", "10.9.0.0/16 /24", created="2020"),
        )
        for annotation, counts in [
            ("young", "young"),
            ("old", "old"),
            ("elsewhere", "old"),
            ("gone", "old"),
            ("", "old"),
        ]:
            decision = books.decide(node("a", has="10.0.0.0/24", annotation=annotation))
            assert decision.pool_name == counts
            assert users(books, counts) == {"a"}
            books.check()

    def test_one_node_may_use_two_pools(self) -> None:
        """P3: each block counts for itself: a node can use one pool for IPv4 and another for IPv6."""
        books = cluster(spec("four", "10.0.0.0/16 /24"), spec("six", "fd00::/48 /64"), spec("more", "10.1.0.0/16 /24"))
        decision = books.decide(node("a", has="10.0.0.0/24,fd00::/64,10.1.0.0/24", annotation="six"))
        assert [pool.name for pool in decision.pools if pool] == ["four", "six", "more"]
        assert all(users(books, name) == {"a"} for name in ("four", "six", "more"))
        books.remove_pool("six")
        decision = books.decide(node("a", has="10.0.0.0/24,fd00::/64,10.1.0.0/24", annotation="six"))
        assert [pool.name if pool else None for pool in decision.pools] == ["four", None, "more"]

    def test_use_does_not_depend_on_who_came_first(self) -> None:
        """P3: pools and nodes told in another order, or pools that came and went in between, leave the same counts."""
        pools = [
            spec("a", "10.0.0.0/16 /24", created="2"),
            spec("b", "10.0.0.0/16 /26", created="1"),
            spec("c", "10.0.0.0/8 /24", created="1"),
        ]
        fleet = [
            node("x", has="10.0.0.0/24"),
            node("y", has="10.0.1.0/26"),
            node("z", has="10.0.2.0/27", annotation="c"),
        ]
        forward, backward = cluster(*pools), cluster()
        forward.decide_many(fleet)
        backward.add_pool(spec("gone", "10.0.0.0/8 /26", created="0"))
        backward.decide_many(fleet[::-1])
        for each in pools[::-1]:
            backward.add_pool(each)
        backward.remove_pool("gone")
        for books in (forward, backward):
            assert [users(books, name) for name in "abc"] == [set(), {"y"}, {"x", "z"}]
            books.check()

    def test_usage_is_of_the_pools_own_block_size(self) -> None:
        """A8, P3: a found block larger than the pool's touches several of them, two smaller ones may touch the same."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.decide_many([node("a", has="10.0.0.0/22"), node("b", has="10.0.8.0/26"), node("c", has="10.0.8.64/26")])
        assert allocated(books, "p") == [5]
        assert free(books, "p") == [251]


class TestCheck:
    """Books that are broken say so: the check that other tests rely on is not blind."""

    def books(self) -> Cluster:
        books = cluster(spec("p", "10.0.0.0/16 /24"), spec("q", "10.0.0.0/16 /24"))
        books.decide(node("a"))
        books.check()
        return books

    def test_a_block_held_behind_the_books(self) -> None:
        """A1: a prefix in the space that no account knows is found, and so is one that only the books know."""
        books = self.books()
        books.spaces[Family.IPV4].occupy(prefix("10.0.9.0/24"), "b")
        with pytest.raises(AssertionError, match=r"^the space and the books differ$"):
            books.check()
        books = self.books()
        books.spaces[Family.IPV4].release(prefix("10.0.0.0/24"), "a")
        with pytest.raises(AssertionError, match=r"^the space and the books differ$"):
            books.check()

    def test_a_block_that_counts_towards_the_wrong_pool(self) -> None:
        """P3: an account that names another pool than the facts do is found."""
        books = self.books()
        books._accounts["a"].pools = (books.pools["q"],)
        with pytest.raises(AssertionError, match=r"^a counts towards the wrong pool$"):
            books.check()

    def test_a_user_that_is_not_one(self) -> None:
        """P3: a pool that counts a node which does not use it is found."""
        books = self.books()
        books.usage(books.pools["q"]).add(prefix("10.0.9.0/24"), "b")
        with pytest.raises(AssertionError):
            books.check()

    def test_a_broken_space(self) -> None:
        """A8: what the spaces' own check finds, the cluster's finds."""
        books = self.books()
        books.pools["p"].views[0]._tally.free += 1
        with pytest.raises(AssertionError, match=r"^a tally has drifted$"):
            books.check()


class TestWhatAControllerAsks:
    """The questions of one that acts on decisions: what is held, for whom, and when to ask again."""

    def test_who_has_a_reservation(self) -> None:
        """N9: a reservation is told apart from what was seen on a node, and belongs to one uid alone."""
        books = cluster(spec("all", "10.0.0.0/24 /28"))
        decision = books.decide(node("n1", uid="u1"))
        assert books.holds("n1")
        assert books.is_reserved("n1", "u1")
        assert not books.is_reserved("n1", "u2")
        assert not books.is_reserved("n2", "u1")
        assert books.reserved() == ["n1"]
        books.observe(node("n1", uid="u1", has=",".join(texts(decision))))
        assert books.holds("n1")
        assert not books.is_reserved("n1", "u1")
        assert books.reserved() == []
        assert [(str(block), pool.name) for block, pool in books.uses("n1")] == [("10.0.0.0/28", "all")]
        assert books.uses("n2") == []
        books.observe(node("n3", has="10.0.0.16/28,10.9.0.0/28"))
        assert [str(block) for block, _ in books.uses("n3")] == ["10.0.0.16/28"]

    def test_what_was_reserved_is_confirmed(self) -> None:
        """N3: a node that shows what was reserved for it is no news; any other uid, block or annotation is."""
        for shown, news in (
            (node("n1", uid="u1", has="10.0.0.0/28", annotation="all"), False),
            (node("n1", uid="u2", has="10.0.0.0/28", annotation="all"), True),
            (node("n1", uid="u1", has="10.0.0.16/28", annotation="all"), True),
            (node("n1", uid="u1", has="10.0.0.0/28"), True),
        ):
            books = cluster(spec("all", "10.0.0.0/24 /28"))
            books.decide(node("n1", uid="u1"))
            assert books.observe_many([shown]) == (["n1"] if news else [])
            assert not books.is_reserved("n1", shown.uid)
            assert books.decide(shown).outcome is Outcome.KEPT
            assert books.observe_many([shown]) == ["n1"]
            books.check()

    def test_openings_say_when_to_ask_again(self) -> None:
        """N4: the count grows when a pool that gives comes, and when a full range gets room, and at nothing else."""
        books = cluster(spec("one", "10.0.0.0/28 /28"))
        assert books.decide(node("n1")).blocks
        before = books.openings
        assert not books.decide(node("n2")).blocks
        books.add_pool(replace(spec("new", "10.1.0.0/28 /28"), guarded=False))
        assert books.openings == before
        books.forget("n1")
        assert books.openings == before + 1
        books.remove_pool("new")
        books.add_pool(spec("new", "10.1.0.0/28 /28"))
        assert books.openings == before + 2

    def test_a_pool_without_its_finalizer_gives_nothing(self) -> None:
        """P1: a pool that is not guarded yet gives nothing, and what lies in it counts towards it all the same."""
        books = cluster(replace(spec("all", "10.0.0.0/24 /28"), guarded=False))
        assert books.decide(node("n1")).reason is Reason.NOT_AVAILABLE
        books.observe(node("n2", has="10.0.0.0/28"))
        assert users(books, "all") == {"n2"}

    def test_everything_that_is_found(self) -> None:
        """N5, N6, N7: one node may give cause for several findings, and all are told, the worst first."""
        books = cluster()
        books.observe_many([node("n1", has="10.0.0.0/28,rubbish"), node("n2", has="10.0.0.0/24")])
        assert [each.reason for each in books.findings("n1")] == [
            Reason.INVALID,
            Reason.CONFLICT,
            Reason.UNTRACKED,
        ]
        assert [each.reason for each in books.findings("n2")] == [Reason.CONFLICT, Reason.UNTRACKED]

    def test_a_pool_that_changes(self) -> None:
        """P1, P2, S6: a pool comes to give, and gives no more, without anything being counted anew.

        Other ranges make it another pool, whose nodes keep what they have.
        """
        first = spec("p", "10.0.0.0/24 /28")
        books = cluster(replace(first, guarded=False))
        books.observe(node("n1", has="10.0.0.0/28"))
        pool, before = books.pools["p"], books.openings
        assert not books.decide(node("n2")).blocks
        books.change_pool(first)
        assert books.openings == before + 1
        assert give(books, node("n2")) == ["10.0.0.16/28"]
        books.change_pool(replace(first, terminating=True))
        assert not books.decide(node("n3")).blocks
        assert books.pools["p"] is pool
        assert users(books, "p") == {"n1", "n2"}
        books.check()
        books.change_pool(spec("p", "10.1.0.0/24 /28"))
        assert users(books, "p") == set()
        assert give(books, node("n3")) == ["10.1.0.0/28"]
        books.check()
