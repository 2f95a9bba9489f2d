"""Node selectors: what matches, how well, and their canonical text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.selector import NAME_FIELD, Operator, Requirement, Selector, Term, parse_int64
from tests.core.build import requirement, selector, term

if TYPE_CHECKING:
    from random import Random

MAX = (1 << 63) - 1
MIN = -(1 << 63)


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("size=big", "big", True),
        ("size=big", "small", False),
        ("size=big", "", False),
        ("size=big", None, False),
        ("size=big|small", "small", True),
        ("size=big|small", "bigsmall", False),
        ("size=", "", True),
        ("size!=big", "big", False),
        ("size!=big", "small", True),
        ("size!=big", "", True),
        ("size!=big", None, True),
        ("size!=big|small", "small", False),
        ("size", "", True),
        ("size", "big", True),
        ("size", None, False),
        ("!size", "", False),
        ("!size", "big", False),
        ("!size", None, True),
        ("size>5", "6", True),
        ("size>5", "5", False),
        ("size>5", "4", False),
        ("size>5", "10", True),
        ("size>5", "+6", True),
        ("size>-5", "-4", True),
        ("size>-5", "-6", False),
        ("size>5", "six", False),
        ("size>5", "", False),
        ("size>5", "6.0", False),
        ("size>5", " 6", False),
        ("size>five", "6", False),
        ("size>5", None, False),
        ("size<5", "4", True),
        ("size<5", "5", False),
        ("size<5", "6", False),
        ("size<5", "-10", True),
        ("size<5", "four", False),
        ("size<five", "4", False),
        ("size<5", None, False),
        (f"size>{MAX - 1}", str(MAX), True),
        (f"size>{MAX - 1}", str(MAX + 1), False),
        (f"size<{MAX + 1}", "1", False),
        (f"size<{MIN + 1}", str(MIN), True),
        (f"size<{MIN + 1}", str(MIN - 1), False),
        (f"size>{MIN - 1}", "1", False),
    ],
)
def test_operators(text: str, value: str | None, met: bool) -> None:
    """S1: In, NotIn, Exists, DoesNotExist, Gt and Lt are met as Kubernetes defines them, an absent label included."""
    labels = {"other": "5"} | ({} if value is None else {"size": value})
    assert requirement(text).met_by(labels) is met


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("-0", 0),
        ("007", 7),
        (str(MAX), MAX),
        (str(MIN), MIN),
        (f"+{MAX}", MAX),
        (str(MAX + 1), None),
        (str(MIN - 1), None),
        ("9" * 24, None),
        ("9" * 25, None),
        ("9" * 63, None),
        ("-" + "9" * 62, None),
        ("", None),
        ("+", None),
        ("-", None),
        ("--7", None),
        ("7-", None),
        ("7 ", None),
        (" 7", None),
        ("7\n", None),
        ("7.0", None),
        ("7e2", None),
        ("0x7", None),
        ("7_0", None),
        ("\N{FULLWIDTH DIGIT SEVEN}", None),
        ("\N{ARABIC-INDIC DIGIT SEVEN}", None),
        ("\N{SUPERSCRIPT TWO}", None),
        (None, None),
    ],
)
def test_numbers_are_those_of_go(text: str | None, number: int | None) -> None:
    """S1: Gt and Lt read numbers as strconv.ParseInt does: a sign, ASCII digits, 64 bits, and nothing else."""
    assert parse_int64(text) == number


@pytest.mark.parametrize("zeros", [18, 24, 25, 26, 60, 5000])
def test_leading_zeros_do_not_make_a_number_too_large(zeros: int) -> None:
    """S1: strconv.ParseInt skips leading zeros, of which a label has room for sixty and a selector for any number."""
    assert parse_int64("0" * zeros + "12") == 12
    assert parse_int64("-" + "0" * zeros + "12") == -12


@given(st.integers(MIN - 5, MIN + 5) | st.integers(-5, 5) | st.integers(MAX - 5, MAX + 5), st.integers(-5, 5))
def test_comparisons_are_those_of_numbers(left: int, right: int) -> None:
    """S1: Gt and Lt compare as numbers whatever fits 64 bits, and nothing that does not."""
    fits = MIN <= left <= MAX
    assert Requirement("key", Operator.GT, (str(right),)).met_by({"key": str(left)}) == (fits and left > right)
    assert Requirement("key", Operator.LT, (str(right),)).met_by({"key": str(left)}) == (fits and left < right)


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("a=1", 1),
        ("a=1 and b=2", 2),
        ("a=1 and b=9", None),
        ("a=9 and b=2", None),
        ("a=1 or b=9", 1),
        ("a=9 or b=2", 1),
        ("a=9 or b=9", None),
        ("a=1 or a=1 and b=2", 2),
        ("a=1 and b=2 or a=1", 2),
        ("a=1 or a=1 and b=2 and c=9", 1),
        ("nothing", None),
        ("nothing or a=1", 1),
        ("nothing or nothing", None),
        ("@metadata.name=n1", 1),
        ("@metadata.name=n2", None),
        ("@metadata.name=n2|n1", 1),
        ("@metadata.name!=n2", 1),
        ("@metadata.name!=n1", None),
        ("a=1 and @metadata.name=n1", 2),
        ("a=1 and @metadata.name=n2", None),
        ("a=9 and @metadata.name=n1", None),
        ("a=1 and b and !c and @metadata.name!=n2", 4),
    ],
)
def test_terms(text: str, matched: int | None) -> None:
    """S1, S3, pitfall 8: terms are ORed, requirements ANDed, an empty term matches nothing; the largest counts."""
    assert selector(text).matched("n1", {"a": "1", "b": "2"}) == matched


def test_no_terms_match_nothing() -> None:
    """S1: a selector of no terms has no term that could match."""
    assert Selector(()).matched("n1", {"a": "1"}) is None


def test_fields_are_not_looked_up_among_the_labels() -> None:
    """S1, pitfall 8: matchFields sees the node's name and no label, matchExpressions sees labels and not the name."""
    disguised = {NAME_FIELD: "n2", "a": "1"}
    assert selector("@metadata.name=n1").matched("n1", disguised) == 1
    assert selector("@metadata.name=n2").matched("n1", disguised) is None
    assert selector("metadata.name=n2").matched("n1", disguised) == 1
    assert selector("metadata.name=n1").matched("n1", disguised) is None
    assert selector("@a=1").matched("n1", disguised) is None
    assert selector("@a").matched("n1", disguised) is None


