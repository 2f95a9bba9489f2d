"""Nodes as clusters have them: many, and large. And what must hold of them."""

from __future__ import annotations

import ipaddress
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.testenv.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.testenv.client import Client, Json

NODES = "/api/v1/nodes"
_WORKERS = 8
_IMAGES = 30
_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready")
_TIME = "2026-01-01T00:00:00Z"


def realistic_node(name: str, labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    """A node of 8 to 15 KB, as a kubelet registers it: labels, addresses, conditions, thirty images."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m5.2xlarge",
                "topology.kubernetes.io/region": "eu-central-1",
                "topology.kubernetes.io/zone": "eu-central-1a",
                **(labels or {}),
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed": "true"},
        },
        "spec": {"providerID": f"test:///eu-central-1a/{name}", **spec},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": name}],
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "100Gi"},
            "allocatable": {"cpu": "7900m", "memory": "31Gi", "pods": "250", "ephemeral-storage": "90Gi"},
            "conditions": [_condition(kind) for kind in _CONDITIONS],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "0" * 32,
                "systemUUID": "00000000-0000-0000-0000-000000000000",
                "bootID": "00000000-0000-0000-0000-000000000000",
                "kernelVersion": "6.1.0",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "images": [_image(number) for number in range(_IMAGES)],
        },
    }


def create_nodes(
    client: Client, names: Iterable[str], make: Callable[[str], Json] = realistic_node, workers: int = _WORKERS
) -> list[Json]:
    """Create nodes, many at a time; they come back as the API server stored them, in order."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda name: client.create(NODES, make(name)), names))


def delete_nodes(client: Client, names: Iterable[str], workers: int = _WORKERS) -> None:
    """Delete nodes, many at a time. One that is gone already is no error."""

    def delete(name: str) -> None:
        try:
            client.delete(f"{NODES}/{name}")
        except ApiError as error:
            if error.reason != "NotFound":
                raise

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(delete, names))


def pod_cidrs(nodes: Iterable[Json]) -> dict[str, list[str]]:
    """What each node has."""
    return {each["metadata"]["name"]: list(each.get("spec", {}).get("podCIDRs", [])) for each in nodes}


def assert_no_overlap(nodes: Sequence[Json]) -> None:
    """No two nodes share an address. By the standard library's arithmetic, not by ours."""
    held = sorted(
        (network.version, int(network.network_address), int(network.broadcast_address), name, text)
        for name, texts in pod_cidrs(nodes).items()
        for text in texts
        for network in [ipaddress.ip_network(text)]
    )
    furthest = held[:1]
    for one, two in pairwise(held):
        if one[0] != furthest[0][0] or one[2] > furthest[0][2]:
            furthest = [one]
        other = furthest[0]
        assert two[0] != other[0] or two[1] > other[2], f"{two[3]} ({two[4]}) overlaps {other[3]} ({other[4]})"


def _condition(kind: str) -> Json:
    return {
        "type": kind,
        "status": "True" if kind == "Ready" else "False",
        "lastHeartbeatTime": _TIME,
        "lastTransitionTime": _TIME,
        "reason": f"KubeletHas{kind}",
        "message": f"kubelet reports on {kind}, in a sentence of about the usual length",
    }


def _image(number: int) -> Json:
    digest = f"{number:064x}"
    repository = f"registry.example.com/team-{number % 5}/application-{number}"
    return {"names": [f"{repository}@sha256:{digest}", f"{repository}:v1.{number}.0"], "sizeBytes": 10_000_000 + number}
