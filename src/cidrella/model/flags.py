"""The flags of kube-controller-manager that concern node IPAM, read and turned into a pool.

Rules:

- Names, defaults and meaning are kube-controller-manager's, so that an operator can carry a command line over (F2).
- Flags that contradict each other are told in one line that names them and says what to do. Nothing is guessed.
- The same flags make the same object under the same name, on every machine and in every version (F1): the name's hash
  is taken of the ranges, the sizes and their order as canonical text, not of what was typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cidrella.core.bands import RangeError, ServiceRange
from cidrella.core.pool import PoolRange
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model.objects import FAMILY_ORDER_ANNOTATION, IPV6_FIRST, ClusterCIDR, ClusterCIDRSpec, ObjectMeta
from cidrella.model.rules import HOST_BITS_MIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cidrella.core.pool import PoolSpec

FLAGS_PREFIX: Final = "created-from-flags-"
"""How the names of pools made from flags begin (F1)."""

DEFAULT_LENGTHS: Final[Mapping[Family, int]] = {Family.IPV4: 24, Family.IPV6: 64}
"""The length of a node's block where no flag says otherwise (F2)."""

_HASH_DIGITS: Final = 12
"""Of the hash in a name: short enough to read out, and 48 bits are plenty for the few flags a cluster ever has."""

_MULTI_GATE: Final = "MultiCIDRRangeAllocator"
_BAND_GATE: Final = "ServiceIPStaticSubrange"
_GATES: Final[Mapping[str, bool]] = {_MULTI_GATE: True, _BAND_GATE: True}
"""Every known feature gate and its default (F7, B11)."""

_SERVICE_RANGE: Final = "--service-cluster-ip-range"
CLOUD_PROVIDER_WAIT: Final = 60.0
"""Seconds for which a node waits for its cloud provider, if the flags do not say otherwise (N10)."""

_TRUTHS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


class FlagError(ValueError):
    """Flags that make no sense: one line, for people, that names them and says what to do."""


class AllocatorType(Enum):
    """Where the pools come from: objects of the API, or the flags alone (F4)."""

    MULTI = "MultiCIDRRangeAllocator"
    RANGE = "RangeAllocator"


_TYPES: Final[Mapping[str, AllocatorType]] = {
    **{each.value: each for each in AllocatorType},
    "ClusterCIDRConfigAllocator": AllocatorType.MULTI,
}


@dataclass(frozen=True, slots=True)
class IpamFlags:
    """What the flags say. Free of contradictions: `read_ipam_flags` makes it."""

    allocator: AllocatorType = AllocatorType.MULTI
    ranges: tuple[PoolRange, ...] = ()
    """In the flag's order; none without --cluster-cidr."""
    service_ranges: tuple[Prefix, ...] = ()
    """What is never given to a node (A7)."""
    allocate: bool = True
    """Whether nodes are given blocks at all (F8)."""
    cloud_provider_wait: float = CLOUD_PROVIDER_WAIT
    """Seconds for which a node may wait that its cloud provider has not initialised; 0: none waits (N10)."""
    warnings: tuple[str, ...] = ()
    """What was read in another way than it was written, for whoever called to tell."""


@dataclass(frozen=True, slots=True)
class ServiceFlags:
    """What the flags say about the addresses of Services."""

    ranges: tuple[Prefix, ...] = ()
    """In the flag's order, the default family first; none: as the ServiceCIDRs say."""
    banded: bool = True
    """Whether a part of each range is kept for addresses that people choose (B11)."""
    warnings: tuple[str, ...] = ()
    """What was read in another way than it was written, for whoever called to tell."""


def parse_truth(text: str) -> bool | None:
    """A Boolean as Go's flags spell it; None if it is none."""
    return _TRUTHS.get(text)


