"""Whether two selectors can match one and the same node, whatever its labels may be.

A node matches two terms if it meets the requirements of both. Those on different labels do not bear on each other, so
that each label, and each field, is looked at alone. Where it is not worth finding out, the answer is that they can.

Many selectors are compared with many. So each is sorted by label once (`Demand`), and of those that list the values
which they want of one label, as most do, only those are compared that have a value in common (`candidates`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from cidrella.core.selector import Operator, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cidrella.core.selector import Requirement, Selector

    Key = tuple[bool, str]
    """Whether it is a field, and the key of the label or field."""

_ANY: Final = (Term(),)
"""The terms of a default, as it were: one that asks nothing."""


class Demand:
    """What a selector asks of a node; None is a default, which asks nothing."""

    __slots__ = ("_terms",)

    def __init__(self, selector: Selector | None) -> None:
        # A term without requirements never matches (S1).
        terms = _ANY if selector is None else [term for term in selector.terms if len(term)]
        wanted = [(len(term), _by_key(term)) for term in terms]
        self._terms = [(size, wishes) for size, wishes in wanted if all(each.possible for each in wishes.values())]

    def listed(self) -> Iterator[tuple[Key, frozenset[str]]]:
        """The keys of which a node that matches must have one of some values, with those values."""
        for key in self._terms[0][1] if self._terms else ():
            values = [wishes[key].listed if key in wishes else None for _, wishes in self._terms]
            some = [each for each in values if each is not None]
            if len(some) == len(values):
                yield key, frozenset().union(*some)

    def shared(self, other: Demand) -> frozenset[tuple[int, int]]:
        """How many requirements of each a node can meet that matches both; nothing where none can.

        It may have more than there are: of the terms that match, a node counts the largest (S3), here each counts.
        O(terms of one · terms of the other · their keys).
        """
        return frozenset(
            (size, others)
            for size, wishes in self._terms
            for others, asked in other._terms
            if _can_meet_both(wishes, asked)
        )


class _Wish:
    """All that a term asks of one label or field."""

    __slots__ = ("_absent", "_asked", "_key", "_nothing", "listed", "possible")

    def __init__(self, key: str, asked: list[Requirement]) -> None:
        self._key, self._asked = key, asked
        listed = next((each.values for each in asked if each.operator is Operator.IN), None)
        self.listed = None if listed is None else frozenset(filter(self._met_by, listed))
        """The values that it leaves to choose from, if it lists any."""
        self._absent = all(each.met_by({}) for each in asked)
        """Whether a node without it will do, …"""
        self._nothing = any(each.operator is Operator.DOES_NOT_EXIST for each in asked)
        """… and whether no other will."""
        self.possible = self.goes_with(self)

    def goes_with(self, other: _Wish) -> bool:
        """Whether one node can have what both ask."""
        if self.listed is not None and other.listed is not None:
            return not self.listed.isdisjoint(other.listed)
        if self.listed is not None:
            return any(map(other._met_by, self.listed))
        if other.listed is not None:
            return any(map(self._met_by, other.listed))
        if self._nothing or other._nothing:
            return self._absent and other._absent
        return True  # there are more values than anybody can exclude; whether a number lies between two is not asked

    def _met_by(self, value: str) -> bool:
        return all(each.met_by({self._key: value}) for each in self._asked)


def candidates(demands: Sequence[Demand]) -> Iterator[list[int]]:
    """For each, the numbers of those after it that may be for the same nodes; of the others it is certain that none is.

    O(n²) where no label tells them apart.
    """
    by_value = _most_telling(demands)
    elsewhere = set(range(len(demands))).difference(*by_value.values())
    values: list[list[str]] = [[] for _ in demands]
    for value, numbers in by_value.items():
        for number in numbers:
            values[number].append(value)
    for number, own in enumerate(values):
        if own:
            yield sorted(each for each in elsewhere.union(*(by_value[value] for value in own)) if each > number)
        else:
            yield list(range(number + 1, len(demands)))


def _most_telling(demands: Sequence[Demand]) -> Mapping[str, list[int]]:
    """Of the labels and fields, the one by which most can be told apart: the numbers of the demands, by value."""
    by_key: dict[Key, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, demand in enumerate(demands):
        for key, values in demand.listed():
            for value in values:
                by_key[key][value].append(number)
    return min(by_key.values(), key=lambda by_value: _comparisons(by_value, len(demands)), default={})


def _comparisons(by_value: Mapping[str, list[int]], count: int) -> int:
    """How many comparisons are left, about."""
    elsewhere = count - len(set().union(*by_value.values()))
    return elsewhere * count + sum(len(numbers) ** 2 for numbers in by_value.values())


def _by_key(term: Term) -> dict[Key, _Wish]:
    """What a term asks, by label and by field."""
    asked: dict[Key, list[Requirement]] = defaultdict(list)
    for each in term.expressions:
        asked[False, each.key].append(each)
    for each in term.fields:
        asked[True, each.key].append(each)
    return {key: _Wish(key[1], requirements) for key, requirements in asked.items()}


def _can_meet_both(one: Mapping[Key, _Wish], two: Mapping[Key, _Wish]) -> bool:
    return all(wish.goes_with(two[key]) for key, wish in one.items() if key in two)
