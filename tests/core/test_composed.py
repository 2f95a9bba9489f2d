"""Pools that give one family: what they give together, when their turn comes, and how they change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.core.decision import Outcome, Reason
from cidrella.core.pool import Pool
from tests.core.build import (
    allocated,
    cluster,
    free,
    give,
    give_many,
    node,
    nodes,
    overlapping_pairs,
    part,
    pool,
    prefix,
    spec,
    users,
)

if TYPE_CHECKING:
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision, Node
    from cidrella.core.pool import PoolSpec


@pytest.fixture(params=["one by one", "together"])
def many(request: pytest.FixtureRequest) -> bool:
    """Whether nodes are decided on in one call."""
    return bool(request.param == "together")


def decide(books: Cluster, fleet: list[Node], many: bool) -> list[Decision]:
    decisions = books.decide_many(fleet) if many else [books.decide(each) for each in fleet]
    books.check()
    return decisions


class TestTurns:
    """K3: from what a node gets its blocks, and when what is full falls through."""

    def test_the_four_steps(self, many: bool) -> None:
        """K3: a selector before defaults, and of each first the pool that gives alone; a full one falls through."""
        books = cluster(
            part("d-one", "10.3.0.0/27 /28"),
            spec("d-all", "10.2.0.0/27 /28"),
            part("m-one", "10.1.0.0/27 /28", where="size"),
            spec("m-all", "10.0.0.0/27 /28", where="size"),
        )
        decisions = decide(books, nodes(9, "size=1"), many)
        assert [each.pool_name for each in decisions] == [
            *["m-all"] * 2,
            *["m-one"] * 2,
            *["d-all"] * 2,
            *["d-one"] * 2,
            "",
        ]
        assert [each.tried for each in decisions] == [1, 1, 2, 2, 3, 3, 4, 4, 4]

    def test_a_block_of_each_family(self, many: bool) -> None:
        """K3: a node gets a block of each family for which a pool applies, IPv4 first, each from its own pool."""
        books = cluster(
            part("six", "fd00::/48 /64", where="size"),
            part("four", "10.0.0.0/16 /24", where="size"),
            part("other", "fd01::/48 /64", where="other"),
        )
        first, second = decide(books, nodes(2, "size=1"), many)
        assert [str(block) for block in first.blocks] == ["10.0.0.0/24", "fd00::/64"]
        assert [str(block) for block in second.blocks] == ["10.0.1.0/24", "fd00:0:0:1::/64"]
        assert first.pools == (books.pools["four"], books.pools["six"])
        assert (first.outcome, first.pool_names, first.pool_name) == (Outcome.ASSIGNED, ("four", "six"), "four,six")
        assert first.tried == 2
        assert give(books, node("b", "other=1")) == ["fd01::/64"]

    def test_one_family_alone(self) -> None:
        """K3, S7: where pools of one family apply, and none of the other, a node gets that family."""
        books = cluster(part("four", "10.0.0.0/16 /24"), part("six", "fd00::/48 /64", where="six"))
        assert give(books, node("a")) == ["10.0.0.0/24"]
        assert give(books, node("b", "six=1")) == ["10.0.1.0/24", "fd00::/64"]

    def test_all_or_nothing(self, many: bool) -> None:
        """K3: while one family is full the other loses nothing, however often the node asks again."""
        books = cluster(part("four", "10.0.0.0/24 /28"), part("six", "fd00::/64 /64"))
        assert decide(books, [node("first")], many)[0].outcome is Outcome.ASSIGNED
        for _ in range(20):
            assert [each.outcome for each in decide(books, nodes(2), many)] == [Outcome.WAITING] * 2
            assert free(books, "four") == [15]
        books.forget("first")
        assert [[str(block) for block in each.blocks] for each in decide(books, nodes(2), many)] == [
            ["10.0.0.16/28", "fd00::/64"],
            [],
        ]

    def test_half_falls_through(self, many: bool) -> None:
        """K3: where one family is full in all of its pools, the node gets from a default pool, and waits after that."""
        books = cluster(
            part("four", "10.0.0.0/24 /28", where="size"),
            part("six", "fd00::/64 /64", where="size"),
            spec("default", "10.1.0.0/28 /28"),
        )
        decisions = decide(books, nodes(3, "size=1"), many)
        assert [each.pool_name for each in decisions] == ["four,six", "default", ""]

    def test_a_default_completes_what_a_selector_chose(self, many: bool) -> None:
        """K3, K4: one of its blocks from a pool with a selector makes it come before default pools that give alone."""
        books = cluster(
            part("m4", "10.0.0.0/28 /28", where="size"),
            part("d4", "10.1.0.0/28 /28"),
            part("d6", "fd00::/60 /64"),
            spec("default", "10.2.0.0/28 /28"),
        )
        assert [each.pool_name for each in decide(books, nodes(4, "size=1"), many)] == ["m4,d6", "default", "d4,d6", ""]

    def test_each_family_falls_through_for_itself(self, many: bool) -> None:
        """K4: in each family the pools with a selector come first and then its defaults, whatever the other does."""
        books = cluster(
            part("m4", "10.0.0.0/26 /28", where="size"),
            part("m6", "fd00::/63 /64", where="size"),
            part("d4", "10.1.0.0/24 /28"),
            part("d6", "fd01::/62 /64"),
            spec("default", "10.2.0.0/28 /28"),
        )
        decisions = decide(books, nodes(8, "size=1"), many)
        assert [each.pool_name for each in decisions] == [
            *["m4,m6"] * 2,
            *["m4,d6"] * 2,
            "default",
            *["d4,d6"] * 2,
            "",
        ]

    def test_each_family_falls_through_for_itself_the_other_way_round(self, many: bool) -> None:
        """K4: the same with fewer IPv4 blocks that have a selector than IPv6 ones."""
        books = cluster(
            part("m4", "10.0.0.0/28 /28", where="size"),
            part("m6", "fd00::/63 /64", where="size"),
            part("d4", "10.1.0.0/24 /28"),
            spec("default", "10.2.0.0/28 /28"),
        )
        decisions = decide(books, nodes(4, "size=1"), many)
        assert [each.pool_name for each in decisions] == ["m4,m6", "d4,m6", "default", ""]

    @pytest.mark.parametrize("state", [{"terminating": True}, {"problem": "odd"}, {"guarded": False}])
    def test_a_pool_that_gives_nothing_makes_no_family_apply(self, state: dict[str, object]) -> None:
        """K3, S6, P1: a pool that is being deleted, invalid or not yet guarded keeps no node from the other family."""
        gone = replace(part("six", "fd00::/48 /64"), **state)  # type: ignore[arg-type]
        books = cluster(part("four", "10.0.0.0/16 /24"), gone)
        assert give(books, node("a")) == ["10.0.0.0/24"]

    def test_an_invalid_one_need_not_have_a_range(self) -> None:
        """S6, K3: an object whose range cannot be read gives nothing and stops nothing; two ranges are a mistake."""
        books = cluster(spec("broken", problem="odd", composed=True), part("four", "10.0.0.0/16 /24"))
        assert give(books, node("a")) == ["10.0.0.0/24"]
        with pytest.raises(AssertionError):
            Pool(spec("two", "10.0.0.0/16 /24", "fd00::/48 /64", composed=True), ())

    def test_both_kinds_share_the_addresses(self) -> None:
        """A1, K3: blocks of pools that give alone and of pools of one family never overlap, though their ranges do."""
        books = cluster(
            spec("all", "10.0.0.0/24 /26", "fd00::/62 /64", where="all"),
            part("four", "10.0.0.0/24 /27"),
            part("six", "fd00::/62 /65"),
        )
        fleet = [node(f"n{number}", "all=1" if number % 2 else "") for number in range(6)]
        assert give_many(books, fleet) == [
            ["10.0.0.0/27", "fd00::/65"],
            ["10.0.0.64/26", "fd00:0:0:1::/64"],
            ["10.0.0.32/27", "fd00::8000:0:0:0/65"],
            ["10.0.0.128/26", "fd00:0:0:2::/64"],
            ["10.0.0.192/27", "fd00:0:0:3::/65"],
            # No /26 is left, and of the defaults both families have room.
            ["10.0.0.224/27", "fd00:0:0:3:8000::/65"],
        ]
        assert overlapping_pairs(books) == []


class TestWaiting:
    """N4, K3: what a node is told that has to wait."""

    def told(self, books: Cluster) -> str:
        decision = books.decide(node("n", "size=1"))
        assert decision == books.decide_many([node("n", "size=1")])[0]
        assert decision[:5] == ("n", Outcome.WAITING, (), (), Reason.NOT_AVAILABLE)
        return decision.message

    def test_all_is_full(self) -> None:
        """N4, K3: where every pool is full, all are named, whatever they give."""
        books = cluster(
            part("d6", "fd00::/64 /64"),
            part("m4", "10.0.0.0/28 /28", where="size"),
            spec("m", "10.0.0.0/28 /28", "fd00::/64 /64", where="size"),
        )
        books.add_service_range(prefix("10.0.0.0/24"), "four")
        books.add_service_range(prefix("fd00::/48"), "six")
        assert self.told(books) == (
            "every pool that applies is full: m (no IPv4 /28 left and no IPv6 /64 left), m4 (no IPv4 /28 left), "
            "d6 (no IPv6 /64 left)"
        )

    def test_one_family_is_full(self) -> None:
        """N4, K3: where one family is full, its pools are named, and that the other alone is not given."""
        books = cluster(part("m4", "10.0.0.0/24 /28", where="size"), part("d4", "10.1.0.0/24 /28"))
        for number in range(6):
            books.add_pool(part(f"d6-{number}", "fd00::/64 /64"))
        books.add_service_range(prefix("fd00::/64"), "six")
        assert self.told(books) == (
            "not every family that it needs has a pool with room: d6-0 (no IPv6 /64 left), d6-1 (no IPv6 /64 left), "
            "d6-2 (no IPv6 /64 left), d6-3 (no IPv6 /64 left), d6-4 (no IPv6 /64 left) and 1 more"
        )
        assert books.decide(node("n", "size=1")).tried == 1 + 1 + 6

    def test_none_applies(self) -> None:
        """N4: pools of one family that select other nodes do not apply."""
        books = cluster(part("four", "10.0.0.0/28 /28", where="other"))
        assert self.told(books) == "no pool applies to it"


class TestOrder:
    """K4: the order of pools within a family."""

    @pytest.mark.parametrize(
        "in_order",
        [
            [part("b", "10.0.0.0/24 /24", where="a"), part("a", "10.0.0.0/27 /27")],
            [part("b", "10.0.0.0/8 /27", where="a"), part("a", "10.0.0.0/25 /25", where="a and b")],
            [part("b", "10.1.0.0/24 /27", where="a and b"), part("a", "10.0.0.0/24 /27", where="a")],
            [part("b", "10.2.0.0/24 /27", where="b"), part("a", "10.10.0.0/24 /27", where="a")],
            [part("b", "10.0.0.0/23 /27", where="b"), part("c", "10.0.0.0/24 /27", where="a")],
            [part("b", "10.0.0.0/8 /27"), part("a", "10.0.0.0/25 /25")],
            [part("b", "10.2.0.0/16 /27"), part("a", "10.10.0.0/24 /27")],
            [part("b", "10.0.0.0/16 /27"), part("c", "10.0.0.0/24 /27")],
            [part("b", "fd00::/16 /120", where="a"), part("a", "fd00::/112 /112", where="a and b")],
        ],
        ids=[
            "a selector before a default",
            "27 before 25, before what is matched and how many there are",
            "more matched, before the address",
            "the first address as a number",
            "the name, however the selectors read and how many there are",
            "27 before 25 among defaults",
            "the first address among defaults",
            "the name among defaults",
            "the fewest addresses of IPv6",
        ],
    )
    def test_point_by_point(self, in_order: list[PoolSpec]) -> None:
        """K4: a selector; then the fewest addresses per node; then the most matched; then the first address; the name.

        Neither the number of Pod CIDRs in all nor the selector's text plays a part, as they do in S3.
        """
        for specs in (in_order, in_order[::-1]):
            books = cluster(*specs)
            assert books.decide(node("n", "a=1 b=1")).pool_name == in_order[0].name

    def test_the_families_are_ordered_apart(self) -> None:
        """K4: which IPv4 pool comes first says nothing of which IPv6 pool does."""
        books = cluster(
            part("a4", "10.0.0.0/24 /27", where="a"),
            part("b4", "10.1.0.0/24 /25", where="a and b"),
            part("a6", "fd00::/48 /56", where="a"),
            part("b6", "fd01::/48 /64", where="a and b"),
        )
        assert books.decide(node("n", "a=1 b=1")).pool_name == "a4,b6"


class TestChange:
    """K2: selectors that change."""

    def test_a_waiting_node_is_served_and_a_holder_keeps_its_block(self) -> None:
        """K2, N2: whom it selects now is served at once; whom it selects no more keeps its block, and still uses it."""
        books = cluster(part("p", "10.0.0.0/24 /28", where="zone=a"))
        assert give(books, node("old", "zone=a")) == ["10.0.0.0/28"]
        assert give(books, node("new", "zone=b")) == []
        working, openings = books.pools["p"], books.openings
        books.change_pool(part("p", "10.0.0.0/24 /28", where="zone=b"))
        assert books.openings > openings
        assert books.pools["p"] is working, "what is held of it was counted anew"
        assert give(books, node("new", "zone=b")) == ["10.0.0.16/28"]
        assert give(books, node("old", "zone=a", has="10.0.0.0/28", annotation="p")) == ["10.0.0.0/28"]
        assert give(books, node("late", "zone=a")) == []
        assert users(books, "p") == {"old", "new"}
        assert (allocated(books, "p"), free(books, "p")) == ([2], [14])
        books.check()

    def test_to_a_default_and_back(self) -> None:
        """K2, K4: without a selector it is a fall-back, behind what still has one; with one again it is none."""
        chosen = part("p", "10.0.0.0/24 /28", where="a")
        books = cluster(chosen, part("q", "10.1.0.0/24 /28", where="a"))
        assert books.decide(node("n1", "a=1")).pool_name == "p"
        books.change_pool(replace(chosen, selector=None))
        assert books.decide(node("n2", "a=1")).pool_name == "q"
        assert books.decide(node("n3")).pool_name == "p"
        books.change_pool(chosen)
        assert books.decide(node("n4", "a=1")).pool_name == "p"
        assert books.decide(node("n5")).outcome is Outcome.WAITING

    def test_the_order_follows_the_selector(self) -> None:
        """K2, S3, S5: what orders pools by their selector is taken from the one that they have now."""
        books = cluster(spec("a", "10.1.0.0/24 /28", where="a"), spec("b", "10.0.0.0/24 /28", where="b"))
        assert books.decide(node("n1", "a=1 b=1")).pool_name == "a"
        books.change_pool(spec("a", "10.1.0.0/24 /28", where="b"))
        assert books.decide(node("n2", "a=1 b=1")).pool_name == "b"
        assert books.pools["a"].rank.selector == "(b Exists)"

    def test_what_it_gives_next_goes_on(self) -> None:
        """K2, A5: a changed selector does not move the cursor: released blocks are still the last to be given."""
        books = cluster(part("p", "10.0.0.0/24 /28", where="a"))
        books.decide(node("gone", "a=1"))
        books.forget("gone")
        books.change_pool(part("p", "10.0.0.0/24 /28", where="b"))
        assert give(books, node("n", "b=1")) == ["10.0.0.16/28"]

    def test_while_it_gives_nothing_it_opens_nothing(self) -> None:
        """K2, S6: the selector of a pool that is being deleted may change, and wakes nobody."""
        books = cluster(replace(part("p", "10.0.0.0/24 /28", where="a"), terminating=True))
        openings = books.openings
        books.change_pool(replace(part("p", "10.0.0.0/24 /28"), terminating=True))
        assert books.openings == openings
        assert give(books, node("n")) == []

    @pytest.mark.parametrize("how", ["another selector", "being deleted", "removed"])
    def test_a_node_need_not_wait_for_a_family_that_no_longer_applies(self, how: str) -> None:
        """K2, K3, N4: a node that waits for a family is served without it when its full pool goes."""
        books = cluster(part("four", "10.0.0.0/24 /28"), part("six", "fd00::/64 /64"))
        books.add_service_range(prefix("fd00::/64"), "services")
        assert give(books, node("n")) == []
        openings = books.openings
        if how == "another selector":
            books.change_pool(part("six", "fd00::/64 /64", where="other"))
        elif how == "being deleted":
            books.change_pool(replace(part("six", "fd00::/64 /64"), terminating=True))
        else:
            books.remove_pool("six")
        assert books.openings > openings
        assert give(books, node("n")) == ["10.0.0.0/28"]

    def test_a_pool_that_gives_alone_opens_nothing_by_going(self) -> None:
        """N4: nobody waits for a pool to go that gives alone."""
        books = cluster(spec("p", "10.0.0.0/28 /28"))
        openings = books.openings
        books.change_pool(spec("p", "10.0.0.0/28 /28", terminating=True))
        books.remove_pool("p")
        assert books.openings == openings


class TestBooks:
    """N3, N9, P3, A8: reservations and usage of nodes whose blocks come from two pools."""

    def pools(self) -> list[PoolSpec]:
        """Return pools that overlap: by size and age alone each block would count towards the older."""
        return [
            part("old4", "10.0.0.0/16 /24", where="old", created="2020"),
            part("old6", "fd00::/48 /64", where="old", created="2020"),
            part("new4", "10.0.0.0/16 /24", created="2025"),
            part("new6", "fd00::/48 /64", created="2025"),
        ]

    def test_each_block_counts_towards_its_pool(self) -> None:
        """P3, A8: a node uses both pools, in flight and after it was seen, as its annotation says."""
        books = cluster(*self.pools())
        decision = books.decide(node("a"))
        assert decision.pool_name == "new4,new6"
        landed = node("a", has="10.0.0.0/24,fd00::/64", annotation=decision.pool_name)
        for news in ([], ["a"]):
            assert [users(books, name) for name in ("old4", "old6", "new4", "new6")] == [set(), set(), {"a"}, {"a"}]
            assert [allocated(books, name) for name in ("old6", "new6")] == [[0], [1]]
            assert [(str(block), giver.name) for block, giver in books.uses("a")] == [
                ("10.0.0.0/24", "new4"),
                ("fd00::/64", "new6"),
            ]
            books.check()
            assert books.observe_many([landed]) == news
        books.forget("a")
        assert [allocated(books, name) for name in ("new4", "new6")] == [[0], [0]]

    def test_a_restart_changes_nothing(self) -> None:
        """P3: from what the API holds, the annotation included, another process counts the same."""
        books = cluster(*self.pools())
        books.observe(node("a", has="10.0.0.0/24,fd00::/64", annotation="new4,new6"))
        assert [users(books, name) for name in ("old4", "old6", "new4", "new6")] == [set(), set(), {"a"}, {"a"}]
        books.remove_pool("new6")
        assert [users(books, name) for name in ("old4", "old6", "new4")] == [set(), {"a"}, {"a"}]
        books.check()

    def test_what_was_reserved_is_confirmed(self) -> None:
        """N3: a node that shows both blocks with both names is no news; with one name it is."""
        for annotation, news in (("new4,new6", []), ("new4", ["a"])):
            books = cluster(*self.pools())
            books.decide(node("a"))
            assert books.observe_many([node("a", has="10.0.0.0/24,fd00::/64", annotation=annotation)]) == news

    def test_refused_both_are_free(self) -> None:
        """A5, N9, K3: after a refusal the next node gets the very blocks that were refused, of both pools."""
        books = cluster(*self.pools())
        books.decide(node("a"))
        assert give(books, node("b")) == ["10.0.1.0/24", "fd00:0:0:1::/64"]
        books.cancel("b")
        books.check()
        assert users(books, "new4") == users(books, "new6") == {"a"}
        assert give(books, node("c")) == ["10.0.1.0/24", "fd00:0:0:1::/64"]

    def test_refused_after_one_of_them_has_gone(self) -> None:
        """N9: the refusal frees both blocks, also that of a pool that is gone or was made again."""
        books = cluster(*self.pools())
        books.decide_many(nodes(2))
        books.remove_pool("new6")
        books.cancel("n0")
        books.check()
        books.add_pool(self.pools()[3])
        books.cancel("n1")
        books.check()
        assert (free(books, "new4"), free(books, "new6")) == ([256], [65536])

    def test_free_is_what_it_could_give(self) -> None:
        """A8: a pool of one family has blocks to give though the other family of its nodes is full."""
        books = cluster(part("four", "10.0.0.0/24 /28"), part("six", "fd00::/64 /64"))
        books.decide_many(nodes(2))
        assert [free(books, name) for name in ("four", "six")] == [[15], [0]]
        assert [each.spec.composed for each in books.pools.values()] == [True, True]


def test_the_allocations_of_kep_2594() -> None:
    """K3, K4: the example of allocations in KEP-2594, with a slip in its answers put right.

    The last node is free to get either of the two defaults there; here the lower address decides.
    """
    books = cluster(
        part("default", "10.0.0.0/8 /24"),
        part("another", "172.16.0.0/14 /24"),
        part("np1", "10.0.0.0/8 /26", where="np=np1"),
        part("np2", "192.168.0.0/16 /26", where="np=np2"),
        part("np3-ipv4", "5.2.0.0/16 /20", where="np=np3"),
        part("np3-ipv6", "fd12:3456:789a:1::/64 /112", where="np=np3"),
    )
    assert give_many(books, [node(name, f"np={name}") for name in ("np1", "np2", "np3", "np4")]) == [
        ["10.0.0.0/26"],
        ["192.168.0.0/26"],
        ["5.2.0.0/20", "fd12:3456:789a:1::/112"],
        ["10.0.1.0/24"],
    ]


def test_27_before_25() -> None:
    """K4: the tie-break of KEP-2594: 32 addresses are picked before 128, and then the two labels before the one."""
    books = cluster(
        part("twenty-five", "10.0.0.0/16 /25", where="type=medium and rack=rack1"),
        part("medium", "10.1.0.0/16 /27", where="type=medium"),
        part("medium-rack1", "10.2.0.0/26 /27", where="type=medium and rack=rack1"),
    )
    decisions = books.decide_many(nodes(3, "type=medium rack=rack1"))
    assert [each.pool_name for each in decisions] == ["medium-rack1", "medium-rack1", "medium"]


def test_what_a_pool_gives() -> None:
    """K3: a pool of one family says which, and the others that they give all."""
    four, six = pool(part("four", "10.0.0.0/24 /28")), pool(part("six", "fd00::/60 /64"))
    assert [str(each.part) for each in (four, six, pool(spec("p", "10.0.0.0/24 /28")))] == ["IPv4", "IPv6", "None"]
