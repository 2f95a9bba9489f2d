"""Nodes whose cloud provider has not initialised them yet: which of them wait, how long, and what ends it (N10)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.real.rbac import controller_account
from tests.real.site import POOL_ANNOTATION, POOLS, UNINITIALIZED, eventually
from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.real.site import Site
    from tests.testenv.api import Api

TAINTS = [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]
REASON = "WaitingForCloudProvider"
BOUND = 90.0
"""Seconds within which a node that does not wait has its block: far more than it takes."""
LONG = "--wait-for-cloud-provider-timeout=1h"
"""A node that waits does so for the whole test."""


@pytest.fixture(scope="module")
def account(cluster: Api) -> Path:
    """The controller's kubeconfig, made once."""
    return controller_account(cluster)


def served_after(site: Site, name: str) -> float:
    """How many seconds it takes until a node has its block."""
    return eventually(lambda: bool(site.blocks(name)), BOUND, lambda: str(site.events(name=name)))


def pool_of(site: Site, name: str) -> str:
    """The pool that a node was served from."""
    return str(site.node(name)["metadata"]["annotations"][POOL_ANNOTATION])


def test_range_allocator_does_not_wait(
    site: Site, account: Path, record_property: Callable[[str, object], None]
) -> None:
    """N10, F4: with RangeAllocator labels change nothing, and the node is served like any other."""
    site.replica("--cidr-allocator-type=RangeAllocator", "--cluster-cidr=10.1.0.0/16", kubeconfig=account).start()
    site.create_node("tainted", taints=TAINTS)
    record_property("served after", f"{served_after(site, 'tainted'):.2f} s")
    assert site.events(REASON) == []


def test_fallback_pools_do_not_wait(site: Site, account: Path) -> None:
    """N10: where no pool has a selector, labels change nothing."""
    site.create_pool("one", ipv4="10.1.0.0/16")
    site.create_pool("two", ipv4="10.2.0.0/16")
    site.replica(kubeconfig=account).start()
    site.create_node("tainted", taints=TAINTS)
    served_after(site, "tainted")
    assert site.events(REASON) == []


def test_wait_ends_with_its_time(site: Site, account: Path) -> None:
    """N10: a node that labels could give another pool waits, is told so once, and is served when its time is over."""
    site.create_pool("zone-a", ipv4="10.1.0.0/16", labels={"zone": "a"})
    site.create_pool("fallback", ipv4="10.2.0.0/16")
    replica = site.replica("--wait-for-cloud-provider-timeout=3s", kubeconfig=account).start()
    site.create_node("before")
    site.wait_served("before")
    began = time.monotonic()
    site.create_node("tainted", taints=TAINTS)
    event = site.wait_event(REASON, "tainted")
    assert (event["type"], "zone-a" in event["note"]) == ("Normal", True)
    served_after(site, "tainted")
    assert time.monotonic() - began > 2.9
    assert pool_of(site, "tainted") == "fallback"
    assert len(site.events(REASON)) == 1
    assert replica.metric("cidrella_nodes_waiting") == 0


def test_wait_ends_with_the_taint(site: Site, account: Path) -> None:
    """N10: once the labels are there and the taint is gone, the pool that they select serves the node at once."""
    site.create_pool("zone-a", ipv4="10.1.0.0/16", labels={"zone": "a"})
    site.create_pool("fallback", ipv4="10.2.0.0/16")
    site.replica(LONG, kubeconfig=account).start()
    site.create_node("tainted", taints=TAINTS)
    site.wait_event(REASON, "tainted")
    assert site.blocks("tainted") == []
    site.admin.patch(f"{NODES}/tainted", {"metadata": {"labels": {"zone": "a"}}, "spec": {"taints": None}})
    served_after(site, "tainted")
    assert pool_of(site, "tainted") == "zone-a"


def test_wait_ends_with_the_room(site: Site, account: Path) -> None:
    """N10, S4: a full pool is not waited for, whether it was full before or becomes so."""
    site.create_pool("zone-a", ipv4="10.1.0.0/24", labels={"zone": "a"})
    site.create_pool("fallback", ipv4="10.2.0.0/16")
    site.replica(LONG, kubeconfig=account).start()
    site.create_node("early", taints=TAINTS)
    site.wait_event(REASON, "early")
    site.create_node("takes-the-last", {"zone": "a"})
    served_after(site, "early")
    site.create_node("late", taints=TAINTS)
    served_after(site, "late")
    assert {name: pool_of(site, name) for name in ("takes-the-last", "early", "late")} == {
        "takes-the-last": "zone-a",
        "early": "fallback",
        "late": "fallback",
    }
    assert site.events(REASON, "late") == []


def test_wait_ends_with_the_pool(site: Site, account: Path) -> None:
    """N10, S6: a pool that is deleted is not waited for."""
    site.create_pool("zone-a", ipv4="10.1.0.0/16", labels={"zone": "a"})
    site.create_pool("fallback", ipv4="10.2.0.0/16")
    site.replica(LONG, kubeconfig=account).start()
    site.create_node("tainted", taints=TAINTS)
    site.wait_event(REASON, "tainted")
    site.admin.delete(f"{POOLS}/zone-a")
    served_after(site, "tainted")
    assert pool_of(site, "tainted") == "fallback"


@pytest.mark.parametrize("flag", ["--wait-for-cloud-provider=false", "--wait-for-cloud-provider-timeout=0"])
def test_flags_turn_waiting_off(site: Site, account: Path, flag: str) -> None:
    """N10: where no node shall wait, none does."""
    site.create_pool("zone-a", ipv4="10.1.0.0/16", labels={"zone": "a"})
    site.create_pool("fallback", ipv4="10.2.0.0/16")
    site.replica(flag, kubeconfig=account).start()
    site.create_node("tainted", taints=TAINTS)
    served_after(site, "tainted")
    assert pool_of(site, "tainted") == "fallback"
    assert site.events(REASON) == []
