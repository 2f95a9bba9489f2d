"""What is wrong with a field, in the words of Kubernetes: one function for each of its kinds of fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cidrella.apiserver.words.statuses import Fault
from cidrella.apiserver.words.wording import as_go, as_json, json_kind, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "as_go",
    "as_json",
    "duplicate",
    "forbidden",
    "invalid",
    "json_kind",
    "not_supported",
    "quoted",
    "required",
    "shown",
    "too_long",
]


def invalid(field: str, value: Any, why: str) -> Fault:
    """A value that does not do."""
    return Fault("FieldValueInvalid", field, f"Invalid value: {shown(value)}{_because(why)}")


def required(field: str, why: str = "") -> Fault:
    """A value that is not there."""
    return Fault("FieldValueRequired", field, f"Required value{_because(why)}")


def forbidden(field: str, why: str) -> Fault:
    """A value that may not be there."""
    return Fault("FieldValueForbidden", field, f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> Fault:
    """A value that is there twice."""
    return Fault("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def not_supported(field: str, value: Any, choices: Sequence[str]) -> Fault:
    """A value that is none of those there are."""
    listed = ", ".join(map(quoted, choices))
    why = f": supported values: {listed}" if choices else ""
    return Fault("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}{why}")


def too_long(field: str, limit: int) -> Fault:
    """More bytes than there may be."""
    return Fault("FieldValueTooLong", field, f"Too long: may not be more than {limit} byte{'' if limit == 1 else 's'}")


def _because(why: str) -> str:
    return f": {why}" if why else ""
