"""Rules in CEL: Kubernetes' functions for addresses, what rules are refused for, and what they say when broken."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.schemas import cel
from cidrella.apiserver.schemas.celaddresses import FUNCTIONS
from cidrella.apiserver.schemas.schema import Schema, SchemaError
from tests.apiserver.schemas import NOT_HERE, SOUND_RULES, UNSOUND_RULES

if TYPE_CHECKING:
    Json = dict[str, Any]


def of(schema: Json) -> Schema:
    """A schema for objects with this in x."""
    return Schema({"type": "object", "properties": {"x": schema}})


def value_of(expression: str, text: str = "") -> object:
    """What an expression about a text comes to, checked and run; an error as text."""
    rule = {"rule": "false", "messageExpression": f"string({expression})"}
    schema = of({"type": "string", "x-kubernetes-validations": [rule]})
    (found,) = schema.validate({"x": text})
    said = found.message.removeprefix("Invalid value: ").split(": ", 1)[1]
    if said != "failed rule: false":
        return {"true": True, "false": False}.get(said, said)
    asked = of(
        {"type": "string", "x-kubernetes-validations": [{"rule": f"string({expression}) == ''", "message": "-"}]}
    )
    (found,) = asked.validate({"x": text})
    return found.message.removeprefix('Invalid value: "string": ').removesuffix(" evaluating rule: -")


ANSWERS: dict[str, list[tuple[str, object]]] = {
    "isIP(self)": [
        *(
            (text, True)
            for text in ("10.1.2.3", "::", "FD00::1", "64:ff9b::1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8")
        ),
        *(
            (text, False)
            for text in ("10.01.2.3", "10.1.2", "", "x", "1.2.3.4 ", "256.1.1.1", "0x1.2.3.4", "4294967295")
        ),
        *(
            (text, False)
            for text in ("fe80::1%eth0", "::ffff:10.1.2.3", "::ffff:a01:203", "00001::", "1::2:3:4:5:6:7:8")
        ),
        *((text, False) for text in ("10.0.0.0/8", ":::", "1:", "::01.2.3.4", "\u0661.2.3.4")),
    ],
    "ip(self)": [("FE80::ABCD", "fe80::abcd"), ("1::2:3:4:5:6:7", "1:0:2:3:4:5:6:7"), ("10.1.2.3", "10.1.2.3")],
    "ip.isCanonical(self)": [("10.1.2.3", True), ("FD00::1", False), ("1::2:3:4:5:6:7", False), ("fd00::1", True)],
    "ip(self).family()": [("10.1.2.3", "4"), ("fd00::1", "6")],
    "ip(self).isUnspecified()": [("0.0.0.0", True), ("::", True), ("0.0.0.1", False)],
    "ip(self).isLoopback()": [("127.1.2.3", True), ("::1", True), ("128.0.0.1", False)],
    "ip(self).isLinkLocalMulticast()": [
        ("224.0.0.1", True),
        ("ff02::1", True),
        ("224.0.1.1", False),
        ("ff05::1", False),
    ],
    "ip(self).isLinkLocalUnicast()": [("169.254.1.1", True), ("fe80::1", True), ("169.255.0.1", False)],
    "ip(self).isGlobalUnicast()": [
        *((text, True) for text in ("10.1.2.3", "fd00::1", "::1.2.3.4")),
        *((text, False) for text in ("0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.1.1", "255.255.255.255", "ff05::1")),
    ],
    "isCIDR(self)": [
        *((text, True) for text in ("10.1.2.3/8", "0.0.0.0/0", "10.1.2.3/32", "fd00::1/64", "::/0")),
        *(
            (text, False)
            for text in ("10.1.2.3", "10.1.2.3/33", "fd00::/129", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/")
        ),
        *(
            (text, False)
            for text in ("/8", "10.0.0.0/8/8", " 10.0.0.0/8", "10.0.0.0/ 8", "::ffff:10.1.2.3/112", "fe80::%1/64")
        ),
    ],
    "cidr(self)": [("10.1.2.3/8", "10.1.2.3/8"), ("FD00::1/64", "fd00::1/64")],
    "cidr(self).ip()": [("10.1.2.3/8", "10.1.2.3"), ("fd00::/64", "fd00::")],
    "cidr(self).masked()": [("10.1.2.3/8", "10.0.0.0/8"), ("fd00::1/64", "fd00::/64"), ("::1/0", "::/0")],
    "cidr(self).prefixLength()": [("10.1.2.3/8", "8"), ("::/0", "0")],
    "cidr(self).containsIP('10.1.2.3')": [
        ("10.0.0.0/8", True),
        ("10.2.0.0/8", True),
        ("11.0.0.0/8", False),
        ("::/0", False),
    ],
    "cidr(self).containsIP(ip('fd00::1'))": [("fd00::/64", True), ("fd01::/64", False)],
    "cidr(self).containsCIDR('10.1.0.0/16')": [("10.0.0.0/8", True), ("10.1.0.0/17", False), ("0.0.0.0/0", True)],
    "cidr(self).containsCIDR(cidr('fd00::/64'))": [("fd00::/48", True), ("fd00::/65", False)],
    "string(cidr(self)) + string(ip('::1'))": [("10.0.0.0/8", "10.0.0.0/8::1")],
}


@pytest.mark.parametrize("expression", ANSWERS)
def test_functions_for_addresses(expression: str) -> None:
    """Each gives what a real API server gives, which is strict: no leading zeros, no zones, nothing mapped."""
    assert [(text, value_of(expression, text)) for text, _ in ANSWERS[expression]] == ANSWERS[expression]


def test_every_function_is_there() -> None:
    """Kubernetes' libraries for addresses and ranges are there as a whole, and each function above is tried."""
    names = {each.name for each in FUNCTIONS}
    assert names == {
        *("isIP", "ip", "ip.isCanonical", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "isCIDR", "cidr", "containsIP", "containsCIDR", "masked"),
        *("prefixLength", "string"),
    }
    assert all(any(f"{name}(" in expression for expression in ANSWERS) for name in names)


