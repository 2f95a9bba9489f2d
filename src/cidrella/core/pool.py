"""A pool: ranges of one or both families, the size of a node's block in each, and the nodes it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from cidrella.core.prefix import Family, Prefix
    from cidrella.core.selector import Selector
    from cidrella.core.view import View


Part: TypeAlias = "Family | None"
"""What a pool gives of a node's blocks: those of one family, or, where None, all of them (K3)."""


class PoolRange(NamedTuple):
    """One family of a pool: where its blocks come from, and how long their prefix is."""

    cidr: Prefix
    length: int


class Rank(NamedTuple):
    """What orders two pools that match a node equally well: S3, points 3 to 5, compared field by field.

    Pools that give one family are ordered by some of it (K4).
    """

    capacity: int
    host_bits: int
    selector: str
    first_address: int
    name: str


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool as it was written. Valid: whoever makes one has checked it (C1, C2, C4)."""

    name: str
    ranges: tuple[PoolRange, ...]
    """In the order in which a node gets its blocks: IPv4 first, unless the flags said otherwise (F1).

    Only an invalid pool may have none.
    """
    selector: Selector | None = None
    """None makes it a default (S2)."""
    created: str = ""
    """The creation timestamp as the API writes it; it sorts as text."""
    terminating: bool = False
    problem: str = ""
    """What is wrong with an object that got in although it is invalid. Such a pool gives nothing (S6)."""
    guarded: bool = True
    """Whether the object has the finalizer that keeps it while it is used. Before that it gives nothing (P1)."""
    composed: bool = False
    """Gives one block of one family, to be composed with that of another pool for the other family (K3).

    Such a pool has exactly one range; only an invalid one may have none.
    """

    @property
    def gives(self) -> bool:
        """Whether it may hand out blocks at all (S6)."""
        return self.guarded and not self.terminating and not self.problem


class Pool:
    """A pool at work: the spec with its views on the address spaces."""

    __slots__ = ("rank", "spec", "views")

    def __init__(self, spec: PoolSpec, views: tuple[View, ...]) -> None:
        assert not spec.composed or len(spec.ranges) < 2
        self.views = views
        self.rewrite(spec)

    def rewrite(self, spec: PoolSpec) -> None:
        """Take in what became of the spec, which has the ranges that it had."""
        self.spec = spec
        self.rank = rank(spec) if spec.ranges else Rank(0, 0, "", 0, spec.name)

    @property
    def name(self) -> str:
        """The object's name."""
        return self.spec.name

    @property
    def part(self) -> Part:
        """What it gives of a node's blocks. Only pools that give the same are compared with each other."""
        return self.spec.ranges[0].cidr.family if self.spec.composed else None

    def place(self, matched: int) -> tuple[object, ...]:
        """Where it stands among those that give the same, and have or lack a selector as it does; lower is tried first.

        `matched` are the requirements that the node meets. They come before everything else in S3, and after the
        addresses per node in K4.
        """
        if self.spec.composed:
            return self.rank.host_bits, -matched, self.rank.first_address, self.rank.name
        return -matched, *self.rank

    def view(self, family: Family) -> View:
        """Its view of one of its families."""
        return next(view for view in self.views if view.family is family)

    def free(self, family: Family) -> int:
        """The blocks of a family that it could give right now: none if it gives nothing (A8, S6)."""
        return self.view(family).free if self.spec.gives else 0

    def full(self) -> list[View]:
        """The views that have no block left."""
        return [view for view in self.views if not view.free]

    def __repr__(self) -> str:
        return f"Pool({self.spec.name})"


def rank(spec: PoolSpec) -> Rank:
    """Where a pool stands among those that match as well as it does; lower is tried first (S3)."""
    first = min(spec.ranges, key=lambda each: each.cidr.family)
    return Rank(
        capacity=min(1 << (each.length - each.cidr.length) for each in spec.ranges),
        host_bits=first.cidr.family.bits - first.length,
        selector=str(spec.selector) if spec.selector else "",
        first_address=first.cidr.network,
        name=spec.name,
    )
