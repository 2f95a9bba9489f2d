"""What lists and watches look like on the wire, decoded as far as every object has it in common.

Objects themselves stay raw: `msgspec.Raw` is a view of the bytes that came, which live as long as the view does.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from cidrella.kube.errors import MalformedReplyError, quote

LINE_MAX: Final = 64 * 1024 * 1024
"""The longest event, in bytes. etcd takes 1.5 MB an object, JSON may be some times that; more than this is no event."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    next_page: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct):
    """One page of a list. A reply without a version or without items is none, lest it be taken for an empty list."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None


class Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Headed(msgspec.Struct):
    metadata: _Meta


class _Status(msgspec.Struct):
    code: int | None = None
    reason: str | None = None
    message: str | None = None


class Head(NamedTuple):
    """What identifies an object; each is "" where it cannot be told."""

    name: str
    """With the namespace before it, as "namespace/name", where there is one: names are unique only within it."""
    uid: str
    version: str


class Refusal(NamedTuple):
    """Why the server ends a watch."""

    code: int
    message: str


_UNREADABLE: Final = (ValueError, RecursionError)
"""What decoding raises: for bad JSON, other types, broken UTF-8, and brackets nested ten thousand deep."""

_page = msgspec.json.Decoder(Page)
_event = msgspec.json.Decoder(Event)
_headed = msgspec.json.Decoder(_Headed)
_status = msgspec.json.Decoder(_Status)


def read_page(reply: bytes) -> Page:
    """Read a page of a list. Raises `MalformedReplyError` for what is none."""
    try:
        return _page.decode(reply)
    except _UNREADABLE as error:
        raise MalformedReplyError(f"not a list: {error}: {quote(reply)}") from error


def read_event(line: bytes) -> Event:
    """Read a line of a watch. Raises `MalformedReplyError` for what is no event."""
    try:
        return _event.decode(line)
    except _UNREADABLE as error:
        raise MalformedReplyError(f"not an event: {error}: {quote(line)}") from error


def read_head(raw: msgspec.Raw) -> Head:
    """Read what identifies an object, as far as it can be read; never raises."""
    try:
        meta = _headed.decode(raw).metadata
    except _UNREADABLE:
        return _salvage(raw)
    return Head(_full(meta.namespace, meta.name), meta.uid or "", meta.resource_version or "")


def read_refusal(raw: msgspec.Raw) -> Refusal:
    """Read the Status that an ERROR event holds, as far as it can be read; never raises."""
    try:
        status = _status.decode(raw)
    except _UNREADABLE:
        return Refusal(0, quote(bytes(raw)))
    return Refusal(status.code or 0, status.message or status.reason or "no reason given")


class LineSplitter:
    """Puts the lines of a stream together again, wherever its chunks end. O(1) a byte."""

    def __init__(self, longest: int = LINE_MAX) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their ends and without empty ones.

        Raises `MalformedReplyError` when a line gets too long to be kept.
        """
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._longest:
            raise MalformedReplyError(f"an event of more than {self._longest} bytes")
        return [line for line in whole if line and not line.isspace()]


def _salvage(raw: msgspec.Raw) -> Head:
    """Find what identifies an object whose metadata is not as it should be."""
    try:
        metadata = msgspec.json.decode(raw, type=dict[str, object]).get("metadata")
    except _UNREADABLE:
        metadata = None
    found = metadata if isinstance(metadata, dict) else {}
    namespace, name, uid, version = (
        each if isinstance(each := found.get(key), str) else ""
        for key in ("namespace", "name", "uid", "resourceVersion")
    )
    return Head(_full(namespace, name), uid, version)


def _full(namespace: str | None, name: str) -> str:
    """The name within the whole collection; "" where there is none."""
    return f"{namespace}/{name}" if namespace and name else name
