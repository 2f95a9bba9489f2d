"""The books of a cluster: what nodes hold, what they are given, who waits, and that the books are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.decision import Outcome, Reason
from cidrella.core.prefix import Family
from tests.core.build import (
    cluster,
    free,
    give,
    give_many,
    node,
    nodes,
    overlapping_pairs,
    prefix,
    spec,
    story,
    texts,
    users,
)

if TYPE_CHECKING:
    from cidrella.core.cluster import Cluster


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


class TestManyAtOnce:
    """A1: what is asked together is asked of different nodes."""

    def test_names_must_differ(self) -> None:
        """A1: two nodes of one name in one call are refused before anything is taken in or given."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        with pytest.raises(ValueError, match=r"^two nodes have the same name$"):
            books.decide_many([node("a"), node("b"), node("a", has="10.0.0.0/25")])
        assert free(books, "p") == [2]


class TestNodesThatWait:
    """N4, N8: who is given nothing now, and when that changes. For N10 see test_label_pools.py."""

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
            "it is being deleted and gets no Pod CIDR",
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

    def test_uninitialized_it_keeps_what_it_has(self) -> None:
        """N10, N1: the taint bears only on nodes without a block."""
        books = cluster(spec("p", "10.0.0.0/24 /25"))
        assert books.decide(node("a", has="10.0.0.0/25", uninitialized=True)).outcome is Outcome.KEPT


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
