"""Which ranges Services get addresses from, in which order, and which are not used, with the reason. No I/O.

Rules:

- The flag decides where it is given: one range, or one of each family. Otherwise the ServiceCIDR objects do: the one
  that the API server makes (`kubernetes`), then the others by age, and the ranges of each in its own order.
- The family of the first range is the cluster's default (B9).
- A ServiceCIDR that is being deleted gives nothing new. What it gave is still accounted for: its range is one like the
  others for whoever releases, repairs, or asks who has an address.
- No address is accounted for twice. A range that overlaps another is not used, nor is one that overlaps the range of a
  stored RangeAllocation: that is what a range that shrank, grew or moved looks like, and its books are not for us to
  throw away. Ranges that have their own RangeAllocation go first, so that what is in use stays in use.
- A range that one object cannot hold, or that has no usable address, is not used (B2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.core.bands import RangeError, ServiceRange
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model.serviceip import range_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cidrella.model.serviceip import SeenServiceCIDR

FLAG: Final = "--service-cluster-ip-range"
DEFAULT_OBJECT: Final = "kubernetes"
"""The ServiceCIDR that the API server makes from its own flag."""


class KnownRange(NamedTuple):
    """A range in use."""

    range: ServiceRange
    source: str
    """The flag, or the ServiceCIDR that it is from."""
    gives: bool = True
    """False: it is on its way out, and gives nothing new."""


class RefusedRange(NamedTuple):
    """A range that is not used."""

    cidr: Prefix
    source: str
    why: str
    """For people: what is wrong, and what to do about it."""

    def __str__(self) -> str:
        return f"{self.cidr} of {self.source} is not used: {self.why}"


@dataclass(frozen=True, slots=True)
class Ranges:
    """What there is. `known` is in the order in which ranges are drawn from."""

    known: tuple[KnownRange, ...] = ()
    refused: tuple[RefusedRange, ...] = ()
    warnings: tuple[str, ...] = ()

    families: tuple[Family, ...] = ()
    """Those configured, the default first. One whose only range is refused counts: else its Services would silently get
    an address of the other family."""


class _Wanted(NamedTuple):
    cidr: Prefix
    source: str
    gives: bool


def find_ranges(
    flag: Sequence[Prefix],
    objects: Iterable[SeenServiceCIDR],
    stored: Collection[Prefix] = (),
    *,
    banded: bool = True,
) -> Ranges:
    """The ranges by the flag and the ServiceCIDRs, next to the ranges of the RangeAllocations that exist.

    O(n²) in their number, which is small.
    """
    ordered = sorted(objects, key=lambda each: (each.name != DEFAULT_OBJECT, each.created, each.name))
    wanted = _by_flag(flag) if flag else _by_objects(ordered)
    known: dict[Prefix, KnownRange] = {}
    refused: dict[Prefix, RefusedRange] = {}
    for each in sorted(wanted, key=lambda each: each.cidr not in stored):  # a stable sort
        try:
            made = ServiceRange.of(each.cidr, banded=banded)
        except RangeError as error:
            refused[each.cidr] = RefusedRange(each.cidr, each.source, f"it {error}")
            continue
        if why := _trouble(each, known.values(), stored):
            refused[each.cidr] = RefusedRange(each.cidr, each.source, why)
        else:
            known[each.cidr] = KnownRange(made, each.source, each.gives)
    return Ranges(
        known=tuple(known[each.cidr] for each in wanted if each.cidr in known),
        refused=tuple(refused[each.cidr] for each in wanted if each.cidr in refused),
        warnings=_warnings(flag, ordered),
        families=tuple(dict.fromkeys(each.cidr.family for each in wanted)),
    )


def named_range(name: str) -> Prefix | None:
    """The range whose RangeAllocation has this name; None for a name that is of none."""
    address, _, length = name.rpartition("-")
    try:
        cidr = Prefix.parse(f"{address.replace('-', ':')}/{length}")
    except PrefixError:
        return None
    return cidr if range_name(cidr) == name else None


def _by_flag(flag: Sequence[Prefix]) -> list[_Wanted]:
    return [_Wanted(cidr, FLAG, gives=True) for cidr in dict.fromkeys(flag)]


def _by_objects(ordered: Iterable[SeenServiceCIDR]) -> list[_Wanted]:
    """Each range once: one that several ServiceCIDRs have goes with the last of them."""
    wanted: dict[Prefix, _Wanted] = {}
    for obj in ordered:
        for cidr in obj.ranges:
            before = wanted.get(cidr)
            if before is None:
                wanted[cidr] = _Wanted(cidr, f"ServiceCIDR {obj.name}", gives=not obj.terminating)
            elif not before.gives and not obj.terminating:
                wanted[cidr] = before._replace(source=f"ServiceCIDR {obj.name}", gives=True)
    return list(wanted.values())


def _trouble(wanted: _Wanted, known: Iterable[KnownRange], stored: Iterable[Prefix]) -> str:
    """Why a range cannot be used beside those that are, and beside what is stored; "" where it can."""
    for other in known:
        if other.range.cidr.overlaps(wanted.cidr):
            return f"it overlaps {other.range.cidr} of {other.source}, and no address can be in two ranges"
    if wanted.cidr in stored:
        return ""
    for cidr in sorted(stored):
        if cidr.overlaps(wanted.cidr):
            name = range_name(cidr)
            return (
                f"it overlaps {cidr}, whose addresses stand in RangeAllocation {name}; to go on with {wanted.cidr}, "
                f"delete that object (kubectl delete rangeallocation {name}) once nobody uses the old range: what "
                "Services have is entered anew"
            )
    return ""


def _warnings(flag: Sequence[Prefix], objects: Sequence[SeenServiceCIDR]) -> tuple[str, ...]:
    there = [cidr for each in objects for cidr in each.ranges]
    told = [
        f"no ServiceCIDR covers {cidr} of {FLAG}: the API server will refuse addresses of it"
        for cidr in flag
        if objects and not any(each.contains(cidr) for each in there)
    ]
    return tuple(
        told
        + [
            f"ServiceCIDR {each.name} cannot be read: {'; '.join(each.unreadable)}"
            for each in objects
            if each.unreadable
        ]
    )
