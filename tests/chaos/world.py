"""A cluster with replicas in it, each behind a proxy of its own: what a schedule is acted out on, and how it rests."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Final

from tests.chaos.member import Member
from tests.chaos.patient import GaveUpError, Patient
from tests.real.site import CONFIGS, LEASE, POOLS
from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor
    from pathlib import Path
    from typing import Any

    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster
    from tests.testenv.processes import Process

THIRD_PARTY: Final = "third-party"
INTENTS: Final = "cidrella.dev/intents"
_MEDDLES: Final = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "patch"]}]
_QUIET: Final = 5.0
"""Seconds without a change that are called rest."""
_REST_SECONDS: Final = 90.0
_START_SECONDS: Final = 90.0
_POLL: Final = 0.1


class RestlessError(Exception):
    """The cluster did not come to rest."""


class World:
    """A cluster, its replicas, and who acts on it past the proxies."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        starter: Executor,
        replicas: int,
        flags: tuple[str, ...],
        *,
        program: str,
    ) -> None:
        """`starter` is a thread that starts processes and outlives the cluster: they die with the thread that did."""
        self.cluster = cluster
        self.admin = Patient(cluster.admin)
        third_party, _ = cluster.user(THIRD_PARTY, _MEDDLES)
        self.third_party = Patient(third_party)
        third_party.close()
        self._starter = starter
        names = [f"replica-{number}" for number in range(replicas)]
        self.members = [Member(name, cluster, directory, flags, self._starter, program=program) for name in names]
        self.unexpected: list[str] = []
        """Replicas that ended though nobody told them to."""
        self._rebuilding = threading.Lock()
        self._leaving = threading.Event()
        self._watchman = threading.Thread(target=self._restart_the_fallen, name="watchman", daemon=True)

    def start(self) -> None:
        """Start all replicas, and look after them from now on."""
        for member in self.members:
            member.start()
        self._watchman.start()

    def close(self) -> None:
        """End all replicas."""
        self._leaving.set()
        if self._watchman.is_alive():
            self._watchman.join()
        for member in self.members:
            member.close()
        self.admin.close()
        self.third_party.close()

    def leader(self, seconds: float = 0.0) -> Member | None:
        """Who leads, as soon as anybody does; None if nobody does for so long."""
        deadline = time.monotonic() + seconds
        while True:
            for member in self.members:
                if member.leads():
                    return member
            if time.monotonic() >= deadline:
                return None
            time.sleep(_POLL)

    def rebuild(self, process: Process, down: float, *, gracefully: bool = False) -> None:
        """End one of the cluster's processes, start it again after a while, and wait until the API answers."""
        with self._rebuilding:
            if gracefully:
                process.stop()
            else:
                process.kill()
            time.sleep(down)
            self._starter.submit(process.start).result()
            deadline = time.monotonic() + _START_SECONDS
            while True:
                try:
                    return self.cluster.wait_ready()
                except RuntimeError:
                    # Somebody else may have had its port for a moment.
                    if process.ended is None or time.monotonic() > deadline:
                        raise
                    process.stop()
                    self._starter.submit(process.start).result()

    def heal(self) -> None:
        """End every fault that still goes on, start what is down, and turn no node away any more."""
        for member in self.members:
            member.proxy.clear()
            with member.busy:
                member.wake()
                member.start()
            member.proxy.lose_connections()
        for node in self.admin.get(NODES)["items"]:
            if node["spec"].get("taints"):
                self.admin.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"taints": None}})

    def rest(self) -> tuple[Member, list[Any]]:
        """Wait until nothing changes any more: who leads then, and its metrics. Raises RestlessError."""
        deadline = time.monotonic() + _REST_SECONDS
        before: Mapping[str, str] = {}
        since, why = time.monotonic(), "nothing was found out"
        while time.monotonic() < deadline:
            time.sleep(5 * _POLL)
            try:
                nodes = self.admin.get(NODES)["items"]
                now = self._versions(nodes)
            except GaveUpError as error:
                why = str(error)
                continue
            if now != before:
                changed = sorted(key for key in {*now, *before} if now.get(key) != before.get(key))
                before, since, why = now, time.monotonic(), f"{len(changed)} objects changed, as {changed[:3]}"
            leader = self.leader()
            unready = [member.name for member in self.members if not member.is_ready()]
            samples = leader.samples() if leader else []
            unrest = f"{unready} are not ready" if unready else self._unrest(samples, nodes)
            if leader is None or unrest:
                since, why = time.monotonic(), unrest or "nobody leads"
            elif time.monotonic() - since > _QUIET:
                return leader, samples
        raise RestlessError(f"no rest within {_REST_SECONDS:.0f} s: {why}")

    def _versions(self, nodes: list[Json]) -> dict[str, str]:
        """Every object's version, and what is recorded in the Lease."""
        found = [*nodes, *self.admin.get(POOLS)["items"], *self.admin.get(CONFIGS)["items"]]
        versions = {f"{each['metadata']['name']} {each['metadata']['uid']}": _version(each) for each in found}
        annotations = self.admin.get(LEASE)["metadata"].get("annotations", {})
        return {**versions, "intents": annotations.get(INTENTS, "")}

    @staticmethod
    def _unrest(samples: list[Any], nodes: list[Json]) -> str:
        """Why the leader is not at rest, by what it says itself; "" where it is."""
        told = {sample.name: sample.value for sample in samples}
        unserved = sum(not node["spec"].get("podCIDRs") for node in nodes)
        if told.get("cidrella_writes_in_flight") != 0:
            return "writes are in flight"
        if told.get("cidrella_nodes_waiting") != unserved:
            return f"{unserved} nodes have no block, {told.get('cidrella_nodes_waiting')} are said to wait"
        return ""

    def _restart_the_fallen(self) -> None:
        """As the kubelet does. But no replica should fall by itself."""
        while not self._leaving.wait(2 * _POLL):
            for member in self.members:
                if not member.busy.acquire(blocking=False):
                    continue
                try:
                    if (code := member.ended()) is not None:
                        tail = json.dumps(member.log.read_text(errors="replace").splitlines()[-3:])
                        self.unexpected.append(f"{member.name} ended with {code}: {tail}")
                        member.start()
                finally:
                    member.busy.release()


def _version(found: Json) -> str:
    return str(found["metadata"]["resourceVersion"])
