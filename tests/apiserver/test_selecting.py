"""Selectors by label and by field: what they match, and what is said of those that make no sense."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.serving.selecting import FieldTerm, parse_field_selector, parse_label_selector
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.apiserver.resource import Resource

Json = dict[str, Any]

NODE = {"zone": "a", "cores": "8", "empty": ""}
OPERATORS = "in, notin, =, ==, !=, gt, lt"


def resource(*fields: str, custom: bool = False, namespaced: bool = False) -> Resource:
    readers: dict[str, Callable[[Json], str]] = {name: lambda obj: str(obj.get("color", "")) for name in fields}
    return cast("Resource", SimpleNamespace(fields=readers, custom=custom, namespaced=namespaced))


def refusal(parse: Callable[[str], Any], text: str) -> str:
    with pytest.raises(StatusError) as refused:
        parse(text)
    assert (refused.value.code, refused.value.reason, refused.value.details) == (400, "BadRequest", None)
    return refused.value.message


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("  ", True),
        ("zone", True),
        ("rack", False),
        ("!rack", True),
        ("! zone", False),
        ("zone=a", True),
        ("zone == a", True),
        ("zone!=a", False),
        ("rack!=a", True),
        ("zone in (a,b)", True),
        ("zone in(b)", False),
        ("zone notin (a)", False),
        ("rack notin (a)", True),
        ("empty=", True),
        ("empty in ()", True),
        ("zone in ()", False),
        ("empty in (a,)", True),
        ("empty in (,a)", True),
        ("empty in (a,,b)", True),
        ("zone in (a,,b)", True),
        ("zone!=,rack=", False),
        ("cores>7", True),
        ("cores>8", False),
        ("cores<9", True),
        ("zone>1", False),
        ("zone=a,cores in (4,8),!rack", True),
        ("zone=a,cores in (4,16),!rack", False),
    ],
)
def test_labels_that_match(selector: str, matches: bool) -> None:
    """All requirements are met; an absent label meets only those that ask for its absence, or for another value."""
    assert parse_label_selector(selector).matches(NODE) is matches


def test_words_as_keys() -> None:
    """`in` and `notin` are labels too, where an operator makes no sense."""
    assert parse_label_selector("in in (in),notin").matches({"in": "in", "notin": ""})
    assert parse_label_selector("a=in,b=notin").matches({"a": "in", "b": "notin"})


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("(", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b,,c", "found ',', expected: identifier after ','"),
        ("a,==b", "found '==', expected: identifier after ','"),
        ("a,!=b", "found '!=', expected: identifier after ','"),
        ("a=<b", "unable to parse requirement: found '<', expected: identifier"),
        ("a=>b", "unable to parse requirement: found '>', expected: identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a b", f"unable to parse requirement: found 'b', expected: {OPERATORS}"),
        ("a!b", f"unable to parse requirement: found '!', expected: {OPERATORS}"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
    ],
)
def test_labels_refused(selector: str, told: str) -> None:
    """What cannot be read is refused in the real server's words."""
    assert refusal(parse_label_selector, selector) == told


def test_labels_that_cannot_be() -> None:
    """Keys and values that no label can have are refused, with all that is wrong with each."""
    told = refusal(parse_label_selector, "/=b")
    assert told.startswith(
        'unable to parse requirement: <nil>: Invalid value: "/": prefix part must be non-empty; name part must be '
        "non-empty; name part must consist of"
    )
    told = refusal(parse_label_selector, "a in (b,-,*)")
    assert told.startswith('unable to parse requirement: [values[0][a]: Invalid value: "*": a valid label must be')
    assert ', values[1][a]: Invalid value: "-": a valid label must be' in told


@given(st.text("ab=!,()<> in5*/", max_size=12))
def test_any_text(text: str) -> None:
    """Any text is read or refused, and what is read can be asked."""
    try:
        selector = parse_label_selector(text)
    except StatusError:
        return
    assert selector.matches(NODE) in {True, False}


WORDS = st.sampled_from(["a", "b", "in", "x.io/c"])


@given(st.dictionaries(WORDS, WORDS), st.dictionaries(WORDS, st.sampled_from(["a", "b", ""])))
def test_equality(wanted: dict[str, str], labels: dict[str, str]) -> None:
    """A selector of equalities matches labels that hold all of them."""
    assert not any("/" in value for value in labels.values())
    values = {key: value.rpartition("/")[2] for key, value in wanted.items()}
    selector = parse_label_selector(",".join(f"{key}={value}" for key, value in values.items()))
    assert selector.matches(labels) == (values.items() <= labels.items())


def test_field_terms() -> None:
    """Terms are read in any order, with `=`, `==` and `!=`, and values unescaped; empty ones say nothing."""
    selector = parse_field_selector(r"spec.b!=x,metadata.name==a\,b\=c\\,,=")
    assert selector.terms == (FieldTerm("metadata.name", "a,b=c\\"), FieldTerm("spec.b", "x", equal=False))
    assert selector.only("metadata.name") == "a,b=c\\"
    assert selector.only("spec.b") is None
    assert parse_field_selector("").terms == ()


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("foo", "invalid selector: 'foo'; can't understand 'foo'"),
        ("b,a", "invalid selector: 'b,a'; can't understand 'a'"),
        ("a!b", "invalid selector: 'a!b'; can't understand 'a!b'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b\\c", "invalid field selector: invalid escape sequence: \\c"),
    ],
)
def test_fields_refused(selector: str, told: str) -> None:
    """What cannot be read is refused in the real server's words."""
    assert refusal(parse_field_selector, selector) == told


def test_fields_that_match() -> None:
    """Fields are read as the resource says; one without a value is empty."""
    red: Json = {"metadata": {"name": "n", "namespace": "ns"}, "color": "red"}
    things = resource("spec.color", custom=True, namespaced=True)
    for selector, matches in (
        ("", True),
        ("metadata.name=n,metadata.namespace=ns,spec.color=red", True),
        ("metadata.name=n,metadata.namespace=ns,spec.color!=red", False),
        ("metadata.name!=n", False),
        ("spec.color=", False),
    ):
        assert parse_field_selector(selector).of(things)(red) is matches
    assert parse_field_selector("spec.color=").of(things)({"metadata": {"name": "n"}})


def test_unknown_fields() -> None:
    """A field that a resource does not have is refused; namespaces are fields of what has one, and of plain kinds."""
    plain, nodes, things = resource(), resource("spec.x"), resource(custom=True)
    assert refusal(lambda text: parse_field_selector(text).of(nodes), "b=1,a=1") == "field label not supported: a"
    assert refusal(lambda text: parse_field_selector(text).of(things), "=x") == "field label not supported: "
    told = '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert refusal(lambda text: parse_field_selector(text).of(plain), "foo!=") == told
    assert parse_field_selector("metadata.namespace=").of(plain)({"metadata": {"name": "n"}})
    told = "field label not supported: metadata.namespace"
    assert refusal(lambda text: parse_field_selector(text).of(nodes), "metadata.namespace=a") == told
    assert refusal(lambda text: parse_field_selector(text).of(things), "metadata.namespace=a") == told
