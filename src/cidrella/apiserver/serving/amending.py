"""Patching an object, in one of three ways: a merge, a list of steps, or a merge that knows the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from cidrella.apiserver.forms.bodies import decode, media_of, repeated, unsupported
from cidrella.apiserver.forms.rendering import typed
from cidrella.apiserver.meta import metadata
from cidrella.apiserver.patches.jsonpatch import json_patch, unknown_fields
from cidrella.apiserver.patches.mergepatch import merge_patch
from cidrella.apiserver.patches.strategicpatch import strategic_patch
from cidrella.apiserver.serving import intake
from cidrella.apiserver.serving.calls import encode
from cidrella.apiserver.serving.options import IGNORE, STRICT
from cidrella.apiserver.serving.writing import STATUS, Write, modified
from cidrella.apiserver.store.store import StaleError
from cidrella.apiserver.words import gojson
from cidrella.apiserver.words.faults import as_json, json_kind, quoted
from cidrella.apiserver.words.statuses import StatusError, bad_request

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.calls import Answer, Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.intake import Mistyped
    from cidrella.apiserver.serving.paths import Target

    Json = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STEPS: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

_PARTS: Final = ("spec", "status")
"""What need not be read again where a patch leaves it alone."""
_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
_CUSTOM: Final = f"{STEPS}, {MERGE}, {APPLY}"


async def patch(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """Change an object. What is there when the patch is applied is what it is stored over."""
    resource = served.resource
    media = _media(call, resource)
    write = Write.asked(holdings, call, target, served)
    while True:
        entry = holdings.get(resource, target)
        old = served.read(entry)
        change = _Patch(write, call, media)
        try:
            new = change.applied(resource, typed(resource, old))
        except RecursionError:
            raise bad_request("exceeded max depth") from None
        intake.name_mismatch(new["metadata"], target.name)
        metadata.put_in_namespace(new["metadata"], target.namespace)
        try:
            return await write.update(entry, old, new, change.mistyped)
        except StaleError:
            if change.names_version:
                raise modified(resource, target.name) from None


def _media(call: Call, resource: Resource) -> str:
    media = media_of(call) if call.content_type else ""
    if resource.custom and media not in {STEPS, MERGE}:
        raise unsupported(_CUSTOM)
    if media not in {STEPS, MERGE, STRATEGIC}:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return media


class _Patch:
    """What was sent, to be applied to an object."""

    def __init__(self, write: Write, call: Call, media: str) -> None:
        self._holdings = write.holdings
        self._part = write.target.part
        self._media = media
        self._options = write.options
        self._warnings = call.warnings
        self._patch = _read(call.body, media)
        self._repeated = repeated(call.body, self._patch)
        self.mistyped: Mistyped | None = None
        """What the result says that it is, where that is wrong."""

    @property
    def names_version(self) -> bool:
        """Whether it is meant for one version of the object only."""
        if not isinstance(self._patch, dict):
            return b"resourceVersion" in encode(self._patch)
        found = self._patch.get("metadata")
        return isinstance(found, dict) and bool(found.get("resourceVersion"))

    def applied(self, resource: Resource, target: Json) -> Json:
        """The object that comes of it. Raises `StatusError`."""
        if self._media == STEPS:
            patched = json_patch(target, self._patch)
        elif self._media == MERGE:
            patched = merge_patch(target, self._patch)
        else:
            patched = strategic_patch(target, self._patch, resource.schema.definition)
        if not isinstance(patched, dict):
            told = f"json: cannot unmarshal {json_kind(patched)} into Go value of type map[string]interface {{}}"
            raise bad_request(told)
        kept = {} if resource.custom else self._left_alone(patched, target)
        body = encode({name: each for name, each in patched.items() if name not in kept})
        new: Json = decode(body)  # nothing in it is shared with what was there
        try:
            self._warnings += self._strangers()
            if self._media != STRATEGIC:  # where that is not looked at
                self.mistyped = intake.check_patched_type(resource, new, body, self._holdings.knows)
            self._warnings += intake.take(resource, new, self._options.validation, self._repeated, kept=kept)
        except intake.DecodingError as error:
            told = _go_map(self._patch) if self._media == STRATEGIC else _shown(resource, {**decode(body), **kept})
            raise intake.refused_patch(told, error) from None
        return new

    def _left_alone(self, patched: Json, target: Json) -> Json:
        """The parts that the patch has not touched; the one that is written to is a copy, and may be changed."""
        other = "spec" if self._part == STATUS else "status"
        found = {name: each for name, each in patched.items() if each is target.get(name) and name in _PARTS}
        return {name: each if name == other else decode(encode(each)) for name, each in found.items()}

    def _strangers(self) -> list[str]:
        """What to warn of: fields that a step has and should not. Raises DecodingError where that is an error."""
        if self._media != STEPS or self._options.validation == IGNORE:
            return []
        told = [f"json patch unknown field {quoted(each)}" for each in unknown_fields(self._patch)]
        if told and self._options.validation == STRICT:
            raise intake.DecodingError(f"strict decoding error: {', '.join(told)}")
        return told


def _read(body: bytes, media: str) -> Any:
    prefix = "" if media == STRATEGIC else "error decoding patch: "
    try:
        found = decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise bad_request(f"{prefix}{gojson.why(body)}") from None
    if media == STEPS:
        return found
    if found is not None and not isinstance(found, dict):
        told = f"json: cannot unmarshal {json_kind(found)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"{prefix}{told}")
    return found


def _shown(resource: Resource, obj: Json) -> str:
    """An object that cannot be read, in the order in which the real server has it: by name, if it is a custom one."""
    if resource.custom:
        return as_json(decode(_sorted(obj)))
    order = ("apiVersion", "kind", "metadata", "spec", "status")
    return as_json({**{name: obj[name] for name in order if name in obj}, **obj})


def _go_map(value: Any) -> str:
    """A value as Go prints it (`%v`)."""
    match value:
        case dict():
            return f"map[{' '.join(f'{name}:{_go_map(value[name])}' for name in sorted(value))}]"
        case list():
            return f"[{' '.join(map(_go_map, value))}]"
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case _:
            return str(value)
