"""What is reserved for a node: until it is seen, refused, or the node is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cidrella.core.decision import Outcome, Reason
from cidrella.core.prefix import Family
from cidrella.core.space import NotHeldError
from tests.core.build import (
    allocated,
    cluster,
    free,
    give,
    node,
    nodes,
    prefix,
    spec,
    story,
    texts,
    users,
)


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
