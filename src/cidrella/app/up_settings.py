"""What `cidrella up` was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cidrella.app.values import Address
from cidrella.core.prefix import Prefix

if TYPE_CHECKING:
    from cidrella.app.intake import Manifest

DEFAULT_ADDRESS: Final = Address("127.0.0.1", 10292)
"""Loopback, since it is for trying things out. The port is next to those of `cidrella run` and `cidrella webhook`."""
PAGE_ADDRESS: Final = Address("127.0.0.1", 10293)
"""The next one; another port where that is taken."""
DEFAULT_SERVICE_RANGE: Final = "10.96.0.0/16"
"""What most clusters have, or the beginning of it."""
NODES_MAX: Final = 10_000
"""As many as the ranges of the example have room for."""
CHURN_NODES: Final = 40
"""How many nodes there are about, where some come and go and nobody said how many."""


@dataclass(frozen=True, kw_only=True)
class UpSettings:
    """The options, in their order in the help."""

    data_dir: str = ""
    """Where everything is kept; "": in memory."""
    manifests: tuple[Manifest, ...] = ()
    """What the files hold."""
    nodes: int = 0
    churn: bool = False
    controller: bool = True
    service_ranges: tuple[Prefix, ...] = (Prefix.parse(DEFAULT_SERVICE_RANGE),)
    """The default one first."""
    bind_address: Address | None = None
    """None: the default one, or another port where that is taken."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    token_auth_file: str = ""
    audit_log: str = ""
    log_level: str = "warning"
    log_format: str = "auto"

    @property
    def host(self) -> str:
        """Where it listens."""
        return (self.bind_address or DEFAULT_ADDRESS).host

    @property
    def example_nodes(self) -> int:
        """How many nodes the example has; 0: there is no example."""
        return self.nodes or (CHURN_NODES if self.churn else 0)
