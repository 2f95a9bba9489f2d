"""What others decided: adopted, or held until it can no longer land. Nothing is given twice meanwhile (pitfall 27)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.core.decision import Outcome, Reason
from tests.core.build import allocated, cluster, free, give, node, part, prefix, spec, texts, users

if TYPE_CHECKING:
    from cidrella.core.cluster import Cluster
    from cidrella.core.prefix import Prefix


def blocks(text: str) -> list[Prefix]:
    """Read blocks with a comma between."""
    return [prefix(each) for each in text.split(",")]


def kept(books: Cluster) -> list[tuple[str, str, list[str]]]:
    """What is held, in words."""
    return [(uid, pool, list(map(str, found))) for uid, pool, found in books.holds_kept()]


class TestAdopting:
    """N9, pitfall 27: what another decided is reserved as if it had been decided here."""

    def test_it_is_a_reservation(self) -> None:
        """N9: what was adopted is given to its node when it asks, to nobody else, and confirmed when it is seen."""
        books = cluster(spec("p", "10.0.0.0/23 /24", "fd00::/63 /64"))
        assert books.adopt(node("a"), "p", blocks("10.0.1.0/24,fd00:0:0:1::/64"))
        books.check()
        assert books.is_reserved("a", "uid of a")
        assert (free(books, "p"), allocated(books, "p"), users(books, "p")) == ([1, 1], [1, 1], {"a"})
        assert give(books, node("b")) == ["10.0.0.0/24", "fd00::/64"]
        assert give(books, node("c")) == []
        decision = books.decide(node("a"))
        assert (decision.outcome, decision.pool_name) == (Outcome.ASSIGNED, "p")
        assert texts(decision) == ["10.0.1.0/24", "fd00:0:0:1::/64"]
        landed = node("a", has="10.0.1.0/24,fd00:0:0:1::/64", annotation="p")
        assert books.observe_many([landed]) == []
        assert books.decide(landed).outcome is Outcome.KEPT
        books.check()

    def test_it_can_be_cancelled(self) -> None:
        """N9: an adopted reservation ends in the ways that any other does, and moves no cursor."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        assert books.adopt(node("a"), "p", blocks("10.0.2.0/24"))
        books.cancel("a")
        books.check()
        assert give(books, node("b")) == ["10.0.0.0/24"]
        assert books.adopt(node("a"), "p", blocks("10.0.2.0/24"))
        books.forget("a")
        assert free(books, "p") == [3]

    def test_of_two_pools(self) -> None:
        """K3, P3: a node that was to get a block of each of two pools gets both of them, or none is adopted."""
        books = cluster(part("ccc/v4", "10.0.0.0/24 /24"), part("ccc/v6", "fd00::/64 /64"))
        assert books.adopt(node("a"), "ccc/v4,ccc/v6", blocks("10.0.0.0/24,fd00::/64"))
        books.check()
        assert (users(books, "ccc/v4"), users(books, "ccc/v6")) == ({"a"}, {"a"})
        assert books.decide(node("a")).pool_name == "ccc/v4,ccc/v6"
        books.forget("a")
        books.remove_pool("ccc/v6")
        assert not books.adopt(node("a"), "ccc/v4,ccc/v6", blocks("10.0.0.0/24,fd00::/64"))
        assert not books.adopt(node("a"), "ccc/v4,ccc/v6", blocks("10.0.0.0/24"))

    @pytest.mark.parametrize(
        ("pool", "text"),
        [
            ("q", "10.0.0.0/24,fd00::/64"),
            ("", "10.0.0.0/24,fd00::/64"),
            ("going", "10.2.0.0/24"),
            ("unguarded", "10.3.0.0/24"),
            ("p", "10.0.0.0/24"),
            ("p", "10.0.0.0/24,10.0.1.0/24"),
            ("p", "10.0.0.0/24,fd00::/64,fd00:0:0:1::/64"),
            ("p", "10.0.0.0/25,fd00::/64"),
            ("p", "10.9.0.0/24,fd00::/64"),
            ("p", "10.0.5.0/24,fd00::/64"),
            ("p", "10.0.6.0/24,fd00::/64"),
        ],
    )
    def test_what_could_not_be_given(self, pool: str, text: str) -> None:
        """S6, A1, A7: nothing is adopted that is held, or that no pool would give; and nothing is changed by trying."""
        books = cluster(
            spec("p", "10.0.0.0/16 /24", "fd00::/48 /64"),
            spec("going", "10.2.0.0/16 /24", terminating=True),
            replace(spec("unguarded", "10.3.0.0/16 /24"), guarded=False),
        )
        books.observe(node("other", has="10.0.5.0/26"))
        books.add_service_range(prefix("10.0.6.0/24"), "services")
        before = free(books, "p")
        assert not books.adopt(node("a"), pool, blocks(text))
        assert not books.holds("a")
        assert free(books, "p") == before
        books.check()

    def test_a_node_that_holds_something(self) -> None:
        """N9: a node has one reservation at most."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        assert books.adopt(node("a"), "p", blocks("10.0.0.0/24"))
        assert not books.adopt(node("a"), "p", blocks("10.0.1.0/24"))
        assert free(books, "p") == [255]

    def test_what_is_held_for_it(self) -> None:
        """N4, pitfall 27: what is held for a node can be adopted for it, and is held no more; others' holds cannot."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        for name, text in (("a", "10.0.0.0/24"), ("a", "10.0.1.0/24"), ("b", "10.0.2.0/24"), ("b", "10.0.0.0/24")):
            books.hold(node(name), "p", blocks(text))
        before = books.openings
        assert not books.adopt(node("a"), "p", blocks("10.0.0.0/24"))
        assert not books.adopt(node("a"), "p", blocks("10.0.2.0/24"))
        assert books.adopt(node("a"), "p", blocks("10.0.1.0/24"))
        books.check()
        assert books.is_reserved("a", "uid of a")
        assert books.holds_kept("a") == [("uid of a", "p", (prefix("10.0.0.0/24"),))]
        assert books.held_for() == {"a", "b"}
        books.forget("b")
        books.cancel("a")
        assert books.adopt(node("a"), "p", blocks("10.0.0.0/24"))
        assert books.held_for() == set()
        assert (free(books, "p"), books.openings) == ([3], before)
        books.check()

    @pytest.mark.parametrize("what", ["nothing", "going", "gone", "made anew", "services", "other", "hold"])
    def test_whether_it_stands(self, what: str) -> None:
        """S6, P7, A7, N6: what is reserved could be given as long as its pool gives it, and nobody else has it."""
        books = cluster(spec("p", "10.0.0.0/16 /24"), spec("q", "10.0.0.0/16 /24", where="q"))
        assert books.adopt(node("a"), "p", blocks("10.0.0.0/24"))
        match what:
            case "going":
                books.change_pool(spec("p", "10.0.0.0/16 /24", terminating=True))
            case "gone":
                books.remove_pool("p")
            case "made anew":
                books.change_pool(spec("p", "10.1.0.0/16 /24"))
            case "services":
                books.add_service_range(prefix("10.0.0.0/28"), "services")
            case "other":
                books.observe(node("b", has="10.0.0.0/8"))
            case "hold":
                books.hold(node("b"), "p", blocks("10.0.0.0/24"))
        assert books.stands("a") == (what in {"nothing", "hold"})
        books.observe(node("c", has="10.9.0.0/24"))
        assert not books.stands("b")
        assert not books.stands("c")


