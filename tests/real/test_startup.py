"""From flags to a serving controller: pools out of flags, wrong flags, restarts, RangeAllocator and back, observing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.behind import behind_proxy
from tests.real.conftest import CRDS
from tests.real.rbac import await_storage, controller_account
from tests.real.site import FINALIZER, POOL_ANNOTATION, POOLS, SERVICE_CIDRS, Site, condition, eventually
from tests.testenv.audit import writes
from tests.testenv.nodes import NODES, assert_no_overlap, pod_cidrs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.site import Replica
    from tests.testenv.api import Api
    from tests.testenv.client import Json

ALONE = "--leader-elect=false"
PREFIX = "created-from-flags-"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = "clustercidrs.networking.x-k8s.io"


def from_flags(site: Site) -> dict[str, bool]:
    """The pools made from flags: whether each is being deleted."""
    found = (each["metadata"] for each in site.admin.items(POOLS))
    return {each["name"]: "deletionTimestamp" in each for each in found if each["name"].startswith(PREFIX)}


def undeleted(site: Site) -> list[str]:
    """The pools made from flags that stay."""
    return [name for name, going in from_flags(site).items() if not going]


def wait_one(site: Site) -> str:
    """Wait for the one that the flags ask for: a replica may be ready before it has made it."""
    eventually(lambda: len(undeleted(site)) == 1)
    return undeleted(site)[0]


def nodes(site: Site) -> list[Json]:
    """All nodes, of which no two share an address."""
    found = site.admin.items(NODES)
    assert_no_overlap(found)
    return found


def test_there_and_back_again(site: Site) -> None:
    """F1, P2: flags make one pool and find it again; changed ones leave the old to its nodes, round after round."""
    ranges = ["10.1.0.0/16", "10.2.0.0/16"]
    replicas = [site.replica(ALONE, f"--cluster-cidr={each}") for each in ranges]
    first = replicas[0].start()
    name = wait_one(site)
    made = site.pool(name)
    assert made["spec"] == {"perNodeHostBits": 8, "ipv4": ranges[0]}
    assert made["metadata"]["finalizers"] == [FINALIZER]
    site.create_node("n0")
    assert site.wait_served("n0") == {"n0": ["10.1.0.0/24"]}
    first.stop()
    first.start()
    assert site.pool(name)["metadata"]["uid"] == made["metadata"]["uid"]
    assert from_flags(site) == {name: False}
    first.stop()
    for number in range(1, 6):
        replica = replicas[number % 2].start()
        site.create_node(f"n{number}")
        (block,) = site.wait_served(f"n{number}")[f"n{number}"]
        assert block.startswith(ranges[number % 2].removesuffix("0.0/16"))
        assert len(undeleted(site)) == 1
        assert len(from_flags(site)) == number + 1
        assert replica.process.ended is None
        assert not [line for line in replica.logged() if line["level"] == "error"]
        if number < 5:
            replica.stop()
    given = pod_cidrs(nodes(site))
    assert len(given) == 6
    for number in range(6):
        site.admin.delete(f"{NODES}/n{number}")
    eventually(lambda: list(from_flags(site)) == undeleted(site), explain=lambda: str(from_flags(site)))


def test_families_keep_their_order_and_sizes(site: Site) -> None:
    """F1, F3, pitfall 11: IPv6 first and a /64 for each node, as the flags say, and the same pool after a restart.

    Without the flag, a pool out of flags is served from like any other, and stays.
    """
    flags = [ALONE, "--cluster-cidr=fd00:1::/48,10.1.0.0/16", "--node-cidr-mask-size-ipv4=25"]
    replica = site.replica(*flags).start()
    name = wait_one(site)
    assert site.pool(name)["spec"] == {
        "perNodeHostBits": 7,
        "perNodeHostBitsIPv6": 64,
        "ipv4": "10.1.0.0/16",
        "ipv6": "fd00:1::/48",
    }
    site.create_node("n0")
    assert site.wait_served("n0") == {"n0": ["fd00:1::/64", "10.1.0.0/25"]}
    assert site.node("n0")["spec"]["podCIDR"] == "fd00:1::/64"
    replica.stop()
    site.create_node("n1")
    replica.start()
    assert site.wait_served("n1") == {"n1": ["fd00:1:0:1::/64", "10.1.0.128/25"]}
    assert from_flags(site) == {name: False}
    replica.stop()
    site.replica(ALONE).start()
    site.create_node("n2")
    assert site.wait_served("n2") == {"n2": ["fd00:1:0:2::/64", "10.1.1.0/25"]}
    assert from_flags(site) == {name: False}


def test_wrong_flags_touch_nothing(site: Site) -> None:
    """F2, F7: flags that make no sense are one clear line and exit code 2, and the API server hears nothing."""
    cases = {
        "--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=8": "--node-cidr-mask-size",
        "--cluster-cidr=10.0.0.0/16,10.1.0.0/16": "--cluster-cidr",
        "--feature-gates=MultiCIDRRangeAllocator=false": "--feature-gates",
        "--cidr-allocator-type=CloudAllocator": "MultiCIDRRangeAllocator, RangeAllocator",
        "--node-cidr-mask-size-ipv6=64": "--node-cidr-mask-size-ipv6",
    }
    with behind_proxy(site) as behind:
        for flags, named in cases.items():
            command = [sys.executable, "-m", "cidrella", "run", f"--kubeconfig={behind.kubeconfig}", *flags.split()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
            assert done.returncode == 2
            (line,) = (done.stdout + done.stderr).splitlines()
            assert named in line
        assert behind.proxy.requests == ()


def test_restart_with_nodes_in_place(site: Site) -> None:
    """F3, A7, pitfall 12, pitfall 16: what nodes and Services have is known before anything is given.

    So it is to a new controller, to a pool that comes later, and to one that comes while no controller runs.
    """
    body = {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.1.0.0/25"]}}
    site.admin.create(SERVICE_CIDRS, body)
    for number in range(1, 4):
        site.create_node(f"old{number}", podCIDR=f"10.1.{number}.0/24", podCIDRs=[f"10.1.{number}.0/24"])
    site.create_node("odd", podCIDR="10.1.4.192/26", podCIDRs=["10.1.4.192/26"])
    replica = site.replica(ALONE, "--service-cluster-ip-range=10.1.7.0/24")
    site.create_node("new0")
    site.create_pool("before", ipv4="10.1.0.0/21")
    replica.start()
    assert site.wait_served("new0") == {"new0": ["10.1.5.0/24"]}
    replica.stop()
    site.create_node("new1")
    replica.start()
    assert site.wait_served("new1") == {"new1": ["10.1.6.0/24"]}
    site.create_node("new2")
    site.wait_event("CIDRNotAvailable", "new2")
    site.create_pool("later", ipv4="10.1.0.0/22", perNodeHostBits=7)
    assert site.wait_served("new2") == {"new2": ["10.1.0.128/25"]}
    nodes(site)


def test_upgrade_downgrade_upgrade(site: Site) -> None:
    """F4, A6, pitfall 2: from one type of allocator to the other, with other sizes on the way, every block stays."""
    cidrs = "--cluster-cidr=10.1.0.0/16,fd00:1::/48"
    old, new = "--cidr-allocator-type=RangeAllocator", "--cidr-allocator-type=MultiCIDRRangeAllocator"
    given: dict[str, list[str]] = {}
    phases = [(old, 24, 64), (new, 24, 64), (old, 26, 64), (new, 25, 60), (old, 24, 68)]
    for phase, (allocator, ipv4, ipv6) in enumerate(phases):
        sizes = [f"--node-cidr-mask-size-ipv4={ipv4}", f"--node-cidr-mask-size-ipv6={ipv6}"]
        replica = site.replica(ALONE, cidrs, allocator, *sizes)
        replica.process.start()
        names = [f"p{phase}-{number}" for number in range(4)]
        for name in names:
            site.create_node(name)
        for name, (first, second) in site.wait_served(*names).items():
            assert first.endswith(f"/{ipv4}")
            assert second.endswith(f"/{ipv6}")
            assert (POOL_ANNOTATION in site.node(name)["metadata"].get("annotations", {})) == (allocator == new)
        now = pod_cidrs(nodes(site))
        assert given.items() <= now.items()
        given = now
        old_way = [line for line in replica.logged() if "the old way" in line["event"]]
        assert len(old_way) == (allocator == old)
        replica.stop()


def test_reporting_without_allocating(site: Site) -> None:
    """F8: with --allocate-node-cidrs=false pools are guarded, status and metrics written, and no node is ever sent."""
    replica = site.replica("--allocate-node-cidrs=false", account="reporter").start()
    site.create_pool("pool", ipv4="10.1.0.0/22")
    site.create_node("has", podCIDR="10.1.1.0/24", podCIDRs=["10.1.1.0/24"])
    site.create_node("wants")
    pool = site.wait_pool(
        "pool", lambda pool: pool.get("status", {}).get("ipv4") == {"capacity": 4, "allocated": 1, "free": 3}
    )
    assert pool["status"]["nodes"] == 1
    assert condition(pool, "Active")["reason"] == "Allocatable"
    usage = "node_ipam_controller_multicidrset_usage_cidrs"
    eventually(lambda: replica.metric(usage, clusterCIDRName="pool") == 0.25)
    eventually(lambda: replica.metric("cidrella_nodes_waiting") == 1)
    site.admin.delete(f"{NODES}/has")
    site.wait_pool("pool", lambda pool: pool["status"]["nodes"] == 0)
    assert site.blocks("wants") == []
    user = "system:serviceaccount:kube-system:reporter"
    assert not writes(site.cluster.audit_log, user, "nodes")
    assert writes(site.cluster.audit_log, user, "clustercidrs")


@pytest.fixture
def bare(server: type[Api], tmp_path: Path) -> Iterator[Site]:
    """A cluster of its own, with the controller's rights and without its CRD."""
    with server.temporary() as cluster:
        site = Site(cluster, tmp_path, controller_account(cluster))
        cluster.admin.delete(f"{CRD_PATH}/{CRD}")
        site.wait_gone(CRD_PATH, CRD)
        yield site
        site.clean()


