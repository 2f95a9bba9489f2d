"""Short ways to write down pools, selectors, nodes and clusters.

A selector is written as `size=big and rack or !gpu`. The requirements are `key=a|b` (In), `key!=a|b` (NotIn), `key`
(Exists), `!key` (DoesNotExist), `key>5` (Gt), `key<5` (Lt), each with an `@` before it where it is about a field and
not about a label; `nothing` is the empty term. A range of a pool is written as `10.0.0.0/16 /24`: a /16 of /24s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cidrella.core.cluster import Cluster
from cidrella.core.decision import Node
from cidrella.core.pool import Pool, PoolRange, PoolSpec
from cidrella.core.prefix import Family, Prefix
from cidrella.core.selector import Operator, Requirement, Selector, Term
from cidrella.core.space import AddressSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cidrella.core.decision import Decision, Outcome, Reason
    from cidrella.core.index import PoolIndex

_REQUIREMENT = re.compile(r"(?P<no>!?)(?P<key>[\w./-]+?)(?:(?P<sign>!=|=|>|<)(?P<values>.*))?")
_SIGNS = {"=": Operator.IN, "!=": Operator.NOT_IN, ">": Operator.GT, "<": Operator.LT}


def requirement(text: str) -> Requirement:
    """Read one requirement, without the `@` of a field."""
    match = _REQUIREMENT.fullmatch(text)
    assert match is not None, text
    if match["sign"] is None:
        return Requirement(match["key"], Operator.DOES_NOT_EXIST if match["no"] else Operator.EXISTS)
    return Requirement(match["key"], _SIGNS[match["sign"]], tuple(match["values"].split("|")))


def term(text: str) -> Term:
    """Read one term."""
    words = [] if text == "nothing" else text.split(" and ")
    return Term(
        tuple(requirement(word) for word in words if not word.startswith("@")),
        tuple(requirement(word[1:]) for word in words if word.startswith("@")),
    )


def selector(text: str) -> Selector:
    """Read a selector."""
    return Selector(tuple(term(part) for part in text.split(" or ")))


def prefix(text: str) -> Prefix:
    """Read a prefix."""
    return Prefix.parse(text)


def spec(
    name: str,
    *ranges: str,
    where: str | Selector | None = None,
    created: str = "",
    terminating: bool = False,
    problem: str = "",
    composed: bool = False,
) -> PoolSpec:
    """Write a pool down; without `where` it is a default."""
    split = [each.split(" /") for each in ranges]
    return PoolSpec(
        name,
        tuple(PoolRange(prefix(cidr), int(length)) for cidr, length in split),
        selector(where) if isinstance(where, str) else where,
        created,
        terminating,
        problem,
        composed=composed,
    )


def part(name: str, block_range: str, where: str | None = None, created: str = "") -> PoolSpec:
    """Write a pool down that gives one family, to be composed with another's (K3)."""
    return spec(name, block_range, where=where, created=created, composed=True)


def pool(written: PoolSpec) -> Pool:
    """Put a pool to work in address spaces of its own."""
    views = [AddressSpace(cidr.family).view(cidr, length) for cidr, length in written.ranges]
    return Pool(written, tuple(views))


def node(
    name: str,
    labels: str = "",
    *,
    has: str = "",
    uid: str = "",
    annotation: str = "",
    terminating: bool = False,
    uninitialized: bool = False,
) -> Node:
    """Write a node down: labels as `size=big rack=r1`, podCIDRs as `10.0.0.0/24,fd00::/64`."""
    pairs = (word.partition("=") for word in labels.split())
    return Node(
        name,
        {key: value for key, _, value in pairs},
        uid or f"uid of {name}",
        tuple(has.split(",")) if has else (),
        annotation,
        terminating,
        uninitialized,
    )


def nodes(count: int, labels: str = "", name: str = "n") -> list[Node]:
    """Write down many nodes that differ only in their names, which are numbered."""
    return [node(f"{name}{number}", labels) for number in range(count)]


def cluster(*specs: PoolSpec) -> Cluster:
    """Make a cluster with these pools, added in this order."""
    made = Cluster()
    for each in specs:
        made.add_pool(each)
    return made


def tried(index: PoolIndex, name: str, labels: Mapping[str, str]) -> list[Pool]:
    """Return the pools that apply to a node, lane after lane, in the order in which they are first asked."""
    found = index.offers(name, labels)
    return [each for lane in (found[-1].lanes_so_far if found else ()) for each in lane.pools]


def texts(decision: Decision) -> list[str]:
    """Return the blocks of a decision as people read them."""
    return [str(block) for block in decision.blocks]


def give(where: Cluster, to: Node) -> list[str]:
    """Decide on one node; its blocks as people read them."""
    return texts(where.decide(to))


def give_many(where: Cluster, to: Iterable[Node]) -> list[list[str]]:
    """Decide on many nodes; the blocks of each as people read them."""
    return [texts(decision) for decision in where.decide_many(list(to))]


def free(where: Cluster, name: str) -> list[int]:
    """Return how many blocks a pool could give right now, in each of its families."""
    return [view.free for view in where.pools[name].views]


def allocated(where: Cluster, name: str) -> list[int]:
    """Return how many blocks of a pool its users touch, in each of its families."""
    usage = where.usage(where.pools[name])
    return [usage.allocated(view.family) for view in where.pools[name].views]


def overlapping_pairs(where: Cluster) -> list[tuple[str, str]]:
    """Return the pairs of prefixes that share addresses, by comparing each with each."""
    held = [holding.prefix for family in Family for holding in where.spaces[family]]
    return [
        (str(one), str(two))
        for at, one in enumerate(held)
        for two in held[at + 1 :]
        if one.family is two.family and one.network <= two.last and two.network <= one.last
    ]


def users(books: Cluster, name: str) -> set[str]:
    """Return the nodes that use a pool."""
    return set(books.usage(books.pools[name]).nodes)


def story(decision: Decision) -> tuple[Outcome, list[str], list[str | None], Reason, str]:
    """Return all that a decision says, with pools by name."""
    names = [pool.name if pool else None for pool in decision.pools]
    return decision.outcome, texts(decision), names, decision.reason, decision.message
