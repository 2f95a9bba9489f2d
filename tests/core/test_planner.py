"""The planner: which pool gives, what a waiting node is told, and that many at once are as one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.decision import Decision, Node, Outcome, Reason
from cidrella.core.index import PoolIndex
from cidrella.core.planner import Planner
from cidrella.core.pool import Pool
from cidrella.core.prefix import Family
from cidrella.core.space import AddressSpace
from tests.core.build import node, nodes, prefix, spec, texts
from tests.core.counting import CountingList, Meter

if TYPE_CHECKING:
    from cidrella.core.pool import PoolSpec


class Site:
    """A planner with its pools and spaces, as a cluster would wire them."""

    def __init__(self, *specs: PoolSpec) -> None:
        self.spaces = {family: AddressSpace(family) for family in Family}
        self.index = PoolIndex()
        self.pools: dict[str, Pool] = {}
        for each in specs:
            views = tuple(self.spaces[cidr.family].view(cidr, length) for cidr, length in each.ranges)
            self.pools[each.name] = Pool(each, views)
            self.index.add(self.pools[each.name])
        self.planner = Planner(self.index, tuple(self.spaces.values()))

    def occupy(self, text: str) -> None:
        block = prefix(text)
        self.spaces[block.family].occupy(block, "somebody else")

    def release(self, text: str) -> None:
        block = prefix(text)
        self.spaces[block.family].release(block, "somebody else")


def plain(decision: Decision) -> tuple[object, ...]:
    """Return a decision without the pools that belong to one site."""
    names = [pool.name if pool else None for pool in decision.pools]
    return decision.node, decision.outcome, decision.blocks, names, decision.reason, decision.message


# --- Who gives (S4, S7) ---


def test_the_first_pool_with_room_gives() -> None:
    """S4: a full pool is passed over for the next in order, and the decision names the one that gave."""
    site = Site(
        spec("two", "10.0.0.0/27 /28", where="size=big"),
        spec("three", "10.1.0.0/26 /28", where="size=big"),
        spec("default", "10.2.0.0/24 /28"),
    )
    decisions = [site.planner.decide(each) for each in nodes(7, "size=big")]
    assert [each.pool_name for each in decisions] == ["two"] * 2 + ["three"] * 4 + ["default"]
    assert decisions[2] == Decision(
        "n2", Outcome.ASSIGNED, (prefix("10.1.0.0/28"),), (site.pools["three"],), Reason.NONE, "", 2
    )
    assert [each.tried for each in decisions] == [1, 1, 2, 2, 2, 2, 3]


def test_a_default_serves_only_after_every_match() -> None:
    """S2, S4: a default is tried when all pools that match are full, though it has had room all along."""
    site = Site(spec("default", "10.2.0.0/28 /28"), spec("match", "10.1.0.0/24 /28", where="size"))
    assert [site.planner.decide(each).pool_name for each in nodes(17, "size=1")] == ["match"] * 16 + ["default"]
    assert site.planner.decide(node("other")).outcome is Outcome.WAITING


@pytest.mark.parametrize("many", [False, True])
def test_both_families_or_nothing(many: bool) -> None:
    """S4, pitfall 6: while one family is full the other loses nothing, however often the node asks again."""
    site = Site(spec("dual", "10.0.0.0/24 /28", "fd00::/64 /64"))
    view = site.pools["dual"].views[0]
    assert texts(site.planner.decide(node("first"))) == ["10.0.0.0/28", "fd00::/64"]
    for _ in range(40):
        waiting = site.planner.decide_many([node("n")])[0] if many else site.planner.decide(node("n"))
        assert waiting.outcome is Outcome.WAITING
        assert view.free == 15
    site.spaces[Family.IPV6].release(prefix("fd00::/64"), "first")
    assert texts(site.planner.decide(node("n"))) == ["10.0.0.16/28", "fd00::/64"]


@pytest.mark.parametrize("many", [False, True])
def test_half_a_pool_is_passed_over_for_a_whole_one(many: bool) -> None:
    """S4, S7: a dual-stack pool with one family left gives nothing, and the next pool serves the node."""
    site = Site(spec("dual", "10.0.0.0/24 /28", "fd00::/64 /64"), spec("single", "10.0.0.0/20 /28"))
    fleet = nodes(3)
    decisions = site.planner.decide_many(fleet) if many else [site.planner.decide(each) for each in fleet]
    assert [texts(each) for each in decisions] == [["10.0.0.0/28", "fd00::/64"], ["10.0.0.16/28"], ["10.0.0.32/28"]]


def test_a_node_gets_the_families_of_its_pool() -> None:
    """S7, pitfall 7, pitfall 11: single- and dual-stack nodes live side by side, each family in its size."""
    site = Site(
        spec("ipv4", "10.0.0.0/24 /28", where="stack=4"),
        spec("ipv6", "fd00::/48 /64", where="stack=6"),
        spec("dual", "10.1.0.0/24 /28", "fd01::/48 /64", where="stack=46"),
        spec("reversed", "fd02::/48 /64", "10.2.0.0/24 /28", where="stack=64"),
    )
    fleet = [node(f"n{stack}", f"stack={stack}") for stack in ("4", "6", "46", "64")]
    assert [texts(each) for each in site.planner.decide_many(fleet)] == [
        ["10.0.0.0/28"],
        ["fd00::/64"],
        ["10.1.0.0/28", "fd01::/64"],
        ["fd02::/64", "10.2.0.0/28"],
    ]


def test_a_pool_for_one_node_by_its_name() -> None:
    """S1: the node that a field names is served from its pool, alone or among others, and no other node is."""
    site = Site(spec("mine", "10.0.0.0/24 /28", where="@metadata.name=a|b"), spec("default", "10.1.0.0/20 /28"))
    assert site.planner.decide(node("a")).pool_name == "mine"
    assert [each.pool_name for each in site.planner.decide_many([node("b"), node("c")])] == ["mine", "default"]


# --- What a waiting node is told (N4) ---


def waiting(site: Site, labels: str = "") -> Decision:
    decision = site.planner.decide(node("n", labels))
    assert plain(decision) == plain(site.planner.decide_many([node("n", labels)])[0])
    assert decision[:5] == ("n", Outcome.WAITING, (), (), Reason.NOT_AVAILABLE)
    assert decision.pool_name == ""
    return decision


def test_no_pool_applies() -> None:
    """N4: a node that no pool applies to waits, and is told that."""
    assert waiting(Site(spec("p", "10.0.0.0/24 /28", where="size=big"))).message == "no pool applies to it"
    assert waiting(Site()).message == "no pool applies to it"


def test_all_pools_are_full() -> None:
    """N4: a node whose pools are all full waits, and is told which they are and what each is out of, matches first."""
    site = Site(
        spec("dual", "10.0.0.0/28 /28", "fd00::/64 /64"),
        spec("match", "10.0.0.0/27 /28", "fd00::/60 /64", where="size"),
        spec("unrelated", "10.9.0.0/28 /28", where="other"),
    )
    site.occupy("10.0.0.0/24")
    site.occupy("fd00::/64")
    assert waiting(site, "size=1").message == (
        "every pool that applies is full: match (no IPv4 /28 left), dual (no IPv4 /28 left and no IPv6 /64 left)"
    )


@pytest.mark.parametrize(
    ("matching", "defaults", "ending"),
    [
        (0, 5, "d4 (no IPv4 /28 left)"),
        (0, 6, "d4 (no IPv4 /28 left) and 1 more"),
        (2, 3, "d2 (no IPv4 /28 left)"),
        (2, 9, "d2 (no IPv4 /28 left) and 6 more"),
        (4, 1, "m3 (no IPv4 /28 left), d0 (no IPv4 /28 left)"),
        (5, 0, "m4 (no IPv4 /28 left)"),
        (5, 1, "m4 (no IPv4 /28 left) and 1 more"),
        (7, 2, "m4 (no IPv4 /28 left) and 4 more"),
    ],
)
def test_five_full_pools_are_named_and_the_rest_counted(matching: int, defaults: int, ending: str) -> None:
    """N4: a message stays short: five pools by name, in the order in which they were tried, and how many more."""
    site = Site(
        *(spec(f"m{number}", "10.0.0.0/28 /28", where="size") for number in range(matching)),
        *(spec(f"d{number}", "10.0.0.0/28 /28") for number in range(defaults)),
    )
    site.occupy("10.0.0.0/28")
    message = waiting(site, "size=1").message
    assert message.endswith(ending)
    assert message.count("left)") == min(5, matching + defaults)


def test_a_waiting_node_is_served_as_soon_as_there_is_room() -> None:
    """N4: asked again after a release anywhere in its pools, the planner gives the node what has become free."""
    site = Site(spec("a", "10.0.0.0/28 /28"), spec("b", "10.1.0.0/28 /28"))
    site.occupy("10.0.0.0/24")
    site.occupy("10.1.0.0/24")
    waiting(site)
    site.release("10.1.0.0/24")
    assert texts(site.planner.decide(node("n"))) == ["10.1.0.0/28"]
    waiting(site)
    site.release("10.0.0.0/24")
    assert texts(site.planner.decide(node("m"))) == ["10.0.0.0/28"]


@pytest.mark.parametrize("where", [None, "size"])
def test_a_release_is_noticed_with_and_without_a_selector(where: str | None) -> None:
    """N4: full pools that a selector leads to are looked at again after a release, and so are full defaults."""
    site = Site(spec("p", "10.0.0.0/28 /28", where=where))
    site.occupy("10.0.0.0/28")
    waiting(site, "size=1")
    site.release("10.0.0.0/28")
    assert texts(site.planner.decide(node("n", "size=1"))) == ["10.0.0.0/28"]


def test_a_release_in_either_family_is_noticed() -> None:
    """N4: room that appears in IPv6 serves a node that waited for IPv6, though nothing moved in IPv4."""
    site = Site(spec("dual", "10.0.0.0/24 /28", "fd00::/64 /64"))
    site.occupy("fd00::/48")
    waiting(site)
    site.release("fd00::/48")
    assert texts(site.planner.decide(node("n"))) == ["10.0.0.0/28", "fd00::/64"]


# --- Many at once (A9) ---

RANGES = [
    ("10.0.0.0/27 /29",),
    ("10.0.0.0/28 /30",),
    ("10.0.0.0/26 /28",),
    ("10.0.0.32/28 /29",),
    ("fd00::/124 /126",),
    ("10.0.0.0/28 /29", "fd00::/124 /127"),
    ("fd00::/125 /128", "10.0.0.16/28 /30"),
]
SELECTORS = [None, "a", "a=1", "b", "a=1 and b", "!a", "@metadata.name=n3"]
pool_choices = st.lists(st.tuples(st.sampled_from(RANGES), st.sampled_from(SELECTORS)), min_size=1, max_size=6)
held_choices = st.lists(
    st.sampled_from(["10.0.0.0/30", "10.0.0.8/29", "10.0.0.0/28", "10.0.0.37/32", "fd00::/126", "fd00::9/128"]),
    max_size=3,
    unique=True,
)
label_choices = st.lists(st.sampled_from(["", "a=1", "a=2", "b=1", "a=1 b=1"]), max_size=30)


@given(pool_choices, held_choices, label_choices, st.lists(st.integers(1, 30), max_size=3))
def test_many_at_once_are_as_one_by_one(
    pools: list[tuple[tuple[str, ...], str | None]], held: list[str], labels: list[str], cuts: list[int]
) -> None:
    """A1, A5, A9, S4: nodes decided together, in batches of any size, get what one call for each would have given."""
    specs = [spec(f"p{number}", *ranges, where=where) for number, (ranges, where) in enumerate(pools)]
    together, single = Site(*specs), Site(*specs)
    for text in held:
        together.occupy(text)
        single.occupy(text)
    fleet = [node(f"n{number}", has) for number, has in enumerate(labels)]
    batches = [fleet[start:end] for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 99], strict=True)]
    decisions = [each for batch in batches for each in together.planner.decide_many(batch)]
    assert [plain(each) for each in decisions] == [plain(single.planner.decide(each)) for each in fleet]
    for family in Family:
        together.spaces[family].check()
        assert set(together.spaces[family]) == set(single.spaces[family])


def test_nobody_asks() -> None:
    """A9: no nodes, no decisions."""
    assert Site(spec("p", "10.0.0.0/24 /28")).planner.decide_many([]) == []


@pytest.mark.parametrize("where", [None, "size"])
def test_waiting_costs_the_same_however_many_pools_are_full(where: str | None) -> None:
    """A4, A9: with a thousand full pools, each node that has to wait looks at the few that its message names."""
    site = Site(*(spec(f"p{number:04}", "10.0.0.0/28 /28", where=where) for number in range(1000)))
    site.occupy("10.0.0.0/28")
    fleet = nodes(100, "size=1")
    meter = Meter()
    for lane in site.index.offers(fleet[0].name, fleet[0].labels)[-1].lanes_so_far:
        lane.pools = CountingList(lane.pools, meter)
    assert {each.outcome for each in site.planner.decide_many(fleet)} == {Outcome.WAITING}
    assert meter.during() <= 1000 + 100 * 20


def test_many_nodes_over_many_small_pools_are_passed_once() -> None:
    """A9: with as many pools as nodes, handing a batch from pool to pool does not copy what is left of it each time."""
    site = Site(*(spec(f"p{number:04}", f"10.0.{number}.0/24 /24") for number in range(200)))
    meter = Meter()
    names = CountingList([f"n{number}" for number in range(200)], meter)
    decisions = site.planner._serve(names, site.index.offers("n0", {}))
    assert {each.outcome for each in decisions} == {Outcome.ASSIGNED}
    assert meter.during() <= 10 * 200


def test_decisions_name_the_pool_for_each_block() -> None:
    """P3: a decision names a pool for each of its blocks, and the first one for the annotation."""
    site = Site(spec("dual", "10.0.0.0/24 /28", "fd00::/48 /64"))
    one, many = site.planner.decide(node("a")), site.planner.decide_many([node("b")])[0]
    assert one.pools == many.pools == (site.pools["dual"], site.pools["dual"])
    assert one.pool_name == "dual"
    untracked = Decision("n", Outcome.UNTRACKED, one.blocks, (None, site.pools["dual"]), Reason.NONE, "")
    assert (untracked.pool_names, untracked.pool_name) == (("dual",), "dual")
    assert untracked._replace(pools=(None, None)).pool_name == ""


def test_blocks_are_held_by_the_nodes_name() -> None:
    """A1: what was given is held from then on, under the name of the node that it was given to."""
    site = Site(spec("p", "10.0.0.0/24 /28"))
    site.planner.decide(Node("a"))
    site.planner.decide_many([Node("b"), Node("c")])
    assert {(str(block), holder) for block, holder in site.spaces[Family.IPV4]} == {
        ("10.0.0.0/28", "a"),
        ("10.0.0.16/28", "b"),
        ("10.0.0.32/28", "c"),
    }