def older_crd() -> Json:
    """Our CRD as it was before IPv6 had a size of its own."""
    (path,) = CRDS.glob("*clustercidrs.yaml")
    crd: Json = yaml.safe_load(path.read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["perNodeHostBitsIPv6"]
    spec["x-kubernetes-validations"] = [
        each for each in spec["x-kubernetes-validations"] if "perNodeHostBitsIPv6" not in each["rule"]
    ]
    return crd


def said(replica: Replica, words: str) -> int:
    """How often the log says something."""
    return sum(words in line["event"] for line in replica.logged())


def test_crd_missing_and_older(bare: Site) -> None:
    """F4, F1, C4: RangeAllocator needs no CRD; with the other type its lack is said, and an older one is not relied on.

    The pool that the older CRD cannot hold is not made, which is said, and other pools serve.
    """
    cidrs = "--cluster-cidr=10.1.0.0/16,fd00:1::/48"
    replica = bare.replica(ALONE, cidrs, "--cidr-allocator-type=RangeAllocator").start()
    bare.create_node("n0")
    assert bare.wait_served("n0") == {"n0": ["10.1.0.0/24", "fd00:1::/64"]}
    assert said(replica, "the old way") == 1
    replica.stop()

    replica = bare.replica(ALONE, cidrs).start(until_ready=False)
    eventually(lambda: "CRD is not installed" in replica.get("/readyz")[1], explain=replica.process.tail)
    bare.admin.create(CRD_PATH, older_crd())
    replica.wait_ready()
    eventually(lambda: "cannot hold sizes that differ" in replica.log.read_text(), explain=replica.process.tail)
    assert from_flags(bare) == {}
    bare.create_pool("other", ipv4="10.1.0.0/20")
    bare.create_node("n1")
    assert bare.wait_served("n1") == {"n1": ["10.1.1.0/24"]}
    assert said(replica, "CRD is not installed") == 1
    (path,) = CRDS.glob("*clustercidrs.yaml")
    version = bare.admin.get(f"{CRD_PATH}/{CRD}")["metadata"]["resourceVersion"]
    crd = yaml.safe_load(path.read_text())
    crd["metadata"]["resourceVersion"] = version
    bare.admin.replace(f"{CRD_PATH}/{CRD}", crd)
    await_storage(bare.cluster)
    eventually(lambda: len(from_flags(bare)) == 1, explain=replica.process.tail)
    for words in ("cannot be made as the flags say", "drops fields"):
        assert said(replica, words) == 1, words
