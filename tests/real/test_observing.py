"""What an operator sees: metrics, probes, events, logs, and how a slow, frozen or odd API server is borne with."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections import Counter
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.real.behind import NODE_LIST, NODE_PATCH, behind_proxy
from tests.real.conftest import ROOT
from tests.real.site import LEASE, POOLS, SHORT_LEASE, eventually
from tests.testenv.faults import delay_reply, gone, gone_event, hold
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, delete_nodes
from tests.testenv.proxy_log import End

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.behind import Behind
    from tests.real.conftest import Kubectl
    from tests.real.site import Site

SET = "node_ipam_controller_multicidrset"
PATCH_SECONDS = 0.2
QUIET_SECONDS = 5.0
STORM = 12
"""Requests for one collection a second: a list and a watch every sixth of one."""


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site whose replicas are behind a proxy."""
    with behind_proxy(site) as made:
        yield made


def test_metrics(site: Site) -> None:
    """O1, pitfall 21: every series under its name, with its labels and the right value; a pool's go with the pool."""
    site.create_pool("pool", ipv4="10.1.0.0/22", ipv6="fd00:1::/112")
    replica = site.run()
    for number in range(4):
        site.create_node(f"n{number}")
    site.wait_served("n0", "n1", "n2", "n3")
    site.admin.delete(f"{NODES}/n0")
    site.create_node("twin", podCIDR="10.1.3.0/24", podCIDRs=["10.1.3.0/24"])
    site.create_node("waits", {"no": "pool"})
    site.wait_served("waits")
    site.create_node("still-waits")
    site.wait_event("CIDRNotAvailable", "still-waits")
    ipv4 = {"clusterCIDR": "10.1.0.0/22", "clusterCIDRName": "pool"}
    ipv6 = {"clusterCIDR": "fd00:1::/112", "clusterCIDRName": "pool"}
    wanted: list[tuple[str, dict[str, str], float]] = [
        (f"{SET}_cidrs_allocations_total", ipv4, 5),
        (f"{SET}_cidrs_allocations_total", ipv6, 5),
        (f"{SET}_cidrs_releases_total", ipv4, 1),
        (f"{SET}_usage_cidrs", ipv4, 1),
        (f"{SET}_usage_cidrs", ipv6, 4 / 256),
        (f"{SET}_max_cidrs", ipv4, 4),
        (f"{SET}_max_cidrs", ipv6, 256),
        (f"{SET}_allocation_tries_per_request_count", ipv4, 5),
        *((f"{SET}_allocation_tries_per_request_bucket", {**ipv4, "le": le}, 5) for le in ("1.0", "25.0", "625.0")),
        ("cidrella_nodes_waiting", {}, 1),
        ("cidrella_node_allocation_seconds_count", {}, 5),
        ("cidrella_conflicts", {}, 2),
        ("cidrella_leader", {}, 1),
        ("cidrella_queue_depth", {}, 1),
        ("cidrella_api_reachable", {}, 1),
    ]
    for name, labels, value in wanted:
        eventually(
            lambda name=name, labels=labels, value=value: replica.metric(name, **labels) == value,  # type: ignore[misc]
            explain=lambda name=name, labels=labels: f"{name} {labels} {replica.metric(name, **labels)}",  # type: ignore[misc]
        )
    patched = replica.metric("cidrella_api_requests_total", verb="patch", code="200")
    assert patched is not None
    assert patched >= 5
    delete_nodes(site.admin, [each["metadata"]["name"] for each in site.admin.items(NODES)])
    site.admin.delete(f"{POOLS}/pool")
    site.wait_gone(POOLS, "pool")
    eventually(lambda: not any("clusterCIDRName" in sample.labels for sample in replica.samples()))
    eventually(lambda: replica.metric("cidrella_nodes_waiting") == 0)
    assert replica.metric("cidrella_conflicts") == 0


def test_ready_only_when_all_is_listed(behind: Behind) -> None:
    """O2, pitfall 22: before the nodes are listed /readyz says so, while /healthz is well."""
    let_go = Event()
    late = behind.proxy.add(hold(let_go), path=NODE_LIST, nth=1)
    replica = behind.replica().start(until_ready=False)
    eventually(lambda: replica.get("/healthz")[0] == 200)
    behind.proxy.wait_for(lambda entry: entry.rule is late)
    eventually(lambda: replica.get("/readyz") == (503, "nodes are not listed yet"))
    assert replica.get("/healthz")[0] == 200
    let_go.set()
    replica.wait_ready()
    assert late.hits == 1


def test_events(site: Site, kubectl: Kubectl) -> None:
    """O3: what a node waits for is shown by `kubectl get events` and `kubectl describe node`."""
    site.run()
    site.create_node("lonely")
    site.wait_event("CIDRNotAvailable", "lonely")
    listed = kubectl("get", "events", "--field-selector=reason=CIDRNotAvailable")
    assert "node/lonely" in listed.stdout
    assert "no Pod CIDR for this node" in listed.stdout
    described = kubectl("describe", "node", "lonely")
    assert re.search(r"Warning +CIDRNotAvailable .* no Pod CIDR for this node", described.stdout), described.stdout


