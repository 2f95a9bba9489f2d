"""Schemas as they stand in a CRD: JSON that nests without end, which no schema of ours can describe.

Here it is read as a real API server reads it into its type for schemas: keywords that it does not know are dropped,
what has the wrong type is no schema at all, and what says nothing (an empty text, `nullable: false`) is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.words.faults import json_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

_TEXT, _FLAG, _WHOLE, _NUMBER, _TEXTS = "string", "bool", "int64", "float64", "[]string"
_RULES: Final = "x-kubernetes-validations"
_ONE: Final = ("items", "not", "additionalProperties", "additionalItems")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
_NAMED: Final = ("properties", "patternProperties", "definitions", "dependencies")
_OWN: Final = "x-kubernetes-"

KEYWORDS: Final = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _TEXT),
    **dict.fromkeys((f"{_OWN}list-type", f"{_OWN}map-type"), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys(
        (f"{_OWN}{each}" for each in ("preserve-unknown-fields", "embedded-resource", "int-or-string")), _FLAG
    ),
    **dict.fromkeys(("required", f"{_OWN}list-map-keys"), _TEXTS),
    "enum": "[]v1.JSON",
    "externalDocs": "v1.ExternalDocumentation",
    _RULES: "[]v1.ValidationRule",
    **dict.fromkeys(_SEVERAL, "[]v1.JSONSchemaProps"),
    **dict.fromkeys(_NAMED, "map[string]v1.JSONSchemaProps"),
}
"""Every keyword with its type, but for those of any type."""
_ANY: Final = ("default", "example", *_ONE)
_RULE: Final = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _TEXT),
    "optionalOldSelf": _FLAG,
}
_KINDS: Final = {"string": _TEXT, "bool": _FLAG, "array": "[]", "object": "map"}
_KEPT: Final = ("default", "example", "externalDocs", f"{_OWN}preserve-unknown-fields", *_ONE)
"""What says something even if it is false or empty."""


def unknown(schema: Any, path: str) -> list[str]:
    """Drop the keywords that there are not, and tell their paths."""
    if not isinstance(schema, dict):
        return []
    strange = [f"{path}.{name}" for name in schema if name not in KEYWORDS and name not in _ANY]
    for name in [name for name in schema if name not in KEYWORDS and name not in _ANY]:
        del schema[name]
    rules = schema.get(_RULES)
    for at, rule in enumerate(rules if isinstance(rules, list) else ()):
        if isinstance(rule, dict):
            strange += [f"{path}.{_RULES}[{at}].{name}" for name in rule if name not in _RULE]
            schema[_RULES][at] = {name: value for name, value in rule.items() if name in _RULE}
    for step, _, below in _within(schema):
        strange += unknown(below, f"{path}.{step}")
    return strange


def unreadable(schema: Any, path: str, holder: str = "JSONSchemaProps") -> str:
    """Leave out what says nothing. What keeps a schema from being read, in the words of a decoder; "" for nothing.

    `holder` is the type of what it is a field of.
    """
    if not isinstance(schema, dict):
        where = f"{holder}{path}"
        return f"json: cannot unmarshal {json_kind(schema)} into Go struct field {where} of type v1.JSONSchemaProps"
    _fill_nulls(schema)
    for name, wanted in KEYWORDS.items():
        if (why := _misfit(schema, name, wanted)) or (name == _RULES and (why := _rule_misfit(schema, path))):
            return why.format(f"JSONSchemaProps{path}.{name}")
    for name in [name for name, value in schema.items() if _says_nothing(name, value)]:
        del schema[name]
    for _, name, below in _within(schema):
        if isinstance(below, bool | list) and name in (*_ONE, "dependencies"):
            continue
        if why := unreadable(below, f"{path}.{name}"):
            return why
    return ""


def _fill_nulls(schema: Json) -> None:
    """In a list and in a map, null is a schema or a rule that says nothing."""
    for name in (*_SEVERAL, _RULES):
        if isinstance(schema.get(name), list):
            schema[name] = [{} if each is None else each for each in schema[name]]
    for name in _NAMED:
        if isinstance(schema.get(name), dict):
            schema[name] = {key: {} if each is None else each for key, each in schema[name].items()}


def _says_nothing(name: str, value: Any) -> bool:
    return value is None or (not value and name not in _KEPT and not _is_number(value))


def _rule_misfit(schema: Json, path: str) -> str:
    for rule in schema.get(_RULES) or ():
        if not isinstance(rule, dict):
            return f"json: cannot unmarshal {json_kind(rule)} into Go struct field {{}} of type v1.ValidationRule"
        for name, wanted in _RULE.items():
            if why := _misfit(rule, name, wanted):
                return why.replace("{}", f"ValidationRule{path}.{_RULES}.{name}")
            if rule.get(name, "x") in (None, ""):
                del rule[name]
    return ""


def _misfit(within: Json, name: str, wanted: str) -> str:
    value = within.get(name)
    if value is None or _fits(value, wanted):
        return ""
    return f"json: cannot unmarshal {json_kind(value)} into Go struct field {{}} of type {wanted}"


def _fits(value: Any, wanted: str) -> bool:
    if wanted in (_WHOLE, _NUMBER):
        return _is_number(value) and (wanted == _NUMBER or isinstance(value, int))
    if wanted == _TEXTS and isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    kind = json_kind(value)
    return kind == "object" if wanted.startswith("v1.") else wanted.startswith(_KINDS.get(kind, "?"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _within(schema: Json) -> Iterator[tuple[str, str, Any]]:
    """Every schema within one, with the step to it, and with the keyword alone, as decoders tell it."""
    for name in _ONE:
        if schema.get(name) is not None:
            yield name, name, schema[name]
    for name in _SEVERAL:
        if isinstance(schema.get(name), list):
            yield from ((f"{name}[{at}]", name, below) for at, below in enumerate(schema[name]))
    for name in _NAMED:
        if isinstance(schema.get(name), dict):
            yield from ((f"{name}.{each}", name, below) for each, below in schema[name].items())
