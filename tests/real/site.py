"""A cluster with Cidrella in it: replicas of the real program, run under exactly the rights that `deploy/` gives them.

Tests look at it through the plain client and through kubectl, never through the code under test.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from tests.real.rbac import controller_account
from tests.testenv.client import ApiError
from tests.testenv.nodes import NODES, delete_nodes
from tests.testenv.ports import free_port
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tests.testenv.api import Api
    from tests.testenv.client import Client, Json

POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
CONFIGS = "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs"
SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cidrella"
HEARTBEAT = f"{LEASE}-alone"
"""The Lease of a controller without leader election."""
FINALIZER = "networking.kubernetes.io/cluster-cidr-config-finalizer"
FOREIGN_FINALIZER = "networking.x-k8s.io/cluster-cidr-finalizer"
POOL_ANNOTATION = "cidrella.dev/pool"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
HOLD_BACK = "--wait-for-cloud-provider-timeout=24h"
"""For replicas that are to give nothing to the nodes of `Site.create_held_back`."""
SHORT_LEASE = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
_SECONDS = 180.0
_GRACE = 10.0
"""Seconds that the Deployment has for its end (`terminationGracePeriodSeconds`)."""
_POLL = 0.05
"""Seconds between two looks: rarely enough to leave the CPU to what is waited for."""


class Replica:
    """One `cidrella run`."""

    def __init__(
        self, name: str, kubeconfig: Path, log: Path, flags: Iterable[str], *, program: str = "cidrella"
    ) -> None:
        self.port = free_port()
        self.log = log
        command = [sys.executable, "-m", program, "run", f"--kubeconfig={kubeconfig}"]
        command += [f"--bind-address=127.0.0.1:{self.port}", "--log-format=json", *flags]
        self.process = Process(name, command, log)

    def start(self, *, until_ready: bool = True) -> Replica:
        """Start it, and wait until it says that it is ready."""
        self.process.start()
        if until_ready:
            self.wait_ready()
        return self

    def wait_ready(self, seconds: float = _SECONDS) -> None:
        """Wait for 200 from /readyz."""
        eventually(lambda: self.get("/readyz")[0] == 200, seconds, lambda: self.process.tail(40))

    def get(self, path: str) -> tuple[int, str]:
        """What it answers; code 0 where nobody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a series; None where there is none."""
        for sample in self.samples():
            if sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items()):
                return float(sample.value)
        return None

    def samples(self) -> list[Any]:
        """Every sample of /metrics."""
        families = text_string_to_metric_families(self.get("/metrics")[1])
        return [sample for family in families for sample in family.samples]

    def logged(self) -> list[Json]:
        """The lines of its log. One that is no JSON fails the test."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line]

    def terminate(self) -> tuple[float, int | None]:
        """SIGTERM: after how many seconds it ended, and with which code. Fails if it would have been killed."""
        began = time.monotonic()
        os.kill(self.process.pid, signal.SIGTERM)
        eventually(lambda: self.process.ended is not None, _GRACE, self.process.tail)
        took, code = time.monotonic() - began, self.process.ended
        self.process.stop()
        return took, code

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.process.stop()


