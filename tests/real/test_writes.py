"""Nodes of a controller whose way to a real API server is a bad one: what was written, and what it was told of that."""

from __future__ import annotations

import json
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.rbac import NAMESPACE, account_token, controller_account
from tests.real.site import FINALIZER, POOLS, condition, eventually
from tests.testenv.api import kubeconfig
from tests.testenv.audit import assert_pod_cidrs_written_once, writes
from tests.testenv.client import ApiError
from tests.testenv.faults import (
    answer,
    answer_then_forward,
    cut,
    cut_reply,
    delay,
    delay_reply,
    hold,
    html,
    plain_text,
    refused,
    reset,
    server_error,
    swallow,
    too_many_requests,
)
from tests.testenv.nodes import NODES, assert_no_overlap
from tests.testenv.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.site import Site
    from tests.testenv.api import Api
    from tests.testenv.client import Json
    from tests.testenv.faults import Fault

ACCOUNT = "writer"
"""An account of its own: what the audit log has of it was sent here, and nowhere is a node given a second block."""
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
_WITHOUT = "cidrella_nodes_without_cidr"
AT_ONCE = 20.0
"""Seconds. A machine with time to spare takes a tenth of a second; this is for one that has none for a while."""


@pytest.fixture
def proxy(cluster: Api) -> Iterator[FaultProxy]:
    """What stands between the controller and the API server."""
    controller_account(cluster, ACCOUNT)
    serving = cluster.authority.server("fault-proxy")
    with FaultProxy(
        cluster.server, certificate=serving.certificate, key=serving.key, ca=cluster.authority.certificate
    ) as running:
        yield running


def test_pod_cidrs_as_older_servers_took_them(proxy: FaultProxy, site: Site) -> None:
    """N7: old spellings are read as what they mean; what cannot be read is told on the node, and others are served."""
    site.create_pool("pods", ipv4="10.1.0.0/16", ipv6="fd00:1::/112")
    shown = {"legacy": ["010.001.000.007/24", "FD00:0001:0::0001/120"], "odd": ["10.1.0/24", "fd00::/no"]}
    for name in shown:
        site.create_node(name)
    listed = site.admin.get(NODES)
    for node in listed["items"]:
        cidrs = shown[node["metadata"]["name"]]
        node["spec"].update(podCIDR=cidrs[0], podCIDRs=cidrs)
    # The API server of today would not store such nodes: they are shown in lists.
    proxy.add(answer(200, json.dumps(listed)), method="GET", path=r"^/api/v1/nodes\?.*limit=")
    site.replica(kubeconfig=_through(proxy, site)).start()
    assert "10.1.0/24" in site.wait_event("CIDRInvalid", "odd")["note"]
    site.create_node("even")
    assert site.wait_served("even") == {"even": ["10.1.1.0/24", "fd00:1::100/120"]}
    assert site.events(name="legacy") == []


def test_writes_with_unknown_outcome(proxy: FaultProxy, site: Site) -> None:
    """N9, N1: lost replies, late replies, 500s and lost requests never give a node two blocks, and leak none."""
    site.create_pool("pods", ipv4="10.1.0.0/18")
    replica = site.replica("--api-timeout=1s", kubeconfig=_through(proxy, site)).start()
    one = r"^/api/v1/nodes/one-"
    faults = {
        "swallowed": swallow(),
        "reset": swallow(reset=True),
        "half": cut_reply(after_bytes=0),
        "late": delay_reply(1.5),
        "error": server_error(),
        "html": html(502),
        "cut": cut(),
    }
    rules = [
        proxy.add(fault, method="PATCH", path=rf"{one}{name}\b", nth=range(1, 3)) for name, fault in faults.items()
    ]
    for fault in (swallow(), server_error(), delay(1.3, even_if_gone=True), reset()):
        proxy.add(fault, method="PATCH", path="^/api/v1/nodes/many-", probability=0.2)
    names = [f"one-{name}" for name in faults] + [f"many-{number}" for number in range(25)]
    for name in names:
        site.create_node(name)
    given = site.wait_served(*names, seconds=60)
    assert all(rule.hits for rule in rules)
    eventually(lambda: replica.metric("cidrella_writes_in_flight") == 0)
    taken = len({block for blocks in given.values() for block in blocks})
    assert taken == len(names)
    _at_rest(site, "pods", 64 - taken)
    for name in names[::2]:
        site.admin.delete(f"{NODES}/{name}")
    _at_rest(site, "pods", 64 - taken + len(names[::2]))
    assert_no_overlap(site.admin.items(NODES))
    _assert_written_once(site)


