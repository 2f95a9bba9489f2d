"""`cidrella plan`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella

POOL = """
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: all}
spec: {perNodeHostBits: 8, ipv4: 10.0.0.0/22}
"""
SELECTED = """
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: selected}
spec:
  perNodeHostBits: 8
  ipv4: 10.1.0.0/22
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}
"""


def nodes(*items: str) -> str:
    return "apiVersion: v1\nkind: NodeList\nitems:\n" + "".join(f"- {item}\n" for item in items)


def node(name: str, pod_cidrs: str = "") -> str:
    return f"{{metadata: {{name: {name}}}, spec: {{podCIDRs: [{pod_cidrs}]}}}}"


def test_json_has_the_promised_form(cidrella: Cidrella) -> None:
    """The JSON of a plan has the documented fields, with exact counts of what is left (A8)."""
    result = cidrella("plan", "-f", "-", "-o", "json", stdin=f"{POOL}---\n{nodes(node('a', '10.0.1.0/24'), node('b'))}")
    assert result.code == 0
    origin = {"clusterCIDR": "all", "pools": ["all"]}
    assert json.loads(result.out) == {
        "nodes": [
            {"name": "a", "podCIDRs": ["10.0.1.0/24"], **origin, "outcome": "Kept", "message": ""},
            {"name": "b", "podCIDRs": ["10.0.0.0/24"], **origin, "outcome": "Assigned", "message": ""},
        ],
        "pools": [
            {
                "name": "all",
                "ipv4": {"cidr": "10.0.0.0/22", "capacity": 4, "allocated": 2, "free": 2},
                "ipv6": None,
                "kind": "ClusterCIDR",
            }
        ],
    }


def test_yaml_says_the_same_as_json(cidrella: Cidrella) -> None:
    """All forms of output carry the same plan."""
    text = f"{POOL}---\n{nodes(node('a'))}"
    as_json = cidrella("plan", "-f", "-", "-o", "json", stdin=text)
    as_yaml = cidrella("plan", "-f", "-", "-o", "yaml", stdin=text)
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)
    as_table = cidrella("plan", "-f", "-", stdin=text)
    assert as_table.out.splitlines()[1].split() == ["a", "Assigned", "10.0.0.0/24", "all"]


def test_huge_counts_are_exact(cidrella: Cidrella) -> None:
    """A3, A8: an IPv6 /16 handing out /120s is counted to the last block."""
    pool = POOL.replace("ipv4: 10.0.0.0/22", "ipv6: fd00::/16")
    result = cidrella("plan", "-f", "-", "-o", "json", stdin=f"{pool}---\n{nodes(node('a'))}")
    assert json.loads(result.out)["pools"][0]["ipv6"] == {
        "cidr": "fd00::/16",
        "capacity": 2**104,
        "allocated": 1,
        "free": 2**104 - 1,
    }


def test_every_outcome(cidrella: Cidrella) -> None:
    """N5, N6, N7: what is on nodes is kept, whatever it is; those without a block are served in the order of input."""
    text = f"{POOL}---\n" + nodes(
        node("late"),
        node("kept", "10.0.0.0/24"),
        node("foreign", "192.168.0.0/24"),
        node("one", "10.0.1.0/24"),
        node("two", "10.0.1.0/25"),
        node("garbage", "'not a range'"),
        node("later"),
        node("too-late"),
    )
    result = cidrella("plan", "-f", "-", "-o", "json", stdin=text)
    assert result.code == 3
    found = {each["name"]: (each["outcome"], each["podCIDRs"]) for each in json.loads(result.out)["nodes"]}
    assert found == {
        "late": ("Assigned", ["10.0.2.0/24"]),
        "kept": ("Kept", ["10.0.0.0/24"]),
        "foreign": ("Untracked", ["192.168.0.0/24"]),
        "one": ("Conflict", ["10.0.1.0/24"]),
        "two": ("Conflict", ["10.0.1.0/25"]),
        "garbage": ("Invalid", []),
        "later": ("Assigned", ["10.0.3.0/24"]),
        "too-late": ("Waiting", []),
    }


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([node("a")], 0),
        ([node("a", "10.9.0.0/24")], 0),
        ([node("a", "10.0.0.0/24"), node("b", "10.0.0.0/24")], 0),
        ([node(f"n{number}") for number in range(5)], 3),
        ([node("a", "'10.0.0.0'")], 3),
    ],
)
def test_exit_code_says_whether_every_node_has_its_blocks(cidrella: Cidrella, items: list[str], code: int) -> None:
    """Exit 0 where every node has its blocks, and 3 where one waits or has none that can be read."""
    assert cidrella("plan", "-f", "-", stdin=f"{POOL}---\n{nodes(*items)}").code == code


def test_service_ranges_by_flag_and_by_object(cidrella: Cidrella) -> None:
    """A7: neither the flag's ranges nor those of ServiceCIDR objects are given to a node (pitfall 12)."""
    service = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: s}\nspec: {cidrs: [10.0.1.0/24]}\n"
    text = f"{service}---\n{POOL}---\n{nodes(*(node(name) for name in 'abc'))}"
    result = cidrella(
        "plan", "-f", "-", "-o", "json", "--service-cluster-ip-range", "10.0.0.7/24,fd00::/112", stdin=text
    )
    assert [each["podCIDRs"] for each in json.loads(result.out)["nodes"]] == [["10.0.2.0/24"], ["10.0.3.0/24"], []]
    assert "10.0.0.7/24 is read as 10.0.0.0/24" in result.err


