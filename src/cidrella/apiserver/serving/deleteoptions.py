"""What a deletion is asked with: whether it is to be done at all, and what must be true of what is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cidrella.apiserver.forms.bodies import read_options
from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.reading import Form
from cidrella.apiserver.serving.options import dry_run_faults, number, refuse
from cidrella.apiserver.words.faults import invalid, not_supported, quoted
from cidrella.apiserver.words.statuses import bad_request

if TYPE_CHECKING:
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_KIND: Final = "DeleteOptions"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_FORM: Final = Form(
    shapes.item(
        _KIND,
        {
            "gracePeriodSeconds": shapes.number("", 64, nullable=True),
            "preconditions": shapes.item(
                "Preconditions", {"uid": shapes.text("", "UID"), "resourceVersion": shapes.text("")}
            ),
            "orphanDependents": shapes.flag("", nullable=True),
            "propagationPolicy": shapes.text("", "DeletionPropagation"),
            "dryRun": shapes.texts(""),
        },
    )
)


class DeleteOptions(NamedTuple):
    """Of a deletion."""

    dry_run: bool = False
    uid: str = ""
    version: str = ""
    """What the object must have, if it is to be deleted."""


def delete_options(call: Call) -> DeleteOptions:
    """What is asked of a deletion, in its body, or if there is none in the query. Raises `StatusError`."""
    asked = _sent(call) if call.body else _queried(call)
    policy = asked.get("propagationPolicy", "")
    found: list[Fault] = []
    if policy and policy not in _POLICIES:
        found.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if policy and "orphanDependents" in asked:
        why = "orphanDependents and deletionPropagation cannot be both set"
        found.append(invalid("propagationPolicy", policy, why))
    dry_run = asked.get("dryRun", [])
    refuse(_KIND, found + dry_run_faults(dry_run))
    wanted = asked.get("preconditions", {})
    return DeleteOptions(bool(dry_run), wanted.get("uid", ""), wanted.get("resourceVersion", ""))


def _queried(call: Call) -> Json:
    number(call, "gracePeriodSeconds")  # which has to be one, though nothing here takes time to end
    found: Json = {"propagationPolicy": call.option("propagationPolicy"), "dryRun": call.query.get("dryRun", [])}
    if "orphanDependents" in call.query:
        found["orphanDependents"] = True
    return found


def _sent(call: Call) -> Json:
    body = read_options(call)
    kind, version = body.get("kind") or _KIND, body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != _KIND:
        told = f"no kind {quoted(kind)} is registered for version {quoted(version)}"
        raise bad_request(f'{told} in scheme "pkg/runtime/scheme.go:111"')
    if why := _FORM.read(body):
        raise bad_request(why)
    return body
