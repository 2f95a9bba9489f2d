"""F6: a controller without leader election is found by its heartbeat Lease, on the real API server."""

from __future__ import annotations

import re
import time
from threading import Event
from typing import TYPE_CHECKING

import pytest

from tests.cli.run import Cidrella
from tests.real.behind import NODE_WATCH, behind_proxy
from tests.real.rbac import controller_account
from tests.real.site import FINALIZER, HEARTBEAT, LEASE, POOLS, eventually
from tests.real.test_deploy import may
from tests.testenv.client import ApiError
from tests.testenv.faults import hold

if TYPE_CHECKING:
    from tests.real.site import Replica, Site
    from tests.testenv.client import Json

ALONE = "--leader-elect=false"
LONG = (ALONE, "--leader-elect-lease-duration=1h")
"""A heartbeat that does not expire within a test."""
SHORT = (
    ALONE,
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
NAME = "kube-system/cidrella-alone"


@pytest.fixture
def command(site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cidrella:
    """The command, as the administrator."""
    monkeypatch.setenv("KUBECONFIG", str(site.cluster.kubeconfig))
    return Cidrella(monkeypatch, capsys)


def serve_terminating_pool(site: Site) -> None:
    """Nodes with blocks of a pool that is being deleted, and that its finalizer keeps."""
    site.create_pool("used", ipv4="10.1.0.0/16")
    for number in range(3):
        site.create_node(f"n{number}")
    site.wait_served("n0", "n1", "n2")
    site.admin.delete(f"{POOLS}/used")
    assert site.pool("used")["metadata"]["finalizers"] == [FINALIZER]


def heartbeat(site: Site) -> Json:
    """What the heartbeat Lease says; empty where it is missing."""
    try:
        spec: Json = site.admin.get(HEARTBEAT)["spec"]
    except ApiError as error:
        if error.code != 404:
            raise
        return {}
    return spec


def test_release_is_refused_beside_controller_without_election(site: Site, command: Cidrella) -> None:
    """F6: the pool that nodes use stays, and the error names the Lease, its holder and what to do."""
    replica = site.run(*LONG)
    serve_terminating_pool(site)
    refused = command("release", "--finalizers", "--yes")
    assert (refused.code, refused.out) == (1, "")
    assert site.pool("used")["metadata"]["finalizers"] == [FINALIZER]
    holder = heartbeat(site)["holderIdentity"]
    assert refused.err.startswith(f"refused: {holder} holds the Lease {NAME}, renewed ")
    assert "kubectl -n kube-system scale deployment cidrella --replicas=0" in refused.err
    assert "wait 3600 s" in refused.err
    dry = command("release", "--finalizers", "--dry-run")
    assert dry.code == 0
    assert f"would be refused now: {holder} holds the Lease {NAME}, renewed " in dry.err

    assert replica.terminate()[1] == 0
    assert heartbeat(site)["holderIdentity"] == ""
    done = command("release", "--finalizers", "--yes")
    assert (done.code, done.err) == (0, "")
    site.wait_gone(POOLS, "used")


def test_killed_controller_blocks_release_until_its_heartbeat_expires(site: Site, command: Cidrella) -> None:
    """F6: an expired heartbeat is observed for as long as it lasts, and then no longer believed."""
    replica = site.run(*SHORT)
    serve_terminating_pool(site)
    first = heartbeat(site)
    assert first["leaseDurationSeconds"] == 3
    eventually(lambda: heartbeat(site)["renewTime"] > first["renewTime"], explain=replica.process.tail)
    assert heartbeat(site)["holderIdentity"] == first["holderIdentity"]
    replica.process.kill()
    holder = f"{first['holderIdentity']} holds the Lease {NAME}, renewed "

    def is_released() -> bool:
        done = command("release", "--finalizers", "--yes")
        assert holder in done.err
        assert ("the Lease appears expired: waiting 3 s" if done.code == 0 else "wait 3 s") in done.err
        return done.code == 0

    eventually(is_released)
    site.wait_gone(POOLS, "used")


def test_explain_names_controller_without_election(site: Site, command: Cidrella) -> None:
    """F5, F6: a node that waits is served by the holder of the heartbeat Lease, until that expires."""
    replica = site.run(*LONG)
    site.create_pool("pods", ipv4="10.1.0.0/16")
    site.create_node("served")
    site.wait_served("served")
    replica.process.pause()
    site.create_node("waits")
    holder = heartbeat(site)["holderIdentity"]
    explained = command("explain", "waits").out
    assert f"{holder} holds the Lease {NAME}, renewed " in explained
    assert "and should serve it at any moment" in explained
    assert "no controller" not in explained
    site.admin.patch(HEARTBEAT, {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    assert f"{holder} held the Lease {NAME}, renewed " in command("explain", "waits").out
    site.admin.delete(HEARTBEAT)
    expected = f"no controller holds the Lease kube-system/cidrella or {NAME}: none is running"
    assert expected in command("explain", "waits").out
    replica.process.resume()
    site.wait_served("waits")


def test_heartbeat_is_written_before_anything_is_given(site: Site) -> None:
    """F6: a controller can be found before the first pool has its finalizer and the first node its block."""
    site.create_pool("pods", ipv4="10.1.0.0/16")
    site.create_node("n")
    let_go = Event()
    with behind_proxy(site) as behind:
        held = behind.proxy.add(hold(let_go), method="POST", path=HEARTBEAT.rpartition("/")[0])
        replica = behind.replica(*LONG, "--leader-elect-renew-deadline=10m").start(until_ready=False)
        behind.proxy.wait_for(lambda entry: entry.rule is held)
        behind.proxy.wait_for(lambda entry: re.match(NODE_WATCH, entry.path) is not None)
        time.sleep(1)  # in which it would write what it may write by now
        writes = [entry for entry in behind.proxy.requests if entry.method != "GET"]
        let_go.set()
        assert [entry.rule for entry in writes] == [held]
        site.wait_served("n")
        replica.wait_ready()


def test_controller_with_election_writes_no_heartbeat(site: Site) -> None:
    """F5: the heartbeat Lease stands for a controller without leader election, and for no other."""
    site.run()
    site.create_pool("pods", ipv4="10.1.0.0/16")
    site.create_node("n")
    site.wait_served("n")
    assert site.admin.get(LEASE)["spec"]["holderIdentity"]
    assert heartbeat(site) == {}


def test_serves_without_the_right_to_write_the_heartbeat(site: Site) -> None:
    """F6: a controller that may not write the Lease serves nodes, logs one warning, and writes it once it may."""
    account = controller_account(site.cluster, "heartless")
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings"
    binding = site.admin.get(f"{bindings}/cidrella-for-heartless")
    site.admin.delete(f"{bindings}/cidrella-for-heartless")
    user = "system:serviceaccount:kube-system:heartless"
    eventually(lambda: not may(site.cluster, "get leases.coordination.k8s.io cidrella-alone @kube-system", user))
    replica = site.replica(*SHORT, kubeconfig=account).start()
    site.create_pool("pods", ipv4="10.1.0.0/16")
    site.create_node("n")
    site.wait_served("n")
    eventually(lambda: refusals(replica) >= 3, explain=replica.process.tail)
    assert heartbeat(site) == {}
    (warning,) = said(replica, "cannot write the heartbeat Lease")
    assert (warning["level"], warning["kind"]) == ("warning", "403")
    assert "403 Forbidden" in warning["error"]
    assert replica.get("/readyz")[0] == 200
    metadata = {"name": "cidrella-for-heartless"}
    site.admin.create(bindings, {"metadata": metadata, "roleRef": binding["roleRef"], "subjects": binding["subjects"]})
    eventually(lambda: bool(said(replica, "wrote the heartbeat Lease again")), explain=replica.process.tail)
    assert heartbeat(site)["holderIdentity"]
    assert len(said(replica, "cannot write the heartbeat Lease")) == 1


def said(replica: Replica, words: str) -> list[Json]:
    """The lines of its log with these words."""
    return [line for line in replica.logged() if words in line["event"]]


def refusals(replica: Replica) -> float:
    """How often the API server refused it to read an object."""
    return replica.metric("cidrella_api_requests_total", verb="get", code="403") or 0
