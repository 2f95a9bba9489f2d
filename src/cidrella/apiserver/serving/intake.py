"""Making an object of a kind out of what a client sent: it says so, has known fields only, types, and defaults.

What cannot be read is refused, with POST and PUT as a request that makes no sense (400), with PATCH as a patch that is
invalid (422), since there it is the result that cannot be read. The words after that are the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from cidrella.apiserver.forms.bodies import summary
from cidrella.apiserver.meta import objectmeta
from cidrella.apiserver.meta.metadata import drop_repeated_owners
from cidrella.apiserver.serving.options import IGNORE, STRICT
from cidrella.apiserver.words.faults import invalid as invalid_value
from cidrella.apiserver.words.faults import json_kind, quoted
from cidrella.apiserver.words.statuses import StatusError, bad_request, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_FIRST: Final = re.compile(r"[.\[]")
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'


class DecodingError(ValueError):
    """An object cannot be read; why, in words that follow those of the refusal."""


class Mistyped(NamedTuple):
    """What a custom resource says that it is, and is not. That is told after all that refuses it otherwise."""

    kind: str
    group: str
    fault: Fault

    def refused(self, name: str, faults: Sequence[Fault] = ()) -> StatusError:
        """The refusal of the object, with all that is wrong, if that is more."""
        return invalid(self.kind, self.group, name, faults or [self.fault])


def refused_body(resource: Resource, why: DecodingError, sent: Json) -> StatusError:
    """The refusal of a body that cannot be read as an object of the kind."""
    kind = sent.get("kind") or resource.kind
    version = str(sent.get("apiVersion", resource.group_version) or "").rpartition("/")[2]
    return bad_request(f"{kind} in version {quoted(version)} cannot be handled as a {resource.kind}: {why}")


def refused_patch(shown: str, why: object) -> StatusError:
    """The refusal of a patch whose result cannot be read; `shown` is that result, or the patch."""
    return invalid("", "", "", [invalid_value("patch", shown, str(why))])


def take(
    resource: Resource, obj: Json, validation: str, repeated: Sequence[str] = (), *, kept: Json | None = None
) -> list[str]:
    """Bring an object into the form of its kind, in place, without kind and apiVersion; returns what to warn of.

    `kept` are parts of what is stored that a patch has left alone, and that are in that form already. Raises
    `DecodingError`.
    """
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    order = {} if resource.custom else {name: at for at, name in enumerate(obj)}
    unknown = resource.schema.prune(obj)
    try:
        metadata, strange = objectmeta.read(obj.pop("metadata", None), kind="" if resource.custom else resource.kind)
    except objectmeta.DecodeError as error:
        raise DecodingError(str(error)) from None
    if why := resource.strategy.read(obj):
        raise DecodingError(why)
    if resource.custom:
        resource.schema.default(obj)
    rest = {**obj, **(kept or {}), "metadata": metadata}
    obj.clear()
    obj["metadata"] = metadata  # in front, as everybody writes it
    obj.update(rest)
    owners = drop_repeated_owners(metadata, patched=kept is not None)
    if validation == IGNORE:
        return owners
    told = [
        *(f"duplicate field {quoted(each)}" for each in repeated),
        *(f"unknown field {quoted(each)}" for each in _ordered((*strange, *unknown), order)),
    ]
    if told and validation == STRICT:
        raise DecodingError(f"strict decoding error: {', '.join(told)}")
    return [*told, *owners]


def _ordered(unknown: Iterable[str], order: Mapping[str, int]) -> list[str]:
    """Paths of fields as the real server lists them: of built-in kinds as they were sent, of others by name."""
    return sorted(unknown, key=lambda path: (order.get(_FIRST.split(path, 1)[0], 0), path))


def check_type(resource: Resource, sent: Json, body: bytes, known: Callable[[str, str], bool]) -> Mistyped | None:
    """Refuse what says that it is something else. `known`: whether there is a built-in kind of a version.

    Raises `StatusError`, or `DecodingError` for what has to be told as one.
    """
    kind, version = sent.get("kind"), sent.get("apiVersion")
    if resource.custom:
        return _check_custom(resource, sent, body)
    if kind not in {None, "", resource.kind} or version not in {None, "", resource.group_version}:
        _refuse_type(resource, str(kind or resource.kind), str(version or resource.group_version), known)
    return None


def check_patched_type(
    resource: Resource, patched: Json, body: bytes, known: Callable[[str, str], bool]
) -> Mistyped | None:
    """Likewise of the result of a patch. A built-in may lose its kind, and nothing is known of it without a version."""
    kind, version = patched.get("kind"), patched.get("apiVersion")
    for name, value in (("kind", kind), ("apiVersion", version)):
        if not isinstance(value, str | None):
            told = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{name} of type string"
            raise DecodingError(f"couldn't get version/kind; json parse error: {told}")
    if resource.custom:
        return _check_patched_custom(resource, patched, body)
    if not version:
        patched.get("metadata", {}).pop("name", None)
    elif (kind or resource.kind, version) != (resource.kind, resource.group_version):
        _refuse_type(resource, str(kind or resource.kind), version, known)
    return None


def _check_patched_custom(resource: Resource, patched: Json, body: bytes) -> Mistyped | None:
    kind, version = patched.get("kind"), patched.get("apiVersion")
    if not kind:
        raise DecodingError(f"Object 'Kind' is missing in '{body.decode(errors='replace')}'")
    if kind == resource.kind and version == resource.group_version:
        return None
    field, said, is_ = ("kind", kind, resource.kind)
    if kind == resource.kind:
        field, said, is_ = ("apiVersion", version, resource.group_version)
    return Mistyped(kind, str(version).rpartition("/")[0], invalid_value(field, said, f"must be {is_}"))


def _check_custom(resource: Resource, sent: Json, body: bytes) -> Mistyped | None:
    kind, version = sent.get("kind"), sent.get("apiVersion")
    if not kind or not isinstance(kind, str):
        why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
        told = f"the object provided is unrecognized (must be of type {resource.kind}): {why} ({summary(body)})"
        raise bad_request(told)
    if version is None and "apiVersion" in sent:
        raise DecodingError(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
    if version != resource.group_version:
        told = f"the API version in the data ({version or ''}) does not match the expected API version"
        raise bad_request(f"{told} ({resource.group_version})")
    if kind != resource.kind:
        return Mistyped(kind, resource.group, invalid_value("kind", kind, f"must be {resource.kind}"))
    return None


def _refuse_type(resource: Resource, kind: str, version: str, known: Callable[[str, str], bool]) -> NoReturn:
    if known(version, kind):
        group = resource.group.partition(".")[0] or "core"
        there = version.rpartition("/")[2]
        raise DecodingError(f"converting ({there}.{kind}) to ({group}.{resource.kind}): unknown conversion")
    raise DecodingError(f"no kind {quoted(kind)} is registered for version {quoted(version)} {_SCHEME}")


def name_mismatch(metadata: Json, name: str) -> None:
    """Refuse an object that has another name than the path it was sent to. Raises `StatusError`."""
    found = metadata.get("name", "")
    if not found:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if found != name:
        raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
