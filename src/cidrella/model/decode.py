"""From plain data to objects, or to everything that is wrong with it.

Theory of operation: `msgspec` is fast, stops at the first fault and speaks of types. So it goes first; only when it
refuses is the data walked by hand, along what `msgspec.inspect` tells of the structs. The walk collects every fault, in
words for the one who wrote the file, and takes what Kubernetes takes although it is not quite of the type: a whole
number written as 8.0, and a label without a value.
"""

from __future__ import annotations

from base64 import b64decode
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import msgspec.inspect as types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T", bound=msgspec.Struct)

_QUOTED_MAX = 40
_LISTED_MAX = 12


class Problem(NamedTuple):
    """One thing that is wrong with an object, and where."""

    path: tuple[str | int, ...]
    message: str

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it.

        >>> Problem(("spec", "nodeSelectorTerms", 0, "key"), "is required").field
        'spec.nodeSelectorTerms[0].key'
        >>> Problem(("metadata", "labels", "example.com/size"), "must be text").field
        'metadata.labels["example.com/size"]'
        """
        return "".join(map(_step, self.path)).removeprefix(".")

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


def decode(raw: object, kind: type[T]) -> T | list[Problem]:
    """Read an object of this kind, or say everything that keeps it from being one. Nothing is changed in `raw`."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        walk = _Walk()
        read = walk.read(raw, _type_info(kind), ())
        return walk.problems or msgspec.convert(read, kind)


@cache
def _type_info(kind: type[msgspec.Struct]) -> types.Type:
    """What a kind holds. Kept, for finding out takes several times as long as the walk itself."""
    return types.type_info(kind)


class _Walk:
    """One pass over data that does not fit. What it returns is what was read, as far as there are no problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def read(self, value: object, info: types.Type, path: tuple[str | int, ...]) -> object:
        info = _bare(info)
        match info, value:
            case types.StructType(), dict():
                return self._struct(value, info, path)
            case types.DictType(value_type=inner), dict():
                # Of a mapping that a CRD describes the API server drops what is null, as it does with fields.
                drops = isinstance(inner, types.Metadata)
                given = {key: each for key, each in value.items() if not (drops and each is None)}
                return {key: self._entry(key, each, inner, path) for key, each in given.items()}
            case types.ListType(item_type=inner), list():
                return [self.read(each, inner, (*path, index)) for index, each in enumerate(value)]
            case types.StrType() | types.BytesType(), str() if isinstance(info, types.StrType) or _is_base64(value):
                return value
            case types.IntType(), int() | float() if _is_whole(value):
                return int(value)
        self._wrong(path, f"must be {_NAMES[type(info)]}, not {_told(value)}{_advice(value, info)}")
        return value

    def _struct(self, value: dict[object, object], info: types.StructType, path: tuple[str | int, ...]) -> object:
        known = {each.encode_name: each for each in info.fields}
        if info.forbid_unknown_fields:
            for name in value:
                if name not in known:
                    self._wrong((*path, str(name)), _unknown(str(name), known))
        for name, each in known.items():
            if each.required and value.get(name) is None:
                self._wrong((*path, name), "is required; add it")
        return {
            name: self.read(value[name], each.type, (*path, name))
            for name, each in known.items()
            if value.get(name) is not None
        }

    def _entry(self, key: object, value: object, info: types.Type, path: tuple[str | int, ...]) -> object:
        if not isinstance(key, str):
            self._wrong((*path, str(key)), f"the key must be text, not {_told(key)}; put it in quotes")
        if value is None and isinstance(info, types.StrType):
            return ""  # `node-role.kubernetes.io/worker:` in YAML, which Kubernetes reads as an empty text
        return self.read(value, info, (*path, str(key)))

    def _wrong(self, path: tuple[str | int, ...], message: str) -> None:
        self.problems.append(Problem(path, message))


_NAMES: Mapping[type[types.Type], str] = {
    types.StructType: "a mapping of fields",
    types.DictType: "a mapping of names to texts",
    types.ListType: "a list",
    types.StrType: "text",
    types.IntType: "a whole number",
    types.BytesType: "bytes in base64",
}


def _bare(info: types.Type) -> types.Type:
    """A type without its schema, and without the null that it may be: nulls are dropped before anybody looks."""
    match info:
        case types.Metadata(type=inner):
            return _bare(inner)
        case types.UnionType(types=members):
            (member,) = (each for each in members if not isinstance(each, types.NoneType))
            return _bare(member)
    return info


def _is_whole(value: float) -> bool:
    """Whether Kubernetes reads it as a whole number: 8 and 8.0, but not true."""
    return not isinstance(value, bool) and value == value // 1


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _told(value: object) -> str:
    """What a value is, in words."""
    match value:
        case None:
            told = "null"
        case bool():
            told = f"the value {str(value).lower()}"
        case int() | float():
            told = f"the number {value:g}" if isinstance(value, float) else f"the number {_shortened(str(value))}"
        case str():
            told = f"the text {_shortened(value)!r}"
        case list():
            told = "a list"
        case dict():
            told = "a mapping"
        case _:
            told = f"the {type(value).__name__} {value}"
    return told


def _shortened(text: str) -> str:
    return text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "…"


def _advice(value: object, info: types.Type) -> str:
    """What to do about a value of the wrong type, where that can be told."""
    match info, value:
        case types.StrType(), list() | dict() | None:
            return ""
        case types.StrType(), _:
            return "; put it in quotes"
        case types.IntType(), str() if value.strip().removeprefix("-").isdecimal():
            return "; remove the quotes"
        case types.ListType(), str() | int() | float():
            return f"; write it as a list: [{value}]"
        case types.ListType(), dict():
            return "; put '- ' before it"
    return ""


def _unknown(name: str, known: Iterable[str]) -> str:
    """What to say of a field that does not exist."""
    by_lower = {each.lower(): each for each in known}
    if near := get_close_matches(name.lower(), by_lower, n=1):
        return f"is no known field; did you mean {by_lower[near[0]]}?"
    return f"is no known field; the fields here are {', '.join(list(by_lower.values())[:_LISTED_MAX])}"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f'["{step}"]'
