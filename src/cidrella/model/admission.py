"""What the API server asks of an admission webhook, and what it is told: admission.k8s.io/v1, for Services.

Objects hold the fields in use. Any of them may be absent or null: the API server fills in what a Service lacks only
after it has asked the webhooks.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Raw, Struct, field

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"


class ServiceMeta(Struct, rename="camel", frozen=True, kw_only=True):
    """Whose name is still to be made up has only `generate_name`."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None


class ServiceSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """What a Service's spec says about its addresses."""

    type: str | None = None
    cluster_ip: str | None = field(default=None, name="clusterIP")
    cluster_ips: list[str] | None = field(default=None, name="clusterIPs")
    ip_families: list[str] | None = None
    ip_family_policy: str | None = None


class Service(Struct, frozen=True, kw_only=True):
    """A Service as it is asked for, or as it was."""

    metadata: ServiceMeta = field(default_factory=ServiceMeta)
    spec: ServiceSpec = field(default_factory=ServiceSpec)


class GroupVersionResource(Struct, frozen=True, kw_only=True):
    """What is asked about."""

    group: str = ""
    version: str = ""
    resource: str = ""


class AdmissionRequest(Struct, rename="camel", frozen=True, kw_only=True):
    """One question. The objects are of the resource asked about, which need not be Services."""

    uid: str
    operation: str
    resource: GroupVersionResource = field(default_factory=GroupVersionResource)
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")
    dry_run: bool | None = None


class Status(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Why not."""

    code: int = 0
    reason: str = ""
    message: str = ""


class AdmissionResponse(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """One answer, to the question of the same uid. The patch is JSON, which goes out in base64."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch: bytes | None = None
    patch_type: Literal["JSONPatch"] | None = None
    warnings: list[str] = field(default_factory=list)


class AdmissionReview(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A question, or an answer."""

    api_version: str
    kind: str
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None
