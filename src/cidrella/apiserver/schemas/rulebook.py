"""Reading the rules of a schema: each is checked, and compiled into its node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas import cel
from cidrella.apiserver.schemas.rules import REASONS, Rule
from cidrella.apiserver.schemas.structural import resolve
from cidrella.apiserver.words import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.schemas.structural import Node
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

RULES: Final = "x-kubernetes-validations"
_OLD: Final = re.compile(r"(?<![.\w])oldSelf\b")


class Rulebook:
    """Reads the rules of a schema into its nodes."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._checker: cel.Checker | None = None
        self._found: list[Fault] = []

    def read(self, path: str) -> list[Fault]:
        """Read them all, and tell what is wrong with them. Raises `MissingLibraryError`, if there is one to read."""
        self._visit(self._root, path, "")
        return self._found

    def _visit(self, node: Node, path: str, uncorrelated: str) -> bool:
        rules = [
            self._rule(node, each, f"{path}.{RULES}[{at}]", uncorrelated)
            for at, each in enumerate(node.definition.get(RULES) or ())
        ]
        node.rules = tuple(each for each in rules if each is not None)
        if node.type == "array" and not node.list_keys:
            uncorrelated = uncorrelated or path
        below = [self._visit(child, f"{path}{step}", uncorrelated) for step, child in node.children()]
        node.ruled = bool(node.rules) or any(below)
        return node.ruled

    def _rule(self, node: Node, raw: Json, path: str, uncorrelated: str) -> Rule | None:
        text, optional = raw.get("rule", "").strip(), bool(raw.get("optionalOldSelf"))
        about_change = _OLD.search(cel.LITERALS.sub("''", text)) is not None
        field = resolve(node, raw.get("fieldPath", ""))
        compiling = list(self._wrong_expressions(node, raw, path))
        wrong = [*_wrong_words(raw, path), *compiling]
        if field is None:
            wrong.append(faults.invalid(f"{path}.fieldPath", raw["fieldPath"], "must be a valid path"))
        if about_change and uncorrelated:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            wrong.append(faults.invalid(f"{path}.rule", raw["rule"], why))
        if optional and (not about_change or compiling):  # of what does not compile, nothing is known
            why = "may not be set if oldSelf is not used in rule"
            wrong.append(faults.invalid(f"{path}.optionalOldSelf", optional, why))
        self._found += wrong
        if wrong:
            return None
        says = raw.get("messageExpression")
        return Rule(
            text=text,
            message=raw.get("message", "").strip(),
            reason=raw.get("reason") or "FieldValueInvalid",
            path=field[0] if field else "",
            program=cel.Program(text, optional_old=optional),
            says=cel.Program(says, optional_old=optional) if says else None,
            about_change=about_change,
            old_is_optional=optional,
        )

    def _wrong_expressions(self, node: Node, raw: Json, path: str) -> Iterator[Fault]:
        wanted = (
            ("rule", "BOOL", "", "cel expression must evaluate to a bool"),
            ("messageExpression", "STRING", "messageExpression ", "messageExpression must evaluate to a string"),
        )
        if self._checker is None:
            self._checker = cel.Checker(self._root)
        for field, kind, what, otherwise in wanted:
            if not raw.get(field, "").strip():
                continue
            try:
                self._checker.check(raw[field], node, kind, optional_old=bool(raw.get("optionalOldSelf")))
            except cel.ExpressionError as error:
                why = f"{what}compilation failed: {error}" if str(error) else otherwise
                yield faults.invalid(f"{path}.{field}", _as_go_has_it(raw), why)


def _wrong_words(raw: Json, path: str) -> Iterator[Fault]:
    rule, message = raw.get("rule", ""), raw.get("message", "")
    if not rule.strip():
        yield faults.required(f"{path}.rule", "rule is not specified")
    if message and not message.strip():
        yield faults.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield faults.invalid(f"{path}.message", message, "must not contain line breaks")
    elif not message and "\n" in rule.strip():
        yield faults.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if "messageExpression" in raw and not raw["messageExpression"].strip():
        yield faults.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if (reason := raw.get("reason")) and reason not in REASONS:
        yield faults.not_supported(f"{path}.reason", reason, REASONS)


def _as_go_has_it(raw: Json) -> Json:
    """A rule as messages quote it."""
    return {
        "Rule": raw.get("rule", ""),
        "Message": raw.get("message", ""),
        "MessageExpression": raw.get("messageExpression", ""),
        "Reason": raw.get("reason"),
        "FieldPath": raw.get("fieldPath", ""),
        "OptionalOldSelf": raw.get("optionalOldSelf"),
    }
