"""Why a node gets what it gets, in words that agree with what the planner does."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.explain import Verdict, explain
from cidrella.core.index import PoolIndex
from tests.core.build import node, part, pool, spec
from tests.core.test_index import kinds, ranges, selectors

if TYPE_CHECKING:
    from cidrella.core.offer import Offer
    from cidrella.core.pool import Pool, PoolSpec
    from cidrella.core.selector import Selector

NODE = node("n1", "size=big rack=r1")


def verdicts(*specs: str | tuple[str, str], of: str = "size=big rack=r1") -> list[Verdict]:
    """Explain pools named a, b, c, …, each written as its range, or as its range and its selector."""
    pairs = [(each, None) if isinstance(each, str) else each for each in specs]
    made = [pool(spec(name, cidr, where=where)) for name, (cidr, where) in zip("abcdef", pairs, strict=False)]
    return explain(node("n1", of), made)


def names(given_verdicts: list[Verdict]) -> list[str]:
    return [each.pool.name for each in given_verdicts]


def test_those_that_apply_come_first_in_order() -> None:
    """S2, S3: pools that apply stand in the order in which they are tried, the others after them by name."""
    found = verdicts(
        ("10.0.0.0/24 /28", "size=small"), "10.0.0.0/24 /28", ("10.0.0.0/24 /28", "size"), ("10.0.0.0/24 /28", "gpu")
    )
    assert names(found) == ["c", "b", "a", "d"]
    assert [each.applies for each in found] == [True, True, False, False]
    assert [each.matched for each in found] == [1, 0, 0, 0]


def side_by_side(index: PoolIndex, name: str, labels: dict[str, str]) -> list[Pool]:
    """Return the pools that apply where they are first tried, what can be tried together by family."""
    result: list[Pool] = []
    for _, alike in groupby(index.offers(name, labels), key=lambda offer: (is_default(offer), is_composed(offer))):
        lanes = dict.fromkeys(lane for offer in alike for lane in offer.lanes if lane.pools[0] not in result)
        for lane in sorted(lanes, key=lambda lane: lane.pools[0].part or 0):
            result += lane.pools
    return result


def is_default(offer: Offer) -> bool:
    return all(lane.pools[0].spec.selector is None for lane in offer.lanes)


def is_composed(offer: Offer) -> bool:
    return offer.lanes[0].pools[0].spec.composed


@given(st.lists(st.tuples(ranges, st.none() | selectors, st.booleans()), max_size=8), kinds)
def test_the_order_is_the_planners(
    pools: list[tuple[tuple[str, ...], Selector | None, bool]], kind: tuple[str, dict[str, str]]
) -> None:
    """S3, S5, K3, K4: what is explained to apply, and its order, is what the planner's index finds."""
    index = PoolIndex()
    made = [
        pool(spec(f"p{number}", *cidrs[: 1 if composed else None], where=where, composed=composed))
        for number, (cidrs, where, composed) in enumerate(pools)
    ]
    for each in made:
        index.add(each)
    name, labels = kind
    written = " ".join(f"{key}={value}" for key, value in labels.items())
    found = explain(node(name, written), made)
    assert [each.pool for each in found if each.applies] == side_by_side(index, name, labels)
    assert len(found) == len(made)
    assert [bool(each.before_next) for each in found] == [
        number < sum(each.applies for each in found) - 1 for number in range(len(found))
    ]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (spec("p", "10.0.0.0/24 /28"), "it has no selector: a default for every node (S2)"),
        (spec("p", "10.0.0.0/24 /28", where="size"), "its selector matches with 1 requirement (S1)"),
        (spec("p", "10.0.0.0/24 /28", where="size and rack=r1"), "its selector matches with 2 requirements (S1)"),
        (spec("p", "10.0.0.0/24 /28", terminating=True), "it is being deleted and gives nothing (S6)"),
        (spec("p", "10.0.0.0/24 /28", problem="odd"), "it is invalid and gives nothing (S6): odd"),
        (spec("p", "10.0.0.0/24 /28", problem="odd", terminating=True), "it is invalid and gives nothing (S6): odd"),
        (
            spec("p", "10.0.0.0/24 /28", where="size=small and gpu and rack"),
            "its selector does not match (S1): size In (small), but the node has size=big and "
            "gpu Exists, but the node has no such label",
        ),
        (
            spec("p", "10.0.0.0/24 /28", where="@metadata.name=n1 and gpu"),
            "its selector does not match (S1): gpu Exists, but the node has no such label",
        ),
        (
            spec("p", "10.0.0.0/24 /28", where="@metadata.name=n2 or !size or nothing"),
            "its selector does not match (S1): metadata.name In (n2); or: "
            "size DoesNotExist, but the node has size=big; or: an empty term matches nothing",
        ),
    ],
)
def test_why(written: PoolSpec, why: str) -> None:
    """S1, S2, S6: each pool says why it applies, or what the node lacks in each of its terms."""
    (verdict,) = explain(NODE, [pool(written)])
    assert verdict.why == why
    assert verdict.applies == ("(S2)" in why or "matches with" in why)
    assert verdict.matched == (int(why.split()[4]) if "matches with" in why else 0)
    assert verdict.before_next == ""