def test_writes_that_land_late(proxy: FaultProxy, site: Site) -> None:
    """N9, N3, N8: a write that lands after it was given up, refused, or its node replaced never makes a duplicate."""
    site.create_pool("pods", ipv4="10.1.0.0/22", labels={"pool": "a"})
    site.create_pool("other", ipv4="10.2.0.0/22", labels={"pool": "b"})
    site.replica("--api-timeout=1s", kubeconfig=_through(proxy, site)).start()
    # Given up by the client, then definitely refused twice: the first may land all the same, and does.
    late, again, taken = Event(), Event(), Event()
    proxy.add(hold(late), method="PATCH", path=r"/nodes/late\b", nth=1)
    proxy.add(_forbidden(), method="PATCH", path=r"/nodes/late\b", nth=range(2, 1000))
    site.create_node("late", {"pool": "a"})
    proxy.wait_for(lambda entry: "/nodes/late" in entry.path, count=3)
    site.create_node("meanwhile", {"pool": "a"})
    assert site.wait_served("meanwhile") == {"meanwhile": ["10.1.1.0/24"]}
    assert site.blocks("late") == []
    late.set()
    assert site.wait_served("late") == {"late": ["10.1.0.0/24"]}

    # Replaced by another node of the same name, with the write for the first still under way.
    proxy.add(hold(again), method="PATCH", path=r"/nodes/again\b", nth=1)
    site.create_node("again", {"pool": "a"})
    proxy.wait_for(lambda entry: "/nodes/again" in entry.path)
    site.admin.delete(f"{NODES}/again")
    site.create_node("again", {"pool": "b"})
    assert site.wait_served("again") == {"again": ["10.2.0.0/24"]}
    again.set()
    proxy.wait_for(lambda entry: "/nodes/again" in entry.path and entry.status == 422)

    # Somebody else was faster.
    proxy.add(hold(taken), method="PATCH", path=r"/nodes/taken\b")
    site.create_node("taken", {"pool": "b"})
    proxy.wait_for(lambda entry: "/nodes/taken" in entry.path)
    site.admin.patch(f"{NODES}/taken", {"spec": {"podCIDR": "10.1.3.0/24", "podCIDRs": ["10.1.3.0/24"]}})
    taken.set()
    proxy.wait_for(lambda entry: "/nodes/taken" in entry.path and entry.status == 422)
    _at_rest(site, "pods", 1)
    _at_rest(site, "other", 3)
    assert site.blocks("taken") == ["10.1.3.0/24"]
    assert site.blocks("again") == ["10.2.0.0/24"]
    assert_no_overlap(site.admin.items(NODES))
    _assert_written_once(site)


def test_writes_that_are_answered_and_forwarded_later(proxy: FaultProxy, site: Site) -> None:
    """A1, N9: a reply that is not the API server's frees nothing: the write that it answers may land afterwards.

    For each kind of reply there is a pool of one block, and two nodes that want it.
    """
    replies = {
        "408": html(408),
        "404": html(404),
        "409": html(409),
        "401": html(401),
        "502": html(502),
        "504": plain_text(504),
        "429": too_many_requests(),  # the last: it keeps other writes waiting
    }
    for number, name in enumerate(replies):
        site.create_pool(name, ipv4=f"10.{number}.0.0/24", labels={"pool": name})
    site.replica(kubeconfig=_through(proxy, site)).start()
    rules = [
        proxy.add(answer_then_forward(reply, 4), method="PATCH", path=rf"/nodes/first-{name}\b")
        for name, reply in replies.items()
    ]
    for name in replies:
        site.create_node(f"first-{name}", {"pool": name})
    eventually(lambda: all(rule.hits for rule in rules))
    for name in replies:
        site.create_node(f"second-{name}", {"pool": name})
    given = site.wait_served(*(f"first-{name}" for name in replies))
    assert_no_overlap(site.admin.items(NODES))
    assert list(given.values()) == [[f"10.{number}.0.0/24"] for number in range(len(replies))]
    for name in replies:
        site.wait_event("CIDRNotAvailable", f"second-{name}")
        assert site.blocks(f"second-{name}") == []
    proxy.clear()
    for name in replies:
        site.admin.delete(f"{NODES}/first-{name}")
    site.wait_served(*(f"second-{name}" for name in replies))
    assert_no_overlap(site.admin.items(NODES))
    _assert_written_once(site)


def test_pool_deleted_under_a_write(proxy: FaultProxy, site: Site) -> None:
    """P2, P3, N9: a deleted pool stays while a write with its block is under way, and goes when that is refused."""
    site.create_pool("lands", ipv4="10.5.0.0/24", labels={"pool": "a"})
    site.create_pool("refused", ipv4="10.6.0.0/24", labels={"pool": "b"})
    with _closed_to_writes(site, "refused"):
        site.replica(kubeconfig=_through(proxy, site)).start()
        eventually(lambda: all(each["metadata"].get("finalizers") for each in site.admin.items(POOLS)))
        proxy.add(delay(0.7), method="PATCH", path=r"/nodes/lands\b")
        proxy.add(delay(3), method="PATCH", path=r"/nodes/refused\b")  # when all is quiet, and nothing else tells of it
        site.create_node("lands", {"pool": "a"})
        site.create_node("refused", {"pool": "b"})
        proxy.wait_for(lambda entry: entry.method == "PATCH" and "/nodes/" in entry.path, count=2)
        site.admin.delete(f"{POOLS}/lands")
        site.admin.delete(f"{POOLS}/refused")
        pool = site.wait_pool("lands", lambda pool: condition(pool, "Terminating").get("reason") == "CIDRInUse")
        assert "lands" in condition(pool, "Terminating")["message"]
        assert site.wait_served("lands") == {"lands": ["10.5.0.0/24"]}
        proxy.wait_for(lambda entry: "/nodes/refused" in entry.path and entry.status == 422)
        site.wait_gone(POOLS, "refused", seconds=AT_ONCE)
        assert site.blocks("refused") == []
        site.wait_pool("lands", lambda pool: pool["status"]["nodes"] == 1)


