"""In which form an answer is wanted, as the Accept header says it.

A client names forms in order, with qualities. The first that can be given is: an object as it is, only its metadata,
or a table for people. Protobuf is none of them, and clients that would like it name JSON as well.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.apiserver.serving.calls import JSON, YAML
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MEDIA: Final = (JSON, YAML, PROTOBUF)
TABLE: Final = "Table"
METADATA: Final = "PartialObjectMetadata"
METADATA_LIST: Final = "PartialObjectMetadataList"

_LISTED: Final = ", ".join(MEDIA)
_STREAMS: Final = f"{JSON};stream=watch, {PROTOBUF};stream=watch"


class Clause(NamedTuple):
    """One of the forms that a client named."""

    media: str
    parameters: dict[str, str]


class Form(NamedTuple):
    """The form of an answer."""

    media: str = JSON
    kind: str = ""
    """What objects become: TABLE, METADATA or METADATA_LIST; empty: they stay what they are."""


PLAIN: Final = Form()


def form_of(accept: str, resource: Resource, *, many: bool = False, watch: bool = False) -> Form:
    """What a client wants of a resource, or of many objects of it. Raises `StatusError` (406)."""
    if accept in {"", JSON, "*/*"}:
        return PLAIN
    clauses = parse_accept(accept)
    for clause in clauses:
        found = _form(clause)
        if found and not (watch and found.media == YAML):
            return found
    if not resource.custom and not any(each.media in MEDIA for each in clauses):
        listed = f"{_LISTED}, {_STREAMS}" if many else _LISTED
        raise StatusError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {listed}", {})
    listed = _STREAMS if watch else _LISTED
    raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {listed}")


def media_of(accept: str) -> str:
    """In which of JSON and YAML a refusal is told."""
    for clause in parse_accept(accept):
        if clause.media in {JSON, YAML}:
            return clause.media
    return JSON


@lru_cache(256)
def parse_accept(accept: str) -> tuple[Clause, ...]:
    """The forms in an Accept header, best first."""
    weighed: list[tuple[float, Clause]] = []
    for text in accept.split(","):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        weighed.append((quality, Clause(media, parameters)))
    return tuple(clause for _, clause in sorted(weighed, key=lambda each: -each[0]))


def _form(clause: Clause) -> Form | None:
    if clause.media == "*/*":
        return PLAIN
    if clause.media not in {JSON, YAML}:
        return None
    kind = clause.parameters.get("as", "")
    if not kind:
        return Form(clause.media)
    known = kind in {TABLE, METADATA, METADATA_LIST}
    named = (clause.parameters.get("g"), clause.parameters.get("v")) == ("meta.k8s.io", "v1")
    return Form(clause.media, kind) if known and named else None
