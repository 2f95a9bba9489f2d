"""What becomes of JSON in the types that a real API server keeps objects of built-in kinds in.

What does not fit is told in the words of its decoder. What does comes out in the one form that such an object has:
times are in UTC, nothing is null that could be left out, and empty fields are there or not, as their type has it.

Every write of every object goes through here, so it is made for speed: what depends on the schema alone is decided
once, and where a value stands is only found out when it is wrong.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.quantities import canonical
from cidrella.apiserver.words.times import LAYOUT, format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]
    Reader = Callable[[Any], Any]

_MICRO_LAYOUT: Final = LAYOUT.replace("05Z", "05.000000Z")
_MICRO: Final = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)")
_REMEMBERED: Final = 4096
"""How many times and amounts are remembered: objects of a kind have the same few of them."""


class UnreadableError(ValueError):
    """Something that does not fit, in the words of the decoder."""


class _MismatchError(Exception):
    """A value of the wrong type. On the way out it learns where it stands."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(found, wanted)
        self._found = found
        self._wanted = wanted
        self._type = ""
        self._path = ""

    def passed(self, type_name: str, name: str) -> None:
        """It stands in the field of this name, of this type."""
        self._type = self._type or type_name
        self._path = f".{name}{self._path}"

    def __str__(self) -> str:
        where = f"Go struct field {self._type}{self._path}"
        return f"json: cannot unmarshal {self._found} into {where} of type {self._wanted}"


def _wrong(value: Any, wanted: str, literal: str = "") -> _MismatchError:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return _MismatchError(names[type(value)] + literal, wanted)


class Form:
    """The form of a kind, as its schema has it (see `shapes`)."""

    def __init__(self, definition: Json) -> None:
        self._read = _record(definition)

    def read(self, obj: Json) -> str:
        """Bring an object into its form, in place. What keeps it from being read, "" if nothing does."""
        try:
            read = self._read(obj)
        except (_MismatchError, UnreadableError) as error:
            return str(error)
        obj.clear()
        obj.update(read)
        return ""


def _reader(schema: Json) -> Reader:
    if schema.get("title") == "Quantity":
        return _quantity
    if schema.get("x-kubernetes-int-or-string"):
        return _port_or_name
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return _as_it_is
    if schema.get("format") == "date-time":
        return _micro_time if schema["title"] == "MicroTime" else _time
    if "properties" in schema:
        return _record(schema)
    makers: dict[str, Callable[[Json], Reader]] = {
        "string": lambda given: _plain(str, _type_name(given)),
        "integer": _number,
        "boolean": lambda _: _plain(bool, "bool"),
        "array": _list,
        "object": _map,
    }
    return makers[schema["type"]](schema)


def _type_name(schema: Json) -> str:
    """As the decoder names a type."""
    if schema.get("format") == "date-time":
        return "string"
    if "title" in schema:
        return f"{'types' if schema['title'] == 'UID' else 'v1'}.{schema['title']}"
    if schema["type"] == "array":
        return f"[]{_type_name(schema['items'])}"
    if schema["type"] == "object":
        return f"map[string]{_type_name(schema['additionalProperties'])}"
    names = {"integer": str(schema.get("format")), "boolean": "bool", "string": "string"}
    return names[schema["type"]]


def _as_it_is(value: Any) -> Any:
    """What is read elsewhere (metadata), or not looked into."""
    return value


def _plain(wanted: type, name: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise _wrong(value, name)
        return value

    return read


def _number(schema: Json) -> Reader:
    name = _type_name(schema)
    bound = 1 << (int(name.removeprefix("int")) - 1)

    def read(value: Any) -> Any:
        if type(value) is int and -bound <= value < bound:
            return value
        raise _wrong(value, name, f" {value}" if type(value) in {int, float} else "")

    return read


_int32: Final = _number({"type": "integer", "format": "int32"})


def _port_or_name(value: Any) -> Any:
    return value if isinstance(value, str) else _int32(value)


_canonical: Final = lru_cache(_REMEMBERED)(canonical)


def _quantity(value: Any) -> Any:
    try:
        return _canonical(value if isinstance(value, str) else str(value))
    except ValueError as error:
        raise UnreadableError(str(error)) from None


def _list(schema: Json) -> Reader:
    name = _type_name(schema)
    reader = _reader(schema["items"])
    empty = _empty(schema["items"])
    plain = _plain_type(schema["items"])

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong(value, name)
        if plain and all(type(each) is plain for each in value):
            return value
        return [reader(empty if each is None else each) for each in value]

    return read


def _map(schema: Json) -> Reader:
    name = _type_name(schema)
    reader = _reader(schema["additionalProperties"])
    empty = _empty(schema["additionalProperties"])

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, name)
        return {key: reader(empty if each is None else each) for key, each in value.items()}

    return read


def _empty(schema: Json) -> Any:
    """What stands in the place of a null in a list or a map."""
    if schema.get("title") == "Quantity":
        return "0"
    return {"string": "", "integer": 0, "boolean": False, "array": [], "object": {}}[schema["type"]]


def _record(schema: Json) -> Reader:
    title, name = schema["title"], _type_name(schema)
    fields = {key: _field(key, field) for key, field in schema["properties"].items()}
    always = [(key, fields[key][1], each["default"]) for key, each in schema["properties"].items() if "default" in each]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, name)
        found = {}
        for key, each in value.items():
            if each is None or key not in fields:
                continue
            plain, reader, kept = fields[key]
            if type(each) is plain:
                result = each
            else:
                try:
                    result = reader(each)
                except _MismatchError as error:
                    error.passed(title, key)
                    raise
            if kept or result:
                found[key] = result
        for key, reader, default in always:
            if key not in found:
                found[key] = None if default is None else reader(default)
        return found

    return read


def _field(key: str, schema: Json) -> tuple[type | None, Reader, bool]:
    """The type that needs no reading, the reader for any other, and whether the field stays where it is empty."""
    reader = _as_it_is if key == "metadata" else _reader(schema)
    kept = any(mark in schema for mark in ("default", "properties", "nullable", "x-kubernetes-int-or-string"))
    return _plain_type(schema), reader, kept


def _plain_type(schema: Json) -> type | None:
    if schema.get("type") == "boolean":
        return bool
    special = "format" in schema or schema.get("title") == "Quantity"
    return str if schema.get("type") == "string" and not special else None


@lru_cache(_REMEMBERED)
def _whole_seconds(text: str) -> str:
    return format_time(parse_time(text))


def _time(value: Any) -> Any:
    if type(value) is not str:
        raise _wrong(value, "string")
    try:
        return _whole_seconds(value)
    except ValueError as error:
        raise UnreadableError(str(error)) from None


def _micro_time(value: Any) -> Any:
    if type(value) is not str:
        raise _wrong(value, "string")
    try:
        moment = parse_time(value)
    except ValueError as error:
        raise UnreadableError(str(error).replace(LAYOUT, _MICRO_LAYOUT)) from None
    if not _MICRO.fullmatch(value, 19):
        raise UnreadableError(f'parsing time "{value}" as "{_MICRO_LAYOUT}": cannot parse "{value[19:]}" as ".000000"')
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
