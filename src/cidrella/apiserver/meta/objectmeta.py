"""Reading `metadata` as it was sent: every field has its type, and what is not of it is refused in the decoder's words.

The real server decodes metadata into a Go struct, also that of custom resources, whose other fields are checked against
a schema. So a label that is a number is not a field that is wrong (422), but a request that makes no sense (400), and
the message names the Go type that was expected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cidrella.apiserver.words.times import format_time, parse_time
from cidrella.apiserver.words.wording import json_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]

_STRING: Final = "string"
_UID: Final = "types.UID"
_INTEGER: Final = "int64"
_FLAG: Final = "bool"
_TIME: Final = "v1.Time"
_MAP: Final = "map[string]string"


class _Struct(NamedTuple):
    name: str
    fields: Mapping[str, Any]
    """In the order in which the real server writes them."""
    always: tuple[str, ...] = ()
    """Which of them, all texts, are there even when empty."""


class _List(NamedTuple):
    item: Any


_OWNER: Final = _Struct(
    "OwnerReference",
    {
        "apiVersion": _STRING,
        "kind": _STRING,
        "name": _STRING,
        "uid": _UID,
        "controller": _FLAG,
        "blockOwnerDeletion": _FLAG,
    },
    ("apiVersion", "kind", "name", "uid"),
)
_METADATA: Final = _Struct(
    "ObjectMeta",
    {
        "name": _STRING,
        "generateName": _STRING,
        "namespace": _STRING,
        "selfLink": _STRING,
        "uid": _UID,
        "resourceVersion": _STRING,
        "generation": _INTEGER,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _INTEGER,
        "labels": _MAP,
        "annotations": _MAP,
        "ownerReferences": _List(_OWNER),
        "finalizers": _List(_STRING),
        "managedFields": _List(_Struct("ManagedFieldsEntry", {})),
    },
)
_NOT_KEPT: Final = ("selfLink", "managedFields")
_KEPT_AT_ZERO: Final = ("deletionGracePeriodSeconds", "controller", "blockOwnerDeletion")
_INT64: Final = range(-(1 << 63), 1 << 63)


class DecodeError(ValueError):
    """What was sent is not of the type it has to be. Its text is what the real server's decoder says."""


def read(metadata: Any, *, kind: str = "") -> tuple[Json, list[str]]:
    """Metadata with every field of its type and without those that say nothing, and the paths of unknown fields.

    `kind` is that of a built-in, and empty for a custom resource: messages name fields otherwise. What no client sets
    (`managedFields`, `selfLink`) is left out. Raises `DecodeError`.
    """
    if metadata is None:
        return {}, []
    reader = _Reader(custom=not kind)
    found = reader.read(metadata, _METADATA, _Place(kind, "metadata" if kind else "", "metadata"))
    if reader.refusals:
        raise reader.refusals[0]
    return {name: value for name, value in found.items() if name not in _NOT_KEPT}, reader.unknown


class _Place(NamedTuple):
    """Where a value stands, as messages say it."""

    struct: str
    """Around it."""
    field: str
    """From the root, without the numbers of items."""
    path: str
    """From the root, with them."""

    def refusal(self, what: str, wanted: str) -> DecodeError:
        where = f"struct field {self.struct}.{self.field}" if self.field else "value"
        return DecodeError(f"json: cannot unmarshal {what} into Go {where} of type {wanted}")


@dataclass(slots=True)
class _Reader:
    custom: bool
    unknown: list[str] = field(default_factory=list)
    refusals: list[DecodeError] = field(default_factory=list)
    """Of values that are of another type. A time that cannot be read is refused at once, and comes before these."""

    def read(self, value: Any, wanted: Any, place: _Place) -> Any:
        match wanted:
            case _Struct():
                return self._struct(self._of(dict, value, wanted, place), wanted, place)
            case _List(item):
                return [
                    self.read(_or_empty(each, item), item, place._replace(path=f"{place.path}[{index}]"))
                    for index, each in enumerate(self._of(list, value, wanted, place))
                ]
            case "map[string]string":
                texts = self._of(dict, value, wanted, place)
                return {key: self.read(_or_empty(text, _STRING), _STRING, place) for key, text in texts.items()}
            case "v1.Time":
                return _time(value, place)
            case "int64":
                return self._integer(value, place)
            case _:
                return self._of(bool if wanted == _FLAG else str, value, wanted, place)

    def _struct(self, value: Json, wanted: _Struct, place: _Place) -> Json:
        found: Json = dict.fromkeys(wanted.always, "")
        # Custom resources are read into a map first, and from there with their fields in order.
        for name in sorted(value) if self.custom else value:
            if name not in wanted.fields:
                if wanted.fields:
                    self.unknown.append(f"{place.path}.{name}")
            elif value[name] is not None:
                inner = f"{place.field}.{name}" if place.field else name
                there = _Place(wanted.name, inner, f"{place.path}.{name}")
                found[name] = self.read(value[name], wanted.fields[name], there)
        kept = (*wanted.always, *_KEPT_AT_ZERO)
        return {name: found[name] for name in wanted.fields if name in found and (found[name] or name in kept)}

    def _integer(self, value: Any, place: _Place) -> Any:
        if self.custom and isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, float) or (type(value) is int and value not in _INT64):
            self.refusals.append(place.refusal(f"number {value}", _INTEGER))
        elif type(value) is not int:
            self.refusals.append(place.refusal(json_kind(value), _INTEGER))
        return value

    def _of(self, kind: type, value: Any, wanted: Any, place: _Place) -> Any:
        if isinstance(value, kind):
            return value
        self.refusals.append(place.refusal(json_kind(value), _type_name(wanted)))
        return kind()


def _or_empty(value: Any, wanted: Any) -> Any:
    """An item of a list or map: null is the zero of its type there."""
    if value is not None:
        return value
    return {} if isinstance(wanted, _Struct) else ""


def _time(value: Any, place: _Place) -> str:
    if not isinstance(value, str):
        raise place.refusal(json_kind(value), _STRING)
    try:
        return format_time(parse_time(value))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _type_name(wanted: Any) -> str:
    match wanted:
        case _Struct(name):
            return f"v1.{name}"
        case _List(item):
            return f"[]{_type_name(item)}"
        case _:
            return str(wanted)
