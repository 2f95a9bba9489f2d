"""Objects that a CRD defines are held to its schema and its rules: on our own CRDs, and on one made for the purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import CRDS, POOLS, RANGES, await_kind, crd, made, pool

if TYPE_CHECKING:
    from tests.conformance.talking import Talk
    from tests.testenv.api import Api

    Json = dict[str, Any]

GROUP = "schemas.example.com"
PROPERTIES: Json = {
    "whole": {"type": "integer", "minimum": 2, "maximum": 9, "multipleOf": 2},
    "open": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
    "small": {"type": "integer", "format": "int32"},
    "real": {"type": "number", "maximum": 1.5},
    "text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a"},
    "choice": {"type": "string", "enum": ["one", "two"]},
    "when": {"type": "string", "format": "date-time"},
    "either": {"x-kubernetes-int-or-string": True},
    "flag": {"type": "boolean"},
    "maybe": {"type": "string", "nullable": True},
    "preset": {"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 7}}},
    "list": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "maxLength": 5}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "map": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
        "items": {
            "type": "object",
            "required": ["key"],
            "properties": {"key": {"type": "string"}, "value": {"type": "integer"}},
        },
    },
    "words": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}, "maxProperties": 2},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "strict": {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    },
    "one": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "fixed": {
        "type": "string",
        "maxLength": 9,
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}],
    },
    "grows": {
        "type": "integer",
        "x-kubernetes-validations": [
            {
                "rule": "self >= oldSelf",
                "messageExpression": "'%d is less than %d'.format([self, oldSelf])",
                "reason": "FieldValueForbidden",
            }
        ],
    },
    "pair": {
        "type": "object",
        "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "in order", "fieldPath": ".high"}],
    },
    "first": {
        "type": "integer",
        "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": True, "message": "begins with 1"}
        ],
    },
}


@pytest.fixture(scope="module")
def things(talk: Talk, api: Api) -> str:
    """Where things with every kind of field are."""
    assert api.port
    definition = crd("things", GROUP, properties=PROPERTIES)
    made(talk, CRDS, definition)
    path = f"/apis/{GROUP}/v1/things"
    await_kind(talk, path)
    return path


def thing(name: str, **spec: object) -> Json:
    """One of them."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


