"""`cidrella pools`, `nodes`, `map`, `explain` and `plan --from-cluster`: what they say of a cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cidrella.app.live import read_cluster
from cidrella.kube.access import load_access
from tests.cli.fake_api import HEARTBEAT, LEASE, NODES, POOLS, SERVICES, FakeApi, refusal, serving
from tests.cli.test_plan import POOL, node, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.run import Cidrella, Result

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A cluster that the environment's kubeconfig leads to."""
    with serving(tmp_path) as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


def told(result: Result) -> Any:
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_pools_are_counted_from_what_nodes_hold(cidrella: Cidrella, api: FakeApi) -> None:
    """A8: what `pools` shows is counted from the objects, and a status that says otherwise is not believed."""
    api.pool("all", "10.0.0.0/22")
    api.collections[POOLS][0]["status"] = {"nodes": 77, "word": "of another controller"}
    api.collections[SERVICES].append({"metadata": {"name": "s"}, "spec": {"cidrs": ["10.0.3.0/24"]}})
    api.node("a", "10.0.1.0/24")
    api.node("b")
    (pool,) = told(cidrella("pools", "-o", "json"))["pools"]
    assert pool == {
        "name": "all",
        "state": "Active",
        "problem": None,
        "created": "2026-01-01T00:00:00Z",
        "selector": None,
        "nodes": 1,
        "ipv4": {"cidr": "10.0.0.0/22", "perNode": 24, "capacity": 4, "allocated": 1, "free": 2},
        "ipv6": None,
        "finalizers": ["networking.kubernetes.io/cluster-cidr-config-finalizer"],
        "kind": "ClusterCIDR",
    }
    as_table = cidrella("pools").out.splitlines()
    assert " ".join(as_table[0].split()) == "NAME RANGE PER NODE CAPACITY ALLOCATED FREE NODES STATE AGE"
    assert as_table[1].split()[:8] == ["all", "10.0.0.0/22", "/24", "4", "1", "2", "1", "Active"]
    assert yaml.safe_load(cidrella("pools", "-o", "yaml").out)["pools"] == [pool]


def test_states_of_pools(cidrella: Cidrella, api: FakeApi) -> None:
    """C4, S6: a pool is active, full, terminating or invalid; an invalid one is shown with its problem, and said."""
    api.pool("active", "10.1.0.0/16")
    api.pool("full", "10.2.0.0/24")
    api.pool("going", "10.3.0.0/24", deletionTimestamp="2026-01-01T00:00:00Z")
    api.pool("crooked", "10.4.0.1/24")
    api.pool("shapeless")
    del api.collections[POOLS][-1]["spec"]["perNodeHostBits"]
    api.node("a", "10.2.0.0/24")
    result = cidrella("pools", "-o", "json")
    found = {each["name"]: each for each in told(result)["pools"]}
    assert {name: each["state"] for name, each in found.items()} == {
        "active": "Active",
        "full": "Full",
        "going": "Terminating",
        "crooked": "Invalid",
        "shapeless": "Invalid",
    }
    assert "has host bits set" in found["crooked"]["problem"]
    assert "spec.perNodeHostBits: is required" in found["shapeless"]["problem"]
    assert "warning: the cluster staging: ClusterCIDR crooked: is invalid: spec.ipv4" in result.err
    wide = cidrella("pools", "-o", "wide").out
    assert "PROBLEM" in wide.splitlines()[0]
    assert "has host bits set" in wide


