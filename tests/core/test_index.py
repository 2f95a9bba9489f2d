"""The index of pools: the same answer as looking at every pool, for less work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core import index as index_module
from cidrella.core.index import PoolIndex
from cidrella.core.label_pools import LabelPools
from cidrella.core.pool import Pool, PoolSpec
from cidrella.core.selector import NAME_FIELD, Operator, Requirement, Selector, Term
from tests.core.build import pool, selector, spec, tried
from tests.core.oracle_order import in_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        cidrs, composed = draw(ranges), draw(st.booleans())
        result.append(
            spec(name, *(cidrs[:1] if composed else cidrs), where=draw(st.none() | selectors), composed=composed)
        )
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
    """S1, S2, S3, S5, K3, K4: at any time, for any node, the pools that apply and their order are the naive twin's."""
    index = PoolIndex()
    present: list[Pool] = []
    for event in order_of_events:
        if isinstance(event, PoolSpec):
            present.append(pool(event))
            index.add(present[-1])
        elif event < len(present):
            index.remove(present.pop(event))
        for name, has in asking:
            found = [[lane.pools for lane in offer.lanes] for offer in index.offers(name, has)]
            assert [[pool_names(row) for row in rows] for rows in found] == in_rows(
                [each.spec for each in present], name, has
            )


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
    for attribute in set(PoolIndex.__slots__) - {"label_pools"}:
        assert getattr(index, attribute) == getattr(fresh, attribute), attribute
    for attribute in LabelPools.__slots__:
        assert getattr(index.label_pools, attribute) == getattr(fresh.label_pools, attribute), attribute


# --- Work ---


def test_nodes_alike_share_one_answer() -> None:
    """A9: nodes that differ only in labels, or names, that no selector mentions get the very same lanes."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="size=big and @metadata.name!=special")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    ordinary = index.offers("n1", {"size": "big", "host": "n1"})
    assert index.offers("n2", {"host": "n2", "size": "big"}) is ordinary
    assert index.offers("special", {"size": "big"}) is not ordinary
    assert index.offers("n3", {"size": "small"}) is not ordinary
    assert index.offers("n4", {}) is index.offers("n3", {"size": "small"}), "nodes without a match are alike too"


def test_without_selectors_all_nodes_are_alike() -> None:
    """A9: where there are only defaults, no label of any node is looked at."""
    index = PoolIndex()
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    assert index.offers("n1", {"size": "big"}) is index.offers("n2", {"rack": "r1"})


def test_the_defaults_of_all_nodes_are_one_lane() -> None:
    """A9: what one kind of node has learnt about full defaults serves every other kind too."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="size=big")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    assert index.offers("n1", {"size": "big"})[1].lanes[0] is index.offers("n1", {})[0].lanes[0]


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
    found = tried(index, "n7", {"zone": "a", "rack": "r7", "key-7": "5"})
    assert pool_names(found)[:1] == (["p7"] if most == 1 else ["p0"])
    assert CountedSelector.asked == most
    index.offers("n7", {"zone": "a", "rack": "r7", "key-7": "5"})
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
    assert pool_names(tried(index, "n", {"zone": "z1", "rack": "r7"})) == ["a7"]
    assert pool_names(tried(index, "n", {"zone": "z2", "rack": "s7"})) == ["b7"]
    assert CountedSelector.asked <= 4


def pool_names(pools: list[Pool]) -> list[str]:
    return [each.name for each in pools]


def test_an_empty_term_is_never_looked_at() -> None:
    """S1: a selector of an empty term matches no node, and costs none of them a look."""
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where=CountedSelector(selector("nothing").terms))))
    CountedSelector.asked = 0
    assert index.offers("n1", {"a": "1"}) == ()
    assert CountedSelector.asked == 0


def test_answers_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A9: the answers that are kept do not grow without end as kinds of nodes come and go, and stay right."""
    monkeypatch.setattr(index_module, "_MEMO_LIMIT", 4)
    index = PoolIndex()
    index.add(pool(spec("p", "10.0.0.0/24 /28", where="host=h5")))
    index.add(pool(spec("q", "10.0.0.0/24 /28")))
    for number in range(20):
        assert pool_names(tried(index, "n", {"host": f"h{number}"})) == (["p", "q"] if number == 5 else ["q"])
        assert 0 < len(index._memo) <= 4
