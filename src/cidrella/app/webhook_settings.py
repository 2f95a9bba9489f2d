"""Every setting of `cidrella webhook`, beside those that it shares with `cidrella run`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from cidrella.app.setting import Group, setting
from cidrella.app.settings import CommonSettings, check_pair
from cidrella.app.values import ADDRESS, DURATION, FILE, GATES, RANGES, TEXT, TRUTH, Address
from cidrella.model.flags import FlagError, read_service_flags
from cidrella.model.syntax import name_fault

if TYPE_CHECKING:
    from cidrella.model.flags import ServiceFlags

_INTERVAL_MIN: Final = 10.0
"""Seconds: three rounds are as long as the API server can take to store a Service that it has asked about."""


@dataclass(frozen=True, kw_only=True)
class WebhookSettings(CommonSettings):
    """What `cidrella webhook` was told."""

    COMMAND: ClassVar[str] = "webhook"

    service_cluster_ip_range: str = setting(
        RANGES,
        "",
        Group.SERVICES,
        "Ranges that Services get addresses from: one, or one of each family, the default one first. Not given: those "
        "of the cluster's ServiceCIDR objects.",
    )
    repair_interval: float = setting(
        DURATION, "1m", Group.SERVICES, "How often what is given is compared with what Services have."
    )
    """What nobody has is freed after three such rounds (B8): longer than a Service can take to be created."""
    feature_gates: str = setting(
        GATES,
        "",
        Group.SERVICES,
        "Gates to switch: ServiceIPStaticSubrange (on) keeps a part of each range for addresses that people choose.",
    )

    webhook_bind_address: Address = setting(  # noqa: RUF009 - an Address cannot be changed
        ADDRESS, ":9443", Group.WEBHOOK, "Where the API server is answered. No host is every interface."
    )
    """The API server comes from elsewhere. The port is the usual one of webhooks."""
    tls_cert_file: str = setting(
        FILE,
        "",
        Group.WEBHOOK,
        "The certificate to show, with its chain, in PEM; read again when it changes. Not given: self-made, as the "
        "next ones say.",
    )
    tls_private_key_file: str = setting(FILE, "", Group.WEBHOOK, "The key of --tls-cert-file, in PEM.")
    client_ca_file: str = setting(
        FILE,
        "",
        Group.WEBHOOK,
        "Certificates of CAs, in PEM; read again when it changes. Only who shows a certificate of one of them is "
        "answered. Not given: anybody who reaches the port is.",
    )
    tls_secret_name: str = setting(
        TEXT, "cidrella-webhook", Group.WEBHOOK, "The Secret in which replicas share the certificates that they make."
    )
    tls_secret_namespace: str = setting(TEXT, "kube-system", Group.WEBHOOK, "The namespace of the Secret.")
    webhook_dns_names: str = setting(
        TEXT,
        "cidrella-webhook.kube-system.svc",
        Group.WEBHOOK,
        "Names and addresses, separated by commas, under which the API server reaches the webhook; self-made "
        "certificates are for these.",
    )
    webhook_configuration_name: str = setting(
        TEXT,
        "cidrella-webhook",
        Group.WEBHOOK,
        "The MutatingWebhookConfiguration into which the CA of self-made certificates is written; empty: none.",
    )

    leader_elect: bool = setting(
        TRUTH, "true", Group.ELECTION, "Repair only while holding a Lease, so that several replicas can run."
    )
    """Addresses are given by every replica at once; it is what nobody has that only one may free."""
    leader_elect_resource_name: str = setting(TEXT, "cidrella-services", Group.ELECTION, "The name of the Lease.")
    bind_address: Address = setting(  # noqa: RUF009 - an Address cannot be changed
        ADDRESS,
        "127.0.0.1:10291",
        Group.OPERATION,
        "Where /healthz, /readyz and /metrics are served. Port 0 picks a free one and logs it; no host is every "
        "interface.",
    )
    """Next to that of `cidrella run`, with which it may share a host."""

    @property
    def services(self) -> ServiceFlags:
        """What the flags about Services say. Raises `FlagError`."""
        return read_service_flags(
            service_cluster_ip_range=self.service_cluster_ip_range, feature_gates=self.feature_gates
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the flags about Services."""
        said = self.services.warnings
        if self.repair_interval < _INTERVAL_MIN:
            said += (
                f"--repair-interval is {self.repair_interval:g} s: what nobody has is freed after three rounds, "
                f"which may be before a Service that was given it is stored; {_INTERVAL_MIN:g} s or more is safe",
            )
        return said

    @property
    def from_files(self) -> bool:
        """Whether the certificate is somebody else's making."""
        return bool(self.tls_cert_file)

    @property
    def dns_names(self) -> tuple[str, ...]:
        """Names and addresses for the certificate. Raises `FlagError`."""
        names = tuple(filter(None, (each.strip() for each in self.webhook_dns_names.split(","))))
        if not names:
            raise FlagError("--webhook-dns-names names nothing that a certificate could be for")
        for each in names:
            if not _is_address(each) and name_fault(each):
                raise FlagError(f"--webhook-dns-names: {each!r} is neither a DNS name nor an IP address")
        return names

    def checked(self) -> WebhookSettings:
        """The same, if no two of its settings contradict each other. Raises `FlagError`."""
        super().checked()
        check_pair(self.tls_cert_file, self.tls_private_key_file)
        if self.bind_address == self.webhook_bind_address and self.bind_address.port:
            raise FlagError(f"--bind-address and --webhook-bind-address are both {self.bind_address}; change one")
        if not self.from_files:
            self._check_names()
        return self

    def _check_names(self) -> None:
        _ = self.dns_names
        names = {"--tls-secret-name": self.tls_secret_name, "--tls-secret-namespace": self.tls_secret_namespace}
        if self.webhook_configuration_name:
            names["--webhook-configuration-name"] = self.webhook_configuration_name
        for flag, text in names.items():
            if fault := name_fault(text):
                raise FlagError(f"{flag}: {text!r} {fault}")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
