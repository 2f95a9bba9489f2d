"""Whether two selectors can match one node."""

from __future__ import annotations

from itertools import product

import pytest

from cidrella.core.overlap import shared
from tests.core.build import selector


def both(one: str, two: str) -> set[tuple[int, int]]:
    """Return the answer, after making sure that it is the same the other way round."""
    met = shared(selector(one), selector(two))
    assert {(first, second) for second, first in shared(selector(two), selector(one))} == met
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
    assert shared(None, None) == {(0, 0)}
    assert shared(None, selector("a and b or c")) == {(0, 2), (0, 1)}
    assert shared(selector("a and !a"), None) == frozenset()


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
        assert shared(one, two) == {each for each in found if None not in each}
