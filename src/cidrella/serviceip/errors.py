"""What can go wrong when an address is asked for or given back, beside the API being away (`KubeError`).

| error | what it says | who can mend it |
|---|---|---|
| `FullError`, `NoRangeError` | there is nothing to give | the operator, with another range |
| `TakenError`, `OutOfRangeError` | this very address cannot be had (B4) | who asked, by another address |
| `DeposedError` | another repairer has taken over | nobody needs to |
| `MissingAllocationError`, `CorruptAllocationError` | the range's object is gone, or makes no sense | the repairer |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.core.address import Address
    from cidrella.core.prefix import Family, Prefix


class Refusal(Exception):  # noqa: N818 -- an answer, not a fault: what was asked for cannot be had
    """What was asked of a range cannot be done, in words for people. `reason` is one word for it."""

    reason: ClassVar[str] = "Refused"


class FullError(Refusal):
    """Every address of these ranges is given."""

    reason: ClassVar[str] = "RangeFull"

    def __init__(self, cidrs: Iterable[Prefix]) -> None:
        self.cidrs = tuple(cidrs)
        super().__init__(f"no address is free in {_listed(self.cidrs)}")


class NoRangeError(Refusal):
    """There is no range of the family that gives addresses."""

    reason: ClassVar[str] = "NoRange"

    def __init__(self, family: Family) -> None:
        self.family = family
        super().__init__(f"there is no {family} range that Services get addresses from")


class TakenError(Refusal):
    """The address is somebody else's; `by` says whose, "" if that is not known."""

    reason: ClassVar[str] = "AddressTaken"

    def __init__(self, address: Address, by: str = "") -> None:
        self.address = address
        self.by = by
        super().__init__(f"{address} is taken by {by}" if by else f"{address} is taken already")


class OutOfRangeError(Refusal):
    """The address is none that these ranges could give."""

    reason: ClassVar[str] = "AddressOutOfRange"

    def __init__(self, address: Address, cidrs: Iterable[Prefix]) -> None:
        self.address = address
        self.cidrs = tuple(cidrs)
        super().__init__(f"{address} is not one of the addresses that {_listed(self.cidrs)} can give")


class DeposedError(Refusal):
    """Who wants to free addresses is no longer the one that may."""

    reason: ClassVar[str] = "Deposed"

    def __init__(self, term: str, standing: str) -> None:
        super().__init__(f"the term {term!r} of this repairer has ended: {standing!r} stands in its place")


class UnusableError(Exception):
    """The object that a range is kept in cannot be used until it is repaired."""

    def __init__(self, message: str, version: str = "") -> None:
        self.version = version
        """The version of the object that was found, "" if there is none."""
        super().__init__(message)


class MissingAllocationError(UnusableError):
    """There is no such object."""


class CorruptAllocationError(UnusableError):
    """There is one, and it makes no sense."""


def _listed(cidrs: tuple[Prefix, ...]) -> str:
    return ", ".join(map(str, cidrs))
