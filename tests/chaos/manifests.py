"""Nodes and pools of a schedule, as the API has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.site import CONFIGS, POOLS, UNINITIALIZED

if TYPE_CHECKING:
    from tests.chaos.schedule import NewNode, Pool
    from tests.testenv.client import Json

GROUP = "networking.x-k8s.io"
HELD_BACK = [{"key": UNINITIALIZED, "effect": "NoSchedule"}]
"""Taints for which a node is given nothing, while labels could give it a pool with room (N10): members are run so."""


def node_manifest(node: NewNode, blocks: tuple[str, ...] = ()) -> Json:
    """A small one, with blocks where somebody has chosen them."""
    spec: Json = {}
    if node.held_back:
        spec["taints"] = HELD_BACK
    if blocks:
        spec |= pod_cidrs(blocks)
    metadata = {"name": node.name, "labels": dict(node.labels)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def pod_cidrs(blocks: tuple[str, ...]) -> Json:
    """The fields of a node's spec that hold its blocks."""
    return {"podCIDR": blocks[0], "podCIDRs": list(blocks)}


def pool_path(pool: Pool) -> str:
    """Where it is."""
    return f"{collection_of(pool)}/{pool.name}"


def collection_of(pool: Pool) -> str:
    """Where pools of its kind are."""
    return CONFIGS if pool.config else POOLS


def pool_manifest(pool: Pool) -> Json:
    """Of either kind."""
    return _config(pool) if pool.config else _cluster_cidr(pool)


def _config(pool: Pool) -> Json:
    size = 32 - pool.bits if pool.ipv4 else 128 - pool.bits_v6
    spec = {
        "cidr": pool.ipv4 or pool.ipv6,
        "perNodeMaskSize": size,
        "nodeSelector": {"matchLabels": dict(pool.labels)},
    }
    metadata = {"name": pool.name}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ClusterCIDRConfig", "metadata": metadata, "spec": spec}


def _cluster_cidr(pool: Pool) -> Json:
    spec: Json = {"perNodeHostBits": pool.bits}
    if pool.ipv4:
        spec["ipv4"] = pool.ipv4
    if pool.ipv6:
        spec |= {"ipv6": pool.ipv6, "perNodeHostBitsIPv6": pool.bits_v6}
    wanted: list[Json] = [{"key": key, "operator": "In", "values": [value]} for key, value in pool.labels]
    if pool.unless:
        wanted.append({"key": pool.unless, "operator": "DoesNotExist"})
    if wanted:
        spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterCIDR", "metadata": {"name": pool.name}, "spec": spec}
