"""A request and its answer, without the way they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]

JSON: Final = "application/json"
YAML: Final = "application/yaml"

encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Call:
    """A request."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    accept: str = ""
    content_type: str = ""
    body: bytes = b""
    agent: str = ""
    warnings: list[str] = field(default_factory=list)
    """What to tell the client beside the answer, also where that is a refusal."""

    def option(self, name: str) -> str:
        """What the query says of something, or nothing."""
        found = self.query.get(name)
        return found[0] if found else ""


def parse_query(text: str) -> dict[str, list[str]]:
    """A query; a name that stands there without a value has an empty one."""
    return parse_qs(text, keep_blank_values=True) if text else {}


@dataclass(slots=True)
class Answer:
    """What to answer."""

    code: int
    body: bytes
    media: str = JSON


def write(obj: Json, media: str) -> bytes:
    """An object in the form that was asked for."""
    if media == YAML:
        return yaml.safe_dump(obj, allow_unicode=True).encode()
    return encode(obj)
