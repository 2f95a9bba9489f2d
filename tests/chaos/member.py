"""One of the replicas of a run: always in the same place, behind a proxy of its own, whatever process runs there."""

from __future__ import annotations

import threading
from http.client import HTTPException
from typing import TYPE_CHECKING

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.real.behind import proxy_before
from tests.real.rbac import NAMESPACE, account_token, controller_account
from tests.real.site import HOLD_BACK, SHORT_LEASE, Replica
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

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        directory: Path,
        flags: tuple[str, ...],
        starter: Executor,
        *,
        program: str,
    ) -> None:
        """`starter` starts processes: they die with the thread that did."""
        self.name = name
        self._starter = starter
        self._program = program
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
            flags = (*SHORT_LEASE, HOLD_BACK, *self.flags)
            replica = Replica(self.name, self._kubeconfig, self.log, flags, program=self._program)
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
        return "\ncidrella_leader 1.0\n" in self._get("/metrics")[1]

    def is_ready(self) -> bool:
        """Whether it says that it is ready."""
        return self._get("/readyz")[0] == 200

    def samples(self) -> list[Any]:
        """Its metrics; none of a process that cannot answer."""
        families = text_string_to_metric_families(self._get("/metrics")[1])
        return [sample for family in families for sample in family.samples]

    def _get(self, path: str) -> tuple[int, str]:
        """What it answers; code 0 where nobody does."""
        replica = self._replica
        if replica is None or self._frozen:
            return 0, ""
        try:
            return replica.get(path)
        except HTTPException:  # it ended in the middle of its answer
            return 0, ""

    def close(self) -> None:
        """End the process, and then the proxy."""
        self.terminate()
        self.proxy.clear()
        self.proxy.stop()
