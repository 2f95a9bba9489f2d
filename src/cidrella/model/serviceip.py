"""What Service addresses are kept in and read from.

They are kept in `RangeAllocation`, which is ours, and read from Services, IPAddresses and ServiceCIDRs.

Rules:

- A RangeAllocation has the fields of the kind of that name that Kubernetes keeps to itself (`range`, `data`), so that
  either can read the other's (B5), and beside them what lets many writers know what became of a write.
- `recent` and `writes` are texts and not lists: the API server looks at every entry of a list with every write, and
  the writing of one with hundreds of them takes it three times as long.
- What cannot be read is told apart from what is missing: a corrupt RangeAllocation is one with a problem, and can be
  replaced (its version is known); what has no name is no object and raises `msgspec.ValidationError`.
- Namespaced objects are known as "namespace/name", as everywhere.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta, Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model import rules
from cidrella.model.objects import ObjectMeta, ServiceCIDR

if TYPE_CHECKING:
    from collections.abc import Iterable

    Json = bytes | Raw

GROUP: Final = "cidrella.dev"
VERSION: Final = "v1alpha1"
RANGE_ALLOCATION_API_VERSION: Final = f"{GROUP}/{VERSION}"
RANGE_ALLOCATION_KIND: Final = "RangeAllocation"
RANGE_ALLOCATION_PLURAL: Final = "rangeallocations"
RANGE_ALLOCATIONS_PATH: Final = f"/apis/{GROUP}/{VERSION}/{RANGE_ALLOCATION_PLURAL}"
SERVICES_PATH: Final = "/api/v1/services"
IP_ADDRESSES_PATH: Final = "/apis/networking.k8s.io/v1/ipaddresses"
HEADLESS: Final = "None"
"""In the place of an address: the Service has none, and wants none."""
_SERVICES: Final = ("", "services")


class Grant(NamedTuple):
    """An address that was given, to whom, and by which write."""

    address: str
    service: str
    """The Service that asked for it, as namespace/name."""
    write: str
    again: bool = False
    """It was given to the same Service before: no word on that one's end frees it."""


