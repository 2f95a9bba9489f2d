"""Objects to send, as small as they may be, and where they go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
CONFIGS = "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs"
RANGES = "/apis/cidrella.dev/v1alpha1/rangeallocations"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"


def services(namespace: str) -> str:
    """Where the Services of a namespace are."""
    return f"/api/v1/namespaces/{namespace}/services"


def leases(namespace: str) -> str:
    """Where the Leases of a namespace are."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def core_events(namespace: str) -> str:
    """Where the Events of a namespace are, in the older group."""
    return f"/api/v1/namespaces/{namespace}/events"


def events(namespace: str) -> str:
    """Where the Events of a namespace are, in the newer group."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def pods(namespace: str) -> str:
    """Where the Pods of a namespace are."""
    return f"/api/v1/namespaces/{namespace}/pods"


def node(name: str, labels: dict[str, str] | None = None, **spec: object) -> Json:
    """A Node."""
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **({"spec": spec} if spec else {})}


def pool(name: str, labels: dict[str, str] | None = None, **spec: object) -> Json:
    """A ClusterCIDR with all the fields that it needs, unless `spec` says otherwise."""
    return {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "spec": {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", **spec},
    }


def lease(name: str, **spec: object) -> Json:
    """A Lease."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def service(name: str, **spec: object) -> Json:
    """A Service with one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def crd(plural: str, group: str, **schema: object) -> Json:
    """A CRD of one version, for things with a spec whose properties (or whole schema) are given."""
    kind = plural[:-1].capitalize()
    spec = {"type": "object", **schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def version(obj: Json) -> int:
    """An object's or a list's version, as a number; only tests may look at it so."""
    return int(obj["metadata"]["resourceVersion"])


def names(listed: Json) -> list[str]:
    """Of the objects of a list, in its order."""
    return [each["metadata"]["name"] for each in listed["items"]]


def made(talk: Talk, path: str, body: Json) -> Json:
    """An object that was created."""
    return talk.create(path, body).granted(201)


def await_kind(talk: Talk, path: str) -> None:
    """Wait until a kind whose CRD is new is served."""
    deadline = time.monotonic() + 20
    while (reply := talk.get(path)).code != 200:
        assert time.monotonic() < deadline, reply.text
        time.sleep(0.05)