def test_service_range_over_a_node_is_a_conflict(cidrella: Cidrella) -> None:
    """A7: a service range that covers a block revokes nothing, and is said."""
    text = f"{POOL}---\n{nodes(node('a', '10.0.0.0/24'))}"
    result = cidrella("plan", "-f", "-", "--service-cluster-ip-range=10.0.0.0/23", stdin=text)
    assert result.code == 0
    assert "Conflict" in result.out
    assert "service range --service-cluster-ip-range (10.0.0.0/23)" in result.out


@pytest.mark.parametrize(("asked", "fit", "stopped"), [(1, 1, False), (3, 3, True), (5, 3, True)])
def test_what_if(cidrella: Cidrella, asked: int, fit: int, stopped: bool) -> None:
    """The what-if counts how many more nodes fit, and names what stops the next one."""
    text = f"{POOL}---\n{nodes(node('a'))}"
    result = cidrella("plan", "-f", "-", "--add-nodes", str(asked), "-o", "json", stdin=text)
    plan = json.loads(result.out)
    stopped_by = "every pool that applies is full: all (no IPv4 /24 left)" if stopped else None
    assert plan["whatIf"] == {"addNodes": asked, "fit": fit, "stoppedBy": stopped_by}
    assert len(plan["nodes"]) == 1 + asked
    assert plan["pools"][0]["ipv4"]["free"] == 4 - 1 - fit
    assert result.code == (0 if fit == asked else 3)


def test_what_if_has_labels(cidrella: Cidrella) -> None:
    """The added nodes have the labels they are given, and so find their pool."""
    pool = POOL.rstrip("}\n") + (
        ", nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}\n"
    )
    refused = cidrella("plan", "-f", "-", "--add-nodes", "1", stdin=pool)
    assert "the next one would wait: no pool applies to it" in refused.out
    served = cidrella("plan", "-f", "-", "--add-nodes", "1", "--labels", "a=b,c=d", stdin=pool)
    assert "1 of 1 more nodes fit" in served.out
    assert "the next one would fit, too" in served.out


def test_uninitialised_nodes_wait(cidrella: Cidrella) -> None:
    """N10: a node whose labels could still give it another pool waits, unless told otherwise; any other is served."""
    taint = "{key: node.cloudprovider.kubernetes.io/uninitialized, effect: NoSchedule}"
    tainted = f"{{metadata: {{name: a}}, spec: {{taints: [{taint}]}}}}"
    text = f"{POOL}---\n{nodes(tainted)}"
    assert "Assigned" in cidrella("plan", "-f", "-", stdin=text).out
    text = f"{POOL}---\n{SELECTED}---\n{nodes(tainted)}"
    waiting = cidrella("plan", "-f", "-", stdin=text)
    assert (waiting.code, "Waiting" in waiting.out, "the selector of selected may match" in waiting.out) == (
        3,
        True,
        True,
    )
    explained = cidrella("explain", "a", "-f", "-", stdin=text).out
    assert "Waiting: no block: it waits for its cloud provider" in explained
    assert "what would help: the cloud provider's controller, which sets labels and removes the taint" in explained
    assert "Assigned" in cidrella("plan", "-f", "-", "--no-wait-for-cloud-provider", stdin=text).out


def test_output_of_kubectl_is_read(cidrella: Cidrella) -> None:
    """A `List` as `kubectl get nodes,clustercidrs -o yaml` prints it is read, with all the fields real Nodes have."""
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"resourceVersion": ""},
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": "a", "managedFields": [{}], "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"podCIDR": "10.0.3.0/24", "podCIDRs": ["10.0.3.0/24"], "providerID": "x"},
                    "status": {"capacity": {"cpu": "2"}, "conditions": []},
                },
                {
                    "apiVersion": "networking.x-k8s.io/v1",
                    "kind": "ClusterCIDR",
                    "metadata": {"name": "all", "generation": 1, "finalizers": ["x/y"], "managedFields": []},
                    "spec": {"perNodeHostBits": 8, "ipv4": "10.0.0.0/22", "ipv6": ""},
                },
            ],
        }
    )
    for form in (text, yaml.safe_dump(json.loads(text))):
        result = cidrella("plan", "-f", "-", stdin=form)
        assert (result.code, result.err) == (0, "")
        assert result.out.splitlines()[1].split() == ["a", "Kept", "10.0.3.0/24", "all"]


def test_files_directories_and_several_of_them(cidrella: Cidrella, tmp_path: Path) -> None:
    """Files, directories and standard input may be mixed; a file named twice is read once."""
    (tmp_path / "deep").mkdir()
    pool, more = tmp_path / "pool.yaml", tmp_path / "deep" / "more.yml"
    pool.write_text(POOL)
    more.write_text(nodes(node("deep")))
    (tmp_path / "notes.txt").write_text("not ours")
    flat = cidrella("plan", "-f", tmp_path, "-f", pool, "-f", "-", "-o", "json", stdin=nodes(node("a")))
    assert [each["name"] for each in json.loads(flat.out)["nodes"]] == ["a"]
    below = cidrella("plan", "-R", tmp_path, "-o", "json")
    assert [each["name"] for each in json.loads(below.out)["nodes"]] == ["deep"]


def test_input_without_a_pool_is_remarked_on(cidrella: Cidrella) -> None:
    """Input without a pool is planned, with a warning that names what was passed over."""
    result = cidrella("plan", "-f", "-", stdin=f"{nodes(node('a'))}---\napiVersion: apps/v1\nkind: Deployment\n")
    assert result.code == 3
    assert "warning: there is no pool in the input; passed over: 1 Deployment" in result.err
