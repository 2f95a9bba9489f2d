"""Refusals, in the words of Kubernetes: a code, a reason, and a Status object that says what is wrong with which field.

Clients act on the reason, people on the message; both are what a real API server says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cidrella.apiserver.words.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]


class Fault(NamedTuple):
    """What is wrong with one field."""

    reason: str
    """One of Kubernetes' own: FieldValueInvalid, FieldValueRequired, FieldValueForbidden, ..."""
    field: str
    """Its path, such as `spec.podCIDRs[0]`."""
    message: str
    """Without the field: `Invalid value: "x": must be ...`."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class StatusError(Exception):
    """A request that is refused."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Json:
        """The object to answer with."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {name: value for name, value in body.items() if value is not None and value != ""}


def qualified(plural: str, group: str) -> str:
    """A resource as messages name it: `nodes`, `clustercidrs.networking.x-k8s.io`."""
    return f"{plural}.{group}" if group else plural


def _details(name: str, group: str, kind: str) -> Json:
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}


def not_found(plural: str, group: str, name: str) -> StatusError:
    """There is no such object."""
    message = f"{qualified(plural, group)} {quoted(name)} not found"
    return StatusError(404, "NotFound", message, _details(name, group, plural))


def not_served() -> StatusError:
    """There is nothing at this path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, group: str, name: str) -> StatusError:
    """An object of this name is there."""
    message = f"{qualified(plural, group)} {quoted(name)} already exists"
    return StatusError(409, "AlreadyExists", message, _details(name, group, plural))


def conflict(plural: str, group: str, name: str, why: str) -> StatusError:
    """Somebody else was first."""
    message = f"Operation cannot be fulfilled on {qualified(plural, group)} {quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, _details(name, group, plural))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""Why, where a version was named that is no longer the latest."""


def invalid(kind: str, group: str, name: str, faults: Sequence[Fault]) -> StatusError:
    """The object is not as it has to be."""
    told = list(dict.fromkeys(map(str, faults)))
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in faults]
    message = f"{qualified(kind, group)} {quoted(name)} is invalid: {listed}"
    return StatusError(422, "Invalid", message, {**_details(name, group, kind), "causes": causes})


def bad_request(message: str) -> StatusError:
    """What was sent makes no sense."""
    return StatusError(400, "BadRequest", message)


def forbidden(plural: str, group: str, name: str, why: str) -> StatusError:
    """It is not allowed."""
    told = f"{qualified(plural, group)} {quoted(name)} is forbidden: {why}"
    return StatusError(403, "Forbidden", told, _details(name, group, plural))


def expired(message: str) -> StatusError:
    """A version that is no longer known (410)."""
    return StatusError(410, "Expired", message)


def internal(why: str) -> StatusError:
    """It is our fault."""
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})
