"""The Lease of coordination.k8s.io/v1, with the fields in use, and the form of time that it and events share.

Rules:

- Any field may be missing, and none is trusted: a Lease may have been written by other programs, or by hand.
- A Lease is created whole and changed by merge patches only, so that what others keep in it stays.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, cast

from msgspec import Struct, field

from cidrella.model.objects import ObjectMeta

API_VERSION: Final = "coordination.k8s.io/v1"
KIND: Final = "Lease"


class LeaseSpec(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Who holds a Lease, and until when. An empty holder is one who has released it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A Lease, or a merge patch for one."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec | None = None

    @property
    def terms(self) -> LeaseSpec:
        """The spec, empty if there is none."""
        return self.spec or LeaseSpec()

    @property
    def holder(self) -> str:
        """Who holds it, "" for nobody."""
        return self.terms.holder_identity or ""

    @property
    def version(self) -> str:
        """The resource version, which changes with every write."""
        return self.metadata.resource_version


def leases_path(namespace: str) -> str:
    """The collection of a namespace's Leases."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/leases"


def lease_path(namespace: str, name: str) -> str:
    """One Lease."""
    return f"{leases_path(namespace)}/{name}"


def annotation_patch(key: str, text: str) -> dict[str, str]:
    """The annotations of a merge patch that sets one of them, or takes it away if the text is empty."""
    return {key: text or cast("str", None)}  # to a merge patch, null is what is to go


def micro_time(seconds: float) -> str:
    """A moment, in seconds since 1970, as Kubernetes writes it to the microsecond.

    >>> micro_time(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_time(text: str | None) -> float | None:
    """A moment that Kubernetes wrote, in seconds since 1970; None for what is none.

    >>> read_time("1970-01-01T00:00:01.500000Z"), read_time("1970-01-01T00:00:01Z"), read_time("soon")
    (1.5, 1.0, None)
    """
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
