"""Schemas: what they take out of objects, put in, and find wrong, in the words of Kubernetes.

The words are those that a real API server was heard to say; tests/conformance/test_cases.py asks one again, for all of
the tables.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.schemas.schema import Schema, SchemaError
from cidrella.apiserver.words.statuses import Fault
from cidrella.model.crd import crds
from tests.apiserver.schemas import CHANGES, TIGHT, VALUES
from tests.model import cases, cases_config
from tests.model.manifests import Case, pool

if TYPE_CHECKING:
    Json = dict[str, Any]

POOLS = {
    each["spec"]["names"]["kind"]: Schema(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for each in json.loads(json.dumps(list(crds().values())))
}
NOT_ASKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def of(**properties: Json) -> Schema:
    """A schema for objects with a spec that has these."""
    return Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})


def told(schema: Json, value: object) -> list[str]:
    """What is wrong with a value, once it is pruned and defaults are in."""
    made = of(x=schema)
    obj = {"spec": {"x": json.loads(json.dumps(value))}}
    made.prune(obj)
    made.default(obj)
    return [str(each) for each in made.validate(obj) if each.field != "<nil>" or each.message != NOT_ASKED]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "string"}, 7, 'spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer"'),
        ({"type": "boolean"}, [], 'spec.x: Invalid value: "array": spec.x in body must be of type boolean: "array"'),
        ({"type": "number"}, {}, 'spec.x: Invalid value: "object": spec.x in body must be of type number: "object"'),
        (
            {"type": "integer", "format": "int32"},
            True,
            'spec.x: Invalid value: "": spec.x in body must be of type int32: ""',
        ),
        (
            {"type": "integer", "format": "int32"},
            1 << 31,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x',
        ),
        (
            {"type": "integer", "minimum": 3},
            2,
            "spec.x: Invalid value: 2: spec.x in body should be greater than or equal to 3",
        ),
        (
            {"type": "number", "maximum": 3, "exclusiveMaximum": True},
            3.0,
            "spec.x: Invalid value: 3: spec.x in body should be less than 3",
        ),
        ({"type": "integer", "multipleOf": 3}, 4, "spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"),
        ({"type": "string", "maxLength": 2}, "abc", "spec.x: Too long: may not be more than 2 bytes"),
        (
            {"type": "string", "minLength": 2},
            "a",
            'spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long',
        ),
        (
            {"type": "string", "pattern": "^a$"},
            "a\n",
            "spec.x: Invalid value: \"a\\n\": spec.x in body should match '^a$'",
        ),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'spec.x: Unsupported value: "c": supported values: "a", "b"'),
        (
            {"type": "string", "format": "date-time"},
            "today",
            'spec.x: Invalid value: "today": spec.x in body must be of type date-time: "today"',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "spec.x: Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {},
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 properties",
        ),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
            {},
            "spec.x.a: Required value",
        ),
        (
            {"type": "string", "not": {"enum": ["a"]}},
            "a",
            '<nil>: Invalid value: "": "spec.x" must not validate the schema (not)',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b", "a", "a"],
            'spec.x[2]: Duplicate value: "a"',
        ),
        (
            {
                "type": "array",
                "items": {"x-kubernetes-preserve-unknown-fields": True},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            [{"k": 1}, 5, 6],
            "spec.x[1]: Invalid value: 5: must be an object for an array of list-type map",
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
        ),
    ],
)
def test_what_is_said(schema: Json, value: object, said: str) -> None:
    """One thing that is wrong is told once, with its field, in the words of a real API server."""
    assert told(schema, value) == [said]


def test_of_alternatives_the_nearest_is_told() -> None:
    """Where none of them fits, it says so, and what the one misses of which most was looked at."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "anyOf": [
            {"properties": {"b": {"minimum": 3}}},
            {"properties": {"a": {"minLength": 2}, "b": {"maximum": 0}}},
        ],
    }
    assert told(schema, {"a": "x", "b": 1}) == [
        '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
        'spec.x.a: Invalid value: "x": spec.x.a in body should be at least 2 chars long',
        "spec.x.b: Invalid value: 1: spec.x.b in body should be less than or equal to 0",
    ]
    assert told(schema, {"a": "xy", "b": 0}) == []
    both = {"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 3}]}
    assert told(both, "ab") == [
        '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]


@pytest.mark.parametrize("name", ["integer", "intorstring", "ipv4", "uuid", "byte", "cidr"])
def test_some_of_each_table_is_taken_and_some_is_not(name: str) -> None:
    """The table that both servers are asked with has values of either sort."""
    schema, values = VALUES[name]
    verdicts = {bool(told(schema, value)) for value in values}
    assert verdicts == {True, False}


def test_unknown_fields_are_pruned() -> None:
    """What the schema does not know goes, and its path is told; what it preserves stays, and so does metadata."""
    named: Json = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = of(
        list={"type": "array", "items": named},
        open={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": named}},
        map={"type": "object", "additionalProperties": named},
        text={"type": "string"},
    )
    obj: Json = {
        "metadata": {"strange": 1},
        "kind": "X",
        "more": 1,
        "spec": {
            "list": [{"name": "a", "b": 1}, {"c": {"d": 1}}],
            "open": {"e": {"f": None}, "known": {"g": 1}},
            "map": {"k": {"h": 1}},
            "text": {"i": 1},
        },
    }
    assert schema.prune(obj) == [
        "more",
        "spec.list[0].b",
        "spec.list[1].c",
        "spec.map.k.h",
        "spec.open.known.g",
        "spec.text.i",
    ]
    assert obj == {
        "metadata": {"strange": 1},
        "kind": "X",
        "spec": {"list": [{"name": "a"}, {}], "open": {"e": {"f": None}, "known": {}}, "map": {"k": {}}, "text": {}},
    }


def test_defaults_and_nulls() -> None:
    """Defaults come in where nothing is or null may not be; other nulls go; a default is nobody's to change."""
    schema = of(
        a={"type": "integer", "default": 5},
        b={"type": "object", "default": {}, "properties": {"c": {"type": "string", "default": "x"}}},
        d={"type": "string"},
        e={"type": "string", "nullable": True, "default": "y"},
        f={"type": "array", "items": {"type": "string", "default": "z"}},
        g={"type": "object", "additionalProperties": {"type": "string"}},
    )
    obj: Json = {"spec": {"a": None, "d": None, "e": None, "f": [None], "g": {"h": None, "i": "j"}}}
    schema.default(obj)
    assert obj["spec"] == {"a": 5, "b": {"c": "x"}, "e": None, "f": ["z"], "g": {"i": "j"}}
    obj["spec"]["b"]["c"] = "changed"
    other: Json = {"spec": {}}
    schema.default(other)
    assert other["spec"] == {"a": 5, "b": {"c": "x"}, "e": "y"}


@pytest.mark.parametrize("earlier", [[], [Fault("FieldValueRequired", "metadata.name", "Required value")]])
def test_rules_wait_for_what_is_worse(earlier: list[Fault]) -> None:
    """Where a type is wrong, or metadata lacks something, rules are not asked, and it is said that they were not."""
    schema = of(
        a={"type": "string"}, b={"type": "string", "x-kubernetes-validations": [{"rule": "false", "message": "no"}]}
    )
    assert [each.message for each in schema.validate({"spec": {"b": "x"}})] == ['Invalid value: "x": no']
    found = schema.validate({"spec": {"a": "x" if earlier else 1, "b": "x"}}, None, earlier)
    assert found[-1] == Fault("FieldValueInvalid", "<nil>", NOT_ASKED)
    assert not any(each.message.endswith(": no") for each in found)
    assert not set(earlier) & set(found)


def test_without_rules_none_are_missed() -> None:
    """Where a schema has no rules, nobody is told that they were not asked."""
    assert [each.field for each in of(a={"type": "string"}).validate({"spec": {"a": 1}})] == ["spec.a"]


def test_a_status_by_itself() -> None:
    """Of a write to the status only that is looked at, and told of as if it were the whole, but under its path."""
    status = {"type": "object", "required": ["b"], "properties": {"a": {"type": "integer", "minimum": 3}}}
    schema = Schema({"type": "object", "properties": {"spec": {"type": "string"}, "status": status}})
    obj = {"spec": 1, "status": {"a": 2}}
    assert list(map(str, schema.validate(obj, None, part="status"))) == [
        "status.a: Invalid value: 2: a in body should be greater than or equal to 3",
        "status.b: Required value",
    ]
    assert [each.field for each in schema.validate({"status": "x"}, None, part="status")] == ["status"]
    assert schema.validate({"spec": 1}, None, part="status") == []


@pytest.mark.parametrize("field", CHANGES)
def test_what_was_wrong_before_may_stay(field: str) -> None:
    """What a stricter schema finds wrong passes while it does not change, rules about changes excepted."""
    schema, before = of(**TIGHT), CHANGES[field][0]
    assert bool(schema.validate({"spec": {field: before}})) == (field != "change")
    old = {"spec": {"other": "x", field: before}}
    assert bool(schema.validate({"spec": {"other": "y", field: before}}, old)) == (field == "change")


def test_a_change_for_the_worse_is_told() -> None:
    """A part that changed is held to the schema, also beside parts that did not."""
    schema = of(**TIGHT)
    items = [{"name": "1", "v": "long"}, {"name": "2", "v": "ok"}]
    new = [{"name": "2", "v": "longer"}, {"name": "1", "v": "long"}]
    found = schema.validate({"spec": {"keyed": new}}, {"spec": {"keyed": items}})
    assert [each.field for each in found] == ["spec.keyed[0].v", "<nil>"]


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a++", "[[:alpha:]]", "(?m)^a$", "a{,3}", r"\pL"])
def test_patterns_that_both_must_understand(pattern: str) -> None:
    """A pattern that Python cannot read, or reads otherwise than Go, is refused with the schema."""
    with pytest.raises(SchemaError, match="must be a valid regular expression"):
        of(x={"type": "string", "pattern": pattern})


@pytest.mark.parametrize("text", ["[?+]+", r"\(?=", "a{1,3}$", r"^\d+[.]\w*$", "(?i)a"])
def test_patterns_that_only_look_strange(text: str) -> None:
    """What is in brackets, or escaped, is none of that."""
    assert told({"type": "string", "pattern": text}, "\0") != []


def test_times_in_small_letters() -> None:
    """A time may have its T and Z in small letters, but has to be one."""
    schema = {"type": "string", "format": "date-time"}
    assert told(schema, "2026-01-02t03:04:05.5z") == []
    assert told(schema, "2026-02-30T03:04:05Z") != []


def test_formats_that_are_not_known_here() -> None:
    """A format that Kubernetes enforces and we do not is refused, not ignored; one that nobody enforces is ignored."""
    with pytest.raises(SchemaError, match=r"x\]\.format: .*not known here"):
        of(x={"type": "string", "format": "uri"})
    assert told({"type": "string", "format": "made-up"}, "x") == []


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, id=f"{kind}-{case.title}")
        for kind, table in (("ClusterCIDR", cases.CASES), ("ClusterCIDRConfig", cases_config.CASES))
        for case in table
        if not any(field.startswith("metadata") for field in case.fields)
    ],
)
def test_the_tables_of_pools(kind: str, case: Case) -> None:
    """C1, C2, C4: our CRDs refuse here what they refuse elsewhere, and no more. Unknown fields are told by pruning."""
    obj = json.loads(json.dumps(case.manifest))
    # As kubectl sends it.
    for name, value in obj["spec"].items() if isinstance(obj.get("spec"), dict) else ():
        obj["spec"][name] = int(value) if isinstance(value, float) and value.is_integer() else value
    unknown = POOLS[kind].prune(obj)
    POOLS[kind].default(obj)
    found = POOLS[kind].validate(obj)
    assert bool(found or unknown) == bool(case.fields), found


@pytest.mark.parametrize("update", cases.UPDATES, ids=lambda update: update.title)
def test_pools_stay_as_they_are(update: Any) -> None:
    """C3: what of a ClusterCIDR cannot be changed is told by its field."""
    old, new = pool(update.before), pool(update.after)
    assert [each.field for each in POOLS["ClusterCIDR"].validate(new, old)] == ([update.field] if update.field else [])
