"""Playing a kubelet, on an API that has none: nodes that register, and nodes that go.

A node looks as one that a kubelet registered and that is ready: addresses, capacity, conditions. What keeps Pods from a
node that is not ready yet goes at once; in a cluster, kube-controller-manager takes it off.
"""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec

from cidrella.kube.errors import ApiError
from cidrella.model.objects import NODES_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.kube.client import Client

    Json = dict[str, Any]

_NOT_FOUND: Final = 404
_NETWORK: Final = int(IPv4Address("198.18.0.0"))
_HOSTS: Final = (1 << 17) - 2
"""Of 198.18.0.0/15, which is for tests of networks and nobody's."""
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_FINE: Final = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}
_GIBIBYTES: Final = 16
_PODS: Final = "110"


class _Spec(msgspec.Struct, frozen=True):
    taints: list[dict[str, Any]] | None = None


class _Node(msgspec.Struct):
    spec: _Spec = _Spec()


def node_object(name: str, labels: Mapping[str, str], version: str) -> Json:
    """The Node that a kubelet of this version registers."""
    resources = {"cpu": "4", "memory": f"{_GIBIBYTES}Gi", "ephemeral-storage": "100Gi", "pods": _PODS}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                **labels,
            },
        },
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(name)},
                {"type": "Hostname", "address": name},
            ],
            "capacity": resources,
            "allocatable": resources,
            "conditions": _conditions(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "none://",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": version,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "a node that cidrella plays",
                "systemUUID": "",
            },
        },
    }


async def register(client: Client, name: str, labels: Mapping[str, str], version: str) -> None:
    """Have a node of this name, as a kubelet has it. Raises `KubeError`; 409 where there is one already."""
    made = await client.create(NODES_PATH, node_object(name, labels, version), _Node)
    taints = made.spec.taints or []
    kept = [each for each in taints if each.get("key") != _NOT_READY]
    if kept != taints:
        await client.patch(f"{NODES_PATH}/{name}", {"spec": {"taints": kept or None}}, msgspec.Raw)


async def unregister(client: Client, name: str) -> bool:
    """Have no such node. Whether there was one. Raises `KubeError`."""
    try:
        await client.delete(f"{NODES_PATH}/{name}")
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return False
    return True


def _conditions(now: str) -> list[Json]:
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    fine = [{"type": kind, "status": "False", "reason": why, **times} for kind, why in _FINE.items()]
    return [*fine, {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}]


def _address(name: str) -> str:
    """The same for a name, always, and for two names seldom the same."""
    return str(IPv4Address(_NETWORK + 1 + crc32(name.encode()) % _HOSTS))
