"""`cidrella explain`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from tests.cli.test_plan import node, nodes

if TYPE_CHECKING:
    from tests.cli.run import Cidrella


def pool(name: str, ipv4: str, bits: int, *keys: str, more: str = "") -> str:
    wanted = ", ".join(f"{{key: {key}, operator: Exists}}" for key in keys)
    selector = f", nodeSelector: {{nodeSelectorTerms: [{{matchExpressions: [{wanted}]}}]}}" if keys else ""
    return (
        f"apiVersion: networking.x-k8s.io/v1\nkind: ClusterCIDR\nmetadata: {{name: {name}{more}}}\n"
        f"spec: {{perNodeHostBits: {bits}, ipv4: {ipv4}{selector}}}\n---\n"
    )


LABELLED = "{metadata: {name: n1, labels: {a: '1', b: '2'}}}"


def test_order_and_the_rule_between_neighbours(cidrella: Cidrella) -> None:
    """S3: every pool that applies stands in order, with the point that puts it before its neighbour."""
    text = (
        pool("plain", "10.1.0.0/16", 8)
        + pool("two", "10.2.0.0/16", 8, "a", "b")
        + pool("few", "10.3.0.0/20", 8, "a")
        + pool("many", "10.4.0.0/16", 8, "a")
        + pool("narrow", "10.5.0.0/20", 4, "a")
        + pool("other", "10.10.0.0/16", 8, "a")
        + pool("text", "10.0.0.0/16", 8, "b")
        + pool("same", "10.4.0.0/16", 8, "a")
        + nodes(LABELLED)
    )
    result = cidrella("explain", "n1", "-f", "-", "-o", "json", stdin=text)
    assert result.code == 0
    found = [(each["name"], each["beforeNext"]) for each in json.loads(result.out)["pools"]]
    assert found == [
        ("two", "before few by S3.2: it meets 2 requirements; few 1"),
        ("few", "before narrow by S3.3: it has 16 Pod CIDRs in all; narrow 256"),
        ("narrow", "before many by S3.4: it has 4 host bits a node; many 8"),
        ("many", "before same by S3.5: it has the name that sorts first"),
        ("same", "before other by S3.5: it has the lower first address"),
        ("other", "before text by S3.5: it has the selector whose text sorts first"),
        ("text", "before plain by S3.1: it has a selector; plain is a default"),
        ("plain", None),
    ]


def test_pools_that_do_not_apply_say_why(cidrella: Cidrella) -> None:
    """S1, S6: a pool that does not apply says which requirement fails, or that it gives nothing."""
    text = (
        pool("gone", "10.1.0.0/16", 8, more=', deletionTimestamp: "2026-01-01T00:00:00Z"')
        + pool("else", "10.2.0.0/16", 8, "c")
        + pool("last", "10.3.0.0/24", 8)
        + nodes(node("first"), LABELLED)
    )
    result = cidrella("explain", "n1", "-f", "-", stdin=text)
    assert result.code == 0
    assert result.out == (
        "node n1\n"
        "  labels: a=1, b=2\n"
        "\n"
        "tried in this order:\n"
        "  1. last  10.3.0.0/24 by /24  FULL\n"
        "     it has no selector: a default for every node (S2)\n"
        "     no room: 10.3.0.0/24 has no /24 left\n"
        "\n"
        "not applying:\n"
        "  - else  10.2.0.0/16 by /24\n"
        "     its selector does not match (S1): c Exists, but the node has no such label\n"
        "  - gone  10.1.0.0/16 by /24\n"
        "     it is being deleted and gives nothing (S6)\n"
        "\n"
        "Waiting: no block: every pool that applies is full: last (no IPv4 /24 left)\n"
        "what would help: another pool that applies to it, or a node of these pools that goes and leaves its blocks\n"
    )


def test_requirement_on_a_value_shows_the_value(cidrella: Cidrella) -> None:
    """S1: where a label has another value than asked for, both are shown; so are alternatives and the node's name."""
    text = """
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: p}
spec:
  perNodeHostBits: 8
  ipv4: 10.0.0.0/16
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [{key: a, operator: In, values: [v, u]}]
    - matchFields: [{key: metadata.name, operator: In, values: [m]}]
    - {}
---
""" + nodes(LABELLED)
    result = cidrella("explain", "n1", "-f", "-", stdin=text)
    assert "no pool applies\n" in result.out
    assert (
        "a In (u, v), but the node has a=1; or: metadata.name In (m); or: an empty term matches nothing\n" in result.out
    )


def test_node_that_has_its_block(cidrella: Cidrella) -> None:
    """N1: a node with podCIDRs keeps them, whatever pool would be tried first."""
    text = pool("p", "10.0.0.0/16", 8) + pool("q", "10.9.0.0/24", 8) + nodes(node("n1", "10.0.7.0/24"))
    result = cidrella("explain", "n1", "-f", "-", stdin=text)
    assert result.out.endswith("Kept: 10.0.7.0/24 from p\n")
    as_yaml = cidrella("explain", "n1", "-f", "-", "-o", "yaml", stdin=text)
    assert yaml.safe_load(as_yaml.out)["decision"] == {
        "outcome": "Kept",
        "podCIDRs": ["10.0.7.0/24"],
        "clusterCIDR": "p",
        "pools": ["p"],
        "message": "",
        "help": "",
    }


def test_explanation_agrees_with_the_plan(cidrella: Cidrella) -> None:
    """A plan is a promise: what `explain` says a node gets is what `plan` gives it, for each node."""
    text = (
        pool("p", "10.0.0.0/23", 8)
        + pool("q", "10.0.0.0/22", 9, "a")
        + nodes(node("one"), LABELLED, node("held", "10.0.3.0/24"), node("two"), node("three"))
    )
    plan = json.loads(cidrella("plan", "-f", "-", "-o", "json", stdin=text).out)
    for each in plan["nodes"]:
        explained = cidrella("explain", each["name"], "-f", "-", "-o", "json", stdin=text)
        assert json.loads(explained.out)["decision"]["podCIDRs"] == each["podCIDRs"], each["name"]