def read_ipam_flags(  # noqa: PLR0913 - as many parameters as there are flags
    *,
    cluster_cidr: str = "",
    node_cidr_mask_size: int = 0,
    node_cidr_mask_size_ipv4: int = 0,
    node_cidr_mask_size_ipv6: int = 0,
    service_cluster_ip_range: str = "",
    allocate_node_cidrs: bool = True,
    cidr_allocator_type: str = AllocatorType.MULTI.value,
    feature_gates: str = "",
    wait_for_cloud_provider: bool = True,
    wait_for_cloud_provider_timeout: float = CLOUD_PROVIDER_WAIT,
) -> IpamFlags:
    """What flags of these names and values say. A mask of 0 is one not given. Raises `FlagError` (F2, F7)."""
    allocator = _allocator(cidr_allocator_type, _gates(feature_gates))
    warnings: list[str] = []
    ranges = _ranges("--cluster-cidr", cluster_cidr, warnings)
    if allocator is AllocatorType.RANGE and not ranges:
        raise FlagError(
            f"--cidr-allocator-type={allocator.value} gives out the ranges of --cluster-cidr; add --cluster-cidr"
        )
    masks = _Masks(
        node_cidr_mask_size,
        {Family.IPV4: node_cidr_mask_size_ipv4, Family.IPV6: node_cidr_mask_size_ipv6},
    )
    masks.check({each.family for each in ranges})
    return IpamFlags(
        allocator=allocator,
        ranges=tuple(PoolRange(each, masks.length(each, allocator)) for each in ranges),
        service_ranges=tuple(_ranges(_SERVICE_RANGE, service_cluster_ip_range, warnings)),
        allocate=allocate_node_cidrs,
        cloud_provider_wait=(
            wait_for_cloud_provider_timeout if wait_for_cloud_provider and allocator is AllocatorType.MULTI else 0.0
        ),
        warnings=tuple(warnings),
    )


def read_service_flags(*, service_cluster_ip_range: str = "", feature_gates: str = "") -> ServiceFlags:
    """What flags of these names and values say. Raises `FlagError`, also for a range that cannot be used (B2)."""
    warnings: list[str] = []
    ranges = tuple(_ranges(_SERVICE_RANGE, service_cluster_ip_range, warnings))
    for each in ranges:
        try:
            ServiceRange.of(each)
        except RangeError as error:
            raise FlagError(f"{_SERVICE_RANGE}: {each} {error}") from error
    return ServiceFlags(ranges, _gates(feature_gates)[_BAND_GATE], tuple(warnings))


def flags_pool(ranges: tuple[PoolRange, ...], attempt: int = 0) -> ClusterCIDR:
    """The pool that the flags ask for (F1).

    Attempts 1, 2, … are the same pool under other names, for when those before are taken by one that is terminating.
    Valid if each block has 4 host bits or more, as `read_ipam_flags` sees to for all that are to be objects of the API.
    """
    bits = {each.cidr.family: each.cidr.family.bits - each.length for each in ranges}
    texts = {each.cidr.family: str(each.cidr) for each in ranges}
    common = bits.get(Family.IPV4, bits.get(Family.IPV6, 0))
    ipv6_bits = bits.get(Family.IPV6, common)
    ipv6_first = len(ranges) > 1 and ranges[0].cidr.family is Family.IPV6
    return ClusterCIDR(
        metadata=ObjectMeta(
            name=f"{FLAGS_PREFIX}{_hash(ranges, attempt)}",
            annotations={FAMILY_ORDER_ANNOTATION: IPV6_FIRST} if ipv6_first else {},
        ),
        spec=ClusterCIDRSpec(
            per_node_host_bits=common,
            per_node_host_bits_ipv6=ipv6_bits if ipv6_bits != common else None,
            ipv4=texts.get(Family.IPV4, ""),
            ipv6=texts.get(Family.IPV6, ""),
        ),
    )


def matches_flags(spec: PoolSpec, ranges: tuple[PoolRange, ...]) -> bool:
    """Whether a pool gives any node what the flags ask for: same ranges, same sizes, same order, no selector (F1).

    An invalid pool has no ranges, and matches nothing.
    """
    return spec.ranges == ranges and spec.selector is None


def _hash(ranges: tuple[PoolRange, ...], attempt: int) -> str:
    canonical = ",".join(f"{each.cidr}={each.length}" for each in ranges)
    text = f"{canonical};{attempt}" if attempt else canonical
    return sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