@pytest.mark.parametrize(
    ("expression", "text", "error"),
    [
        (
            "ip(self)",
            "x",
            'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
        ),
        ("ip(self)", "fe80::1%eth0", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("ip(self)", "::ffff:1.2.3.4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("int(self)", "x", "type conversion error from 'string' to 'int'"),
        ("[1][int(self)]", "1", "index out of bounds: 1"),
        ("{'a': 1}[self]", "b", "no such key: b"),
        ("1 / int(self)", "0", "division by zero"),
        ("1 % int(self)", "0", "modulus by zero"),
        ("int(self) + 1", str(2**63 - 1), "integer overflow"),
        (
            "cidr('10.0.0.0/8').containsIP(self)",
            "x",
            "'no such overload': call arguments did not match a supported operator, function or macro signature "
            "for rule: -",
        ),
    ],
)
def test_errors(expression: str, text: str, error: str) -> None:
    """A rule that cannot be evaluated is broken, and it says why as Kubernetes does."""
    assert value_of(expression, text) == error


@pytest.mark.parametrize("title", UNSOUND_RULES)
def test_rules_that_are_refused(title: str) -> None:
    """An unknown function or field, a type or syntax error, an odd path or message: the schema is refused for it."""
    with pytest.raises(SchemaError) as raised:
        of(UNSOUND_RULES[title])
    assert all("x-kubernetes-validations[0]" in each.field for each in raised.value.faults)


@pytest.mark.parametrize("title", NOT_HERE)
def test_what_is_not_there_is_refused(title: str) -> None:
    """What Kubernetes has and we have not is refused where a schema uses it, with its name, and never skipped."""
    with pytest.raises(SchemaError, match="compilation failed: ERROR: <input>:1:"):
        of(NOT_HERE[title])


@pytest.mark.parametrize("title", SOUND_RULES)
def test_rules_that_are_taken(title: str) -> None:
    """What is allowed is not refused."""
    of(SOUND_RULES[title])


def test_the_words_of_a_refusal() -> None:
    """It names the rule, quotes it whole, and shows the place in it."""
    with pytest.raises(SchemaError) as raised:
        Schema(
            {
                "type": "object",
                "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self.b > 1"}]}},
            },
            "spec.validation.openAPIV3Schema",
        )
    (fault,) = raised.value.faults
    assert fault.field == "spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule"
    with pytest.raises(SchemaError) as raised:
        of(UNSOUND_RULES["a field that there is not"])
    assert raised.value.faults[0].message == (
        'Invalid value: {"Rule":"self.other == \'x\'","Message":"","MessageExpression":"","Reason":null,'
        '"FieldPath":"","OptionalOldSelf":null}: compilation failed: '
        "ERROR: <input>:1:5: undefined field 'other'\n | self.other == 'x'\n | ....^"
    )


