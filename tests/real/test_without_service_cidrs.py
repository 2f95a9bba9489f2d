"""A cluster that has no ServiceCIDR API, as those before Kubernetes 1.33: the flags alone say where Services are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.site import POOLS, SERVICE_CIDRS, Site, condition
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The API server's own allocator insists on these objects, except in the last version that could do without.
FLAGS = {
    "emulated-version": "1.33",
    "feature-gates": "MultiCIDRServiceAllocator=false,DisableAllocatorDualWrite=false",
    "runtime-config": "networking.k8s.io/v1/servicecidrs=false,networking.k8s.io/v1/ipaddresses=false",
}


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Site]:
    """A cluster of its own that serves no ServiceCIDRs."""
    with Cluster.temporary(flags=FLAGS) as cluster:
        site = Site(cluster, tmp_path)
        yield site
        site.clean()


def test_by_flags_alone(older: Site) -> None:
    """A7, O2, P2: nodes are served around the flags' service range, pools live and go, and there is nothing to log."""
    with pytest.raises(ApiError, match="404"):
        older.admin.items(SERVICE_CIDRS)
    replica = older.run("--cluster-cidr=10.1.0.0/22", "--service-cluster-ip-range=10.1.1.0/24,fd00:1::/112")
    for name in ("n0", "n1", "n2"):
        older.create_node(name)
    served = older.wait_served("n0", "n1", "n2")
    assert sorted(block for (block,) in served.values()) == ["10.1.0.0/24", "10.1.2.0/24", "10.1.3.0/24"]
    older.create_node("n3")
    older.wait_event("CIDRNotAvailable", "n3")
    older.create_pool("more", ipv4="10.1.0.0/23", perNodeHostBits=4, ipv6="fd00:1::/111", perNodeHostBitsIPv6=16)
    older.create_pool("most", ipv4="10.2.0.0/16", ipv6="fd00:1::/111", perNodeHostBitsIPv6=16)
    assert older.wait_served("n3") == {"n3": ["10.2.0.0/24", "fd00:1::1:0/112"]}
    assert_no_overlap(older.admin.items(NODES))
    older.admin.delete(f"{POOLS}/most")
    older.wait_pool("most", lambda pool: condition(pool, "Terminating").get("reason") == "CIDRInUse")
    older.admin.delete(f"{NODES}/n3")
    older.wait_gone(POOLS, "most", 5)
    assert replica.get("/readyz") == (200, "ok")
    assert [line for line in replica.logged() if line["level"] in {"warning", "error"}] == []
