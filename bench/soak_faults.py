"""Lists that fail during a soak: the leader's and the standby's, regularly, in each of the ways in which a list can.

Each replica has a fault proxy of its own before the API server. The proxy ends each watch of pools with a 410, so that
the replica lists pools again, and every other one of these lists fails. Nodes are served meanwhile.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

import yaml
from tests.real.behind import proxy_before
from tests.real.rbac import account_token
from tests.testenv.api import kubeconfig
from tests.testenv.faults import flood, gone_event

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.real.site import Site
    from tests.testenv.fault_script import Rule

PART: Final = 12_000_000
"""Bytes that come before a list is cut or stalls."""
TOO_LARGE: Final = (256 << 20) + 1
"""Bytes: more than a client reads of one reply (`kube.transport.BODY_MAX`)."""
FAULTS: Final = {"cut": flood(PART), "stalled": flood(PART, stall=True), "too large": flood(TOO_LARGE)}
LISTS: Final = r"/clustercidrs\?limit="
WATCHES: Final = r"/clustercidrs\?.*watch="


class FailingLists(AbstractContextManager["FailingLists"]):
    """A proxy for one replica. Lists fail from `begin` to `end`."""

    def __init__(self, site: Site, name: str) -> None:
        self._site = site
        self._name = name
        self._proxy = proxy_before(site.cluster)
        self._rules: dict[str, Rule] = {}

    def __enter__(self) -> FailingLists:
        self._proxy.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._proxy.stop()

    def kubeconfig(self) -> Path:
        """Write a kubeconfig for the controller's account, with the proxy as the server."""
        cluster, path = self._site.cluster, self._site.directory / f"{self._name}.kubeconfig"
        user = {"token": account_token(cluster)}
        path.write_text(yaml.safe_dump(kubeconfig(self._proxy.url, cluster.authority.certificate, user)))
        return path

    def begin(self) -> None:
        """Let lists fail: the first, the third and the fifth, each in its way, and so on. End the watches there are."""
        for number, (name, fault) in enumerate(FAULTS.items()):
            turns = range(2 * number + 1, sys.maxsize, 2 * len(FAULTS))
            self._rules[name] = self._proxy.add(fault, method="GET", path=LISTS, nth=turns)
        self._proxy.add(gone_event(), method="GET", path=WATCHES)
        self._proxy.lose_connections()

    def end(self) -> None:
        """Let no more lists fail."""
        self._proxy.clear()

    @property
    def failed(self) -> dict[str, int]:
        """How many lists failed, by the way in which they did."""
        return {name: rule.hits for name, rule in self._rules.items()}
