"""The pools of a cluster: which of them give, what counts towards which, and what is free."""

from __future__ import annotations

import pytest

from cidrella.core.decision import Outcome
from cidrella.core.prefix import Family
from tests.core.build import (
    allocated,
    cluster,
    free,
    give,
    node,
    nodes,
    prefix,
    spec,
    users,
)


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
