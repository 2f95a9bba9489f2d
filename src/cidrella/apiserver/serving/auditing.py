"""A record of each request, in the form of Kubernetes' audit log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec

from cidrella.apiserver.forms.bodies import decode

if TYPE_CHECKING:
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.serving.users import User

    Json = dict[str, Any]

_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def record(call: Call, uri: str, target: Target | None, user: User, code: int) -> Json:
    """What is told of a request that was answered."""
    verb = _verb(call, target)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    found: Json = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request" if call.body else "Metadata",
        "auditID": str(uuid4()),
        "stage": "ResponseComplete",
        "requestURI": uri,
        "verb": verb,
        "user": {"username": user.name, "uid": user.uid, "groups": list(user.groups)},
        "userAgent": call.agent,
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": now,
        "stageTimestamp": now,
    }
    if target is not None:
        found["objectRef"] = _reference(target)
    if call.body:
        found["requestObject"] = _sent(call.body)
    return found


def _verb(call: Call, target: Target | None) -> str:
    verb = _VERBS.get(call.method, call.method.lower())
    if target is None or target.name:
        return verb
    if verb == "get":
        return "watch" if call.option("watch") not in {"", "false", "0"} else "list"
    return "deletecollection" if verb == "delete" else verb


def _reference(target: Target) -> Json:
    found = {
        "resource": target.plural,
        "namespace": target.namespace,
        "name": target.name,
        "apiGroup": target.group,
        "apiVersion": target.version,
        "subresource": target.part,
    }
    return {name: value for name, value in found.items() if value}


def _sent(body: bytes) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