class RangeAllocation(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Which addresses of a range are given to Services: a bit for each. It is rebuilt from the Services if need be."""

    # Made by factories, for defaults proper would be left out of the JSON.
    api_version: str = field(default_factory=lambda: RANGE_ALLOCATION_API_VERSION)
    kind: str = field(default_factory=lambda: RANGE_ALLOCATION_KIND)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    range: Annotated[str, Meta(description="The range, as 10.96.0.0/16.", extra_json_schema=rules.SERVICE_RANGE)]
    data: Annotated[
        bytes,
        Meta(
            description="The bits, as the bytes of a big-endian number, in base64. Bit n stands for the range's first "
            "address + 1 + n.",
            extra_json_schema=rules.BITS,
        ),
    ]
    recent: Annotated[
        str,
        Meta(
            description="What was given last, a line for each: the address, the Service, the write that gave it, and "
            "the word again if it was given to the same Service before.",
            extra_json_schema=rules.FEW_GRANTS,
        ),
    ] = ""
    writes: Annotated[
        str, Meta(description="The last writes, the newest at the end.", extra_json_schema=rules.FEW_WRITES)
    ] = ""
    repairer: Annotated[
        str, Meta(description="The term of the one that may free what nobody has.", extra_json_schema=rules.TERM)
    ] = ""


class SeenRangeAllocation(NamedTuple):
    """A RangeAllocation as it stands in the API."""

    metadata: ObjectMeta
    allocation: RangeAllocation | None
    """None for one that is corrupt."""
    problem: str = ""
    """What is wrong with it, in words; "" for one that can be read. Whether the bits make sense is for others."""

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.metadata.uid

    @property
    def version(self) -> str:
        """The resource version, which changes with every write."""
        return self.metadata.resource_version


class SeenService(NamedTuple):
    """What bears on the addresses of a Service."""

    name: str
    """As namespace/name."""
    uid: str
    type: str
    cluster_ips: tuple[str, ...]
    """Its addresses as they are written; none for one that is headless or has yet to get any."""
    terminating: bool = False


class SeenIPAddress(NamedTuple):
    """An address that the API server's own allocator has given."""

    name: str
    """The address."""
    uid: str
    parent: str
    """Who has it: "namespace/name" for a Service, with the resource before it for any other, "" for nobody."""


class SeenServiceCIDR(NamedTuple):
    """A ServiceCIDR, as one who gives addresses sees it."""

    name: str
    uid: str
    created: str
    ranges: tuple[Prefix, ...]
    unreadable: tuple[str, ...] = ()
    terminating: bool = False
    """Whether it is being deleted, or is said not to be ready: it gives nothing new."""


class Metadata(Struct, rename="camel"):
    """What is in use of the metadata of others' objects."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None

    @property
    def full_name(self) -> str:
        """With the namespace before it, where there is one. Raises `ValidationError` for an empty one."""
        if not self.name:
            raise ValidationError("it has no metadata.name")
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ServiceSpec(Struct, rename="camel"):
    """What a Service's spec says of the addresses that it has."""

    type: str | None = None
    cluster_ip: str | None = field(default=None, name="clusterIP")
    cluster_ips: list[str] | None = field(default=None, name="clusterIPs")

    @property
    def addresses(self) -> tuple[str, ...]:
        """As they are written; none for one that is headless or has yet to get any.

        An ExternalName has none: what an update to it says of addresses is stored as it is, and given to nobody.
        """
        if self.type == "ExternalName":
            return ()
        texts = self.cluster_ips or (self.cluster_ip or "",)
        return tuple(text for text in texts if text not in {"", HEADLESS})


class _Service(Struct):
    metadata: Metadata
    spec: ServiceSpec | None = None


class _ParentRef(Struct):
    group: str | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None


class _IPAddressSpec(Struct, rename="camel"):
    parent_ref: _ParentRef | None = None


class IPAddress(Struct):
    """A networking.k8s.io/v1 IPAddress."""

    metadata: Metadata
    spec: _IPAddressSpec | None = None


class _AnyAllocation(Struct):
    metadata: ObjectMeta


_ALLOCATION = Decoder(RangeAllocation)
_ANY_ALLOCATION = Decoder(_AnyAllocation)
_SERVICE = Decoder(_Service)
_IP_ADDRESS = Decoder(IPAddress)
_SERVICE_CIDR = Decoder(ServiceCIDR)
_NO_SPEC = ServiceSpec()
_NO_PARENT = _ParentRef()


def range_name(cidr: Prefix) -> str:
    """The name of a range's RangeAllocation; no two ranges share one.

    >>> from cidrella.core.prefix import Prefix
    >>> range_name(Prefix.parse("10.96.0.0/16"))
    '10.96.0.0-16'
    >>> range_name(Prefix.parse("fd00:1::/112"))
    'fd00-0001-0000-0000-0000-0000-0000-0000-112'
    """
    address, _, length = str(cidr).partition("/")
    if cidr.family is Family.IPV6:
        address = ipaddress.IPv6Address(cidr.network).exploded.replace(":", "-")
    return f"{address}-{length}"


def grants_text(grants: Iterable[Grant]) -> str:
    """Grants as `recent` has them.

    >>> print(grants_text([Grant("10.96.0.1", "default/web", "w.1"), Grant("10.96.0.2", "default/web", "w.2", True)]))
    10.96.0.1 default/web w.1
    10.96.0.2 default/web w.2 again
    """
    return "\n".join([" ".join(each[:3]) + (" again" if each.again else "") for each in grants])


def read_grants(text: str) -> list[Grant]:
    r"""The grants of `recent`; lines that are none are left out.

    >>> read_grants("10.96.0.1 default/web w.1 again\nrubbish")
    [Grant(address='10.96.0.1', service='default/web', write='w.1', again=True)]
    """
    found = []
    for line in text.split("\n"):
        match line.split(" "):
            case [address, service, write]:
                found.append(Grant(address, service, write))
            case [address, service, write, "again"]:
                found.append(Grant(address, service, write, again=True))
    return found


def read_range_allocation(raw: Json) -> SeenRangeAllocation:
    """A RangeAllocation, corrupt or not."""
    try:
        allocation = _ALLOCATION.decode(raw)
    except ValidationError as error:
        return SeenRangeAllocation(_named(_ANY_ALLOCATION.decode(raw).metadata), None, str(error))
    return SeenRangeAllocation(_named(allocation.metadata), allocation)


def read_service(raw: Json) -> SeenService:
    """A Service's addresses, whatever its kind."""
    obj = _SERVICE.decode(raw)
    spec = obj.spec or _NO_SPEC
    return SeenService(
        obj.metadata.full_name,
        obj.metadata.uid or "",
        spec.type or "ClusterIP",
        spec.addresses,
        obj.metadata.deletion_timestamp is not None,
    )


def read_ip_address(raw: Json) -> SeenIPAddress:
    """An address that is given already, and to whom."""
    return seen_ip_address(_IP_ADDRESS.decode(raw))


def seen_ip_address(obj: IPAddress) -> SeenIPAddress:
    """The same of one that is decoded."""
    parent = (obj.spec and obj.spec.parent_ref) or _NO_PARENT
    who = f"{parent.namespace}/{parent.name}" if parent.namespace else parent.name or ""
    if who and (parent.group or "", parent.resource) != _SERVICES:
        who = f"{parent.resource} {who}"
    return SeenIPAddress(obj.metadata.full_name, obj.metadata.uid or "", who)


def read_service_cidr(raw: Json) -> SeenServiceCIDR:
    """A ServiceCIDR. One that says nothing on whether it is ready is, as Kubernetes has it.

    Its ranges are read leniently (A7), since Services get addresses from them whatever their spelling.
    """
    return seen_service_cidr(_SERVICE_CIDR.decode(raw))


def seen_service_cidr(obj: ServiceCIDR) -> SeenServiceCIDR:
    """The same of one that is decoded."""
    unready = any(each.type == "Ready" and each.status != "True" for each in obj.status.conditions)
    metadata = _named(obj.metadata)
    ranges: list[Prefix] = []
    unreadable: list[str] = []
    for text in obj.spec.cidrs:
        try:
            ranges.append(Prefix.parse_lenient(text))
        except PrefixError as error:
            unreadable.append(f"{text!r} {error}")
    return SeenServiceCIDR(
        metadata.name,
        metadata.uid,
        metadata.creation_timestamp or "",
        tuple(ranges),
        tuple(unreadable),
        unready or metadata.deletion_timestamp is not None,
    )


def _named(metadata: ObjectMeta) -> ObjectMeta:
    if not metadata.name:
        raise ValidationError("it has no metadata.name")
    return metadata