ABOUT_CHANGE: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "x-kubernetes-validations": [
        {"rule": "self.n >= oldSelf.n", "message": "grows"},
        {"rule": "oldSelf.hasValue() || self.n < 5", "message": "starts small", "optionalOldSelf": True},
    ],
}


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (3, None, []),
        (7, None, ["starts small"]),
        (7, 3, []),
        (2, 3, ["grows"]),
    ],
)
def test_rules_about_changes(new: int, old: int | None, said: list[str]) -> None:
    """One with oldSelf is asked of changes alone; one that does without an old value is asked always."""
    before = None if old is None else {"x": {"n": old}}
    found = of(ABOUT_CHANGE).validate({"x": {"n": new}}, before)
    assert [each.message.removeprefix("Invalid value: ") for each in found] == said


def test_items_are_followed_by_their_keys() -> None:
    """What an item of a list was before is found by its keys, wherever it stands now; a new one was nothing."""
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {
            "k": {"type": "string"},
            "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        },
    }
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = of({"type": "array", "items": item, **keyed})
    before = {"x": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    after = {"x": [{"k": "c", "v": 3}, {"k": "b", "v": 4}, {"k": "a", "v": 1}]}
    assert [each.field for each in schema.validate(after, before)] == ["x[1].v"]


def test_what_a_broken_rule_says() -> None:
    """Its message, or what its expression says; under the field and the reason that it names; null is not asked."""
    schema = of(
        {
            "type": "object",
            "properties": {
                "a-b": {"type": "integer", "nullable": True, "x-kubernetes-validations": [{"rule": "self > 3"}]}
            },
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.a__dash__b)",
                    "fieldPath": "['a-b']",
                    "reason": "FieldValueRequired",
                    "message": "give it",
                },
                {
                    "rule": "!has(self.a__dash__b) || self.a__dash__b > 2",
                    "messageExpression": "'%d < 3'.format([self.a__dash__b])",
                },
            ],
        }
    )
    assert list(map(str, schema.validate({"x": {"a-b": 2}}))) == [
        "x: Invalid value: 2 < 3",
        "x.a-b: Invalid value: 2: failed rule: self > 3",
    ]
    assert list(map(str, schema.validate({"x": {"a-b": None}}))) == ["x.a-b: Required value: give it"]


def test_a_message_that_cannot_be_made() -> None:
    """An expression for the message that fails, or says nothing, leaves the message."""
    rules = [
        {"rule": "false", "message": "plain", "messageExpression": each} for each in ("string(1 / 0)", "' '", "'a\\nb'")
    ]
    found = of({"type": "integer", "x-kubernetes-validations": rules}).validate({"x": 1})
    assert [each.message for each in found] == ["Invalid value: 1: plain"] * 3


def test_a_whole_number_with_a_point() -> None:
    """8.0 passes for a whole number, but not where a rule wants one: Kubernetes says that it is none."""
    rules = [{"rule": "self.n > 3"}, {"rule": "has(self.n)"}]
    schema = of({"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": rules})
    assert list(map(str, schema.validate({"x": {"n": 8.0}}))) == [
        'x: Invalid value: "object": invalid data, expected int, got float64 evaluating rule: self.n > 3'
    ]
    assert schema.validate({"x": {"n": 8}}) == []


def test_patterns_are_matched_with_a_thousand_texts() -> None:
    """`matches` compiles its pattern once, wherever it stands; what looks like it in a text stays as it is."""
    program = cel.Program("self.all(k, k.matches('^a+$') && matches(k, r'a') && k != 'matches(')")
    given = cel.activation(["a" * each for each in range(1, 1000)], None, has_old=False)
    cel._pattern.cache_clear()
    assert program.evaluate(given) is True
    assert cel._pattern.cache_info().misses == 2
    assert program.evaluate(cel.activation(["matches("], None, has_old=False)) is False


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CEL is not installed, a schema with rules says so, and what to do; one without rules does without it."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    monkeypatch.setattr(cel, "_library", cel._library.__wrapped__)
    with pytest.raises(cel.MissingLibraryError, match=r"pip install 'cidrella\[up\]'"):
        of(SOUND_RULES["a change"])
    assert of({"type": "string"}).validate({"x": "a"}) == []
