"""Events that Cidrella told, as the page shows them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cidrella.app.page_events import read_event

EVENT: dict[str, Any] = {
    "metadata": {"name": "a.17", "namespace": "default", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "reportingController": "cidrella.dev/controller",
    "eventTime": "2026-01-01T00:00:01.123456Z",
    "regarding": {"kind": "Node", "name": "a"},
    "reason": "CIDRNotAvailable",
    "note": "<script>alert(1)</script>",
    "type": "Warning",
    "unknown": {"fields": [1]},
}


def read(**fields: Any) -> Any:
    return read_event(msgspec.json.encode(EVENT | fields))


def test_ours() -> None:
    """O3: what happened to whom, and when, as it was written."""
    seen = read()
    assert (seen.name, seen.uid) == ("default/a.17", "u1")
    row = seen.row
    assert (row.id, row.time, row.count) == ("u1", "2026-01-01T00:00:01Z", 1)
    assert (row.type, row.reason, row.kind, row.name) == ("Warning", "CIDRNotAvailable", "Node", "a")
    assert row.note == "<script>alert(1)</script>"


def test_told_again() -> None:
    """The same event, with a count, and the last time."""
    row = read(series={"count": 7, "lastObservedTime": "2026-01-01T01:00:00.000001Z"}).row
    assert (row.id, row.count, row.time) == ("u1", 7, "2026-01-01T01:00:00Z")


@pytest.mark.parametrize("who", [None, "", "kubelet", "node-controller", "not-cidrella.dev/controller"])
def test_others(who: str | None) -> None:
    """Of these nothing is kept but that they are there."""
    seen = read(reportingController=who)
    assert (seen.name, seen.uid, seen.row) == ("default/a.17", "u1", None)


def test_little_is_there() -> None:
    """Events of other versions leave most of it out."""
    bare = {"metadata": {"name": "x"}, "reportingController": "cidrella.dev/x", "eventTime": None, "series": None}
    seen = read_event(msgspec.json.encode(bare))
    assert (seen.name, seen.row.id, seen.row.time, seen.row.note, seen.row.kind) == ("x", "x", "", "", "")  # type: ignore[union-attr]


def test_what_is_none() -> None:
    """An object that is no event is a fault of that object."""
    with pytest.raises(msgspec.ValidationError):
        read_event(b'{"metadata": {}}')
