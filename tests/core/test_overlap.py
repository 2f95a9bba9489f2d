"""Whether two selectors can match one node."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from cidrella.core.overlap import Demand, candidates
from tests.core.build import selector


def both(one: str, two: str) -> set[tuple[int, int]]:
    """Return the answer, after making sure that it is the same the other way round."""
    demands = Demand(selector(one)), Demand(selector(two))
    met = demands[0].shared(demands[1])
    assert {(first, second) for second, first in demands[1].shared(demands[0])} == met
    return set(met)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a=x", "a=y"),
        ("a=x|y", "a=z"),
        ("a=x", "a!=x"),
        ("a=x|y", "a!=x|y"),
        ("a=x", "!a"),
        ("a", "!a"),
        ("a>3", "!a"),
        ("a=3", "a>3"),
        ("a=3|4", "a<3"),
        ("a=x and b=x", "b=y"),
        ("@metadata.name=n", "@metadata.name=m"),
        ("@metadata.name=n", "@metadata.name!=n"),
        ("a=x and a=y", "b"),
        ("nothing", "a"),
        ("nothing", "nothing"),
        ("a=x or b and !b", "a=y and !b"),
    ],
)
def test_no_node_matches_both(one: str, two: str) -> None:
    """S1: what one asks of a label, or of a field, the other excludes; or one of them matches nothing."""
    assert both(one, two) == set()


@pytest.mark.parametrize(
    ("one", "two", "met"),
    [
        ("a=x", "b=x", {(1, 1)}),
        ("a=x|y", "a=y|z", {(1, 1)}),
        ("a=x|y and b", "a!=x", {(2, 1)}),
        ("a!=x", "!a", {(1, 1)}),
        ("a!=x", "a!=y and a", {(1, 2)}),
        ("a=4", "a>3", {(1, 1)}),
        ("a>3", "a<2", {(1, 1)}),
        ("@metadata.name=n", "a", {(1, 1)}),
        ("@metadata.name!=n", "@metadata.name=m", {(1, 1)}),
        ("metadata.name=n", "@metadata.name=m", {(1, 1)}),
        ("a=x or a=y and b or nothing", "a=y and !c or b", {(1, 1), (2, 1), (2, 2)}),
    ],
)
def test_some_node_matches_both(one: str, two: str, met: set[tuple[int, int]]) -> None:
    """S1, S3: each term with each that does not exclude it, by the requirements of both. In doubt there is a node."""
    assert both(one, two) == met


def test_default() -> None:
    """S2: a default is for any node that another is for, without meeting anything."""
    default = Demand(None)
    assert default.shared(default) == {(0, 0)}
    assert default.shared(Demand(selector("a and b or c"))) == {(0, 2), (0, 1)}
    assert Demand(selector("a and !a")).shared(default) == frozenset()


def test_candidates() -> None:
    """S1: whoever may be for the same nodes is a candidate, and of those that list other values nobody is."""
    texts = ["a=x and b", "a=y", "a=x|y", "c", "a=z and c=x", "nothing", "a!=x", "a=z or a=y", "a=u or c", "@a=x"]
    assert list(candidates([*(Demand(selector(text)) for text in texts), Demand(None)])) == [
        [2, 3, 5, 6, 8, 9, 10],
        [2, 3, 5, 6, 7, 8, 9, 10],
        [3, 5, 6, 7, 8, 9, 10],
        [4, 5, 6, 7, 8, 9, 10],
        [5, 6, 7, 8, 9, 10],
        [6, 7, 8, 9, 10],
        [7, 8, 9, 10],
        [8, 9, 10],
        [9, 10],
        [10],
        [],
    ]


def test_candidates_by_the_label_that_tells_most() -> None:
    """S1: one label that all have in common does not keep another from telling thousands apart, nor does a default."""
    demands = [Demand(selector(f"all=same and rack=r{number} and z")) for number in range(3000)]
    assert not any(candidates(demands))
    assert list(candidates([*demands[:3], Demand(None)])) == [[3], [3], [3], []]
    assert list(candidates([])) == []


def test_nobody_is_missed() -> None:
    """S1: those that share a node are candidates, for all sets of three selectors of two terms."""
    asked = ["a=x", "a=x|y", "a!=x and b=y", "!a", "b=x", "a=z and b=z"]
    demands = [Demand(selector(" or ".join(sorted({one, two})))) for one, two in product(asked, asked)]
    for three in combinations(demands, 3):
        for number, found in enumerate(candidates(three)):
            assert {other for other in range(number + 1, 3) if three[number].shared(three[other])} <= set(found)


def test_nodes_bear_it_out() -> None:
    """S1, S3: no node meets more of two selectors than is said, for all selectors of two requirements and all nodes."""
    asked = ["a=x", "a=x|y", "a!=x", "a", "!a", "a>3", "b=x", "b!=y", "!b"]
    selectors = [selector(text) for text in [*asked, *(f"{one} and {two}" for one, two in product(asked, asked))]]
    nodes = [
        {key: value for key, value in zip("ab", values, strict=True) if value}
        for values in product(["", "x", "y", "z", "5"], repeat=2)
    ]
    for one, two in product(selectors, selectors[: len(asked)]):
        found = {(one.matched("n", labels), two.matched("n", labels)) for labels in nodes}
        assert Demand(one).shared(Demand(two)) == {each for each in found if None not in each}
