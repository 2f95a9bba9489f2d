"""The index of pools: the same answer as looking at every pool, for less work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core import index as index_module
from cidrella.core.index import Lane, PoolIndex
from cidrella.core.pool import Pool, PoolSpec
from cidrella.core.prefix import Family
from cidrella.core.selector import NAME_FIELD, Operator, Requirement, Selector, Term
from tests.core.build import pool, selector, spec
from tests.core.counting import CountingList, Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- S1 and S3 as they are written, looking at every pool ---


def meets(wanted: Requirement, present: dict[str, str]) -> bool:
    """Whether labels or fields meet a requirement (S1)."""
    value = present.get(wanted.key)
    if wanted.operator is Operator.IN:
        return value is not None and value in wanted.values
    if wanted.operator is Operator.NOT_IN:
        return value is None or value not in wanted.values
    if wanted.operator is Operator.EXISTS:
        return value is not None
    if wanted.operator is Operator.DOES_NOT_EXIST:
        return value is None
    if value is None or not value.removeprefix("-").isdecimal():
        return False
    sign = 1 if wanted.operator is Operator.GT else -1
    return sign * (int(value) - int(wanted.values[0])) > 0


def matched(chosen: Selector, name: str, labels: dict[str, str]) -> int:
    """Return the number of requirements in the largest term that matches; 0 where none does."""
    return max(
        (
            len(term.expressions) + len(term.fields)
            for term in chosen.terms
            if all(meets(each, labels) for each in term.expressions)
            and all(meets(each, {NAME_FIELD: name}) for each in term.fields)
        ),
        default=0,
    )


def in_order(specs: list[PoolSpec], name: str, labels: dict[str, str]) -> list[str]:
    """Return the names of the pools that apply to a node, in the order of S3."""
    keyed = []
    for each in specs:
        matches = 0 if each.selector is None else matched(each.selector, name, labels)
        if each.selector is not None and matches == 0:
            continue
        blocks = [cidr.size // 2 ** (cidr.family.bits - length) for cidr, length in each.ranges]
        cidr, length = next((one for one in each.ranges if one.cidr.family is Family.IPV4), each.ranges[0])
        text = "" if each.selector is None else str(each.selector)
        key = (
            each.selector is None,
            -matches,
            min(blocks),
            cidr.family.bits - length,
            text,
            cidr.network,
            each.name,
        )
        keyed.append((key, each.name))
    return [name for _, name in sorted(keyed)]


# --- Random pools and nodes, few enough of everything that they meet ---

NAMES = ["n1", "n2", "n3"]
VALUES = ["1", "2", "30", "-4", "x"]
KEYS = ["a", "b", "c", NAME_FIELD]
NUMBERS = st.sampled_from(["0", "2", "29", "-5"])


def listed(key: st.SearchStrategy[str], values: list[str]) -> st.SearchStrategy[Requirement]:
    """Draw In and NotIn, the only ones that Kubernetes has for fields."""
    some = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(Requirement, key, st.sampled_from([Operator.IN, Operator.NOT_IN]), some)


bare = st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]))
compared = st.builds(
    Requirement, st.sampled_from(KEYS), st.sampled_from([Operator.GT, Operator.LT]), NUMBERS.map(lambda each: (each,))
)
expressions = st.lists(listed(st.sampled_from(KEYS), VALUES) | bare | compared, max_size=3).map(tuple)
fields = st.lists(listed(st.just(NAME_FIELD), NAMES), max_size=1).map(tuple)
selectors = st.lists(st.builds(Term, expressions, fields), min_size=1, max_size=3).map(tuple).map(Selector)
ranges = st.sampled_from(
    [
        ("10.0.0.0/24 /28",),
        ("10.2.0.0/24 /28",),
        ("10.10.0.0/24 /28",),
        ("10.0.0.0/20 /24",),
        ("fd00::/60 /64",),
        ("10.0.0.0/24 /28", "fd00::/62 /64"),
        ("fd00::/60 /64", "10.2.0.0/24 /28"),
    ]
)
labels = st.dictionaries(st.sampled_from([*KEYS, "unasked"]), st.sampled_from(VALUES), max_size=4)
kinds = st.tuples(st.sampled_from(NAMES), labels)


@st.composite
def steps(draw: st.DrawFn) -> list[PoolSpec | int]:
    """Draw pools to be added, and, as the number of an earlier pool, pools to be removed."""
    count = draw(st.integers(1, 12))
    names = draw(st.permutations([f"p{number}" for number in range(count)]))
    result: list[PoolSpec | int] = []
    for name in names:
        result.append(spec(name, *draw(ranges), where=draw(st.none() | selectors)))
        if draw(st.integers(0, 2)) == 0:
            result.append(draw(st.integers(0, 11)))
    return result


@pytest.fixture(scope="module", params=[0, 16], ids=["many keys", "few keys"])
def _keys(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tell nodes apart in the way meant for many label keys, and in the way meant for few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "_FEW_KEYS", request.param)
        yield


@pytest.mark.usefixtures("_keys")
@given(steps(), st.lists(kinds, min_size=2, max_size=6))
def test_lanes_are_those_of_looking_at_every_pool(
    order_of_events: list[PoolSpec | int], asking: list[tuple[str, dict[str, str]]]
) -> None:
    """S1, S2, S3, S5: at any time, for any node, the pools that apply and their order are those of the naive twin."""
    index = PoolIndex()
    present: list[Pool] = []
    for event in order_of_events:
        if isinstance(event, PoolSpec):
            present.append(pool(event))
            index.add(present[-1])
        elif event < len(present):
            index.remove(present.pop(event))
        for name, has in asking:
            matching, defaults = index.lanes(name, has)
            found = [each.name for each in matching.pools + defaults.pools]
            assert found == in_order([each.spec for each in present], name, has)
            assert all(each.spec.selector is None for each in defaults.pools)


@given(steps())
def test_nothing_is_left_of_pools_that_have_gone(order_of_events: list[PoolSpec | int]) -> None:
    """A9: when the last pool is removed the index is as empty as a new one: memory follows what is active."""
    index = PoolIndex()
    added = [pool(event) for event in order_of_events if isinstance(event, PoolSpec)]
    for each in added:
        index.add(each)
    for each in added[::2] + added[1::2]:
        index.remove(each)
    fresh = PoolIndex()
    for attribute in PoolIndex.__slots__:
        assert getattr(index, attribute) == getattr(fresh, attribute), attribute


# --- Work ---


def test_nodes_alike_share_one_answer() -> None:
    """A9: nodes that differ only in labels, or names, that no selector mentions get the very same lanes."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="size=big and @metadata.name!=special")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    ordinary = index.lanes("n1", {"size": "big", "host": "n1"})
    assert index.lanes("n2", {"host": "n2", "size": "big"}) is ordinary
    assert index.lanes("special", {"size": "big"}) is not ordinary
    assert index.lanes("n3", {"size": "small"}) is not ordinary
    assert index.lanes("n4", {}) is not ordinary


