"""`cidrella convert`: what it writes, what it says, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from cidrella.model.objects import FINALIZER, FOREIGN_FINALIZER
from tests.cli.run import in_its_own_process
from tests.cli.test_configs import NODES, PAIR
from tests.cli.test_plan import POOL, node, nodes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella

BY_NUMBER = POOL.replace("name: all", "name: odd").rstrip("}\n") + (
    ", nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ['3']}]}]}}\n"
)
CONFIG = {
    "apiVersion": "networking.x-k8s.io/v1alpha1",
    "kind": "ClusterCIDRConfig",
    "metadata": {"name": "all"},
    "spec": {"cidr": "10.0.0.0/22", "perNodeMaskSize": 24},
}


def test_there_and_back(cidrella: Cidrella) -> None:
    """K1, K3: manifests on standard output that the other commands take, the count on standard error, and exit 0."""
    there = cidrella("convert", "-f", "-", stdin=PAIR)
    assert (there.code, there.err) == (0, "2 of 2 converted to ClusterCIDR\n")
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "dual", "operator": "In", "values": ["yes"]}]}]}
    assert list(yaml.safe_load_all(there.out)) == [
        {
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": {"name": "v4"},
            "spec": {
                "perNodeHostBits": 8,
                "perNodeHostBitsIPv6": 64,
                "ipv4": "10.1.0.0/22",
                "ipv6": "fd00::/48",
                "nodeSelector": selector,
            },
        }
    ]
    assert cidrella("validate", "-f", "-", stdin=there.out).out == "1 ClusterCIDR: no problem\n"
    back = cidrella("convert", "-f", "-", stdin=there.out)
    assert (back.code, back.err) == (0, "1 of 1 converted to ClusterCIDRConfig\n")
    assert [each["spec"] for each in yaml.safe_load_all(back.out)] == [
        each["spec"] for each in yaml.safe_load_all(PAIR)
    ]


def test_json(cidrella: Cidrella) -> None:
    """JSON is one List, which the other commands and kubectl take as well."""
    result = cidrella("convert", "-f", "-", "-o", "json", stdin=f"{POOL}---\n{nodes(node('a'))}")
    assert json.loads(result.out) == {"apiVersion": "v1", "kind": "List", "items": [CONFIG]}
    assert cidrella("validate", "-f", "-", stdin=result.out).code == 0


def test_plan_stays_the_same(cidrella: Cidrella) -> None:
    """K3, S3: the plan of what came out, beside the same nodes, gives them the same blocks."""
    before = f"{POOL}---{PAIR}"
    for kind in ("ClusterCIDR", "ClusterCIDRConfig"):
        after = cidrella("convert", "-f", "-", "--to", kind, stdin=before).out
        plans = [cidrella("plan", "-f", "-", "-o", "json", stdin=f"{text}---\n{NODES}").out for text in (before, after)]
        assert after.count(f"kind: {kind}\n") >= 2
        given = [[each["podCIDRs"] for each in json.loads(plan)["nodes"]] for plan in plans]
        assert given[0] == given[1]


def test_some_stay(cidrella: Cidrella) -> None:
    """What cannot be converted is in the output as it was, and why is said; exit 3."""
    result = cidrella("convert", "-f", "-", stdin=f"{POOL}---\n{BY_NUMBER}")
    assert result.code == 3
    assert [each["kind"] for each in yaml.safe_load_all(result.out)] == ["ClusterCIDRConfig", "ClusterCIDR"]
    assert list(yaml.safe_load_all(result.out))[1] == yaml.safe_load(BY_NUMBER)
    assert result.err.splitlines() == [
        "ClusterCIDR odd: stays as it is: its selector compares a as a number (Gt), which a ClusterCIDRConfig's cannot",
        "1 of 2 converted to ClusterCIDRConfig",
    ]


def test_output_of_kubectl(cidrella: Cidrella) -> None:
    """What the API server and controllers add to an object is not written into manifests, of whichever kind."""
    metadata = {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [],
        "finalizers": [FINALIZER, FOREIGN_FINALIZER, "else/where"],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    objects = [yaml.safe_load(POOL), yaml.safe_load(BY_NUMBER)]
    for each in objects:
        each["metadata"] |= metadata
        each["status"] = {"nodes": 3}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    made, kept = yaml.safe_load_all(cidrella("convert", "-f", "-", stdin=text).out)
    assert made == CONFIG
    assert kept["metadata"] == {"name": "odd", "finalizers": ["else/where"]}
    assert "status" not in kept


def test_being_deleted(cidrella: Cidrella) -> None:
    """S6: a pool that is being deleted cannot be applied as such: it is left out, and that is said; exit 0."""
    going = POOL.replace("{name: all}", "{name: old, deletionTimestamp: '2026-01-01T00:00:00Z'}")
    assert going != POOL
    result = cidrella("convert", "-f", "-", "-o", "json", stdin=f"{POOL}---\n{going}")
    assert (result.code, json.loads(result.out)["items"]) == (0, [CONFIG])
    assert result.err.splitlines() == [
        "warning: ClusterCIDR old is being deleted, and is left out",
        "1 of 1 converted to ClusterCIDRConfig",
    ]


@pytest.mark.parametrize("kind", ["ClusterCIDRConfig", "clustercidrconfig", "clustercidrconfigs", "ccc"])
def test_kind_by_any_name(cidrella: Cidrella, kind: str) -> None:
    """The kind that is wanted can be named as to kubectl. Those that are of it are left alone."""
    result = cidrella("convert", "-f", "-", "--to", kind, stdin=POOL)
    assert result.err.endswith("1 of 1 converted to ClusterCIDRConfig\n")
    assert cidrella("convert", "-f", "-", "--to", kind, stdin=PAIR).err == "0 of 0 converted to ClusterCIDRConfig\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (
            ["-f", "-"],
            f"{POOL}---{PAIR}",
            "the input has pools of both kinds; say which is wanted: --to ClusterCIDR or",
        ),
        (["-f", "-", "--to", "Node"], POOL, "--to: 'Node' is no kind of pools; write --to ClusterCIDR or"),
        (["-f", "-", "-o", "table"], POOL, "'table' is not one of 'yaml', 'json'"),
        ([], "", "say where the objects are"),
        (["-f", "-"], POOL.replace("10.0.0.0/22", "10.0.0.1/22"), "has host bits set"),
        (["-f", "/no/such/file"], "", "/no/such/file"),
    ],
)
def test_wrong_input(cidrella: Cidrella, arguments: list[str], stdin: str, message: str) -> None:
    """What is wrong with the input or the command line is said; exit 2, and nothing is written."""
    result = cidrella("convert", *arguments, stdin=stdin)
    assert (result.code, result.out) == (2, "")
    assert message in " ".join(result.err.replace("│", " ").split())


def test_nothing_to_convert(cidrella: Cidrella) -> None:
    """Input without a pool is remarked on, and is no fault."""
    result = cidrella("convert", "-f", "-", stdin=nodes(node("a")))
    assert (result.code, result.out, result.err) == (0, "", "warning: there is no pool in the input\n")


def test_in_a_pipe(tmp_path: Path) -> None:
    """The manifests go into a file, what is to be said does not."""
    source, made = tmp_path / "in.yaml", tmp_path / "out.yaml"
    source.write_text(f"{POOL}---\n{BY_NUMBER}")
    done = in_its_own_process(f"cat {source} | cidrella convert -f - > {made}")
    assert (done.code, done.out) == (3, "")
    assert done.err.endswith("1 of 2 converted to ClusterCIDRConfig\n")
    assert in_its_own_process(f"cidrella validate {made}").out.startswith("1 ClusterCIDR, 1 ClusterCIDRConfig: no pro")


def test_bar(cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal many pools are compared under a progress bar on standard error, and the output stays clean."""
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr("cidrella.cli.convert._WORTH_A_BAR", 0)
    result = cidrella("convert", "-f", "-", "-o", "json", stdin=POOL)
    assert "comparing" in result.err
    assert json.loads(result.out)["items"] == [CONFIG]