def test_bar_on_a_terminal(cidrella: Cidrella, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a bar for each range, in which only a full range looks full and only an empty one empty."""
    api.pool("a", "10.1.0.0/16")
    api.pool("b", "10.2.0.0/24")
    api.pool("c", "10.3.0.0/24")
    api.node("1", "10.1.0.0/24")
    api.node("2", "10.3.0.0/24")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    bars = [
        line[line.index("█") if "█" in line else line.index("·") :] for line in cidrella("pools").out.splitlines()[1:]
    ]
    assert bars == ["█·········   1 %", "··········   0 %", "██████████ 100 %"]


def test_nodes_and_what_they_would_get(cidrella: Cidrella, api: FakeApi) -> None:
    """N5, N6, N7, N10: each node stands as it is. What a waiting one would get is told apart, no block twice."""
    api.pool("p", "10.0.0.0/22")
    api.pool("labelled", "10.9.0.0/24", key="zone")
    api.node("kept", "10.0.0.0/24")
    api.node("one", "10.0.1.0/24")
    api.node("two", "10.0.1.0/24")
    api.node("far", "192.168.0.0/24")
    api.node("odd", "garbage")
    api.node("early", taint=UNINITIALIZED)
    api.node("leaving", deletionTimestamp="2026-01-01T00:00:00Z")
    for number in range(3):
        api.node(f"new-{number}")
    found = {each["name"]: each for each in told(cidrella("nodes", "-o", "json"))["nodes"]}
    assert {name: (each["state"], each["reason"]) for name, each in found.items()} == {
        "kept": ("Kept", None),
        "one": ("Conflict", "CIDRConflict"),
        "two": ("Conflict", "CIDRConflict"),
        "far": ("Untracked", "CIDRUntracked"),
        "odd": ("Invalid", "CIDRInvalid"),
        "early": ("Waiting", "WaitingForCloudProvider"),
        "leaving": ("Waiting", "NodeTerminating"),
        "new-0": ("Waiting", None),
        "new-1": ("Waiting", None),
        "new-2": ("Waiting", "CIDRNotAvailable"),
    }
    assert found["kept"]["clusterCIDRs"] == ["p"]
    assert found["new-0"]["podCIDRs"] == []
    assert found["new-0"]["wouldGet"] == {"podCIDRs": ["10.0.2.0/24"], "clusterCIDR": "p", "pools": ["p"]}
    assert found["new-1"]["wouldGet"] == {"podCIDRs": ["10.0.3.0/24"], "clusterCIDR": "p", "pools": ["p"]}
    assert found["new-2"]["wouldGet"] is None
    assert found["new-2"]["message"].startswith("the nodes before it would take what is left")
    as_table = cidrella("nodes").out
    assert "would get 10.0.2.0/24 from p\n" in as_table
    assert as_table.endswith("10 nodes: 5 Waiting, 2 Conflict, 1 Kept, 1 Untracked, 1 Invalid\n")


def test_filters_of_nodes(cidrella: Cidrella, api: FakeApi) -> None:
    """`nodes` shows those that wait, that use a pool, or that have labels, and any of these together."""
    api.pool("p", "10.0.0.0/24")
    api.pool("q", "10.1.0.0/16")
    api.node("a", "10.0.0.0/24", labels={"size": "big", "zone": "1"})
    api.node("b", "10.1.0.0/24", labels={"size": "big"})
    api.node("c", labels={"size": "big"})
    api.node("d")

    def names(*arguments: str) -> list[str]:
        return [each["name"] for each in told(cidrella("nodes", "-o", "json", *arguments))["nodes"]]

    assert names("--waiting") == ["c", "d"]
    assert names("--pool", "p") == ["a"]
    assert names("-l", "size=big") == ["a", "b", "c"]
    assert names("-l", "size==big,zone=1") == ["a"]
    assert names("-l", "size=big", "--waiting") == ["c"]
    assert names("-l", "size=") == []
    assert cidrella("nodes", "--pool", "p", "--waiting").out.endswith("\n0 nodes\n")
    assert "size=big,zone=1" in cidrella("nodes", "-o", "wide", "--pool", "p").out
    for arguments, message in (
        (("--pool", "pp"), "there is no pool pp; did you mean p?"),
        (("-l", "size"), "write KEY=VALUE"),
        (("-l", "size!=big"), "write KEY=VALUE"),
    ):
        result = cidrella("nodes", *arguments)
        assert result.code == 2
        assert message in " ".join(result.err.replace("│", " ").split())


def test_map_shows_what_is(cidrella: Cidrella, api: FakeApi) -> None:
    """The map of a cluster shows what nodes hold; those that wait hold nothing, and are counted aside."""
    api.pool("p", "10.0.0.0/23")
    api.node("a", "10.0.1.0/24")
    api.node("b")
    result = cidrella("map")
    assert result.code == 0
    assert "10.0.0.0/24  free" in result.out
    assert "10.0.1.0/24  p: a" in result.out
    assert "1 of 2 nodes wait for a block" in result.err
    assert cidrella("map", "--svg", "-").out.startswith("<svg")


def test_plan_from_the_cluster(cidrella: Cidrella, api: FakeApi) -> None:
    """A plan for the cluster serves its nodes and added ones. Where some wait, the exit code says so."""
    api.pool("p", "10.0.0.0/22")
    api.node("a", "10.0.1.0/24")
    api.node("b")
    result = cidrella("plan", "--from-cluster", "--add-nodes", "5", "-o", "json")
    assert result.code == 3
    plan = json.loads(result.out)
    assert [each["podCIDRs"] for each in plan["nodes"][:2]] == [["10.0.1.0/24"], ["10.0.0.0/24"]]
    assert plan["whatIf"]["fit"] == 2


def test_plan_from_the_cluster_with_files(cidrella: Cidrella, api: FakeApi, tmp_path: Path) -> None:
    """P3: objects of files are added to the cluster, or replace their namesakes; a pool of files is the youngest."""
    api.pool("all", "10.0.0.0/24")
    api.pool("shared", "10.9.0.0/16")
    api.node("a", "10.0.0.0/24")
    api.node("b", "10.9.0.0/24")
    path = tmp_path / "more.yaml"
    path.write_text(
        f"{POOL}---\n{POOL.replace('all', 'new').replace('10.0.0.0/22', '10.9.0.0/20')}---\n{nodes(node('c'))}"
    )
    plan = json.loads(cidrella("plan", "--from-cluster", "-f", path, "-o", "json").out)
    assert [(each["name"], each["clusterCIDR"]) for each in plan["nodes"]] == [
        ("a", "all"),
        ("b", "shared"),
        ("c", "all"),
    ]
    assert [(each["name"], each["ipv4"]["cidr"]) for each in plan["pools"]] == [
        ("all", "10.0.0.0/22"),
        ("shared", "10.9.0.0/16"),
        ("new", "10.9.0.0/20"),
    ]
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: Node\n")
    assert cidrella("plan", "--from-cluster", "-f", broken).code == 2


def test_invalid_pool_replaced_by_a_file(cidrella: Cidrella, api: FakeApi) -> None:
    """C4: an invalid pool of the cluster stops no plan, and a file shows what its replacement would do."""
    api.pool("all", "10.0.0.1/24")
    api.node("a")
    assert cidrella("plan", "--from-cluster").code == 3
    replaced = cidrella("plan", "--from-cluster", "-f", "-", stdin=POOL)
    assert replaced.code == 0
    assert "1 node: 1 Assigned" in replaced.out


def lease(holder: str, seconds_ago: float) -> dict[str, object]:
    when = datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds_ago, UTC)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return {"metadata": {"name": "cidrella"}, "spec": spec}


@pytest.mark.parametrize(
    ("holder", "seconds_ago", "message"),
    [
        (None, 0, "no controller holds the Lease kube-system/cidrella or kube-system/cidrella-alone"),
        ("", 0, "no controller holds the Lease kube-system/cidrella or kube-system/cidrella-alone"),
        ("host_1", 3000, "host_1 held the Lease kube-system/cidrella, renewed 50m ago: the Lease has expired"),
        ("host_1", -600, "host_1 holds the Lease kube-system/cidrella, renewed 0s ago, and should serve it"),
    ],
)
def test_explain_says_who_should_serve(
    cidrella: Cidrella, api: FakeApi, holder: str | None, seconds_ago: float, message: str
) -> None:
    """Of a node for which there is a block, `explain` says what it would get, and who holds the Lease, if anybody."""
    api.pool("p")
    api.node("a", "10.0.0.0/24")
    api.node("b")
    api.node("c")
    if holder is not None:
        api.objects[LEASE] = lease(holder, seconds_ago)
    result = cidrella("explain", "b")
    assert result.code == 0
    assert "Waiting: no block\nit would get 10.0.1.0/24 from p\nanother node waits, too" in result.out
    assert message in result.out
    found = told(cidrella("explain", "b", "-o", "json"))
    assert found["decision"]["podCIDRs"] == []
    assert found["wouldGet"] == {"podCIDRs": ["10.0.1.0/24"], "clusterCIDR": "p", "pools": ["p"]}
    assert any(message in each for each in found["remarks"])


@pytest.mark.parametrize("seconds_ago", [None, 3000])
def test_explain_finds_a_controller_without_election(
    cidrella: Cidrella, api: FakeApi, seconds_ago: float | None
) -> None:
    """F6: who holds the heartbeat Lease serves nodes, whatever the Lease of the election says of another time."""
    api.pool("p")
    api.node("a")
    if seconds_ago is not None:
        api.objects[LEASE] = lease("host_1", seconds_ago)
    api.objects[HEARTBEAT] = lease("host_2", 3)
    (line,) = (each for each in cidrella("explain", "a").out.splitlines() if "Lease" in each)
    assert line.startswith("host_2 holds the Lease kube-system/cidrella-alone, renewed ")
    assert line.endswith(" ago, and should serve it at any moment")
    del api.objects[HEARTBEAT]
    api.instead[HEARTBEAT] = refusal(403, "Forbidden")
    out = cidrella("explain", "a").out
    assert "cannot read the holder of the Lease kube-system/cidrella-alone" in out
    assert ("host_1 held the Lease kube-system/cidrella, " in out) == (seconds_ago is not None)
    api.objects[LEASE] = lease("host_1", 3)
    assert "cannot read the holder" not in cidrella("explain", "a").out


def test_explain_without_the_right_to_read_leases(cidrella: Cidrella, api: FakeApi) -> None:
    """Whoever may not read the Lease is told so, and is told everything else."""
    api.pool("p")
    api.node("a")
    api.instead[LEASE] = refusal(403, "Forbidden")
    result = cidrella("explain", "a")
    assert result.code == 0
    right = "the user needs the permission to get leases.coordination.k8s.io"
    assert f"cannot read the holder of the Lease kube-system/cidrella: {right}" in result.out
    assert "it would get 10.0.0.0/24 from p" in result.out
    api.instead[LEASE] = 200, b"<html>"
    assert "cannot read the holder" in cidrella("explain", "a").out


def test_explain_why_a_node_waits(cidrella: Cidrella, api: FakeApi) -> None:
    """N4, N8, N10, P1: no pool, no room, a taint, a deletion, a pool without its finalizer: each is said in words."""
    api.pool("full", "10.0.0.0/24")
    api.node("holder", "10.0.0.0/24")
    api.node("early", taint=UNINITIALIZED)
    api.node("leaving", deletionTimestamp="2026-01-01T00:00:00Z")
    api.node("late")
    assert cidrella("explain", "holder").out.endswith("Kept: 10.0.0.0/24 from full\n")
    assert "every pool that applies is full" in cidrella("explain", "early").out
    assert "it is being deleted and gets no Pod CIDR" in cidrella("explain", "leaving").out
    assert "every pool that applies is full: full (no IPv4 /24 left)\nwhat would" in cidrella("explain", "late").out
    api.pool("labelled", "10.9.0.0/24", key="zone")
    early = cidrella("explain", "early").out
    assert "it waits for its cloud provider, for a limited time: the selector of labelled may match" in early
    assert "would get" not in early
    assert "full (no IPv4 /24 left)" in cidrella("explain", "early", "--no-wait-for-cloud-provider").out
    api.pool("roomy", "10.8.0.0/24")
    alone, served = (
        "no controller holds the Lease",
        "with the labels that it has, it would get 10.8.0.0/24 from roomy\n",
    )
    assert served + alone in cidrella("explain", "early").out
    api.objects[LEASE] = lease("host", 3)
    assert cidrella("explain", "early").out.endswith(served)
    del api.objects[LEASE]
    api.collections[POOLS].clear()
    assert "no pool applies to it\nwhat would help: a pool" in cidrella("explain", "late").out
    api.pool("fresh", "10.1.0.0/24", finalizers=[])
    fresh = cidrella("explain", "late").out
    assert "it has yet to get its finalizer, and gives nothing before (P1)" in fresh
    assert "it would get 10.1.0.0/24 from fresh once that pool has its finalizer" in fresh
    assert "no controller holds the Lease" in fresh


def test_explain_an_unknown_node(cidrella: Cidrella, api: FakeApi) -> None:
    """A node that the cluster does not have is a wrong command line, with the nearest name."""
    api.node("node-a")
    result = cidrella("explain", "nod-a")
    assert result.code == 2
    said = " ".join(result.err.replace("│", " ").split())
    assert "there is no Node nod-a in the cluster staging; did you mean node-a?" in said


def test_many_pages(api: FakeApi) -> None:
    """Lists are read page by page, with a total from the start; a list that expired in between begins anew."""
    for number in range(1200):
        api.node(f"n{number:04}")
    api.forget_pages = 2
    seen: list[tuple[int, int]] = []
    look = read_cluster(load_access("", ""), lambda done, total: seen.append((done, total)))
    assert [each.metadata.name for each in look.inventory.nodes] == [f"n{number:04}" for number in range(1200)]
    assert (500, 1200) in seen
    assert seen[-1] == (1200, 1200)
    assert api.asked.count(f"GET {NODES}") == 2 + 2 + 3


def test_bar_while_reading(cidrella: Cidrella, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a large cluster is read under a progress bar on standard error, and the output stays clean."""
    for number in range(2001):
        api.node(f"n{number}")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    result = cidrella("nodes", "-o", "json")
    assert "reading" in result.err
    assert len(json.loads(result.out)["nodes"]) == 2001


def test_files_need_no_cluster(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`pools` and `nodes` read files, too, and then nothing else."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    text = f"{POOL}---\n{nodes(node('a', '10.0.1.0/24'), node('b'))}"
    assert told(cidrella("pools", "-f", "-", "-o", "json", stdin=text))["pools"][0]["ipv4"]["free"] == 3
    found = told(cidrella("nodes", "-f", "-", "-o", "json", stdin=text))["nodes"]
    assert [each["state"] for each in found] == ["Kept", "Waiting"]