def test_without_selectors_all_nodes_are_alike() -> None:
    """A9: where there are only defaults, no label of any node is looked at."""
    index = PoolIndex()
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    assert index.lanes("n1", {"size": "big"}) is index.lanes("n2", {"rack": "r1"})


def test_the_defaults_of_all_nodes_are_one_lane() -> None:
    """A9: what one kind of node has learnt about full defaults serves every other kind too."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="size=big")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    assert index.lanes("n1", {"size": "big"})[1] is index.lanes("n1", {})[1]


class CountedSelector(Selector):
    """A selector that counts how often it is asked."""

    asked = 0

    def matched(self, name: str, labels: object) -> int | None:
        CountedSelector.asked += 1
        return super().matched(name, labels)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "most"),
    [
        ("rack=r{0}", 1),
        ("rack=r{0}|s{0}", 1),
        ("zone and rack=r{0}", 1),
        ("zone and @metadata.name=n{0}", 1),
        ("rack=r{0} or @metadata.name=n{0}", 1),
        ("key-{0}", 1),
        ("key-{0}>1", 1),
        ("key-{0}<9", 1),
        ("zone!=z and key-{0}", 1),
        ("rack!=r{0}", 1000),
        ("!absent-{0}", 1000),
    ],
)
def test_a_node_leads_to_its_pools(written: str, most: int) -> None:
    """A4, A9: of a thousand pools, one for each node, only that one is asked; without anything to go by, all are."""
    index = PoolIndex()
    for number in range(1000):
        wanted = CountedSelector(selector(written.format(number)).terms)
        index.add(pool(spec(f"p{number}", "10.0.0.0/24 /28", where=wanted)))
    CountedSelector.asked = 0
    found = index.lanes("n7", {"zone": "a", "rack": "r7", "key-7": "5"})[0].pools
    assert pool_names(found)[:1] == (["p7"] if most == 1 else ["p0"])
    assert CountedSelector.asked == most
    index.lanes("n7", {"zone": "a", "rack": "r7", "key-7": "5"})
    assert CountedSelector.asked == most, "an answer that is known was worked out again"


@pytest.mark.parametrize("operator", [Operator.EXISTS, Operator.DOES_NOT_EXIST, Operator.GT, Operator.LT])
def test_fields_know_two_operators(operator: Operator) -> None:
    """S1: matchFields has In and NotIn in Kubernetes; with another the index might take different nodes for alike."""
    odd = Selector((Term((), (Requirement(NAME_FIELD, operator, ("5",)),)),))
    with pytest.raises(AssertionError):
        PoolIndex().add(pool(spec("p", "10.0.0.0/24 /28", where=odd)))


def test_the_rarer_requirement_leads_to_a_pool() -> None:
    """A9: pools that share a zone and differ in their rack are found by what tells them apart, wherever it stands."""
    index = PoolIndex()
    for number in range(100):
        for name, text in (("a", f"zone=z1 and rack=r{number}"), ("b", f"rack=s{number} and zone=z2")):
            wanted = CountedSelector(selector(text).terms)
            index.add(pool(spec(f"{name}{number}", "10.0.0.0/24 /28", where=wanted)))
    CountedSelector.asked = 0
    assert pool_names(index.lanes("n", {"zone": "z1", "rack": "r7"})[0].pools) == ["a7"]
    assert pool_names(index.lanes("n", {"zone": "z2", "rack": "s7"})[0].pools) == ["b7"]
    assert CountedSelector.asked <= 4


def pool_names(pools: list[Pool]) -> list[str]:
    return [each.name for each in pools]


def test_an_empty_term_is_never_looked_at() -> None:
    """S1: a selector of an empty term matches no node, and costs none of them a look."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where=CountedSelector(selector("nothing").terms))))
    CountedSelector.asked = 0
    assert index.lanes("n1", {"a": "1"})[0].pools == []
    assert CountedSelector.asked == 0


