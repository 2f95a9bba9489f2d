"""What becomes of a Service for which the allocator has no address: it is denied, or left to Kubernetes.

Kubernetes decides after us, and has the last word. So a Service is denied only for what is as true there as here:

| the allocator says | denied, if | else |
|---|---|---|
| taken | a Service that exists has the address, or an IPAddress says that something else has | left to Kubernetes: it was given of late, and nobody has it yet |
| out of range | it is of no range at all | a range whose object is still to be made: no answer; any other that is not kept here: left to Kubernetes |
| full | a Service or an IPAddress has every address, and Kubernetes has no other range of the family | left to Kubernetes: it gives one itself |
| no range | never | left to Kubernetes: it has none either, and says so |

What Kubernetes gives is seen by the watch, and entered.
"""  # noqa: E501 -- a table

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from cidrella.serviceip.errors import FullError, OutOfRangeError, Refusal, TakenError, UnusableError

if TYPE_CHECKING:
    from cidrella.core.address import Address
    from cidrella.core.prefix import Family
    from cidrella.serviceip.ranges import Ranges


class Verdict(NamedTuple):
    """Whether a Service is denied, and what to say to whoever asked; "" for nothing."""

    denied: bool
    words: str


class Witness(Protocol):
    """What is asked of the one who knows the ranges and the Services."""

    @property
    def ranges(self) -> Ranges:
        """Those there are; no families before they are known."""

    def holder(self, address: Address) -> str:
        """The Service that is known to have an address, "" if none is."""

    def owner(self, address: Address) -> str | None:
        """Whom an IPAddress object says an address to be of: "" if it does not say, None if there is none."""

    def spare(self, family: Family) -> bool:
        """Whether there is an address of a family that no Service and no IPAddress has."""

    async def exists(self, service: str) -> bool:
        """Whether there is a Service of this name. Raises KubeError."""


async def judge(refusal: Refusal, witness: Witness) -> Verdict:
    """What becomes of a Service that was refused. Raises KubeError; UnusableError if that cannot be told yet."""
    match refusal:
        case TakenError(address=address):
            return await _taken(address, refusal.by, witness)
        case OutOfRangeError(address=address):
            return _out_of_range(address, witness.ranges)
        case FullError(cidrs=cidrs):
            return _full(refusal, cidrs[0].family, witness)
    return Verdict(denied=False, words="")


async def find_holder(address: Address, witness: Witness) -> str:
    """Who has an address, for certain: "the Service x/y", or something of another kind; "" if nobody. Raises KubeError.

    A Service that only a watch that is behind, or an IPAddress, says to be there has nothing.
    """
    owner = witness.owner(address)
    if owner is not None and not _is_service(owner):
        return owner or "something that has an IPAddress object"
    for service in (witness.holder(address), owner):
        if service and await witness.exists(service):
            return f"the Service {service}"
    return ""


def _is_service(owner: str) -> bool:
    """Whether the owner of an IPAddress is a Service: anything else comes with its kind, and a space."""
    return bool(owner) and " " not in owner


async def _taken(address: Address, by: str, witness: Witness) -> Verdict:
    if holder := await find_holder(address, witness):
        what = f"{address} is taken by {holder}"
        return Verdict(
            denied=True, words=f"{what}; choose another address, or leave out spec.clusterIP to be given one"
        )
    whom = f"to {by} " if by else ""
    return Verdict(
        denied=False, words=f"{address} was given {whom}of late, and no Service is known to have it: Kubernetes decides"
    )


def _out_of_range(address: Address, ranges: Ranges) -> Verdict:
    giving = [each.range for each in ranges.known if each.gives and each.range.cidr.family is address.family]
    for each in giving:
        if each.offset(address) is not None:
            raise UnusableError(f"what is given of {each.cidr} is not known yet")
    if why := ranges.unkept(address):
        return Verdict(denied=False, words=f"Cidrella does not give {address}, Kubernetes decides: {why}")
    listed = ", ".join(str(each.cidr) for each in giving) or "there is none"
    return Verdict(
        denied=True,
        words=f"{address} is no usable address of a range of Services ({listed}); choose one that is, or leave out "
        "spec.clusterIP to be given one",
    )


def _full(refusal: FullError, family: Family, witness: Witness) -> Verdict:
    if more := witness.ranges.more(family):
        return Verdict(denied=False, words=f"{refusal}, Kubernetes may have one: {more}")
    if witness.spare(family):
        return Verdict(
            denied=False,
            words=f"{refusal}: what no Service has was given of late to Services that are not stored; Kubernetes gives "
            "one itself",
        )
    return Verdict(denied=True, words=f"{refusal}; delete Services that are not in use, or add a ServiceCIDR")
