"""ClusterCIDRConfig where its CRD is missing, comes later, goes and comes back, is older, or may not be read."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.conftest import CRDS
from tests.real.rbac import apply_deploy, await_storage, controller_account
from tests.real.site import CONFIGS, POOL_ANNOTATION, Site, condition, eventually
from tests.real.test_configs import used_by
from tests.testenv.audit import requests
from tests.testenv.client import ApiError
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.site import Replica
    from tests.testenv.api import Api
    from tests.testenv.client import Json

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "clustercidrconfigs.networking.x-k8s.io"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cidrella"
SECONDS = 180.0
"""Within seconds: the kind is looked for every two. This is for a machine that is busy."""


@pytest.fixture(scope="module")
def own(server: type[Api]) -> Iterator[tuple[Api, Path]]:
    """A cluster of this module's own, and the controller's account in it."""
    with server.temporary() as cluster:
        yield cluster, controller_account(cluster)


@pytest.fixture
def site(own: tuple[Api, Path], tmp_path: Path) -> Iterator[Site]:
    """That cluster, without the CRD."""
    cluster, account = own
    made = Site(cluster, tmp_path, account)
    made.clean()
    uninstall(made)
    yield made
    made.clean()
    apply_deploy(cluster)


def ours() -> Json:
    """Our CRD."""
    crd: Json = yaml.safe_load((CRDS / f"networking.x-k8s.io_{NAME.partition('.')[0]}.yaml").read_text())
    return crd


def install(site: Site, crd: Json | None = None) -> None:
    """Install the CRD, or what is left of it, and wait until the API server serves the kind."""
    site.admin.create(DEFINITIONS, crd or ours())
    eventually(lambda: served(site))
    await_storage(site.cluster)


def served(site: Site) -> bool:
    """Whether the API server knows the kind."""
    try:
        site.admin.get(CONFIGS)
    except ApiError as error:
        if error.code != 404:
            raise
        return False
    return True


def uninstall(site: Site) -> None:
    """Remove the CRD, and with it, as somebody in a hurry does, whatever keeps its objects."""
    with suppress(ApiError):
        site.admin.delete(f"{DEFINITIONS}/{NAME}")
        # Sooner, a controller would guard again what is not being deleted yet.
        eventually(lambda: all(each["metadata"].get("deletionTimestamp") for each in left(site)))
        for each in left(site):
            with suppress(ApiError):
                site.admin.patch(f"{CONFIGS}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
    site.wait_gone(DEFINITIONS, NAME)
    eventually(lambda: not served(site))


def left(site: Site) -> list[Json]:
    """The configs that there are, with or without the CRD."""
    return site.admin.items(CONFIGS) if served(site) else []


def lines(replica: Replica) -> list[str]:
    """What the log says of the kind."""
    told = (str(line) for line in replica.logged())
    return [line for line in told if "clustercidrconfigs" in line.lower()]


def user(account: str) -> str:
    """What the audit log calls an account."""
    return f"system:serviceaccount:kube-system:{account}"


def test_the_kind_is_missing(site: Site) -> None:
    """K6, N4: without the CRD there is one line in the log, and everything else is as before: ready, and serving."""
    replica = site.run()
    site.create_pool("pods", ipv4="10.1.0.0/24")
    site.create_node("n0")
    assert site.wait_served("n0") == {"n0": ["10.1.0.0/24"]}
    site.create_node("n1")
    site.wait_event("CIDRNotAvailable", "n1")
    before = len(asked_for(site))
    eventually(lambda: len(asked_for(site)) >= before + 2, explain=replica.process.tail)
    assert len(lines(replica)) == 1, lines(replica)
    assert not [line for line in replica.logged() if line["level"] in {"warning", "error"}]
    assert replica.get("/readyz")[0] == 200
    assert replica.metric("cidrella_api_reachable") == 1


def asked_for(site: Site) -> list[object]:
    """The requests for the kind, whether or not the API server could answer them."""
    return [each for each in requests(site.cluster.audit_log) if each.resource == "clustercidrconfigs"]


def test_the_kind_comes_and_goes(site: Site) -> None:
    """K6, P6, P7, N2: installed later, it serves within seconds; removed, nodes keep their blocks; so again and again.

    No restart, no block given twice, no event about nodes whose pools went, and the controller is ready throughout.
    """
    replica = site.run()
    site.create_pool("pods", ipv4="10.1.0.0/24", labels={"np": "pool"})
    for number in range(2):
        name = f"waits{number}"
        site.create_node(name)
        site.wait_event("CIDRNotAvailable", name)
        install(site)
        site.create_config("four", "10.1.0.0/16", 24)
        site.create_config("six", "fd00:1::/48", 64)
        site.create_config("unused", "10.2.0.0/16", 24, {"np": "nobody"})
        blocks = [f"10.1.{number}.0/24", "fd00:1::/64" if not number else f"fd00:1:0:{number}::/64"]
        assert site.wait_served(name, seconds=SECONDS) == {name: blocks}
        annotation = site.node(name)["metadata"]["annotations"][POOL_ANNOTATION]
        assert annotation == "ccc/four,ccc/six"
        # Nodes of the time before count again: they hold what is in the range, and say whose it is.
        site.wait_config("four", partial(used_by, number + 1))
        site.wait_config("unused", lambda pool: condition(pool, "Active").get("status") == "True")

        site.admin.delete(f"{DEFINITIONS}/{NAME}")
        site.wait_gone(CONFIGS, "unused", SECONDS)
        pool = site.wait_config("four", lambda pool: bool(condition(pool, "Terminating")))
        assert condition(pool, "Terminating")["reason"] == "CIDRInUse"
        uninstall(site)
        eventually(lambda: replica.get("/readyz")[0] == 200, SECONDS, lambda: replica.get("/readyz")[1])
        assert site.blocks(name) == blocks
    site.create_node("n", {"np": "pool"})
    site.wait_event("CIDRNotAvailable", "n")
    site.create_pool("more", ipv4="10.1.0.0/20", labels={"np": "pool"})
    assert site.wait_served("n") == {"n": ["10.1.2.0/24"]}
    assert_no_overlap(site.admin.items(NODES))
    assert {each["reason"] for each in site.events()} == {"CIDRNotAvailable"}
    assert replica.process.ended is None
    assert not [line for line in replica.logged() if line["level"] == "error"]


def test_an_older_crd(site: Site) -> None:
    """K6, K5, C4: a CRD that has no status, and lets in what makes no sense, serves all the same, and it is said.

    Of an invalid config an event tells on the object itself. With our CRD put in its place, the status is written.
    """
    replica = site.run()
    crd = ours()
    (version,) = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    del version["subresources"]
    install(site, crd)
    site.create_config("four", "10.1.0.0/16", 24)
    site.create_config("odd", "10.2.0.1/16", 24)
    site.create_node("n0")
    assert site.wait_served("n0", seconds=SECONDS) == {"n0": ["10.1.0.0/24"]}
    assert site.wait_event("Invalid", "odd")["regarding"]["kind"] == "ClusterCIDRConfig"
    eventually(lambda: any("no status" in line["event"] for line in replica.logged()))
    assert "status" not in site.config("odd")
    assert not [line for line in replica.logged() if "cannot be written" in line["event"]]
    replica.stop()
    apply_deploy(site.cluster)
    site.run()
    site.wait_config("odd", lambda pool: condition(pool, "Active").get("reason") == "Invalid")
    site.wait_config("four", lambda pool: pool.get("status", {}).get("nodes") == 1)
    site.admin.delete(f"{CONFIGS}/odd")
    site.wait_gone(CONFIGS, "odd")


def test_rights_of_an_older_version(site: Site) -> None:
    """K6, O2: not allowed to look is not the same as missing: nothing is given before it is known what there is."""
    install(site)
    site.create_config("four", "10.1.0.0/16", 24, {"np": "x"})
    site.create_pool("pods", ipv4="10.2.0.0/16")
    take_rights(site)
    replica = site.replica().start(until_ready=False)
    eventually(lambda: "not allowed to list and watch" in replica.get("/readyz")[1], explain=replica.process.tail)
    assert CONFIGS in replica.get("/readyz")[1]
    site.create_node("n", {"np": "x"})
    apply_deploy(site.cluster)
    replica.wait_ready(60)
    assert site.wait_served("n", seconds=60) == {"n": ["10.1.0.0/24"]}


def take_rights(site: Site) -> None:
    """Leave the controller the rights that it had before there was the kind."""
    role = site.admin.get(ROLE)
    for each in role["rules"]:
        each["resources"] = [name for name in each["resources"] if not name.startswith("clustercidrconfigs")]
    role["rules"] = [each for each in role["rules"] if each["resources"]]
    site.admin.replace(ROLE, role)


def test_neither_rights_nor_the_kind(site: Site) -> None:
    """K6, O2: with the rights of an older version and without the CRD all is as it was: ready, serving, one line.

    Once the CRD is there, the replica is not ready before it has the rights, and needs no restart for them.
    """
    take_rights(site)
    replica = site.run()
    site.create_pool("pods", ipv4="10.1.0.0/24")
    site.create_node("n0")
    assert site.wait_served("n0") == {"n0": ["10.1.0.0/24"]}
    before = len(asked_for(site))
    eventually(lambda: len(asked_for(site)) >= before + 2, explain=replica.process.tail)
    assert len(lines(replica)) == 1, lines(replica)
    assert replica.get("/readyz")[0] == 200
    install(site)
    eventually(lambda: "not allowed to list and watch" in replica.get("/readyz")[1], explain=replica.process.tail)
    apply_deploy(site.cluster)
    replica.wait_ready(60)
    site.create_config("four", "10.2.0.0/16", 24)
    site.create_node("n1")
    assert site.wait_served("n1", seconds=60) == {"n1": ["10.2.0.0/24"]}


def test_the_old_way_looks_at_no_kind(site: Site) -> None:
    """F4, K6: RangeAllocator asks for pools of no kind, installed or not."""
    install(site)
    site.create_config("four", "10.1.0.0/16", 24)
    site.replica("--cidr-allocator-type=RangeAllocator", "--cluster-cidr=10.3.0.0/16", account="ranger").start()
    site.create_node("n")
    assert site.wait_served("n") == {"n": ["10.3.0.0/24"]}
    asked = {each.resource for each in requests(site.cluster.audit_log) if each.user == user("ranger")}
    assert "nodes" in asked
    assert not [each for each in asked if each.startswith(("clustercidr", "customresource"))]
    assert not site.config("four")["metadata"].get("finalizers")