def test_answers_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A9: the answers that are kept do not grow without end as kinds of nodes come and go, and stay right."""
    monkeypatch.setattr(index_module, "_MEMO_LIMIT", 4)
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="host=h5")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    for number in range(20):
        matching, defaults = index.lanes("n", {"host": f"h{number}"})
        assert pool_names(matching.pools + defaults.pools) == (["p", "q"] if number == 5 else ["q"])
        assert 0 < len(index._memo) <= 4


def full_pools(count: int) -> list[Pool]:
    pools = [pool(spec(f"p{number}", "10.0.0.0/28 /28")) for number in range(count)]
    for each in pools:
        each.views[0].allocate("somebody")
    return pools


def test_full_pools_are_passed_once() -> None:
    """A4, A9: a thousand full pools are looked at once, and cost every further node of the same kind nothing."""
    meter = Meter()
    room = pool(spec("room", "10.0.0.0/24 /28"))
    lane = Lane(CountingList([*full_pools(1000), room], meter))
    assert lane.first_open(epoch=7) is room
    assert meter.during() <= 1002
    for _ in range(50):
        assert lane.first_open(epoch=7) is room
    assert meter.during() <= 100


def test_a_lane_of_full_pools_says_so_at_once() -> None:
    """A4: when everything is full, the next node hears it without another look at any pool."""
    meter = Meter()
    lane = Lane(CountingList(full_pools(100), meter))
    assert lane.first_open(epoch=0) is None
    assert meter.during() == 100
    assert lane.first_open(epoch=0) is None
    assert meter.during() == 0


def test_after_a_release_a_lane_looks_again() -> None:
    """N4: when any full range has got room, as the epoch tells, the lane starts over from its first pool."""
    pools = full_pools(3)
    lane = Lane(pools)
    assert lane.first_open(epoch=0) is None
    pools[1].views[0].take_back(pools[1].views[0].block_range, "somebody")
    assert lane.first_open(epoch=0) is None
    assert lane.first_open(epoch=1) is pools[1]
    assert lane.first_open(epoch=1) is pools[1]


def test_a_pool_is_open_when_all_its_families_are() -> None:
    """S4: a dual-stack pool of which one family is full is not open, whichever family that is."""
    few_ipv6 = pool(spec("few-ipv6", "10.0.0.0/24 /28", "fd00::/64 /64"))
    few_ipv4 = pool(spec("few-ipv4", "10.0.0.0/28 /28", "fd00::/60 /64"))
    few_ipv6.views[1].allocate("somebody")
    few_ipv4.views[0].allocate("somebody")
    room = pool(spec("room", "10.0.0.0/24 /28", "fd00::/60 /64"))
    assert Lane([few_ipv6, few_ipv4, room]).first_open(epoch=0) is room
