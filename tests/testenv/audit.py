"""What clients sent, from the API server's audit log: by what was asked, not by what was granted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_BEGINNING = '{"kind":"Event"'
"""Of each line."""


@dataclass(frozen=True)
class Request:
    """A request that the API server answered."""

    user: str
    verb: str
    resource: str
    subresource: str
    name: str
    code: int
    body: Any
    """What was sent, for writes."""
    received: float = 0.0
    """When, in seconds since 1970."""
    answered: float = 0.0
    revision: int | None = None
    """The version of the object that was answered, where the log's policy has answers kept."""


def requests(log: Path) -> Iterator[Request]:
    """Every request in a log, in the order in which they were answered. A last line in the making is left out.

    An API server that is killed may leave half a line; the next one writes behind it, and only its part is read.
    """
    with log.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                try:
                    yield _request(json.loads(line))
                except ValueError:
                    begun = line.rfind(_BEGINNING)
                    if begun > 0:
                        yield _request(json.loads(line[begun:]))


def writes(log: Path, user: str, resource: str = "") -> list[Request]:
    """What a user tried to write: all of it, or of one resource."""
    return [
        each
        for each in requests(log)
        if each.user == user and each.verb in WRITES and (not resource or each.resource == resource)
    ]


def assert_pod_cidrs_written_once(log: Path, user: str) -> None:
    """A user never sent another podCIDR for a node than the first, however the API server answered.

    A node deleted in between is a new one; where the writes name a uid, that tells which node is meant.
    """
    sent: dict[tuple[str, str], Any] = {}
    for each in requests(log):
        if each.resource != "nodes" or each.subresource:
            continue
        if each.verb == "delete":
            sent.pop((each.name, ""), None)
        spec = each.body.get("spec") if isinstance(each.body, dict) else None
        if each.user == user and each.verb in WRITES and isinstance(spec, dict) and "podCIDRs" in spec:
            uid = str(each.body.get("metadata", {}).get("uid", ""))
            first = sent.setdefault((each.name, uid), spec["podCIDRs"])
            assert spec["podCIDRs"] == first, f"{each.name}: {first}, then {spec['podCIDRs']}"


def _request(event: dict[str, Any]) -> Request:
    target = event.get("objectRef", {})
    name = target.get("name") or event.get("requestObject", {}).get("metadata", {}).get("name", "")
    return Request(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        name=name,
        code=event.get("responseStatus", {}).get("code", 0),
        body=event.get("requestObject"),
        received=_time(event["requestReceivedTimestamp"]),
        answered=_time(event["stageTimestamp"]),
        revision=_revision(event.get("responseObject")),
    )


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _revision(answer: Any) -> int | None:
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return int(version) if version else None