WRONG: list[tuple[Json, str]] = [
    ({"whole": 1}, "spec.whole: Invalid value: 1: spec.whole in body should be greater than or equal to 2"),
    ({"whole": 10}, "spec.whole: Invalid value: 10: spec.whole in body should be less than or equal to 9"),
    ({"whole": 3}, "spec.whole: Invalid value: 3: spec.whole in body should be a multiple of 2"),
    ({"whole": "4"}, 'spec.whole: Invalid value: "string": spec.whole in body must be of type integer: "string"'),
    ({"whole": 4.5}, 'spec.whole: Invalid value: "number": spec.whole in body must be of type integer: "number"'),
    ({"open": 0}, "spec.open: Invalid value: 0: spec.open in body should be greater than 0"),
    ({"small": 2**31}, "Checked value must be of type integer with format int32 in spec.small"),
    ({"real": 1.6}, "spec.real: Invalid value: 1.6: spec.real in body should be less than or equal to 1.5"),
    ({"text": "a"}, 'spec.text: Invalid value: "a": spec.text in body should be at least 2 chars long'),
    ({"text": "aaaaa"}, "spec.text: Too long: may not be more than 4 bytes"),
    ({"text": "bb"}, """spec.text: Invalid value: "bb": spec.text in body should match '^a'"""),
    ({"text": 5}, 'spec.text: Invalid value: "integer": spec.text in body must be of type string: "integer"'),
    ({"choice": "three"}, 'spec.choice: Unsupported value: "three": supported values: "one", "two"'),
    ({"when": "now"}, 'spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'),
    ({"either": True}, "spec.either: Invalid value"),
    ({"flag": "yes"}, 'spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string"'),
    ({"list": []}, "spec.list: Invalid value: 0: spec.list in body should have at least 1 items"),
    ({"list": list("abcd")}, "spec.list: Too many: 4: must have at most 3 items"),
    ({"list": ["a", "toolong"]}, "spec.list[1]: Too long: may not be more than 5 bytes"),
    ({"list": "a"}, 'spec.list: Invalid value: "string": spec.list in body must be of type array: "string"'),
    ({"set": ["a", "b", "a"]}, 'spec.set[2]: Duplicate value: "a"'),
    ({"map": [{"key": "a"}, {"key": "a", "value": 1}]}, 'spec.map[1]: Duplicate value: {"key":"a"}'),
    ({"map": [{"value": 1}]}, "spec.map[0].key: Required value"),
    ({"words": {"a": "long"}}, "spec.words.a: Too long: may not be more than 3 bytes"),
    ({"words": {"a": "", "b": "", "c": ""}}, "spec.words: Too many: 3: must have at most 2 items"),
    ({"strict": {}}, "spec.strict.a: Required value, spec.strict.b: Required value"),
    ({"strict": {}}, "some validation rules were not checked because the object was invalid"),
    ({"strict": {"a": None, "b": "x"}}, "spec.strict.a: Required value"),
    ({"one": {}}, '"spec.one" must validate one and only one schema (oneOf). Found none valid'),
    ({"one": {"a": "x", "b": "y"}}, "must validate one and only one schema (oneOf)"),
    ({"pair": {"low": 2, "high": 1}}, "spec.pair.high: Invalid value: in order"),
    ({"pair": {"low": 2}}, "no such key: high evaluating rule: in order"),
    ({"first": 2}, "spec.first: Invalid value: 2: begins with 1"),
]


@pytest.mark.parametrize(("spec", "said"), WRONG, ids=[f"{next(iter(spec))}-{n}" for n, (spec, _) in enumerate(WRONG)])
def test_what_does_not_fit(talk: Talk, name: str, things: str, spec: Json, said: str) -> None:
    """It is refused, in the words that people look up."""
    reply = talk.create(things, thing(name, **spec))
    reply.refused(422, "Invalid", f'Thing.{GROUP} "{name}" is invalid: ', said)
    assert reply.body["details"]["causes"]


RIGHT: list[Json] = [
    {"whole": 4, "open": 1, "small": 2**31 - 1, "real": 1.5},
    {"whole": 4.0, "real": 1},
    {"text": "abcd", "choice": "two", "when": "2026-01-01T00:00:00Z"},
    {"either": 5},
    {"either": "5%"},
    {"maybe": None},
    {"list": ["a"], "set": ["a", "b"], "map": [{"key": "a", "value": 1}, {"key": "b"}]},
    {"words": {"a": "x"}, "strict": {"a": "", "b": ""}, "one": {"b": "x"}},
    {"pair": {"low": 1, "high": 1}, "first": 1},
]


@pytest.mark.parametrize("spec", RIGHT, ids=range(len(RIGHT)))
def test_what_does(talk: Talk, name: str, things: str, spec: Json) -> None:
    """It comes back as it was sent, with what has a default."""
    found = made(talk, things, thing(name, **spec))["spec"]
    assert found == {**spec, "preset": {"a": 7}}


def test_defaults(talk: Talk, name: str, things: str) -> None:
    """They go as deep as they are said; null where it is not allowed is as if it were not there."""
    assert made(talk, things, thing(name))["spec"] == {"preset": {"a": 7}}
    found = made(talk, things, thing(f"{name}-2", preset={"a": 8}, text=None))["spec"]
    assert found == {"preset": {"a": 8}}


