"""Whether somebody chose the address of a Service, or the Service was given one.

The API keeps no record of it. But a request that named the address left its trace:

- `managedFields` says who set `spec.clusterIP`. What the API server or a webhook fills in while a request is under way
  is not among it, so that an entry means that the request itself had the address in it.
- The configuration that `kubectl apply` last applied is an annotation. It tells the same where managedFields are not
  shown, as kubectl leaves them out of what it prints.
- A manifest that never was in a cluster has no uid. What stands in it was written there.

Where there is none of these, nothing is known, and nothing is said.
"""

from __future__ import annotations

from typing import Final

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from cidrella.model.serviceip import Metadata, SeenService, ServiceSpec

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class _SpecFields(Struct):
    cluster_ip: dict[str, dict[str, str]] | None = field(default=None, name="f:clusterIP")
    cluster_ips: dict[str, dict[str, str]] | None = field(default=None, name="f:clusterIPs")


class _Fields(Struct):
    spec: _SpecFields | None = field(default=None, name="f:spec")


class ManagedFields(Struct, rename="camel"):
    """What one manager has set."""

    manager: str | None = None
    fields_v1: _Fields | None = None

    @property
    def set_address(self) -> bool:
        """Whether the address of a Service is among it."""
        spec = self.fields_v1.spec if self.fields_v1 else None
        return spec is not None and (spec.cluster_ip is not None or spec.cluster_ips is not None)


class ServiceMetadata(Metadata, rename="camel"):
    """What is in use of a Service's metadata."""

    annotations: dict[str, str] | None = None
    managed_fields: list[ManagedFields] | None = None


class Service(Struct):
    """A Service, with what tells who chose its address."""

    metadata: ServiceMetadata
    spec: ServiceSpec | None = None


class _Applied(Struct):
    spec: ServiceSpec | None = None


_APPLIED = Decoder(_Applied)
_NO_SPEC = ServiceSpec()


def seen_service(obj: Service) -> SeenService:
    """A Service's addresses. One that names no namespace is of the one that kubectl would put it into."""
    spec = obj.spec or _NO_SPEC
    metadata = obj.metadata
    name = metadata.full_name if metadata.namespace else f"default/{metadata.full_name}"
    going = metadata.deletion_timestamp is not None
    return SeenService(name, metadata.uid or "", spec.type or "ClusterIP", spec.addresses, going)


def chosen_by(obj: Service) -> dict[str, str]:
    """Those of its addresses that were asked for by name, each with what shows it."""
    addresses = (obj.spec or _NO_SPEC).addresses
    if not obj.metadata.uid:
        return dict.fromkeys(addresses, "by its manifest")
    chosen = dict.fromkeys((each for each in addresses if each in _applied(obj)), "by what was last applied")
    for entry in obj.metadata.managed_fields or ():
        if entry.set_address:
            # Which of two were named is not recorded: the first was, for a second one cannot be named without it.
            chosen |= dict.fromkeys(addresses[:1], f"by {entry.manager or 'somebody'}")
    return chosen


def _applied(obj: Service) -> tuple[str, ...]:
    text = (obj.metadata.annotations or {}).get(LAST_APPLIED)
    try:
        applied = _APPLIED.decode(text) if text else _Applied()
    except DecodeError:
        return ()  # an annotation may hold anything
    return (applied.spec or _NO_SPEC).addresses
