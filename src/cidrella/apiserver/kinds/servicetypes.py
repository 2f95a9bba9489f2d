"""What the types of Services have, and do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.model.serviceip import HEADLESS

if TYPE_CHECKING:
    Json = dict[str, Any]

CLUSTER_IP: Final = "ClusterIP"
EXTERNAL_NAME: Final = "ExternalName"
LOAD_BALANCER: Final = "LoadBalancer"
NODE_PORT: Final = "NodePort"
TYPES: Final = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)


def needs_address(spec: Json) -> bool:
    """Whether it has an address, or says that it wants none."""
    return spec["type"] in {CLUSTER_IP, NODE_PORT, LOAD_BALANCER}


def needs_node_ports(spec: Json) -> bool:
    """Whether it has ports on every node."""
    return spec["type"] == NODE_PORT or (
        spec["type"] == LOAD_BALANCER and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def needs_health_port(spec: Json) -> bool:
    """Whether nodes tell at a port of theirs whether they have Pods of it."""
    return spec["type"] == LOAD_BALANCER and spec.get("externalTrafficPolicy") == "Local"


def has_outside(spec: Json) -> bool:
    """Whether it is reached from outside the cluster."""
    inside = spec["type"] == CLUSTER_IP and not spec.get("externalIPs")
    return needs_address(spec) and not inside


def is_headless(spec: Json) -> bool:
    """Whether it says that it wants no address."""
    return bool(spec.get("clusterIPs", [])[:1] == [HEADLESS])
