"""Objects in Kubernetes' form of protobuf, as far as kubectl sends them: `kubectl create namespace`, `create service`.

A message is a table of its fields, by number: a name, and what it is. The numbers are those of Kubernetes' API.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]
    Fields = dict[int, tuple[str, Any]]

MAGIC: Final = b"k8s\0"
_TEXT: Final = "text"
_NUMBER: Final = "number"
_FLAG: Final = "flag"
_MAP: Final = "map"
_TIME: Final = "time"
_PORT_OR_NAME: Final = "port or name"

_METADATA: Final[Fields] = {
    1: ("name", _TEXT),
    2: ("generateName", _TEXT),
    3: ("namespace", _TEXT),
    5: ("uid", _TEXT),
    6: ("resourceVersion", _TEXT),
    8: ("creationTimestamp", _TIME),
    11: ("labels", _MAP),
    12: ("annotations", _MAP),
    14: ("finalizers", [_TEXT]),
}
_PORT: Final[Fields] = {
    1: ("name", _TEXT),
    2: ("protocol", _TEXT),
    3: ("port", _NUMBER),
    4: ("targetPort", _PORT_OR_NAME),
    5: ("nodePort", _NUMBER),
    6: ("appProtocol", _TEXT),
}
_SERVICE: Final[Fields] = {
    1: ("ports", [_PORT]),
    2: ("selector", _MAP),
    3: ("clusterIP", _TEXT),
    4: ("type", _TEXT),
    5: ("externalIPs", [_TEXT]),
    7: ("sessionAffinity", _TEXT),
    8: ("loadBalancerIP", _TEXT),
    9: ("loadBalancerSourceRanges", [_TEXT]),
    10: ("externalName", _TEXT),
    11: ("externalTrafficPolicy", _TEXT),
    12: ("healthCheckNodePort", _NUMBER),
    13: ("publishNotReadyAddresses", _FLAG),
    17: ("ipFamilyPolicy", _TEXT),
    18: ("clusterIPs", [_TEXT]),
    19: ("ipFamilies", [_TEXT]),
    21: ("loadBalancerClass", _TEXT),
    22: ("internalTrafficPolicy", _TEXT),
}
_KINDS: Final[dict[tuple[str, str], Fields]] = {
    ("v1", "Namespace"): {1: ("metadata", _METADATA), 2: ("spec", {1: ("finalizers", [_TEXT])})},
    ("v1", "Service"): {1: ("metadata", _METADATA), 2: ("spec", _SERVICE)},
}
_ENVELOPE: Final[Fields] = {1: ("typeMeta", {1: ("apiVersion", _TEXT), 2: ("kind", _TEXT)}), 2: ("raw", "bytes")}


def read(data: bytes) -> Json | None:
    """The object in it, or None if it is of a kind that is not read here. Raises ValueError for what is no message."""
    if not data.startswith(MAGIC):
        shown = " ".join(map(str, MAGIC))
        raise ValueError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    envelope = _message(data[len(MAGIC) :], _ENVELOPE)
    said = envelope.get("typeMeta", {})
    fields = _KINDS.get((said.get("apiVersion", ""), said.get("kind", "")))
    return None if fields is None else {**said, **_message(envelope.get("raw", b""), fields)}


def _message(data: bytes, fields: Fields) -> Json:
    found: Json = {}
    for number, value in _values(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if isinstance(kind, list):
            found.setdefault(name, []).append(_value(value, kind[0]))
        elif kind == _MAP:
            pair = _message(value, {1: ("key", _TEXT), 2: ("value", _TEXT)})
            found.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        else:
            found[name] = _value(value, kind)
    return {name: value for name, value in found.items() if value not in ("", None)}


def _value(value: Any, kind: Any) -> Any:
    if isinstance(kind, dict):
        return _message(value, kind)
    match kind:
        case "text":
            return value.decode()
        case "flag":
            return bool(value)
        case "time":
            seconds = _message(value, {1: ("seconds", _NUMBER)}).get("seconds")
            return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        case "port or name":
            either = _message(value, {1: ("type", _NUMBER), 2: ("number", _NUMBER), 3: ("name", _TEXT)})
            return either.get("name", "") if either.get("type") else either.get("number", 0)
    return value


def _values(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers, and whatever has a length. Raises ValueError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("unexpected EOF")
                yield tag >> 3, data[at : at + size]
                at += size
            case wire:
                raise ValueError(f"proto: illegal wireType {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("unexpected EOF")
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return number, at