@pytest.mark.parametrize(
    ("one", "two", "rule"),
    [
        (("10.0.0.0/8 /28", "size"), "10.0.0.0/24 /28", "S3.1: it has a selector; b is a default"),
        (("10.0.0.0/8 /28", "size and rack"), ("10.0.0.0/24 /28", "size"), "S3.2: it meets 2 requirements; b 1"),
        ("10.0.0.0/25 /28", "10.0.0.0/24 /28", "S3.3: it has 8 Pod CIDRs in all; b 16"),
        ("10.0.0.0/25 /29", "10.0.0.0/24 /28", "S3.4: it has 3 host bits a node; b 4"),
        (("10.1.0.0/24 /28", "rack"), ("10.0.0.0/24 /28", "size"), "S3.5: it has the selector whose text sorts first"),
        ("10.2.0.0/24 /28", "10.10.0.0/24 /28", "S3.5: it has the lower first address"),
        ("10.0.0.0/24 /28", "10.0.0.0/24 /28", "S3.5: it has the name that sorts first"),
    ],
)
def test_which_point_of_the_order_decided(one: str | tuple[str, str], two: str | tuple[str, str], rule: str) -> None:
    """S3: between neighbours the first point on which they differ is named, with what was compared."""
    found = verdicts(one, two)
    assert names(found) == ["a", "b"]
    assert found[0].before_next == f"before b by {rule}"
    assert found[1].before_next == ""


@pytest.mark.parametrize(
    ("one", "two", "rule"),
    [
        (part("a", "10.0.0.0/24 /24", "size"), part("b", "10.0.0.0/24 /28"), "K4.1: it has a selector; b is a default"),
        (part("a", "10.0.0.0/8 /28"), part("b", "10.0.0.0/24 /27"), "K4.2: it has 4 host bits a node; b 5"),
        (
            part("a", "10.1.0.0/24 /28", "size and rack"),
            part("b", "10.0.0.0/24 /28", "size"),
            "K4.3: it meets 2 requirements; b 1",
        ),
        (part("a", "10.2.0.0/24 /28"), part("b", "10.10.0.0/24 /28"), "K4.4: it has the lower first address"),
        (part("a", "10.0.0.0/24 /28"), part("b", "10.0.0.0/25 /28"), "K4.5: it has the name that sorts first"),
        (
            spec("a", "10.0.0.0/24 /28", where="size"),
            part("b", "fd00::/60 /64", "size"),
            "K3: it gives a node all of its blocks; b those of IPv6",
        ),
        (
            spec("a", "10.0.0.0/24 /28"),
            part("b", "10.0.0.0/24 /28"),
            "K3: it gives a node all of its blocks; b those of IPv4",
        ),
        (
            part("a", "10.0.0.0/24 /28", "size"),
            spec("b", "10.0.0.0/24 /28"),
            "K3: it has a selector, or completes what has one; b is a default",
        ),
    ],
)
def test_which_point_of_the_order_decided_for_one_family(one: PoolSpec, two: PoolSpec, rule: str) -> None:
    """K3, K4: the point is named for pools of one family, and between one of them and one that gives alone."""
    found = explain(NODE, [pool(two), pool(one)])
    assert names(found) == ["a", "b"]
    assert [each.before_next for each in found] == [f"before b by {rule}", ""]


