"""Which ranges Services get addresses from, in which order, and which are not used, with the reason. No I/O.

Rules:

- The flag decides where it is given: one range, or one of each family. Otherwise the ServiceCIDR objects do: the one
  that the API server makes (`kubernetes`), then the others by age, and the ranges of each in its own order.
- The families of a cluster are those of its flag, else those of the ServiceCIDR that the API server makes from its own
  flag (where there is none of that name, of the oldest). A range of another family that is added later makes no cluster
  dual-stack: Kubernetes gives nothing of it. The family of the first range is the default (B9).
- A ServiceCIDR that is being deleted gives nothing new. What it gave is still accounted for: its range is one like the
  others for whoever releases, repairs, or asks who has an address.
- No address is accounted for twice. A range that overlaps another is not used, nor is one that overlaps the range of a
  stored RangeAllocation: that is what a range that shrank, grew or moved looks like, and its books are not for us to
  throw away. Ranges that have their own RangeAllocation go first, so that what is in use stays in use.
- A range that one object cannot hold, or that has no usable address, is not used (B2).
- Kubernetes has ranges that we do not keep: those that are not used, what the flag leaves out of the ServiceCIDRs, and
  of a large IPv6 range what is beyond its bitmap. Addresses of these are for Kubernetes to give or refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.core.bands import RangeError, ServiceRange
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model.serviceip import range_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from cidrella.core.address import Address
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

    left_out: tuple[RefusedRange, ...] = ()
    """The ranges of ServiceCIDRs that the flag does not name, or not as a whole."""

    def unkept(self, address: Address) -> str:
        """Why an address that Kubernetes may give is not for us to give; "" if it is, or is of no range at all."""
        for each in self.known:
            if each.range.offset(address) is not None:
                return "" if each.gives else f"{each.range.cidr} of {each.source} gives nothing new at present"
        for each in self.known:
            if each.range.beyond(address):
                return f"{address} is {_beyond(each)}"
        return next((str(each) for each in self._unused() if address.inside(each.cidr)), "")

    def more(self, family: Family) -> str:
        """Where Kubernetes may have an address of a family that we have not; "" if nowhere."""
        for each in self.known:
            if each.range.cidr.family is family and each.gives and each.range.in_part:
                return f"there are addresses {_beyond(each)}"
        return next((str(each) for each in self._unused() if each.cidr.family is family), "")

    def _unused(self) -> Iterator[RefusedRange]:
        yield from self.refused
        yield from self.left_out


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
        families=_families(flag, ordered),
        left_out=_left_out(flag, ordered),
    )


def named_range(name: str) -> Prefix | None:
    """The range whose RangeAllocation has this name; None for a name that is of none."""
    address, _, length = name.rpartition("-")
    try:
        cidr = Prefix.parse(f"{address.replace('-', ':')}/{length}")
    except PrefixError:
        return None
    return cidr if range_name(cidr) == name else None


def _families(flag: Sequence[Prefix], ordered: Iterable[SeenServiceCIDR]) -> tuple[Family, ...]:
    deciding = flag or next((each.ranges for each in ordered if each.ranges), ())
    return tuple(dict.fromkeys(cidr.family for cidr in deciding))


def _left_out(flag: Sequence[Prefix], ordered: Iterable[SeenServiceCIDR]) -> tuple[RefusedRange, ...]:
    return tuple(
        RefusedRange(cidr, f"ServiceCIDR {each.name}", f"{FLAG} leaves it out, or some of it")
        for each in ordered
        if flag and not each.terminating
        for cidr in each.ranges
        if not any(named.contains(cidr) for named in flag)
    )


def _beyond(known: KnownRange) -> str:
    return f"beyond the part of {known.range.cidr} that is managed, its first {known.range.usable:,} addresses"


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
                f"it overlaps {cidr}, whose addresses stand in RangeAllocation {name}; if {wanted.cidr} has taken its "
                f"place, delete that object (kubectl delete rangeallocation {name}): the books of {wanted.cidr} are "
                "then made from the Services, and every Service keeps its address"
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
