"""Asking the rules of a schema (`x-kubernetes-validations`) of an object.

A rule is asked of every value that its node describes, null and absent ones excepted. One that mentions `oldSelf` is
about changes: it is asked where it can be said what the value was before, and always where it does without that
(`optionalOldSelf`). One that cannot be evaluated counts as broken. What was broken before and did not change is let
pass, but not by rules about changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cidrella.apiserver.schemas import cel
from cidrella.apiserver.schemas.celaddresses import NO_OVERLOAD
from cidrella.apiserver.schemas.correlating import same_as, within
from cidrella.apiserver.schemas.rulevalues import as_cel
from cidrella.apiserver.schemas.structural import NOTHING
from cidrella.apiserver.words import faults
from cidrella.apiserver.words.statuses import Fault

if TYPE_CHECKING:
    from cidrella.apiserver.schemas.structural import Node

    Json = dict[str, Any]

_MESSAGE_MAX: Final = 5 << 10
_LABELS: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueRequired": "Required value",
    "FieldValueForbidden": "Forbidden",
}
REASONS: Final = sorted(_LABELS)
"""What a rule may give as its reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to be asked."""

    text: str
    message: str
    reason: str
    path: str
    """From the node to the field that it is about: `.values`; empty for the node itself."""
    program: cel.Program
    says: cel.Program | None
    """An expression for the message."""
    about_change: bool
    old_is_optional: bool


def broken(root: Node, obj: Json, old: Json | None) -> list[Fault]:
    """The rules that an object breaks."""
    found: list[Fault] = []
    _walk(root, obj, "", found, _Before(NOTHING if old is None else old))
    return found


class _Before(NamedTuple):
    """What a value was, and whether it is part of something that did not change."""

    value: Any
    stays: bool = False

    def within(self, node: Node, part: Any) -> _Before:
        return _Before(within(node, self.value, part), self.stays)


def _walk(node: Node, value: Any, path: str, found: list[Fault], before: _Before) -> None:
    if not node.ruled or value is None:
        return
    before = before._replace(stays=before.stays or same_as(value, before.value))
    if node.rules:
        _ask(node, value, path, found, before)
    if isinstance(value, dict):
        for name, item in value.items():
            if name in node.properties:
                inner = f"{path}.{name}" if path else name
                _walk(node.properties[name], item, inner, found, before.within(node, name))
            elif node.additional is not None:
                _walk(node.additional, item, f"{path}[{name}]", found, before.within(node, name))
    elif isinstance(value, list) and node.items is not None:
        for at, item in enumerate(value):
            _walk(node.items, item, f"{path}[{at}]", found, before.within(node, item))


def _ask(node: Node, value: Any, path: str, found: list[Fault], before: _Before) -> None:
    has_old = before.value is not NOTHING and before.value is not None
    given = _Given(node, value, before.value if has_old else None, has_old=has_old)
    for rule in node.rules:
        if rule.about_change and not has_old and not rule.old_is_optional:
            continue
        try:
            met = given.evaluate(rule.program)
        except cel.ExpressionError as error:
            found.append(_not_evaluated(node, rule, path, str(error)))
            continue
        if met is not True and (rule.about_change or not before.stays):
            found.append(_not_met(rule, path, value, _message(rule, given)))


class _Given:
    """What rules are asked of, as CEL takes it."""

    def __init__(self, node: Node, value: Any, old: Any, *, has_old: bool) -> None:
        whole: list[float] = []
        self._plain = cel.activation(as_cel(node, value, whole), as_cel(node, old, whole), has_old=has_old)
        self._strict = None
        if whole:
            now, before = (as_cel(node, each, None) for each in (value, old))
            self._strict = cel.activation(now, before, has_old=has_old)

    def evaluate(self, program: cel.Program) -> Any:
        """What it comes to. Raises `ExpressionError`, also where it needs a whole number and finds one with a point."""
        if self._strict is not None:
            try:
                program.evaluate(self._strict)
            except cel.ExpressionError as error:
                if str(error) == cel.NOT_WHOLE:
                    raise
        return program.evaluate(self._plain)


def _message(rule: Rule, given: _Given) -> str:
    if rule.says is not None:
        try:
            said = str(given.evaluate(rule.says)).strip()
        except cel.ExpressionError:
            said = ""
        if said and "\n" not in said and len(said.encode()) <= _MESSAGE_MAX:
            return said
    return rule.message or f"failed rule: {rule.text}"


def _not_met(rule: Rule, path: str, value: Any, message: str) -> Fault:
    field = f"{path}{rule.path}".removeprefix(".") or "<nil>"
    shown = "" if rule.path or isinstance(value, dict | list) else f": {faults.shown(value)}"
    told = {
        "FieldValueInvalid": f"{shown}: {message}",
        "FieldValueDuplicate": shown,
    }.get(rule.reason, f": {message}")
    return Fault(rule.reason, field, f"{_LABELS[rule.reason]}{told}")


def _not_evaluated(node: Node, rule: Rule, path: str, error: str) -> Fault:
    about = rule.message or rule.text
    if error == NO_OVERLOAD:
        unfit = "call arguments did not match a supported operator, function or macro signature"
        return faults.invalid(path or "<nil>", node.type, f"'{error}': {unfit} for rule: {about}")
    return faults.invalid(path or "<nil>", node.type, f"{error} evaluating rule: {about}")
