"""How nodes stand, without anything being decided; and what would help those that do not stand well."""

from __future__ import annotations

import pytest

from cidrella.core.decision import Node, Outcome, Reason
from cidrella.core.explain import remedy
from tests.core.build import cluster, free, give, node, prefix, spec, story


def test_what_a_node_holds() -> None:
    """What is seen on a node, and what is reserved for it, is told as a decision tells it."""
    books = cluster(spec("p", "10.0.0.0/16 /24"))
    kept, given = node("a", has="10.0.7.0/24"), node("b")
    books.observe(kept)
    give(books, given)
    assert story(books.standing(kept)) == (Outcome.KEPT, ["10.0.7.0/24"], ["p"], Reason.NONE, "")
    assert story(books.standing(given)) == (Outcome.ASSIGNED, ["10.0.0.0/24"], ["p"], Reason.NONE, "")


def test_nothing_is_given() -> None:
    """A node for which there is room waits without a reason, however often one looks, and takes nothing."""
    books = cluster(spec("p", "10.0.0.0/16 /24"))
    for _ in range(3):
        decision = books.standing(node("a"))
        assert story(decision) == (Outcome.WAITING, [], [], Reason.NONE, "")
        assert remedy(decision) == ""
    assert free(books, "p") == [256]
    assert not books.holds("a")
    books.check()
    assert give(books, node("b")) == ["10.0.0.0/24"]


def test_looking_changes_no_decision() -> None:
    """S4: who is decided on after somebody looked gets what they would have got."""
    looked, other = (cluster(spec("p", "10.0.0.0/23 /24"), spec("q", "10.1.0.0/23 /24")) for _ in range(2))
    for number in range(5):
        looked.standing(node("x"))
        assert looked.decide(node(str(number)))[:3] == other.decide(node(str(number)))[:3]
        looked.standing(node("y"))
    assert looked.standing(node("5")) == looked.decide(node("5"))
    looked.forget("0")
    assert looked.standing(node("5")).reason is Reason.NONE
    assert give(looked, node("5")) == ["10.0.0.0/24"]


@pytest.mark.parametrize(
    ("flags", "reason", "helps"),
    [
        ({"terminating": True}, Reason.TERMINATING, ""),
        ({"uninitialized": True}, Reason.UNINITIALIZED, "--wait-for-cloud-provider-timeout"),
    ],
)
def test_nodes_that_are_held_back(flags: dict[str, bool], reason: Reason, helps: str) -> None:
    """N8, N10: for their own sake they wait, although there is room."""
    books = cluster(spec("p", "10.0.0.0/16 /24"), spec("q", "10.1.0.0/16 /24", where="zone=a"))
    held = Node("a", **flags)  # type: ignore[arg-type] # flags
    decision = books.standing(held)
    assert (decision.outcome, decision.reason) == (Outcome.WAITING, reason)
    assert helps in remedy(decision)
    if not held.terminating:
        assert books.standing(held, wait_for_labels=False).reason is Reason.NONE


class TestRemedies:
    """What would help is said of each that does not stand well, and does help."""

    def test_no_pool_applies(self) -> None:
        """N4: a pool that selects it, or one for every node."""
        books = cluster(spec("p", "10.0.0.0/16 /24", where="size=big"))
        decision = books.standing(node("a"))
        assert decision.message == "no pool applies to it"
        assert "without a selector" in remedy(decision)
        books.add_pool(spec("q", "10.1.0.0/16 /24"))
        assert remedy(books.standing(node("a"))) == ""

    def test_every_pool_is_full(self) -> None:
        """N4: another pool, or a node that goes."""
        for another in (True, False):
            books = cluster(spec("p", "10.0.0.0/24 /24"))
            give(books, node("first"))
            decision = books.standing(node("a"))
            assert decision.message == "every pool that applies is full: p (no IPv4 /24 left)"
            assert remedy(decision).startswith("another pool")
            if another:
                books.add_pool(spec("q", "10.1.0.0/16 /24"))
            else:
                books.forget("first")
            assert remedy(books.standing(node("a"))) == ""

    @pytest.mark.parametrize(
        ("has", "reason", "helps"),
        [
            ("10.0.0.0/25", Reason.CONFLICT, "delete the node that should have other blocks"),
            ("10.96.0.0/24", Reason.CONFLICT, "delete the node that should have other blocks"),
            ("192.0.2.0/24", Reason.UNTRACKED, "a pool around them"),
            ("rubbish", Reason.INVALID, "delete the node, and let it register again"),
        ],
    )
    def test_nodes_that_hold_something(self, has: str, reason: Reason, helps: str) -> None:
        """N5, N6, N7, A7: what was written cannot be changed, and so on."""
        books = cluster(spec("p", "10.0.0.0/16 /24"))
        books.add_service_range(prefix("10.96.0.0/16"), "kubernetes")
        books.observe(node("first", has="10.0.0.0/24"))
        odd = node("a", has=has)
        books.observe(odd)
        decision = books.standing(odd)
        assert decision.reason is reason
        assert helps in remedy(decision)