@dataclass(frozen=True, slots=True)
class _Masks:
    """The three flags for the length of a node's block. 0 is one not given."""

    single: int
    by_family: Mapping[Family, int]

    def check(self, families: set[Family]) -> None:
        """Raise `FlagError` where they contradict each other, or the families of --cluster-cidr."""
        given = [_mask_flag(family) for family, length in self.by_family.items() if length]
        if self.single and given:
            raise FlagError(f"--node-cidr-mask-size cannot be combined with {given[0]}; give one of them")
        if self.single and len(families) > 1:
            raise FlagError(
                "--node-cidr-mask-size cannot be used with two ranges in --cluster-cidr; "
                "give --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6"
            )
        if self.single and not families:
            raise FlagError("--node-cidr-mask-size is given without --cluster-cidr; give both or neither")
        for family, length in self.by_family.items():
            if length and family not in families:
                raise FlagError(
                    f"{_mask_flag(family)} is given without an {family} range in --cluster-cidr; "
                    "add the range or leave the mask out"
                )

    def length(self, cidr: Prefix, allocator: AllocatorType) -> int:
        """How long the blocks of a range are. Raises `FlagError` where the range has no room for one (F2)."""
        family = cidr.family
        own = self.by_family[family]
        length = self.single or own or DEFAULT_LENGTHS[family]
        flag = "--node-cidr-mask-size" if self.single else _mask_flag(family)
        said = f"{flag}={length}" if self.single or own else f"{flag} is {length} by default, which"
        # The old allocator has no objects whose rules its blocks would have to keep (F4).
        longest = family.bits - (HOST_BITS_MIN if allocator is AllocatorType.MULTI else 0)
        if cidr.length > longest:
            raise FlagError(
                f"--cluster-cidr={cidr} is too small: a node's block has at least {1 << HOST_BITS_MIN} addresses; "
                f"give a /{longest} or larger"
            )
        if not cidr.length <= length <= longest:
            fault = "makes a node's block larger than" if length < cidr.length else "leaves a node too few addresses of"
            raise FlagError(
                f"{said} {fault} --cluster-cidr={cidr}; set {flag} to a length from {cidr.length} to {longest}"
            )
        return length


def _mask_flag(family: Family) -> str:
    return f"--node-cidr-mask-size-ipv{family.value}"


def _allocator(text: str, gates: Mapping[str, bool]) -> AllocatorType:
    allocator = _TYPES.get(text)
    if allocator is None:
        raise FlagError(f"--cidr-allocator-type={text!r} is not known; the types are {', '.join(_TYPES)}")
    if allocator is AllocatorType.MULTI and not gates[_MULTI_GATE]:
        raise FlagError(
            f"--feature-gates={_MULTI_GATE}=false switches off what --cidr-allocator-type={text} needs; "
            f"remove the gate, or choose --cidr-allocator-type={AllocatorType.RANGE.value}"
        )
    return allocator


def _gates(text: str) -> Mapping[str, bool]:
    """Every known gate, on or off."""
    given: dict[str, bool] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if name not in _GATES:
            raise FlagError(f"--feature-gates: {name!r} is not known; the gates are {', '.join(_GATES)}")
        on = parse_truth(value)
        if not equals or on is None:
            raise FlagError(f"--feature-gates: {pair!r} is neither on nor off; write {name}=true or {name}=false")
        if given.setdefault(name, on) != on:
            raise FlagError(f"--feature-gates: {name} is given both as true and as false; keep one")
    return {**_GATES, **given}


def _ranges(flag: str, text: str, warnings: list[str]) -> list[Prefix]:
    """One range or one of each family, in the order written; none where the flag is empty."""
    ranges = list(_prefixes(flag, text, warnings)) if text.strip() else []
    if len({each.family for each in ranges}) < len(ranges):
        raise FlagError(
            f"{flag}={','.join(map(str, ranges))} has two ranges of one family; give one range, or one of each family"
        )
    return ranges


def _prefixes(flag: str, text: str, warnings: list[str]) -> Iterator[Prefix]:
    """Read as leniently as kube-controller-manager does; what is read otherwise than written is a warning."""
    for part in (part.strip() for part in text.split(",")):
        try:
            cidr = Prefix.parse_lenient(part)
        except PrefixError as error:
            raise FlagError(
                f"{flag}: {part!r} {error}; write ranges as 10.0.0.0/16 or 10.0.0.0/16,fd00::/48"
            ) from error
        if str(cidr) != part:
            warnings.append(f"{flag}: {part} is read as {cidr}")
        yield cidr