def test_logs(site: Site, account: Path) -> None:
    """O4: one line of JSON each where nobody looks, and lines for people on a terminal."""
    command = [sys.executable, "-m", "cidrella", "run", f"--kubeconfig={account}", "--bind-address=127.0.0.1:0"]
    command.append("--leader-elect=false")
    ours, theirs = pty.openpty()
    with (
        (site.directory / "log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as seen,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as unseen,
    ):
        os.close(theirs)
        shown = _read_until(ours, "on duty")
        eventually(lambda: "on duty" in (site.directory / "log").read_text())
        for process in (seen, unseen):
            process.terminate()
        shown += _read_until(ours, "stopped")
        assert [process.wait(10) for process in (seen, unseen)] == [0, 0]
    os.close(ours)
    lines = [json.loads(line) for line in (site.directory / "log").read_text().splitlines()]
    assert all({"timestamp", "level", "event"} <= line.keys() for line in lines)
    assert lines[0]["event"] == "cidrella starts"
    for line in shown.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z \x1b\[\d+m(INFO|WARNING) *\x1b\[0m \w", line), line


def _read_until(terminal: int, words: str) -> str:
    """What is shown, up to the end of the line with these words."""
    shown = ""
    while words not in shown or not shown.endswith("\n"):
        assert select.select([terminal], [], [], 30)[0], shown
        shown += os.read(terminal, 65536).decode()
    return shown


def test_documentation_of_what_else_to_set() -> None:
    """O5: a page says what kube-proxy, the kubelet and kube-controller-manager must be told."""
    text = (ROOT / "docs" / "install.md").read_text()
    for setting in ("--detect-local-mode=NodeCIDR", "--max-pods", "--allocate-node-cidrs=false"):
        assert setting in text


def test_frozen_api_server(site: Site) -> None:
    """O6: a server that takes connections and answers none is told in /readyz and metrics, and borne with."""
    site.create_pool("pool", ipv4="10.1.0.0/16")
    replica = site.run()
    site.create_node("before")
    site.wait_served("before")
    site.cluster.apiserver.pause()
    try:
        eventually(lambda: replica.metric("cidrella_api_reachable") == 0)
        eventually(lambda: replica.metric("cidrella_leader") == 0)
        code, why = replica.get("/readyz")
        assert code == 503
        assert "lease" in why
        assert replica.get("/healthz")[0] == 200
    finally:
        site.cluster.apiserver.resume()
    replica.wait_ready()
    assert replica.metric("cidrella_api_reachable") == 1
    site.create_node("after")
    site.wait_served("after")
    assert replica.process.ended is None


def test_many_at_a_time_and_an_orderly_end(behind: Behind, record_property: Callable[[str, object], None]) -> None:
    """Pitfall 18, O6, F5: writes go out beside each other, and a SIGTERM among them ends it in time, without a loss.

    What was sent is answered before it ends, and the lease is released.
    """
    site, proxy = behind.site, behind.proxy
    site.create_pool("pool", ipv4="10.0.0.0/8")
    slow = proxy.add(delay_reply(PATCH_SECONDS), method="PATCH", path=NODE_PATCH)
    replica = behind.run(*SHORT_LEASE)
    names = [f"n{number}" for number in range(100)]
    create_nodes(site.admin, names)
    site.wait_served(*names)
    sent = [entry.at for entry in proxy.requests if entry.rule is slow]
    at_a_time = max(sum(began <= at < began + PATCH_SECONDS for at in sent) for began in sent)
    record_property("writes at a time", at_a_time)
    assert at_a_time > 3

    proxy.remove(slow)
    slower = proxy.add(delay_reply(PATCH_SECONDS * 3), method="PATCH", path=NODE_PATCH)
    create_nodes(site.admin, [f"more{number}" for number in range(10)])
    proxy.wait_for(lambda entry: entry.rule is slower, count=2)
    seconds, code = replica.terminate()
    record_property("seconds from SIGTERM to the end", round(seconds, 2))
    assert code == 0
    assert site.admin.get(LEASE)["spec"]["holderIdentity"] == ""
    writes = [entry for entry in proxy.requests if entry.rule is slower]
    assert len(writes) > 1
    assert {entry.end for entry in writes} == {End.COMPLETE}
    assert_no_overlap(site.admin.items(NODES))
    assert replica.logged()[-1]["event"] == "stopped"


def test_watches_answered_410(behind: Behind) -> None:
    """Pitfall 25, pitfall 26: 410 again and again makes no storm, and what was deleted unseen is free afterwards."""
    site, proxy = behind.site, behind.proxy
    site.create_pool("pool", ipv4="10.1.0.0/22")
    for number in range(4):
        site.create_node(f"old{number}")
    proxy.add(gone(), path="watch=", nth=range(1, 10_000, 2))
    proxy.add(gone_event(), path="watch=")
    replica = behind.replica().start(until_ready=False)
    site.wait_served(*(f"old{number}" for number in range(4)))
    before = len(proxy.requests)
    for number in range(3):
        site.admin.delete(f"{NODES}/old{number}")
        site.create_node(f"new{number}")
    began = time.monotonic()
    time.sleep(QUIET_SECONDS)
    asked = Counter(urlsplit(entry.path).path for entry in proxy.requests[before:])
    assert asked[NODES] > 1
    seconds = time.monotonic() - began
    # Pauses are drawn at random, 0.1 s at least: a few short ones in a row are no storm. Without them it is hundreds.
    assert max(asked.values()) < STORM * seconds, f"requests in {seconds} s: {asked}"
    proxy.clear()
    served = site.wait_served("new0", "new1", "new2")
    assert sorted(block for (block,) in served.values()) == ["10.1.0.0/24", "10.1.1.0/24", "10.1.2.0/24"]
    assert replica.process.ended is None
