"""Whether two selectors can match one and the same node, whatever its labels may be.

A node matches two terms if it meets the requirements of both. Those on different labels do not bear on each other, so
that each label, and each field, is looked at alone. Where it is not worth finding out, the answer is that they can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.selector import Operator, Term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.core.selector import Requirement, Selector

_ANY = (Term(),)
"""The terms of a default, as it were: one that asks nothing."""


def shared(one: Selector | None, two: Selector | None) -> frozenset[tuple[int, int]]:
    """How many requirements of each a node can meet that matches both; nothing where none can. None is a default.

    It may have more than there are: of the terms that match, a node counts the largest (S3), here each counts.
    O(terms of one · terms of the other · their requirements).
    """
    return frozenset(
        (len(first), len(second)) for first in _terms(one) for second in _terms(two) if _can_meet_both(first, second)
    )


def _terms(selector: Selector | None) -> tuple[Term, ...]:
    """The terms that can match: one without requirements never does (S1)."""
    return _ANY if selector is None else tuple(term for term in selector.terms if len(term))


def _can_meet_both(one: Term, two: Term) -> bool:
    return _can_meet((*one.expressions, *two.expressions)) and _can_meet((*one.fields, *two.fields))


def _can_meet(requirements: Iterable[Requirement]) -> bool:
    by_key: dict[str, list[Requirement]] = {}
    for each in requirements:
        by_key.setdefault(each.key, []).append(each)
    return all(_can_meet_at(key, asked) for key, asked in by_key.items())


def _can_meet_at(key: str, asked: list[Requirement]) -> bool:
    listed = next((each.values for each in asked if each.operator is Operator.IN), None)
    if listed is not None:
        return any(all(each.met_by({key: value}) for each in asked) for value in listed)
    if any(each.operator is Operator.DOES_NOT_EXIST for each in asked):
        return all(each.met_by({}) for each in asked)
    return True  # there are more values than anybody can exclude; whether a number lies between two is not asked
