"""Events that Cidrella told, as the page shows them: read from the API, for another replica may have told them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field
from msgspec.json import Decoder

from cidrella.model.event import ObjectReference, events_path
from cidrella.web import api

if TYPE_CHECKING:
    import msgspec

PATH: Final = events_path("default")
"""Where those about nodes and pools are, which are in no namespace."""
OURS: Final = "cidrella.dev/"


class _Metadata(Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None


class _Series(Struct, rename="camel"):
    count: int = 1
    last_observed_time: str | None = None


class _Event(Struct, rename="camel"):
    metadata: _Metadata
    regarding: ObjectReference = field(default_factory=ObjectReference)
    reason: str | None = None
    note: str | None = None
    type: str | None = None
    reporting_controller: str | None = None
    event_time: str | None = None
    series: _Series | None = None


class SeenEvent(NamedTuple):
    """An event, of which little is kept where it is somebody else's."""

    name: str
    uid: str
    row: api.Event | None
    """None for others'."""


_EVENT: Final = Decoder(_Event)


def read_event(raw: bytes | msgspec.Raw) -> SeenEvent:
    """An event of whoever. Raises `msgspec.ValidationError`."""
    event = _EVENT.decode(raw)
    metadata = event.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    if not (event.reporting_controller or "").startswith(OURS):
        return SeenEvent(name, metadata.uid, None)
    last = event.series.last_observed_time if event.series else None
    when = last or event.event_time or metadata.creation_timestamp or ""
    row = api.Event(
        id=metadata.uid or name,
        time=_in_utc(when),
        type=event.type or "",
        reason=event.reason or "",
        kind=event.regarding.kind,
        name=event.regarding.name,
        note=event.note or "",
        count=event.series.count if event.series else 1,
    )
    return SeenEvent(name, metadata.uid, row)


def _in_utc(when: str) -> str:
    """A time as the page has it; "" for what is none.

    >>> _in_utc("2026-01-01T00:00:01.123456Z"), _in_utc("2026-01-01T01:00:00+02:00"), _in_utc("yesterday")
    ('2026-01-01T00:00:01Z', '2025-12-31T23:00:00Z', '')
    """
    try:
        moment = datetime.fromisoformat(when)
        moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
