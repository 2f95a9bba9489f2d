"""Nodes that their cloud provider has not initialised: which of them wait for labels, and for which pool (N10)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.core import label_pools
from cidrella.core.decision import Outcome, Reason
from cidrella.core.selector import Selector
from tests.core.build import cluster, give, node, nodes, part, spec, story, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Node
    from cidrella.core.pool import PoolSpec

FALLBACK = spec("fallback", "10.0.0.0/16 /24")
ZONE_A = spec("zone-a", "10.1.0.0/24 /24", where="zone=a")


def tainted(labels: str = "", name: str = "new") -> Node:
    """Write down a node that its cloud provider has not initialised."""
    return node(name, labels, uninitialized=True)


def awaited(books: Cluster, of: Node) -> str:
    """The name of the pool for which a node waits; empty where it does not wait."""
    pool = books.awaited_pool(of)
    assert (books.standing(of).reason is Reason.UNINITIALIZED) == (pool is not None)
    return pool.name if pool is not None else ""


def test_waits_while_a_selector_could_match() -> None:
    """N10: the node is given nothing, the reason names the pool, and the labels end it."""
    books = cluster(FALLBACK, ZONE_A)
    decision = books.decide(tainted())
    assert story(decision) == (
        Outcome.WAITING,
        [],
        [],
        Reason.UNINITIALIZED,
        "it waits for its cloud provider, for a limited time: the selector of zone-a may match once labels are set "
        "(N10)",
    )
    assert decision.reason.value == "WaitingForCloudProvider"
    assert not books.holds("new")
    assert give(books, node("new", "zone=a")) == ["10.1.0.0/24"]


@pytest.mark.parametrize(
    "pools",
    [
        (),
        (FALLBACK,),
        (FALLBACK, spec("other", "10.2.0.0/16 /24")),
        (FALLBACK, replace(ZONE_A, terminating=True)),
        (FALLBACK, replace(ZONE_A, problem="odd")),
        (FALLBACK, replace(ZONE_A, guarded=False)),
    ],
    ids=["no pool", "one fallback", "fallbacks", "terminating", "invalid", "without finalizer"],
)
def test_does_not_wait_where_labels_change_nothing(pools: tuple[PoolSpec, ...]) -> None:
    """N10, S6, P1: without a pool that has a selector and gives, the node is decided on like any other."""
    books = cluster(*pools)
    assert awaited(books, tainted()) == ""
    assert story(books.decide(tainted())) == story(cluster(*pools).decide(node("new")))


@pytest.mark.parametrize(
    ("where", "labels", "waits"),
    [
        ("zone=a", "", True),
        ("zone=a", "zone=b", True),
        ("zone=a", "zone=a", False),
        ("zone", "", True),
        ("cpu>4", "", True),
        ("cpu<4", "cpu=8", True),
        ("zone=a and gpu", "zone=a", True),
        ("zone=a or zone=b", "zone=b", False),
        ("!gpu", "gpu=yes", False),
        ("gpu!=yes", "gpu=yes", False),
        ("!gpu and zone=a", "gpu=yes", False),
        ("!gpu and zone=a", "", True),
        ("!gpu or zone=a", "gpu=yes", True),
        ("@metadata.name=other", "", False),
        ("@metadata.name=other and zone=a", "", False),
        ("@metadata.name=new and zone=a", "", True),
        ("nothing", "", False),
    ],
)
def test_selectors_that_ask_for_labels(where: str, labels: str, waits: bool) -> None:
    """N10, S1: a node waits for labels that a selector asks for, not for labels to be removed, nor for another name."""
    books = cluster(FALLBACK, spec("chosen", "10.1.0.0/16 /24", where=where))
    assert awaited(books, tainted(labels)) == ("chosen" if waits else "")


def test_no_wait_without_the_taint_or_if_told_so() -> None:
    """N10: other nodes never wait; no node does where waiting is off, or after its time."""
    books = cluster(FALLBACK, ZONE_A)
    assert awaited(books, node("plain")) == ""
    assert books.standing(tainted(), wait_for_labels=False).reason is Reason.NONE
    assert texts(books.decide(tainted(name="a"), wait_for_labels=False)) == ["10.0.0.0/24"]
    fleet = [tainted(name="b"), tainted(name="c"), node("d")]
    decisions = books.decide_many(fleet, wait_over={"c"})
    assert list(map(texts, decisions)) == [[], ["10.0.1.0/24"], ["10.0.2.0/24"]]
    assert list(map(texts, books.decide_many(fleet[:1], wait_for_labels=False))) == [["10.0.3.0/24"]]


def test_a_deletion_comes_first() -> None:
    """N8, N10: a node that is being deleted is given nothing, whatever else holds."""
    books = cluster(FALLBACK, ZONE_A)
    leaving = replace(tainted(), terminating=True)
    for decision in (books.decide(leaving), *books.decide_many([leaving]), books.standing(leaving)):
        assert decision.reason is Reason.TERMINATING


def test_keeps_what_it_has() -> None:
    """N1, N9, N10: the taint bears only on nodes for which nothing is reserved."""
    books = cluster(FALLBACK, ZONE_A)
    assert books.decide(node("a", has="10.0.7.0/24", uninitialized=True)).outcome is Outcome.KEPT
    books.decide(node("new"))
    assert books.decide(tainted()).outcome is Outcome.ASSIGNED


def test_only_pools_with_room_count() -> None:
    """N10: a pool is waited for as long as it has room, and again when it has room again."""
    books = cluster(FALLBACK, ZONE_A, spec("zone-b", "10.2.0.0/23 /24", where="zone=b"))
    assert awaited(books, tainted()) == "zone-a"
    books.decide(node("a", "zone=a"))
    assert awaited(books, tainted()) == "zone-b"
    books.decide_many(nodes(2, "zone=b"))
    assert awaited(books, tainted()) == ""
    books.forget("n1")
    assert awaited(books, tainted()) == "zone-b"
    assert awaited(books, tainted("zone=b")) == ""
    books.forget("a")
    assert awaited(books, tainted("zone=b")) == "zone-a"


def test_dual_stack_pools_need_room_in_both_families() -> None:
    """N10, S4: a pool that could not give both families is not waited for."""
    books = cluster(FALLBACK, spec("dual", "10.1.0.0/23 /24", "fd00::/64 /64", where="zone=a"))
    assert awaited(books, tainted()) == "dual"
    books.decide(node("a", "zone=a"))
    assert awaited(books, tainted()) == ""


def test_pools_come_go_and_change() -> None:
    """N10, K2, P6: whether a node waits follows the pools."""
    books = cluster(FALLBACK, ZONE_A)
    twin = spec("twin", "10.2.0.0/24 /24", where="zone=a")
    books.add_pool(twin)
    books.remove_pool("zone-a")
    assert awaited(books, tainted()) == "twin"
    books.change_pool(replace(twin, selector=None))
    assert awaited(books, tainted()) == ""
    books.change_pool(twin)
    books.change_pool(replace(twin, terminating=True))
    assert awaited(books, tainted()) == ""
    books.remove_pool("twin")
    assert awaited(books, tainted()) == ""


def test_room_that_nodes_before_it_take() -> None:
    """N10: in one call for many nodes, a pool that those before have filled is not waited for."""
    books = cluster(FALLBACK, ZONE_A)
    waits, _, served = books.decide_many([tainted(name="a"), node("b", "zone=a"), tainted(name="c")])
    assert (waits.reason, texts(served)) == (Reason.UNINITIALIZED, ["10.0.0.0/24"])


class TestPoolsOfOneFamily:
    """N10, K3: a pool of one family can give only together with one of the other, where any matches."""

    def test_alone(self) -> None:
        """It is enough where no pool of the other family matches."""
        books = cluster(part("four", "10.1.0.0/24 /24", "zone=a"))
        assert awaited(books, tainted()) == "four"
        books.decide(node("a", "zone=a"))
        assert awaited(books, tainted()) == ""

    def test_the_other_family_is_full(self) -> None:
        """What could not be completed is not waited for: the node would get nothing with the labels either."""
        books = cluster(FALLBACK, part("four", "10.1.0.0/16 /24", "zone=a"), part("six", "fd00::/64 /64"))
        assert awaited(books, tainted()) == "four"
        books.observe(node("a", has="fd00::/64"))
        assert awaited(books, tainted()) == ""

    def test_either_family_may_come_with_labels(self) -> None:
        """A fallback of one family is completed by a pool that labels select."""
        books = cluster(part("four", "10.1.0.0/16 /24"), part("six", "fd00::/64 /64", "zone=a"))
        assert awaited(books, tainted()) == "six"
        assert awaited(books, tainted("zone=a")) == ""
        assert give(books, node("a", "zone=a")) == ["10.1.0.0/24", "fd00::/64"]
        assert awaited(books, tainted()) == ""


def test_selectors_are_looked_at_once_for_a_kind_of_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """N10, A9: nodes that are alike to all selectors cost one look at each selector, however many nodes there are."""
    looks = 0
    lacks_labels = Selector.lacks_labels

    def counted(self: Selector, name: str, labels: Mapping[str, str]) -> bool:
        nonlocal looks
        looks += 1
        return lacks_labels(self, name, labels)

    monkeypatch.setattr(Selector, "lacks_labels", counted)
    pools = [spec(f"p{rack}", f"10.{rack}.0.0/16 /24", where=f"rack=r{rack} and !virtual") for rack in range(1, 50)]
    books = cluster(FALLBACK, *pools)
    for number in range(100):
        assert awaited(books, tainted("virtual=yes", f"n{number}")) == ""
    assert looks == len(pools)


def test_a_kept_answer_ends_with_its_room() -> None:
    """N10: nodes of one kind wait for the next pool when the one before is full, and for it again when it has room."""
    books = cluster(FALLBACK, ZONE_A, spec("zone-b", "10.2.0.0/24 /24", where="zone=b"))
    assert awaited(books, tainted(name="one")) == "zone-a"
    assert give(books, node("a", "zone=a")) == ["10.1.0.0/24"]
    assert awaited(books, tainted(name="two")) == "zone-b"
    assert give(books, node("b", "zone=b")) == ["10.2.0.0/24"]
    assert awaited(books, tainted(name="three")) == ""
    books.forget("a")
    assert awaited(books, tainted(name="four")) == "zone-a"


def test_kept_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """N10: of thousands of kinds of nodes that came and went, not every answer is kept."""
    monkeypatch.setattr(label_pools, "_KNOWN_LIMIT", 3)
    books = cluster(FALLBACK, ZONE_A)
    for number in range(10):
        assert awaited(books, tainted(f"zone=z{number}")) == "zone-a"
    assert len(books._index.label_pools._known) <= 3
