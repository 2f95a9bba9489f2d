"""Services and what gives them addresses, as the tests of `cidrella services` want them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.cli.run import Result

    Json = dict[str, Any]

FLAG = "--service-cluster-ip-range"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class OfFiles(Protocol):
    """`cidrella services` on files with these objects."""

    def __call__(self, objects: list[Json], *arguments: str) -> Result:
        """Run it."""


def service(name: str, *addresses: str, **metadata: object) -> Json:
    namespace, _, short = name.rpartition("/")
    metadata = {"name": short, "namespace": namespace, "uid": f"uid-{name}", **metadata}
    spec = {"type": "ClusterIP", "clusterIP": addresses[0], "clusterIPs": list(addresses)} if addresses else {}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def service_cidr(name: str, *cidrs: str, **metadata: object) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name, **metadata},
        "spec": {"cidrs": list(cidrs)},
    }


def ip_address(address: str, resource: str = "services", name: str = "web", namespace: str = "a") -> Json:
    parent = {"group": "", "resource": resource, "namespace": namespace, "name": name}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress"}
    return {**kind, "metadata": {"name": address}, "spec": {"parentRef": parent}}


def allocation(cidr: str, *offsets: int, **fields: object) -> Json:
    bits = sum(1 << offset for offset in offsets)
    return {
        "apiVersion": "cidrella.dev/v1alpha1",
        "kind": "RangeAllocation",
        "metadata": {"name": cidr.replace("/", "-")},
        "range": cidr,
        "data": b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode(),
        **fields,
    }


def grant(address: str, name: str) -> str:
    return f"{address} {name} w"


KUBERNETES = service("default/kubernetes", "10.96.0.1")
RANGE = service_cidr("kubernetes", "10.96.0.0/24")


def told(result: Result) -> Any:
    assert result.code == 0, result.err
    return json.loads(result.out)


def lines(result: Result) -> list[str]:
    """The output, the space between columns reduced."""
    return [" ".join(line.split()) for line in result.out.splitlines()]


def words(text: str) -> str:
    """What a command says in a frame, without it."""
    return " ".join(text.replace("│", " ").split())
