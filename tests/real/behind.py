"""A cluster behind the fault proxy, for replicas that have to live with what networks do."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

import yaml

from tests.real.rbac import account_token
from tests.testenv.api import kubeconfig
from tests.testenv.faults import hold
from tests.testenv.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.site import Replica, Site
    from tests.testenv.api import Api

NODE_LIST = r"^/api/v1/nodes\?(?!.*watch=)"
NODE_WATCH = r"^/api/v1/nodes\?.*watch="
NODE_PATCH = r"^/api/v1/nodes/"


@dataclass(frozen=True)
class Behind:
    """A site, and the proxy through which its replicas see it. Tests themselves look past the proxy."""

    site: Site
    proxy: FaultProxy
    kubeconfig: Path
    program: str = "cidrella"
    """The module that replicas run."""

    def replica(self, *flags: str) -> Replica:
        """A replica behind the proxy, not started yet, that leads alone unless the flags say otherwise."""
        if not any(flag.startswith("--leader-elect") for flag in flags):
            flags = ("--leader-elect=false", *flags)
        return self.site.replica(*flags, kubeconfig=self.kubeconfig, program=self.program)

    def run(self, *flags: str) -> Replica:
        """A replica behind the proxy that is ready."""
        return self.replica(*flags).start()


class OnTheWire:
    """The first PATCH of a node: it is on its way until it is let go, whatever becomes of its sender."""

    def __init__(self, behind: Behind) -> None:
        self._proxy = behind.proxy
        self._let_go = Event()
        self._rule = behind.proxy.add(hold(self._let_go), method="PATCH", path=NODE_PATCH, nth=1)

    def wait(self) -> None:
        """Wait until it was sent."""
        self._proxy.wait_for(lambda entry: entry.rule is self._rule)

    def arrive(self) -> int | None:
        """Let it go, and wait until it has arrived; how it was answered."""
        self._let_go.set()
        (entry,) = self._proxy.wait_for(lambda entry: entry.rule is self._rule and entry.status is not None, timeout=60)
        return entry.status


def proxy_before(cluster: Api) -> FaultProxy:
    """A proxy before the API server, with TLS on both of its sides; to be entered."""
    serving = cluster.authority.server("fault-proxy")
    return FaultProxy(
        cluster.server, certificate=serving.certificate, key=serving.key, ca=cluster.authority.certificate
    )


@contextmanager
def behind_proxy(site: Site) -> Iterator[Behind]:
    """Put a proxy before the site's API server. Replicas end before it does."""
    cluster = site.cluster
    with proxy_before(cluster) as proxy:
        path = site.directory / "behind.kubeconfig"
        user = {"token": account_token(cluster)}
        path.write_text(yaml.safe_dump(kubeconfig(proxy.url, cluster.authority.certificate, user)))
        try:
            yield Behind(site, proxy, path)
        finally:
            proxy.clear()
            site.clean()
