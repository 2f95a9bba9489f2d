"""One of the replicas of a run: always in the same place, behind a proxy of its own, whatever process runs there."""

from __future__ import annotations

import threading
from http.client import HTTPException
from typing import TYPE_CHECKING

import yaml

from tests.real.behind import proxy_before
from tests.real.rbac import NAMESPACE, account_token, controller_account
from tests.real.site import SHORT_LEASE, Replica
from tests.testenv.api import kubeconfig

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path
    from typing import Any

    from tests.testenv.cluster import Cluster


class Member:
    """A place for a replica.

    Whoever starts, ends, freezes or wakes its process holds `busy` meanwhile. Its requests may be disturbed by anybody.
    """

    def __init__(self, name: str, cluster: Cluster, directory: Path, flags: tuple[str, ...], starter: Executor) -> None:
        """`starter` starts processes: they die with the thread that did."""
        self.name = name
        self._starter = starter
        self.user = f"system:serviceaccount:{NAMESPACE}:{name}"
        """Its own, so that the audit log tells who did what."""
        self.busy = threading.Lock()
        self.log = directory / f"{name}.log"
        self.flags = flags
        """What the next process is started with."""
        self.proxy = proxy_before(cluster)
        self.proxy.start()
        self._kubeconfig = directory / f"{name}.kubeconfig"
        controller_account(cluster, name)
        user = {"token": account_token(cluster, name)}
        self._kubeconfig.write_text(yaml.safe_dump(kubeconfig(self.proxy.url, cluster.authority.certificate, user)))
        self._replica: Replica | None = None
        self._frozen = False

    def start(self) -> None:
        """Start a process, if there is none."""
        if self._replica is None:
            replica = Replica(self.name, self._kubeconfig, self.log, (*SHORT_LEASE, *self.flags))
            self._starter.submit(replica.process.start).result()
            self._replica = replica

    def kill(self) -> None:
        """End the process, if there is one, as a crash would."""
        replica, self._replica = self._replica, None
        if replica is not None:
            replica.process.kill()

    def terminate(self) -> None:
        """Tell the process to end, if there is one, and wait until it has."""
        replica, self._replica = self._replica, None
        if replica is not None:
            replica.stop()

    def freeze(self) -> None:
        """Let the process do nothing for a while."""
        assert self._replica is not None, f"{self.name} does not run"
        self._frozen = True
        self._replica.process.pause()

    def wake(self) -> None:
        """Let it go on, if it was frozen."""
        if self._replica is not None and self._frozen:
            self._replica.process.resume()
        self._frozen = False

    def ended(self) -> int | None:
        """The exit code of a process that ended though nobody told it to. A new one may be started then."""
        if self._replica is None or (code := self._replica.process.ended) is None:
            return None
        self.terminate()
        return code

    def leads(self) -> bool:
        """Whether it says that it leads."""
        return any(sample.name == "cidrella_leader" and sample.value == 1 for sample in self.samples())

    def is_ready(self) -> bool:
        """Whether it says that it is ready."""
        replica = self._replica
        try:
            return replica is not None and not self._frozen and replica.get("/readyz")[0] == 200
        except HTTPException:  # it ended in the middle of its answer
            return False

    def samples(self) -> list[Any]:
        """Its metrics; none of a process that cannot answer."""
        replica = self._replica
        if replica is None or self._frozen:
            return []
        try:
            return replica.samples()
        except HTTPException:  # it ended in the middle of its answer
            return []

    def close(self) -> None:
        """End the process, and then the proxy."""
        self.terminate()
        self.proxy.clear()
        self.proxy.stop()