def test_pool_that_cannot_be_guarded(proxy: FaultProxy, site: Site) -> None:
    """P1, S6: a pool whose finalizer the API does not take gives nothing and holds up nobody; it gives when it does."""
    refusing = proxy.add(_forbidden(), method="PATCH", path="/clustercidrs/unguarded$")
    site.replica(kubeconfig=_through(proxy, site)).start()
    site.create_pool("unguarded", ipv4="10.1.0.0/16", labels={"pool": "unguarded"})
    site.create_pool("guarded", ipv4="10.2.0.0/16")
    site.create_node("elsewhere", {"pool": "unguarded"})
    assert site.wait_served("elsewhere") == {"elsewhere": ["10.2.0.0/24"]}
    assert refusing.hits
    assert not condition(site.pool("unguarded"), "Active")
    proxy.remove(refusing)
    site.wait_pool("unguarded", lambda pool: FINALIZER in pool["metadata"].get("finalizers", []))
    site.create_node("served", {"pool": "unguarded"})
    assert site.wait_served("served") == {"served": ["10.1.0.0/24"]}


def test_a_policy_that_refuses(site: Site) -> None:
    """A refusal of a ValidatingAdmissionPolicy is told by an event and a gauge; other nodes are served."""
    site.create_pool("p", ipv4="10.0.0.0/22")
    with _closed_to_writes(site, "refused"):
        replica = site.run()
        site.create_node("refused")
        note = site.wait_event("CIDRAssignmentFailed", "refused")["note"]
        assert note.startswith("podCIDRs could not be written: the API server refused it: 422 Invalid: ")
        assert "ValidatingAdmissionPolicy 'closed'" in note
        eventually(lambda: replica.metric(_WITHOUT, reason="Refused") == 1)
        assert replica.metric(f"{_WITHOUT}_over_a_minute", reason="Refused") == 0
        site.create_node("taken-1")
        site.create_node("taken-2")
        site.create_node("taken-3")
        site.wait_served("taken-1", "taken-2", "taken-3")
        assert site.blocks("refused") == []
    site.wait_served("refused")
    eventually(lambda: replica.metric(_WITHOUT, reason="Refused") == 0)


@contextmanager
def _closed_to_writes(site: Site, name: str) -> Iterator[None]:
    """A node of that name cannot be given podCIDRs: a policy of the cluster says so."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    denial = {"expression": f"object.metadata.name != '{name}' || !has(object.spec.podCIDRs)"}
    policy = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [denial]}
    made = {f"{group}/validatingadmissionpolicies": policy}
    made[f"{group}/validatingadmissionpolicybindings"] = {"policyName": "closed", "validationActions": ["Deny"]}
    site.create_node(name)
    try:
        for path, spec in made.items():
            site.admin.create(path, {"metadata": {"name": "closed"}, "spec": spec})
        eventually(lambda: not _may_write(site, name))
        site.admin.delete(f"{NODES}/{name}")
        yield
    finally:
        for path in made:
            site.admin.delete(f"{path}/closed")


def _may_write(site: Site, name: str) -> bool:
    patch = {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}
    try:
        site.admin.patch(f"{NODES}/{name}", patch, dryRun="All")
    except ApiError:
        return False
    return True


def _assert_written_once(site: Site) -> None:
    """No node was ever sent other blocks than the first, by what the API server says it was asked."""
    assert writes(site.cluster.audit_log, USER, "nodes")
    assert_pod_cidrs_written_once(site.cluster.audit_log, USER)


def _at_rest(site: Site, pool: str, free: int) -> None:
    """Wait until a pool's status says that so many blocks are free."""
    found: list[Json] = []

    def is_so() -> bool:
        found[:] = [site.pool(pool).get("status", {})]
        return bool(found[0].get("free") == free)

    eventually(is_so, explain=lambda: f"{pool}: {found}, wanted {free} free")


def _through(proxy: FaultProxy, site: Site) -> Path:
    """A kubeconfig for the controller's account whose requests take the way through a proxy."""
    path = site.directory / "through-proxy.kubeconfig"
    user = {"token": account_token(site.cluster, ACCOUNT)}
    path.write_text(yaml.safe_dump(kubeconfig(proxy.url, site.cluster.authority.certificate, user)))
    return path


def _forbidden() -> Fault:
    return refused(403, "Forbidden", "not today")
