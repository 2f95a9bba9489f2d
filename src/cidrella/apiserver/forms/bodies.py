"""Reading what a client sent: JSON, or YAML, that is an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import yaml

from cidrella.apiserver.forms import protobuf
from cidrella.apiserver.forms.negotiation import MEDIA, PROTOBUF
from cidrella.apiserver.serving.calls import JSON, YAML, encode
from cidrella.apiserver.words import gojson
from cidrella.apiserver.words.faults import json_kind
from cidrella.apiserver.words.statuses import StatusError, bad_request

if TYPE_CHECKING:
    from cidrella.apiserver.serving.calls import Call

    Json = dict[str, Any]

BODY_MAX: Final = 3 * 1024 * 1024
"""Bytes: what the real server takes."""
_SHOWN: Final = 30
"""Bytes of a body that a message shows."""
_HEADER: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)

decode: Final = msgspec.json.Decoder().decode


class _Loader(yaml.CSafeLoader):
    """YAML as JSON: what looks like a time is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class UnreadableError(ValueError):
    """What was sent is neither JSON nor YAML, or no object; in words."""


class Sent(NamedTuple):
    """An object as it was sent."""

    obj: Json
    repeated: list[str]
    """The paths of fields that are there more than once; the last of each counts."""


def unsupported(accepted: str) -> StatusError:
    """A form that is not understood."""
    told = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", told)


def too_large() -> StatusError:
    """More than there is room for."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_MAX}")


def media_of(call: Call) -> str:
    """The form of a body, without its parameters; JSON where nothing is said."""
    return call.content_type.partition(";")[0].strip() or JSON


def read_object(call: Call, kind: str) -> Sent:
    """The object in a body, which should be one of this kind. Raises `StatusError`."""
    media = media_of(call)
    try:
        if media == PROTOBUF and (sent := _from_protobuf(call.body)) is not None:
            return Sent(sent, [])
        if media in {JSON, YAML}:
            return _read(call.body, media)
    except UnreadableError as error:
        told = f"the object provided is unrecognized (must be of type {kind}): {error} ({summary(call.body)})"
        raise bad_request(told) from None
    raise unsupported(", ".join(MEDIA))


def read_options(call: Call) -> Json:
    """The options of a deletion in its body. Raises `StatusError`."""
    media = media_of(call)
    if media not in {JSON, YAML}:
        raise unsupported(", ".join(MEDIA))
    try:
        return _read(call.body, media).obj
    except UnreadableError as error:
        raise bad_request(str(error)) from None


def summary(data: bytes) -> str:
    """The beginning of a body, as messages show it."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    data = data[:_SHOWN]
    return (data.decode(errors="replace") if data.startswith(b"{") else data.hex()) + more


def _read(data: bytes, media: str) -> Sent:
    if media == YAML:
        data = _from_yaml(data)
    try:
        obj = decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UnreadableError(f"couldn't get version/kind; json parse error: {gojson.why(data)}") from None
    if obj is None:
        obj = {}
    if not isinstance(obj, dict):
        told = f"json: cannot unmarshal {json_kind(obj)} into Go value of type {_HEADER}"
        raise UnreadableError(f"couldn't get version/kind; json parse error: {told}")
    for name, value in obj.items():
        if name in {"apiVersion", "kind"} and not isinstance(value, str | None):
            told = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{name} of type string"
            raise UnreadableError(f"couldn't get version/kind; json parse error: {told}")
    return Sent(obj, repeated(data, obj))


def repeated(data: bytes, obj: Any) -> list[str]:
    """Which fields are there more than once. What is as long as it is without repetition has none."""
    return [] if len(encode(obj)) == len(data) else gojson.repeated_fields(data)


def _from_protobuf(data: bytes) -> Json | None:
    try:
        return protobuf.read(data)
    except ValueError as error:
        raise UnreadableError(str(error)) from None


def _from_yaml(data: bytes) -> bytes:
    try:
        # A few hundred bytes of aliases can stand for any number of gigabytes.
        aliased = any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(data, _Loader))
        loaded = None if aliased else encode(yaml.load(data, _Loader))  # noqa: S506 -- a safe loader
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableError(f"yaml: {' '.join(str(error).split())}") from None
    if loaded is None:
        raise UnreadableError("yaml: aliases are not supported")
    return loaded
