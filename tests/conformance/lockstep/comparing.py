"""Two servers side by side: the first request that they answer differently, and the fewest that lead there."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from tests.conformance.bodies import NAMESPACES, names
from tests.conformance.lockstep.material import KINDS
from tests.conformance.lockstep.requests import key_of
from tests.conformance.lockstep.sides import NO_ANSWER, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.lockstep.requests import Request
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

_PATIENCE = 60.0
"""Seconds for finding the fewest requests."""
_ADDRESS_OBJECT = "IPAddress.networking.k8s.io"
_WATCHED = ("nodes", "pools", "configs", "leases", "services", "core-events", "events")


@dataclass
class Tally:
    """What was compared."""

    verbs: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    events: int = 0

    def add(self, other: Tally) -> None:
        """Count another's as well."""
        self.verbs += other.verbs
        self.codes += other.codes
        self.events += other.events

    def __str__(self) -> str:
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        verbs = ", ".join(f"{verb}: {count}" for verb, count in sorted(self.verbs.items()))
        return f"{self.verbs.total()} requests compared ({verbs}; {codes}) and {self.events} watch events"


class DifferentError(AssertionError):
    """The two servers do not agree."""


class Lockstep:
    """Two servers, and a namespace in both for one sequence."""

    def __init__(self, one: Talk, other: Talk, namespace: str) -> None:
        """Make the namespaces; what a sequence before left in them goes."""
        self._talks = (one, other)
        for talk in self._talks:
            for each in (namespace, f"{namespace}-services"):
                talk.create(NAMESPACES, {"metadata": {"name": each}}).granted(201)
        self._namespace = namespace
        self._workers = ThreadPoolExecutor(2 * len(_WATCHED))
        self.tally = Tally()

    def compare(self, requests: Sequence[Request]) -> None:
        """Send all to both. Raises `DifferentError`, with the fewest requests that still lead to a difference."""
        found = self._difference(requests)
        if found is None:
            return
        number, told = found
        fewest = self._fewest(requests[: number + 1])
        listed = "\n".join(map(str, fewest))
        again = self._difference(fewest)
        told = again[1] if again else f"{told}\n(and not again)"
        raise DifferentError(f"after {number} requests, of which these are enough:\n{listed}\n\n{told}")

    def _difference(self, requests: Sequence[Request]) -> tuple[int, str] | None:
        """Which request is answered differently, and how."""
        self._clean()
        sides = [Side(talk) for talk in self._talks]
        starts = [self._starts(talk) for talk in self._talks]
        for number, request in enumerate(requests):
            one, other = self._workers.map(lambda side: side.answer(request), sides)  # noqa: B023 - done at once
            if one is NO_ANSWER:
                return None  # who knows what became of it
            if not _agree(one, other):
                return number, f"{request}\n{_diff(one, other)}"
            self.tally.verbs[request.verb] += 1
            self.tally.codes[one["code"]] += 1
        for side in sides:
            if side.complaints:
                return len(requests) - 1, "\n".join(side.complaints)
        return self._different_events(requests, sides, starts)

    def _different_events(
        self, requests: Sequence[Request], sides: list[Side], starts: list[dict[str, str]]
    ) -> tuple[int, str] | None:
        """What a watch of each collection from the beginning tells of it all."""
        watches = [
            (side, path, since) for side, start in zip(sides, starts, strict=True) for path, since in start.items()
        ]
        told = list(self._workers.map(lambda watch: watch[0].events(watch[1], watch[2]), watches))
        half = len(told) // 2
        for (_, path, _), one, other in zip(watches, told[:half], told[half:], strict=False):
            normal = [side.normal(events) for side, events in zip(sides, (one, other), strict=True)]
            if normal[0] != normal[1]:
                return len(requests) - 1, f"watch {path}\n{_diff(*normal)}"
            self.tally.events += len(one)
        return None

    def _starts(self, talk: Talk) -> dict[str, str]:
        paths = [KINDS[kind].path.format(namespace=self._namespace) for kind in _WATCHED]
        return {path: talk.get(path).granted()["metadata"]["resourceVersion"] for path in paths}

    def _clean(self) -> None:
        """Leave nothing of a sequence before."""
        list(self._workers.map(self._clean_one, self._talks))

    def _clean_one(self, talk: Talk) -> None:
        for kind in KINDS.values():
            if "delete" not in kind.verbs or "delete" in kind.only_dry:
                continue
            path = kind.path.format(namespace=self._namespace)
            listed = names(talk.get(path).granted()) if "list" in kind.verbs else kind.names
            for name in listed:
                talk.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
                talk.delete(f"{path}/{name}")

    def _fewest(self, requests: Sequence[Request]) -> list[Request]:
        """Leave out what is not needed for a difference: mostly all that is about other objects."""
        kept = list(requests)
        for about in (_object, _collection):
            last = about(kept[-1])
            fewer = [each for each in kept if about(each) == last]
            found = self._difference(fewer)
            if found is not None:
                kept = fewer[: found[0] + 1]
                break
        deadline = time.monotonic() + _PATIENCE
        part = len(kept) // 2
        while part and time.monotonic() < deadline:
            kept = self._without_parts(kept, part, deadline)
            part //= 2
        return kept

    def _without_parts(self, kept: list[Request], part: int, deadline: float) -> list[Request]:
        """Leave out parts of a length, one after the other, where the difference stays."""
        position = 0
        while position < len(kept) - 1 and time.monotonic() < deadline:
            fewer = kept[:position] + kept[min(position + part, len(kept) - 1) :]
            found = self._difference(fewer)
            if found is None:
                position += part
            else:
                kept = fewer[: found[0] + 1]
        return kept


def _agree(one: Json, other: Json) -> bool:
    """Whether two answers are the same. One in terms of objects that only Kubernetes has is judged by its reason."""
    if _ADDRESS_OBJECT in str(one["body"]) and other["body"].get("reason") == "Invalid":
        return bool(one["code"] == other["code"])
    return one == other


def _object(request: Request) -> str:
    """Which one a request is about."""
    if request.verb != "create":
        return key_of(request.path)
    metadata = request.body.get("metadata") if isinstance(request.body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return key_of(f"{request.path}/{name}")


def _collection(request: Request) -> str:
    """Which kind a request is about."""
    whole = request.verb in {"create", "list", "deletecollection"}
    return key_of(f"{request.path}/").rstrip("/") if whole else key_of(request.path).rpartition("/")[0]


def _diff(one: Any, other: Any) -> str:
    old, new = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (one, other))
    return "\n".join(unified_diff(old, new, "kubernetes", "embedded", n=6, lineterm=""))
