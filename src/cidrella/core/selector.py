"""Node selectors, as core/v1 defines them (S1).

Terms are ORed, the requirements inside a term are ANDed, and a term without requirements matches nothing. `matchFields`
looks at the node's fields, of which Kubernetes knows one, `metadata.name`; it never looks among the labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME_FIELD = "metadata.name"

_INT64 = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_INT64_DIGITS = 19


class Operator(Enum):
    """What a requirement asks of a label or field."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"

    @property
    def asks_for_presence(self) -> bool:
        """Whether only a label that is there can meet it."""
        return self not in {Operator.NOT_IN, Operator.DOES_NOT_EXIST}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label or field."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def met_by(self, present: Mapping[str, str]) -> bool:
        """Whether these labels, or fields, meet it. An absent key meets NotIn and DoesNotExist."""
        value = present.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case _:
                return self._compare(value)

    def _compare(self, value: str | None) -> bool:
        left, right = parse_int64(value), parse_int64(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator is Operator.GT else left < right

    def __str__(self) -> str:
        values = ", ".join(sorted(self.values))
        match self.operator:
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                return f"{self.key} {self.operator.value}"
            case Operator.GT | Operator.LT:
                return f"{self.key} {self.operator.value} {values}"
            case _:
                return f"{self.key} {self.operator.value} ({values})"


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all be met."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __len__(self) -> int:
        return len(self.expressions) + len(self.fields)

    def unmet(self, name: str, labels: Mapping[str, str]) -> Iterator[Requirement]:
        """The requirements that a node does not meet."""
        yield from (each for each in self.expressions if not each.met_by(labels))
        yield from (each for each in self.fields if not each.met_by({NAME_FIELD: name}))

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node meets all of it, and there is something to meet."""
        return len(self) > 0 and next(self.unmet(name, labels), None) is None

    def lacks_labels(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node does not match it only because of labels that it asks for, and that may be set later (N10)."""
        unmet = [each for each in self.expressions if not each.met_by(labels)]
        return (
            bool(unmet)
            and all(each.operator.asks_for_presence for each in unmet)
            and all(each.met_by({NAME_FIELD: name}) for each in self.fields)
        )

    def __str__(self) -> str:
        return " and ".join(sorted(map(str, (*self.expressions, *self.fields))))


@dataclass(frozen=True, slots=True)
class Selector:
    """Terms of which one must match."""

    terms: tuple[Term, ...]

    def matched(self, name: str, labels: Mapping[str, str]) -> int | None:
        """The number of requirements in the largest term that matches a node (S3), or None if none does."""
        return max((len(term) for term in self.terms if term.matches(name, labels)), default=None)

    def lacks_labels(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it does not match a node, and labels that the node lacks could make it match (N10)."""
        return any(term.lacks_labels(name, labels) for term in self.terms) and self.matched(name, labels) is None

    def __str__(self) -> str:
        """The canonical text: two selectors that differ only in the order of things read the same."""
        return " or ".join(sorted(f"({term})" for term in self.terms))


def parse_int64(text: str | None) -> int | None:
    """A number as Go's `strconv.ParseInt(text, 10, 64)` takes it, else None."""
    if text is None or not _INT64.fullmatch(text):
        return None
    digits = text.lstrip("+-0") or "0"
    if len(digits) > _INT64_DIGITS:
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if _INT64_MIN <= number <= _INT64_MAX else None
