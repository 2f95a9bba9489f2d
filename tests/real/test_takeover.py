"""Taking over from another controller: its finalizer, its pools, its nodes.

From kube-controller-manager's own allocator: see `migration`, which `make migration` runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.site import FINALIZER, FOREIGN_FINALIZER, POOLS, condition
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, pod_cidrs, realistic_node

if TYPE_CHECKING:
    from tests.real.site import Site
    from tests.testenv.client import Json

OTHERS = [FOREIGN_FINALIZER]


def given(name: str, *blocks: str, labels: dict[str, str] | None = None) -> Json:
    """A node as the other controller left it: with blocks, and nothing that says which pool they are from."""
    return realistic_node(name, labels, podCIDR=blocks[0], podCIDRs=list(blocks))


def test_taking_over(site: Site) -> None:
    """P1, P2, P3, N2, pitfall 4: every block stays, none is given again, and what was being deleted goes when unused.

    The other's finalizer is as good as ours on a pool that goes, and others' beside it are left alone.
    """
    site.create_pool("live", ipv4="10.1.0.0/20", ipv6="fd00:1::/112", finalizers=OTHERS)
    site.create_pool("big", ipv4="10.2.0.0/16", perNodeHostBits=10, labels={"size": "big"}, finalizers=OTHERS)
    site.create_pool("going", ipv4="10.3.0.0/16", finalizers=OTHERS)
    site.create_pool("unused", ipv4="10.4.0.0/16", finalizers=OTHERS)
    site.create_pool("shared", ipv4="10.5.0.0/16", finalizers=[*OTHERS, "example.com/keep"])
    for name in ("going", "unused", "shared"):
        site.admin.delete(f"{POOLS}/{name}")
    left = [given(f"live-{number}", f"10.1.{number}.0/24", f"fd00:1::{number:x}00/120") for number in (0, 1, 3, 6)]
    left += [given(f"big-{number}", f"10.2.{number * 4}.0/22", labels={"size": "big"}) for number in (0, 2)]
    # Of a pool that is being deleted, relabelled since, and of one that is long gone.
    left += [given("stays", "10.3.7.0/24", labels={"size": "big"}), given("orphan", "10.9.0.0/24")]
    by_name = {each["metadata"]["name"]: each for each in left}
    create_nodes(site.admin, by_name, by_name.__getitem__)
    before = pod_cidrs(left)

    site.run()
    site.wait_gone(POOLS, "unused")
    fresh = [f"new-{number}" for number in range(12)]
    create_nodes(site.admin, [*fresh, "new-big"], lambda name: realistic_node(name, _labels(name)))
    served = site.wait_served(*fresh, "new-big")
    assert served["new-big"] == ["10.2.4.0/22"]
    assert all(blocks[0].startswith("10.1.") for name, blocks in served.items() if name in fresh)
    site.create_node("too-many")
    site.wait_event("CIDRNotAvailable", "too-many")  # all 16 blocks are in use: none was lost, none given twice
    nodes = site.admin.items(NODES)
    assert_no_overlap(nodes)
    assert before.items() <= pod_cidrs(nodes).items()

    assert site.pool("live")["metadata"]["finalizers"] == [FOREIGN_FINALIZER, FINALIZER]
    site.wait_pool("shared", lambda pool: pool["metadata"]["finalizers"] == ["example.com/keep"])
    pool = site.wait_pool("going", lambda pool: bool(condition(pool, "Terminating")))
    assert condition(pool, "Terminating")["reason"] == "CIDRInUse"
    assert "stays" in condition(pool, "Terminating")["message"]
    site.admin.delete(f"{NODES}/stays")
    site.wait_gone(POOLS, "going")
    assert len(site.events("CIDRUntracked", "orphan")) == 1
    assert not site.events("CIDRConflict")


def _labels(name: str) -> dict[str, str]:
    return {"size": "big"} if name.endswith("big") else {}
