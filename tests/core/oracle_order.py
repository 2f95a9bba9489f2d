"""Slow, obviously right twins of what chooses a node's pools: S1, S3, K3 and K4 as they are written.

They look at every pool each time. Which blocks are free is not theirs to know, and is asked of whoever calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.prefix import Family
from cidrella.core.selector import NAME_FIELD, Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.core.pool import PoolSpec
    from cidrella.core.selector import Requirement, Selector


def meets(wanted: Requirement, present: dict[str, str]) -> bool:
    """Whether labels or fields meet a requirement (S1)."""
    value = present.get(wanted.key)
    if wanted.operator is Operator.IN:
        return value is not None and value in wanted.values
    if wanted.operator is Operator.NOT_IN:
        return value is None or value not in wanted.values
    if wanted.operator is Operator.EXISTS:
        return value is not None
    if wanted.operator is Operator.DOES_NOT_EXIST:
        return value is None
    if value is None or not value.removeprefix("-").isdecimal():
        return False
    sign = 1 if wanted.operator is Operator.GT else -1
    return sign * (int(value) - int(wanted.values[0])) > 0


def matched(chosen: Selector, name: str, labels: dict[str, str]) -> int:
    """Return the number of requirements in the largest term that matches; 0 where none does."""
    return max(
        (
            len(term.expressions) + len(term.fields)
            for term in chosen.terms
            if all(meets(each, labels) for each in term.expressions)
            and all(meets(each, {NAME_FIELD: name}) for each in term.fields)
        ),
        default=0,
    )


def lacks_labels(chosen: Selector, name: str, labels: dict[str, str]) -> bool:
    """Whether a selector does not match, and labels that are not there could make it match (N10)."""
    asking = (Operator.IN, Operator.EXISTS, Operator.GT, Operator.LT)
    for term in chosen.terms:
        unmet = [each for each in term.expressions if not meets(each, labels)]
        lost = [each for each in term.fields if not meets(each, {NAME_FIELD: name})]
        if unmet and not lost and all(each.operator in asking for each in unmet):
            return matched(chosen, name, labels) == 0
    return False


def awaited(
    giving: Iterable[PoolSpec], name: str, labels: dict[str, str], has_room: Callable[[PoolSpec], bool]
) -> set[str]:
    """Return the names of the pools for which a node waits while it has the taint (N10)."""
    specs = list(giving)
    found = set()
    for each in specs:
        if each.selector is not None and has_room(each) and lacks_labels(each.selector, name, labels):
            others = [
                other
                for other in specs
                if each.composed and other.composed and other.ranges[0].cidr.family is not each.ranges[0].cidr.family
                if other.selector is None or matched(other.selector, name, labels)
            ]
            if not others or any(map(has_room, others)):
                found.add(each.name)
    return found


def in_order(specs: Iterable[PoolSpec], name: str, labels: dict[str, str]) -> list[str]:
    """Return the names of the pools that apply to a node, in the order of S3."""
    keyed = []
    for each in specs:
        matches = 0 if each.selector is None else matched(each.selector, name, labels)
        if each.selector is not None and matches == 0:
            continue
        blocks = [cidr.size // 2 ** (cidr.family.bits - length) for cidr, length in each.ranges]
        cidr, length = next((one for one in each.ranges if one.cidr.family is Family.IPV4), each.ranges[0])
        text = "" if each.selector is None else str(each.selector)
        key = (
            each.selector is None,
            -matches,
            min(blocks),
            cidr.family.bits - length,
            text,
            cidr.network,
            each.name,
        )
        keyed.append((key, each.name))
    return [name for _, name in sorted(keyed)]


def in_order_of_one_family(specs: Iterable[PoolSpec], name: str, labels: dict[str, str]) -> list[str]:
    """Return the names of the pools that apply to a node, in the order of K4; all of them give the same family."""
    keyed = []
    for each in specs:
        matches = 0 if each.selector is None else matched(each.selector, name, labels)
        if each.selector is not None and matches == 0:
            continue
        ((cidr, length),) = each.ranges
        addresses_per_node = 2 ** (cidr.family.bits - length)
        keyed.append((each.selector is None, addresses_per_node, -matches, cidr.network, each.name))
    return [name for *_, name in sorted(keyed)]


def in_rows(specs: list[PoolSpec], name: str, labels: dict[str, str]) -> list[list[list[str]]]:
    """Return what may be given to a node, in the order of K3: of each row, one pool of each of its lists of pools."""
    matching, defaults = ([each for each in specs if (each.selector is None) is default] for default in (False, True))

    def alone(of: list[PoolSpec]) -> list[str]:
        return in_order([each for each in of if not each.composed], name, labels)

    def composed(of: list[PoolSpec], family: Family) -> list[str]:
        some = [each for each in of if each.composed and each.ranges[0].cidr.family is family]
        return in_order_of_one_family(some, name, labels)

    m4, m6, d4, d6 = (composed(of, family) for of in (matching, defaults) for family in Family)
    without_ipv4, without_ipv6 = not m4 and not d4, not m6 and not d6
    if without_ipv4:
        together, last = [[m6]], [d6]
    elif without_ipv6:
        together, last = [[m4]], [d4]
    else:
        together, last = [[m4, m6], [m4, d6], [d4, m6]], [d4, d6]
    return [row for row in [[alone(matching)], *together, [alone(defaults)], last] if all(row)]


def choice(
    specs: Iterable[PoolSpec], name: str, labels: dict[str, str], has_room: Callable[[PoolSpec], bool]
) -> list[str] | None:
    """Return the names of the pools that give a node its blocks (S4, K3), or None where it has to wait.

    What pools of one family give together is found first: of each family for which one applies, the first that has
    room. Only then it is asked when its turn comes.
    """
    pools = {each.name: each for each in specs}
    alone = [
        each
        for each in in_order((each for each in pools.values() if not each.composed), name, labels)
        if has_room(pools[each])
    ]
    together: list[str] | None = []
    for family in Family:
        of_family = [each for each in pools.values() if each.composed and each.ranges[0].cidr.family is family]
        applying = in_order_of_one_family(of_family, name, labels)
        with_room = [each for each in applying if has_room(pools[each])]
        if applying and not with_room:
            together = None
        if together is not None:
            together += with_room[:1]

    def chosen(names: list[str]) -> bool:
        return any(pools[each].selector is not None for each in names)

    if alone and chosen(alone[:1]):
        return alone[:1]
    if together and chosen(together):
        return together
    return alone[:1] or together or None