class TestHolding:
    """Pitfall 27: what may yet land on a node is nobody's, until the node has podCIDRs or is gone."""

    def test_nobody_gets_it(self) -> None:
        """A1, P3: it is not given to anybody, not even to its node, and counts as use of its pool, once."""
        books = cluster(spec("p", "10.0.0.0/23 /24"))
        for _ in range(2):
            books.hold(node("a"), "p", blocks("10.0.0.0/24"))
        books.check()
        assert kept(books) == [("uid of a", "p", ["10.0.0.0/24"])]
        assert (free(books, "p"), allocated(books, "p")) == ([1], [1])
        assert users(books, "p") == {"a (10.0.0.0/24 may yet be written)"}
        assert not books.holds("a")
        assert books.reserved() == []
        assert give(books, node("a")) == ["10.0.1.0/24"]
        assert give(books, node("b")) == []

    @pytest.mark.parametrize("shown", ["10.0.0.0/24", "10.0.1.0/24", "10.0.3.0/24"])
    def test_the_node_has_podcidrs(self, shown: str) -> None:
        """N3, N6: whatever the node shows, held, reserved or another's, the hold ends with it, without a conflict."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        books.hold(node("a"), "p", blocks("10.0.0.0/24"))
        assert give(books, node("a")) == ["10.0.1.0/24"]
        landed = node("a", has=shown, annotation="p")
        books.observe_many([landed])
        books.check()
        assert kept(books) == []
        assert free(books, "p") == [3]
        decision = books.decide(landed)
        assert (decision.outcome, decision.reason) == (Outcome.KEPT, Reason.NONE)

    def test_the_node_is_gone(self) -> None:
        """N8: when the node is gone, or another of its name is there, its holds are free: a write has a uid."""
        for gone in (True, False):
            for reserves in (True, False):
                books = cluster(spec("p", "10.0.0.0/22 /24"))
                books.hold(node("a"), "p", blocks("10.0.0.0/24"))
                books.hold(node("a"), "p", blocks("10.0.2.0/24"))
                if reserves:
                    assert give(books, node("a")) == ["10.0.1.0/24"]
                if gone:
                    books.forget("a")
                else:
                    books.observe(node("a", uid="another"))
                books.check()
                assert free(books, "p") == [4]
                assert kept(books) == []

    def test_all_at_once(self) -> None:
        """Pitfall 27: holds are counted, and can be given up together, by who knows better what to do with them."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        for name, text in (("a", "10.0.0.0/24"), ("a", "10.0.1.0/24"), ("b", "10.0.2.0/24")):
            books.hold(node(name), "p", blocks(text))
        assert books.holds_count == len(kept(books)) == 3
        books.end_holds()
        books.check()
        assert books.holds_count == 0
        assert free(books, "p") == [4]

    def test_it_shows_nothing_yet(self) -> None:
        """N9: a node that is seen again without podCIDRs keeps what is held for it."""
        books = cluster(spec("p", "10.0.0.0/24 /24"))
        books.hold(node("a"), "p", blocks("10.0.0.0/24"))
        books.observe(node("a", "new=label"))
        assert give(books, node("a")) == give(books, node("b")) == []
        assert free(books, "p") == [0]

    def test_beside_what_others_hold(self) -> None:
        """N6, A7: a hold on what somebody has is no conflict, and ends without taking anything from anybody."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.observe(node("b", has="10.0.0.0/24"))
        books.hold(node("a"), "p", blocks("10.0.0.0/24,10.0.0.0/24"))
        assert books.decide(node("b", has="10.0.0.0/24")).outcome is Outcome.KEPT
        assert list(books.conflicts("b")) == []
        books.forget("a")
        books.check()
        assert free(books, "p") == [255]

    def test_service_ranges_come_and_go(self) -> None:
        """A7: a service range over what is held takes nothing from the hold, and gives nothing back when it goes."""
        books = cluster(spec("p", "10.0.0.0/23 /24"))
        books.hold(node("a"), "p", blocks("10.0.0.0/24"))
        (held,) = books.add_service_range(prefix("10.0.0.0/28"), "services")
        assert str(held.holder) == "a (10.0.0.0/24 may yet be written)"
        assert not books.adopt(node("a"), "p", blocks("10.0.0.0/24"))
        books.remove_service_range(prefix("10.0.0.0/28"), "services")
        books.check()
        assert (kept(books), free(books, "p")) == ([("uid of a", "p", ["10.0.0.0/24"])], [1])
        assert books.adopt(node("a"), "p", blocks("10.0.0.0/24"))

    def test_pools_come_and_go(self) -> None:
        """P3, P6, P7: a hold outlives its pool, and counts towards the one that comes to contain it."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.hold(node("a"), "p", blocks("10.0.0.0/24"))
        books.remove_pool("p")
        books.check()
        books.add_pool(spec("q", "10.0.0.0/22 /24"))
        books.check()
        assert allocated(books, "q") == [1]
        assert len(users(books, "q")) == 1
