"""Whether a selector is one that Kubernetes would accept (C4): of terms, or of labels, as each kind of pool has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from cidrella.core.selector import NAME_FIELD, Operator, parse_int64
from cidrella.model import rules
from cidrella.model.decode import Problem
from cidrella.model.syntax import LABEL_MAX, label_key_fault, label_value_fault, name_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.model.configs import LabelSelector, LabelSelectorRequirement
    from cidrella.model.objects import NodeSelector, NodeSelectorRequirement

Path: TypeAlias = tuple[str | int, ...]
Problems: TypeAlias = Iterator[Problem]

_OPERATORS = [each.value for each in Operator]
_LABEL_OPERATORS = [*rules.SET_OPERATORS, *rules.PRESENCE_OPERATORS]


def node_selector_problems(selector: NodeSelector, path: Path) -> Problems:
    """What is wrong with a selector of terms."""
    path = (*path, "nodeSelectorTerms")
    yield from _at_most(rules.TERMS_MAX, len(selector.node_selector_terms), path)
    for index, term in enumerate(selector.node_selector_terms):
        expressions, fields = (*path, index, "matchExpressions"), (*path, index, "matchFields")
        yield from _at_most(rules.EXPRESSIONS_MAX, len(term.match_expressions), expressions)
        for number, requirement in enumerate(term.match_expressions):
            yield from _expression(requirement, _OPERATORS, (*expressions, number))
        for number, requirement in enumerate(term.match_fields):
            yield from _field(requirement, (*fields, number))


def label_selector_problems(selector: LabelSelector, path: Path) -> Problems:
    """What is wrong with a selector of labels."""
    labels, expressions = (*path, "matchLabels"), (*path, "matchExpressions")
    yield from _at_most(rules.LABELS_MAX, len(selector.match_labels), labels)
    yield from label_problems(selector.match_labels, labels)
    yield from _at_most(rules.LABELS_MAX, len(selector.match_expressions), expressions)
    for number, requirement in enumerate(selector.match_expressions):
        yield from _expression(requirement, _LABEL_OPERATORS, (*expressions, number))


def label_problems(labels: Mapping[str, str], path: Path) -> Problems:
    """What is wrong with labels that are written out."""
    for key, value in labels.items():
        if fault := label_key_fault(key):
            yield Problem((*path, key), f"{key!r} {fault}")
        if fault := label_value_fault(value):
            yield Problem((*path, key), f"{value!r} {fault}")


def _at_most(limit: int, count: int, path: Path) -> Problems:
    if count > limit:
        yield Problem(path, f"may hold {limit} entries, and has {count}; use another pool for the rest")


def _expression(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, operators: list[str], path: Path
) -> Problems:
    """A requirement on labels."""
    if fault := label_key_fault(requirement.key):
        yield Problem((*path, "key"), f"{requirement.key!r} {fault}")
    if requirement.operator in operators:
        yield from _values(Operator(requirement.operator), requirement.values, (*path, "values"))
    else:
        yield Problem((*path, "operator"), _unsupported(requirement.operator, operators))


def _values(operator: Operator, values: list[str], path: Path) -> Problems:
    """The values of a requirement on labels: how many, and what they look like, depends on the operator."""
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield Problem(path, rules.VALUES_NEEDED)
            for index, value in enumerate(values):
                if fault := label_value_fault(value):
                    yield Problem((*path, index), f"{value!r} {fault}")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield Problem(path, rules.VALUES_FORBIDDEN)
        case Operator.GT | Operator.LT:
            if len(values) != 1:
                yield Problem(path, rules.ONE_VALUE)
            elif parse_int64(values[0]) is None or len(values[0]) > LABEL_MAX:
                yield Problem(path, rules.WHOLE_NUMBER)


def _field(requirement: NodeSelectorRequirement, path: Path) -> Problems:
    """A requirement on fields, of which there is one, compared with one name."""
    if requirement.key != NAME_FIELD:
        yield Problem((*path, "key"), _unsupported(requirement.key, [NAME_FIELD]))
    if requirement.operator not in rules.SET_OPERATORS:
        yield Problem((*path, "operator"), _unsupported(requirement.operator, rules.SET_OPERATORS))
    if len(requirement.values) != 1:
        yield Problem((*path, "values"), "must be exactly one node's name; use a term for each further one")
    for index, value in enumerate(requirement.values):
        if fault := name_fault(value):
            yield Problem((*path, "values", index), f"{value!r} {fault}")


def _unsupported(text: str, known: list[str] | tuple[str, ...]) -> str:
    return f"{text!r} is not supported; use {' or '.join(known)}"