def test_what_is_not_known(talk: Talk, name: str, things: str) -> None:
    """It is dropped, wherever it is, but for where the schema says to keep it."""
    spec: Json = {"x": 1, "free": {"x": {"y": 1}}, "map": [{"key": "a", "x": 1}], "preset": {"x": 1}}
    reply = talk.create(things, thing(name, **spec))
    assert reply.granted(201)["spec"] == {"free": {"x": {"y": 1}}, "map": [{"key": "a"}], "preset": {"a": 7}}
    assert sorted(reply.warnings) == [
        'unknown field "spec.map[0].x"',
        'unknown field "spec.preset.x"',
        'unknown field "spec.x"',
    ]


def test_rules_on_changes(talk: Talk, name: str, things: str) -> None:
    """A rule that looks at what was there holds only where something was."""
    made(talk, things, thing(name, fixed="a", grows=5, first=1))
    path = f"{things}/{name}"
    talk.patch(path, {"spec": {"fixed": "b"}}).refused(422, "Invalid", 'spec.fixed: Invalid value: "b": stays')
    reply = talk.patch(path, {"spec": {"grows": 4}}).refused(422, "Invalid", "spec.grows: Forbidden: 4 is less than 5")
    assert reply.causes == [("FieldValueForbidden", "spec.grows")]
    talk.patch(path, {"spec": {"fixed": None, "grows": 6, "first": 9}}).granted()
    talk.patch(path, {"spec": {"fixed": "c"}}).granted()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ipv4": "nonsense"}, 'spec.ipv4: Invalid value: "nonsense": must be a range such as 10.1.0.0/16'),
        ({"ipv4": "10.0.0.1/16"}, "has host bits set; the range that holds it is 10.0.0.0/16"),
        ({"ipv4": "fd00::/64"}, "must be an IPv4 range; the other family has a field of its own, ipv6"),
        ({"ipv4": "10.0.0.0/29"}, "is too small; a node's block has at least 16 addresses"),
        ({"ipv4": "x" * 65}, "spec.ipv4: Too long: may not be more than 64 bytes"),
        ({"perNodeHostBits": 3}, "spec.perNodeHostBits in body should be greater than or equal to 4"),
        ({"perNodeHostBits": None}, "spec.perNodeHostBits"),
        ({"perNodeHostBits": 20}, "spec"),
    ],
    ids=["word", "bits", "family", "small", "long", "minimum", "none", "larger"],
)
def test_pools_that_are_wrong(talk: Talk, name: str, spec: Json, said: str) -> None:
    """Our own CRD says what is wrong with a pool."""
    talk.create(POOLS, pool(name, **spec)).refused(422, "Invalid", f'ClusterCIDR.networking.x-k8s.io "{name}"', said)


def test_pools_stay_as_they_are(talk: Talk, name: str) -> None:
    """A pool's spec cannot be changed."""
    made(talk, POOLS, pool(name))
    for spec in ({"ipv4": "10.1.0.0/16"}, {"perNodeHostBits": 9}, {"ipv6": "fd00::/64"}):
        talk.patch(f"{POOLS}/{name}", {"spec": spec}).refused(422, "Invalid", "spec")


def test_ranges_that_are_wrong(talk: Talk, name: str) -> None:
    """What the Service allocator stores has fields at the root."""
    body = {"apiVersion": "cidrella.dev/v1alpha1", "kind": "RangeAllocation", "metadata": {"name": name}}
    talk.create(RANGES, body).refused(422, "Invalid", "range: Required value", "data: Required value")
    reply = talk.create(RANGES, body | {"range": "nonsense", "data": ""})
    reply.refused(422, "Invalid", "range: Invalid value", "must be a range such as 10.96.0.0/16")


@pytest.mark.parametrize(
    "body", [{"spec": []}, {"spec": "text"}, {"spec": None}, {}], ids=["list", "text", "null", "none"]
)
def test_a_spec_that_is_none(talk: Talk, name: str, body: Json) -> None:
    """The wrong type is a fault of the object here, not of its form."""
    sent = {key: value for key, value in pool(name).items() if key != "spec"} | body
    talk.create(POOLS, sent).refused(422, "Invalid", "spec")