def test_a_term_says_what_a_node_lacks() -> None:
    """S1: of a term, exactly the requirements that are not met come back, labels first."""
    wanted = term("a=1 and b=2 and @metadata.name=n1 and c")
    assert [str(each) for each in wanted.unmet("n2", {"b": "2"})] == ["a In (1)", "c Exists", "metadata.name In (n1)"]
    assert list(wanted.unmet("n1", {"a": "1", "b": "2", "c": ""})) == []
    assert len(wanted) == 4


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a=2|1", "(a In (1, 2))"),
        ("a!=1", "(a NotIn (1))"),
        ("a", "(a Exists)"),
        ("!a", "(a DoesNotExist)"),
        ("a>1", "(a Gt 1)"),
        ("a<1", "(a Lt 1)"),
        ("b and a=1", "(a In (1) and b Exists)"),
        ("b and @metadata.name=n1 and a", "(a Exists and b Exists and metadata.name In (n1))"),
        ("b or a", "(a Exists) or (b Exists)"),
        ("nothing or a", "() or (a Exists)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    """S3: the text of a selector has its values, requirements and terms sorted."""
    assert str(selector(text)) == canonical


_REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from("abc"),
    st.sampled_from([Operator.IN, Operator.NOT_IN, Operator.EXISTS]),
    st.lists(st.sampled_from("123"), max_size=3).map(tuple),
)


@given(
    st.lists(st.tuples(st.lists(_REQUIREMENTS, max_size=3), st.lists(_REQUIREMENTS, max_size=2)), max_size=3),
    st.randoms(use_true_random=False),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("123")),
)
def test_the_order_of_things_does_not_matter(
    terms: list[tuple[list[Requirement], list[Requirement]]], random: Random, labels: dict[str, str]
) -> None:
    """S1, S3: selectors that differ only in the order of terms, requirements and values read and match the same."""
    shuffled = random.sample(
        [
            Term(
                tuple(_turned(each, random) for each in random.sample(expressions, len(expressions))),
                tuple(_turned(each, random) for each in random.sample(fields, len(fields))),
            )
            for expressions, fields in terms
        ],
        len(terms),
    )
    one = Selector(tuple(Term(tuple(expressions), tuple(fields)) for expressions, fields in terms))
    two = Selector(tuple(shuffled))
    assert str(one) == str(two)
    assert one.matched("a", labels) == two.matched("a", labels)


def _turned(each: Requirement, random: Random) -> Requirement:
    return Requirement(each.key, each.operator, tuple(random.sample(each.values, len(each.values))))