def test_families_stand_side_by_side() -> None:
    """K3: pools of two families are tried together, a default early where it completes what has a selector."""
    found = explain(
        NODE,
        [
            pool(each)
            for each in (
                part("d4", "10.0.0.0/24 /28"),
                part("d6", "fd00::/60 /64"),
                part("m6", "fd00::/60 /64", "size"),
                spec("other", "10.0.0.0/24 /28", where="other"),
            )
        ],
    )
    assert [(each.pool.name, each.turn, each.before_next) for each in found] == [
        ("d4", 2, "beside m6 by K3: it gives IPv4; m6 IPv6"),
        ("m6", 2, "before d6 by K4.1: it has a selector; d6 is a default"),
        ("d6", 4, ""),
        ("other", 0, ""),
    ]
    without_m6 = explain(NODE, [pool(part("d6", "fd00::/60 /64")), pool(part("d4", "10.0.0.0/24 /28"))])
    assert [(each.pool.name, each.turn, each.before_next) for each in without_m6] == [
        ("d4", 4, "beside d6 by K3: it gives IPv4; d6 IPv6"),
        ("d6", 4, ""),
    ]
    completing = explain(
        NODE,
        [
            pool(each)
            for each in (
                part("d4", "10.0.0.0/24 /28"),
                part("d6", "fd00::/60 /64"),
                part("m4", "10.0.0.0/24 /28", "size"),
            )
        ],
    )
    assert [(each.pool.name, each.turn, each.before_next) for each in completing] == [
        ("m4", 2, "beside d6 by K3: it gives IPv4; d6 IPv6"),
        ("d6", 2, "before d4 by K3: it has a selector, or completes what has one; d4 is a default"),
        ("d4", 4, ""),
    ]


def test_turns() -> None:
    """K3: each pool that applies says in which of the four steps it is first tried."""
    found = explain(
        NODE,
        [
            pool(spec("d", "10.0.0.0/24 /28")),
            pool(spec("m", "10.0.0.0/24 /28", where="size")),
            pool(part("d4", "10.0.0.0/24 /28")),
            pool(part("m4", "10.0.0.0/24 /28", "size")),
        ],
    )
    assert [(each.pool.name, each.turn) for each in found] == [("m", 1), ("m4", 2), ("d", 3), ("d4", 4)]


def test_full_families() -> None:
    """S4: a verdict names the families that had no block left, and goes on saying so when there is room again."""
    dual = pool(spec("p", "10.0.0.0/28 /28", "fd00::/64 /64"))
    assert explain(NODE, [dual])[0].full == ()
    blocks = [view.allocate("somebody") for view in dual.views]
    (both,) = explain(NODE, [dual])
    assert both.full == dual.spec.ranges
    assert blocks[0] is not None
    dual.views[0].take_back(blocks[0], "somebody")
    assert explain(NODE, [dual])[0].full == dual.spec.ranges[1:]
    assert both.full == dual.spec.ranges


def test_nothing_to_explain() -> None:
    """S2: without pools there is nothing to say, and a node that none applies to still hears of each."""
    assert explain(NODE, []) == []
    assert names(verdicts(("10.0.0.0/24 /28", "b"), ("10.0.0.0/24 /28", "a"))) == ["a", "b"]


def test_a_pool_that_waits_for_its_finalizer() -> None:
    """P1: a pool without its finalizer does not apply, and says why."""
    found = explain(NODE, [pool(replace(spec("new", "10.0.0.0/24 /28"), guarded=False))])
    assert [(each.applies, each.why) for each in found] == [
        (False, "it has yet to get its finalizer, and gives nothing before (P1)")
    ]
