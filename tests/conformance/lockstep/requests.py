"""A request that can be sent to either server: what only a server knows is named in it, not said.

`${version:PATH:AGE}` is the version that the object at PATH had AGE changes ago, as far as they were seen,
`${uid:PATH}` its uid, and `${continue:PATH}` the last token that a list at PATH came with.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.talking import JSON

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

_NAMED = re.compile(r"\$\{([a-z]+):([^}:]+)(?::(\d+))?\}")
_EVENTS = "/apis/events.k8s.io/v1/"


def version_of(path: str, age: int = 0) -> str:
    """The name of a version of an object."""
    return f"${{version:{path}:{age}}}"


def uid_of(path: str) -> str:
    """The name of an object's uid."""
    return f"${{uid:{path}}}"


def continue_of(path: str) -> str:
    """The name of the last token of a list."""
    return f"${{continue:{path}}}"


def key_of(path: str) -> str:
    """Under which an object is remembered: an Event is the same in both of its groups."""
    return path.replace(_EVENTS, "/api/v1/").removesuffix("/status")


@dataclass(frozen=True)
class Request:
    """What is sent. A body that is text is sent as it is."""

    verb: str
    """What it is for, in the statistics."""
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    query: dict[str, str] = field(default_factory=dict)

    def filled(self, known: Callable[[str, str, int], str]) -> Request:
        """The same with names replaced by what a server knows under them."""

        def fill(text: str) -> str:
            return _NAMED.sub(lambda found: known(found[1], found[2], int(found[3] or 0)), text)

        body = self.body
        if isinstance(body, str):
            body = fill(body)
        elif body is not None:
            body = json.loads(fill(json.dumps(body)))
        query = {key: fill(value) for key, value in self.query.items()}
        return Request(self.verb, self.method, self.path, body, self.content_type, self.accept, query)

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        told = f"{self.method} {self.path}{'?' if query else ''}{query}"
        if self.accept != JSON:
            told += f"  Accept: {self.accept}"
        if self.body is not None:
            told += f"  {self.content_type}: {self.body if isinstance(self.body, str) else json.dumps(self.body)}"
        return told
