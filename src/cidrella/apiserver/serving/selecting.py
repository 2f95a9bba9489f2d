"""Selectors of lists and watches, by label and by field. What cannot be read is refused in the real server's words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.words.faults import invalid
from cidrella.apiserver.words.naming import key_faults, value_faults
from cidrella.apiserver.words.statuses import bad_request
from cidrella.apiserver.words.wording import quoted
from cidrella.core.selector import Operator, Requirement, parse_int64

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.words.statuses import Fault, StatusError

    Json = dict[str, Any]

_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_OPERATORS: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    ">": Operator.GT,
    "<": Operator.LT,
}
_END: Final = ""


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that labels must meet together."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels do."""
        return all(each.met_by(labels) for each in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """That a field has a value, or has another one."""

    field: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that an object's fields must meet together."""

    terms: tuple[FieldTerm, ...] = ()

    def only(self, field: str) -> str | None:
        """The value that a field must have, where there is one: `metadata.name` leads to an object by itself."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)

    def of(self, resource: Resource) -> Callable[[Json], bool]:
        """Whether an object of a resource matches, as a function. Raises `StatusError` for a field it has not."""
        readers = [(_field_reader(resource, term.field), term) for term in self.terms]
        return lambda obj: all((read(obj) == term.value) is term.equal for read, term in readers)


def parse_label_selector(text: str) -> LabelSelector:
    """Read `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Raises `StatusError`."""
    return LabelSelector(tuple(_Labels(text).parse()))


def parse_field_selector(text: str) -> FieldSelector:
    r"""Read `metadata.name=a,spec.x!=b`; in values `\`, `,` and `=` have a `\` before them. Raises `StatusError`."""
    terms = [_field_term(text, part) for part in sorted(_split_terms(text)) if part]
    return FieldSelector(tuple(term for term in terms if term.field or term.value))


class _Labels:
    """The text of a label selector, read token by token. The one after the last is empty."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), _END]
        self._next = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() in _SYMBOLS - {"!"}:
            raise bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while self._peek() != _END:
            found.append(self._requirement())
            after = self._take()
            if after not in (",", _END):
                raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
            if after == "," and not (self._is_word() or self._peek() == "!"):
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
            if after == _END:
                break
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        if not self._is_word():
            raise _unparsed(f"found '{self._peek()}', expected: identifier")
        key = self._take()
        if faults := key_faults(key):
            raise _unparsed(str(invalid("<nil>", key, "; ".join(faults))))
        if absent:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        if self._peek() in (",", _END):
            return Requirement(key, Operator.EXISTS)
        name = self._take()
        operator = _OPERATORS.get(name)
        if operator is None:
            raise _unparsed(f"found '{name}', expected: in, notin, =, ==, !=, gt, lt")
        values = sorted(self._values() if name in ("in", "notin") else {self._value()})
        if wrong := _value_faults(key, operator, values):
            told = ", ".join(map(str, wrong))
            raise _unparsed(told if len(wrong) == 1 else f"[{told}]")
        return Requirement(key, operator, tuple(values))

    def _value(self) -> str:
        if self._peek() in (",", _END):
            return ""
        if not self._is_word():
            raise _unparsed(f"found '{self._peek()}', expected: identifier")
        return self._take()

    def _values(self) -> set[str]:
        """Those in parentheses. Between two commas, and between a comma and a parenthesis, there is an empty one."""
        if self._peek() != "(":
            raise _unparsed(f"found '{self._peek()}' expected: '('")
        self._take()
        if not (self._is_word() or self._peek() in (",", ")")):
            raise _unparsed(f"found '{self._peek()}', expected: ',', ')' or identifier")
        found: set[str] = set()
        while True:
            found.add(self._take() if self._is_word() else "")
            if self._peek() == ")":
                self._take()
                return found
            if self._peek() != ",":
                raise _unparsed(f"found '{self._peek()}', expected: ',' or ')'")
            self._take()
            if not (self._is_word() or self._peek() in (",", ")")):
                raise _unparsed(f"found '{self._peek()}', expected: ',', or identifier")

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _is_word(self) -> bool:
        return self._peek() != _END and self._peek() not in _SYMBOLS


def _value_faults(key: str, operator: Operator, values: list[str]) -> list[Fault]:
    found: list[Fault] = []
    if operator in (Operator.GT, Operator.LT) and parse_int64(values[0]) is None:
        found.append(invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for index, value in enumerate(values):
        if faults := value_faults(value):
            found.append(invalid(f"values[{index}][{key}]", value, "; ".join(faults)))
    return found


def _unparsed(told: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {told}")


def _split_terms(text: str) -> list[str]:
    r"""Parts between commas that have no `\` before them."""
    return re.findall(r"(?:[^,\\]|\\.?)+", text, re.DOTALL)


def _field_term(text: str, part: str) -> FieldTerm:
    match = re.search("!=|==|=", part)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    return FieldTerm(part[: match.start()], _unescaped(part[match.end() :]), match[0] != "!=")


def _unescaped(value: str) -> str:
    for match in re.finditer(r"\\(.?)|=", value, re.DOTALL):
        if match[0] == "=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
        if match[1] not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {match[0]}")
    return re.sub(r"\\(.)", r"\1", value)


def _field_reader(resource: Resource, field: str) -> Callable[[Json], str]:
    if field in resource.fields:
        return resource.fields[field]
    # A kind that names no fields of its own is left to the general rule, which knows of no scopes.
    plain = not resource.custom and not resource.fields
    if field == "metadata.name" or (field == "metadata.namespace" and (resource.namespaced or plain)):
        name = field.rpartition(".")[2]
        return lambda obj: str(obj["metadata"].get(name, ""))
    if plain:
        known = 'only "metadata.name", "metadata.namespace"'
        raise bad_request(f"{quoted(field)} is not a known field selector: {known}")
    raise bad_request(f"field label not supported: {field}")
