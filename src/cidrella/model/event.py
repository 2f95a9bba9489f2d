"""The Event of events.k8s.io/v1, with the fields in use, and the limits that the API server puts on them.

The limits are in bytes, although the API server speaks of characters when it refuses.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

from cidrella.model.objects import ObjectMeta  # noqa: TC001 -- msgspec reads the annotations

API_VERSION: Final = "events.k8s.io/v1"
KIND: Final = "Event"
NOTE_MAX: Final = 1024
WORD_MAX: Final = 128
"""Of a reason, an action and the reporting instance."""
_NAME_MAX: Final = 253
_ELLIPSIS: Final = "…"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")
_BAD_DOTS: Final = re.compile(r"[-.]*\.[-.]*")


class ObjectReference(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """The object that an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSeries(Struct, rename="camel", frozen=True, kw_only=True):
    """How often an event happened, which the API takes from 2 on, and when last."""

    count: int
    last_observed_time: str


class Event(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """An event. All but the series is for ever."""

    # Made by factories, for defaults proper would be left out of the JSON.
    api_version: str = field(default_factory=lambda: API_VERSION)
    kind: str = field(default_factory=lambda: KIND)
    metadata: ObjectMeta
    event_time: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    reporting_controller: str
    reporting_instance: str
    series: EventSeries | None = None


def events_path(namespace: str) -> str:
    """The collection of a namespace's events."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/events"


def cut(text: str, size: int) -> str:
    r"""The text, or its beginning and an ellipsis, in at most so many bytes of valid UTF-8.

    >>> cut("too long", 7), cut("just so", 7), cut("ü\ud800", 7)
    ('too …', 'just so', 'ü?')
    """
    if len(text) <= size and text.isascii():
        return text
    encoded = text[: size + 1].encode("utf-8", "replace")
    if len(encoded) <= size:
        return encoded.decode()
    return encoded[: size - len(_ELLIPSIS.encode())].decode("utf-8", "ignore") + _ELLIPSIS


def event_name(about: str, suffix: str) -> str:
    """A valid name for an event about an object of that name, which need not be valid.

    >>> event_name("node-1.example", "0a1b"), event_name("Node_1..-x-", "0a1b"), event_name("/", "0a1b")
    ('node-1.example.0a1b', 'node-1.x.0a1b', 'event.0a1b')
    """
    name = _NOT_IN_NAMES.sub("-", about[:_NAME_MAX].lower())
    name = _BAD_DOTS.sub(".", name)[: _NAME_MAX - 1 - len(suffix)].strip("-.")
    return f"{name or 'event'}.{suffix}"