class Site:
    """A cluster for one test: empty before, emptied after."""

    def __init__(self, cluster: Api, directory: Path, kubeconfig: Path | None = None) -> None:
        """`kubeconfig` is the controller's, where there is one already."""
        self.cluster = cluster
        self._kubeconfig = kubeconfig
        self.admin: Client = cluster.admin
        self.directory = directory
        self._replicas: list[Replica] = []

    def replica(
        self, *flags: str, account: str = "", kubeconfig: Path | None = None, program: str = "cidrella"
    ) -> Replica:
        """A replica that is not started yet. It elects with a short lease unless the flags say otherwise.

        It runs under the controller's account, under another of the same rights, or as a kubeconfig says.
        """
        number = len(self._replicas)
        if not any(flag.startswith("--leader-elect") for flag in flags):
            flags = (*SHORT_LEASE, *flags)
        made = Replica(
            f"cidrella-{number}",
            kubeconfig or self._account(account),
            self.directory / f"cidrella-{number}.log",
            flags,
            program=program,
        )
        self._replicas.append(made)
        return made

    def _account(self, name: str) -> Path:
        if name:
            return controller_account(self.cluster, name)
        self._kubeconfig = self._kubeconfig or controller_account(self.cluster)
        return self._kubeconfig

    def run(self, *flags: str) -> Replica:
        """A replica that is ready."""
        return self.replica(*flags).start()

    def create_pool(self, name: str, *, finalizers: Iterable[str] = (), **spec: object) -> Json:
        """A ClusterCIDR; 8 host bits unless said otherwise. `labels` selects nodes that have all of them."""
        labels = spec.pop("labels", None)
        if isinstance(labels, dict):
            wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
            spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
        metadata = {"name": name, "finalizers": list(finalizers)}
        body = {
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": metadata,
            "spec": {"perNodeHostBits": 8, **spec},
        }
        return self.admin.create(POOLS, body)

    def create_config(self, name: str, cidr: str, size: int, labels: Mapping[str, str] | None = None) -> Json:
        """A ClusterCIDRConfig. `labels` selects nodes that have all of them."""
        spec: Json = {"cidr": cidr, "perNodeMaskSize": size}
        if labels:
            spec["nodeSelector"] = {"matchLabels": dict(labels)}
        body = {"apiVersion": "networking.x-k8s.io/v1alpha1", "kind": "ClusterCIDRConfig"}
        return self.admin.create(CONFIGS, {**body, "metadata": {"name": name}, "spec": spec})

    def create_node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        *,
        metadata: Mapping[str, object] | None = None,
        **spec: object,
    ) -> Json:
        """A small node. `spec` as podCIDR, podCIDRs, taints."""
        body = {"metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})}, "spec": spec}
        return self.admin.create(NODES, {"apiVersion": "v1", "kind": "Node", **body})

    def create_held_back(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """A node to which replicas with HOLD_BACK give nothing until its taint is removed (N10)."""
        self.create_pool("for-labels", ipv4="172.31.0.0/16", labels={"held-back": "no"})
        self.wait_pool("for-labels", lambda pool: bool(pool.get("status", {}).get("free")))
        self.create_node(name, labels, taints=[{"key": UNINITIALIZED, "effect": "NoSchedule"}])

    def node(self, name: str) -> Json:
        """A node as it stands."""
        return self.admin.get(f"{NODES}/{name}")

    def pool(self, name: str) -> Json:
        """A pool as it stands."""
        return self.admin.get(f"{POOLS}/{name}")

    def config(self, name: str) -> Json:
        """A ClusterCIDRConfig as it stands."""
        return self.admin.get(f"{CONFIGS}/{name}")

    def blocks(self, name: str) -> list[str]:
        """What a node has."""
        return list(self.node(name)["spec"].get("podCIDRs", []))

    def wait_served(self, *names: str, seconds: float = _SECONDS) -> dict[str, list[str]]:
        """Wait until all of these nodes have blocks; what each has."""
        found = self.admin.wait(
            NODES,
            lambda nodes: all(nodes.get(name, {}).get("spec", {}).get("podCIDRs") for name in names),
            timeout=seconds,
        )
        return {name: list(found[name]["spec"]["podCIDRs"]) for name in names}

    def wait_pool(self, name: str, condition: Callable[[Json], bool], seconds: float = _SECONDS) -> Json:
        """Wait until a pool is as the condition wants it."""
        found = self.admin.wait(POOLS, lambda pools: name in pools and condition(pools[name]), timeout=seconds)
        return found[name]

    def wait_config(self, name: str, condition: Callable[[Json], bool], seconds: float = _SECONDS) -> Json:
        """Wait until a ClusterCIDRConfig is as the condition wants it."""
        found = self.admin.wait(CONFIGS, lambda pools: name in pools and condition(pools[name]), timeout=seconds)
        return found[name]

    def wait_gone(self, collection: str, name: str, seconds: float = _SECONDS) -> None:
        """Wait until an object is gone."""
        self.admin.wait(collection, lambda found: name not in found, timeout=seconds)

    def events(self, reason: str = "", name: str = "") -> list[Json]:
        """The events with a reason, on an object of that name."""
        return [
            each
            for each in self.admin.items(EVENTS)
            if (not reason or each["reason"] == reason) and (not name or each["regarding"]["name"] == name)
        ]

    def wait_event(self, reason: str, name: str, seconds: float = _SECONDS) -> Json:
        """Wait for an event, and return the first."""
        eventually(lambda: bool(self.events(reason, name)), seconds, lambda: str(self.events()))
        return self.events(reason, name)[0]

    def clean(self) -> None:
        """Stop every replica, and remove what there is."""
        for replica in self._replicas:
            replica.stop()
        self._replicas = []
        for collection in (NODES, POOLS, CONFIGS):
            for each in self._listed(collection):
                if each["metadata"].get("finalizers"):
                    with suppress(ApiError):
                        self.admin.patch(f"{collection}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
        delete_nodes(self.admin, [each["metadata"]["name"] for each in self.admin.items(NODES)])
        for path in (POOLS, CONFIGS, EVENTS, LEASE, HEARTBEAT):
            with suppress(ApiError):
                self.admin.delete(path)
        for each in self._listed(SERVICE_CIDRS):
            if each["metadata"]["name"] != "kubernetes":
                self.admin.patch(f"{SERVICE_CIDRS}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
                with suppress(ApiError):
                    self.admin.delete(f"{SERVICE_CIDRS}/{each['metadata']['name']}")

    def _listed(self, collection: str) -> list[Json]:
        """What a collection holds; nothing where the server does not know it."""
        try:
            return self.admin.items(collection)
        except ApiError as error:
            if error.code != 404:
                raise
            return []


def eventually(
    condition: Callable[[], bool], seconds: float = _SECONDS, explain: Callable[[], str] = lambda: ""
) -> float:
    """Ask again and again until a condition holds; how long it took. Fails with an explanation if it never does."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {explain()}"
        time.sleep(_POLL)
    return time.monotonic() - began


def condition(obj: Json, kind: str) -> Json:
    """A condition of an object's status; empty where it has none."""
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == kind]
    return found[0] if found else {}
