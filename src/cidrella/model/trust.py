"""What makes the API server believe a webhook: the Secret with its certificates, and the configuration that names it.

The structs have the fields in use. Both objects are changed by patches only, so that what others keep in them stays.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from cidrella.model.objects import ObjectMeta

WEBHOOK_CONFIGURATIONS_PATH: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Secret(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A Secret, or a merge patch for one."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    type: str | None = None
    data: dict[str, bytes] | None = None


class ClientConfig(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """How the API server reaches a webhook: whom it believes."""

    ca_bundle: bytes | None = None


class Webhook(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """One webhook of a configuration."""

    name: str
    client_config: ClientConfig = field(default_factory=ClientConfig)


class WebhookConfiguration(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """A MutatingWebhookConfiguration, or a strategic merge patch for one."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    webhooks: list[Webhook] | None = None


def secrets_path(namespace: str) -> str:
    """The collection of a namespace's Secrets."""
    return f"/api/v1/namespaces/{namespace}/secrets"
