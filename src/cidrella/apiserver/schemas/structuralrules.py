"""What makes a schema structural: everything has one type, and alternatives say nothing of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.structural import INT_OR_STRING
from cidrella.apiserver.words import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_MISSING: Final = ("$ref", "$schema", "id", "patternProperties", "dependencies", "definitions", "additionalItems")
_X: Final = "x-kubernetes-"
_PRESERVE: Final = f"{_X}preserve-unknown-fields"
_LIST_TYPE, _KEYS, _MAP_TYPE = f"{_X}list-type", f"{_X}list-map-keys", f"{_X}map-type"
_STATED: Final = ("type", "description", "title", "nullable", "default", "additionalProperties")
"""What only the schema itself may say, and none of its alternatives."""


def structural_faults(schema: Json, path: str) -> Iterator[Fault]:
    """What keeps the schema of a whole object from being structural."""
    if not schema.get("type"):
        yield faults.required(f"{path}.type", "must not be empty at the root")
        return
    if schema["type"] != "object":
        yield faults.invalid(f"{path}.type", schema["type"], "must be object at the root")
    yield from _node_faults(schema, path)
    yield from _head_faults(schema.get("properties") or {}, path)


def _head_faults(properties: Json, path: str) -> Iterator[Fault]:
    """What is said of the fields that every object has."""
    for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type") != kind:
            yield faults.invalid(f"{path}.properties[{name}].type", properties[name].get("type"), f"must be {kind}")
    metadata = properties.get("metadata", {})
    if metadata.get("type") == "object" and (
        not set(metadata) <= {"type", "description", "properties"}
        or not set(metadata.get("properties") or {}) <= {"name", "generateName"}
    ):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield faults.forbidden(f"{path}.properties[metadata]", why)


def _node_faults(schema: Json, path: str, *, field: bool = False) -> Iterator[Fault]:
    for name in _MISSING:
        if name in schema:
            yield faults.forbidden(f"{path}.{name}", f"{name} is not supported")
            return
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield faults.forbidden(f"{path}.uniqueItems", why)
    if schema.get(f"{_X}embedded-resource"):
        yield faults.forbidden(f"{path}.{_X}embedded-resource", "embedded resources are not known here")
    yield from _type_faults(schema, path, field=field)
    if schema.get(_PRESERVE) is False:
        yield faults.invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    yield from _list_faults(schema, path)
    yield from _map_faults(schema, path)
    yield from _alternative_faults(schema, path)
    yield from _part_faults(schema, path)


def _type_faults(schema: Json, path: str, *, field: bool) -> Iterator[Fault]:
    kind = schema.get("type")
    if kind is None:
        if not schema.get(INT_OR_STRING) and not schema.get(_PRESERVE):
            where = "specified object fields" if field else "specified array items"
            yield faults.required(f"{path}.type", f"must not be empty for {where}")
    elif kind not in _TYPES:
        yield faults.not_supported(f"{path}.type", kind, _TYPES)
    elif kind == "array" and "items" not in schema:
        yield faults.required(f"{path}.items", "must be specified")


def _part_faults(schema: Json, path: str) -> Iterator[Fault]:
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, list):
        yield faults.forbidden(f"{path}.items", "items must be a schema object and not an array")
    elif items is not None:
        yield from _node_faults(items, f"{path}.items")
    if additional is not None and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield faults.forbidden(f"{path}.additionalProperties", why)
    elif isinstance(additional, dict):
        yield from _node_faults(additional, f"{path}.additionalProperties", field=True)
    for name, below in (schema.get("properties") or {}).items():
        yield from _node_faults(below, f"{path}.properties[{name}]", field=True)


def _map_faults(schema: Json, path: str) -> Iterator[Fault]:
    kind = schema.get(_MAP_TYPE)
    if kind is not None and kind not in ("atomic", "granular"):
        yield faults.not_supported(f"{path}.{_MAP_TYPE}", kind, ["atomic", "granular"])
    elif kind is not None and schema.get("type") != "object":
        yield faults.invalid(f"{path}.type", schema.get("type"), f"must be object if {_MAP_TYPE} is specified")


def _list_faults(schema: Json, path: str) -> Iterator[Fault]:
    if (kind := schema.get(_LIST_TYPE)) is None:
        if schema.get(_KEYS):
            yield faults.required(f"{path}.{_LIST_TYPE}", f"must be map if {_KEYS} is non-empty")
        return
    items = schema.get("items")
    if kind not in ("atomic", "set", "map"):
        yield faults.not_supported(f"{path}.{_LIST_TYPE}", kind, ["atomic", "set", "map"])
    elif schema.get("type") != "array":
        yield faults.invalid(f"{path}.type", schema.get("type"), f"must be array if {_LIST_TYPE} is specified")
    elif isinstance(items, dict) and kind != "atomic":
        if items.get("nullable"):
            yield faults.forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST_TYPE} is {kind}")
        if kind == "map":
            yield from _keyed_faults(schema, items, path)
        elif _is_granular(items):
            why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
            yield faults.invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), why)


def _is_granular(items: Json) -> bool:
    return items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic"


def _keyed_faults(schema: Json, items: Json, path: str) -> Iterator[Fault]:
    keys, properties = schema.get(_KEYS) or [], items.get("properties") or {}
    if not keys:
        yield faults.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    elif items.get("type") != "object":
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield faults.invalid(f"{path}.items.type", items.get("type"), why)
    elif not set(keys) <= set(properties):
        yield faults.invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
    if len(set(keys)) < len(keys):
        yield faults.invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
    for key in set(keys) & set(properties):
        yield from _key_faults(properties[key], f"{path}.items.properties[{key}]", given=_is_given(key, items))


def _is_given(key: str, items: Json) -> bool:
    return key in (items.get("required") or ()) or "default" in items["properties"][key]


def _key_faults(schema: Json, path: str, *, given: bool) -> Iterator[Fault]:
    if not given:
        why = f"this property is in {_KEYS}, so it must have a default or be a required property"
        yield faults.required(f"{path}.default", why)
    if schema.get("nullable"):
        yield faults.forbidden(f"{path}.nullable", f"this property is in {_KEYS}, so it cannot be nullable")
    if schema.get("type") in ("object", "array"):
        why = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
        yield faults.invalid(f"{path}.type", schema["type"], why)


def _alternative_faults(schema: Json, path: str) -> Iterator[Fault]:
    for word in ("allOf", "anyOf", "oneOf"):
        for at, below in enumerate(schema.get(word) or ()):
            if not (
                schema.get(INT_OR_STRING) and word == "anyOf" and below in ({"type": "integer"}, {"type": "string"})
            ):
                yield from _value_faults(below, f"{path}.{word}[{at}]")
    if "not" in schema:
        yield from _value_faults(schema["not"], f"{path}.not")


def _value_faults(schema: Json, path: str) -> Iterator[Fault]:
    """What an alternative says that it must not."""
    for name in schema:
        if name in _STATED or name.startswith(_X):
            word = "undefined" if name in ("default", "additionalProperties") else "empty"
            yield faults.forbidden(f"{path}.{name}", f"must be {word} to be structural")
    for name, below in (schema.get("properties") or {}).items():
        yield from _value_faults(below, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        yield from _value_faults(schema["items"], f"{path}.items")
    yield from _alternative_faults(schema, path)
