"""The commands on ClusterCIDRConfigs, from files and from clusters, beside ClusterCIDRs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.fake_api import FINALIZER, POOLS, FakeApi, refusal, serving
from tests.cli.test_plan import POOL, node, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.run import Cidrella, Result

GROUP = "/apis/networking.x-k8s.io/v1alpha1"
CONFIGS = f"{GROUP}/clustercidrconfigs"
FOUR, SIX = {"cidr": "10.1.0.0/22", "perNodeMaskSize": 24}, {"cidr": "fd00::/48", "perNodeMaskSize": 64}
PAIR = """
apiVersion: networking.x-k8s.io/v1alpha1
kind: ClusterCIDRConfig
metadata: {name: v4}
spec: {cidr: 10.1.0.0/22, perNodeMaskSize: 24, nodeSelector: {matchLabels: {dual: "yes"}}}
---
apiVersion: networking.x-k8s.io/v1alpha1
kind: ClusterCIDRConfig
metadata: {name: v6}
spec: {cidr: "fd00::/48", perNodeMaskSize: 64, nodeSelector: {matchLabels: {dual: "yes"}}}
"""
NODES = nodes("{metadata: {name: dual, labels: {dual: 'yes'}}}", node("plain"))


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A cluster that the environment's kubeconfig leads to, with both kinds installed."""
    with serving(tmp_path) as running:
        running.collections[CONFIGS] = []
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


def config(api: FakeApi, name: str, spec: dict[str, Any], **metadata: object) -> None:
    """Add a config with its finalizer on."""
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER], **metadata}
    api.collections[CONFIGS].append({"metadata": metadata, "spec": spec})


def told(result: Result) -> Any:
    assert result.code == 0, result.err
    return json.loads(result.out)


class TestFiles:
    """Both kinds in files."""

    def test_plan(self, cidrella: Cidrella) -> None:
        """K3, P3: a node gets a block of each family from configs; each block's pool is named, and each pool's kind."""
        plan = told(cidrella("plan", "-f", "-", "-o", "json", stdin=f"{POOL}---{PAIR}---\n{NODES}"))
        assert plan["nodes"] == [
            {
                "name": "dual",
                "podCIDRs": ["10.1.0.0/24", "fd00::/64"],
                "clusterCIDR": "ccc/v4",
                "pools": ["ccc/v4", "ccc/v6"],
                "outcome": "Assigned",
                "message": "",
            },
            {
                "name": "plain",
                "podCIDRs": ["10.0.0.0/24"],
                "clusterCIDR": "all",
                "pools": ["all"],
                "outcome": "Assigned",
                "message": "",
            },
        ]
        assert {each["name"]: each["kind"] for each in plan["pools"]} == {
            "all": "ClusterCIDR",
            "ccc/v4": "ClusterCIDRConfig",
            "ccc/v6": "ClusterCIDRConfig",
        }
        table = cidrella("plan", "-f", "-", stdin=f"{POOL}---{PAIR}---\n{NODES}").out.splitlines()
        assert table[1].split() == ["dual", "Assigned", "10.1.0.0/24,fd00::/64", "ccc/v4,ccc/v6"]

    def test_what_if(self, cidrella: Cidrella) -> None:
        """K3: added nodes find configs by their labels; what stops the next is the family that is full."""
        pair = PAIR.replace("10.1.0.0/22", "10.1.0.0/23")
        result = cidrella("plan", "-f", "-", "--add-nodes=3", "--labels=dual=yes", stdin=pair)
        assert result.code == 3
        assert "2 of 3 more nodes fit" in result.out
        assert "the next one would wait: not every family that it needs has a pool with room: ccc/v4 (" in result.out

    def test_one_name_in_both_kinds(self, cidrella: Cidrella) -> None:
        """K1: names must differ within a kind only."""
        text = POOL.replace("name: all", "name: v4") + f"---{PAIR}---\n{NODES}"
        assert told(cidrella("plan", "-f", "-", "-o", "json", stdin=text))["nodes"][0]["clusterCIDR"] == "ccc/v4"
        twice = cidrella("validate", "-f", "-", stdin=f"{PAIR}---{PAIR}")
        assert twice.code == 2
        assert ":14: ClusterCIDRConfig v4: metadata.name: is taken: there is one of this name at <stdin>:4" in twice.err

    def test_explain(self, cidrella: Cidrella) -> None:
        """K3, K4: the rules that decide among configs, and between the kinds, are named."""
        more = PAIR.replace("v4}", "v4-small}").replace("Size: 24", "Size: 26").split("---")[0]
        result = cidrella("explain", "dual", "-f", "-", stdin=f"{POOL}---{PAIR}---{more}---\n{NODES}")
        assert result.code == 0
        lines = [line.strip() for line in result.out.splitlines()]
        assert [line.split()[1] for line in lines if line[:1].isdigit()] == ["ccc/v4-small", "ccc/v4", "ccc/v6", "all"]
        assert "before ccc/v4 by K4.2: it has 6 host bits a node; ccc/v4 8" in lines
        assert "beside ccc/v6 by K3: it gives IPv4; ccc/v6 IPv6" in lines
        assert "before all by K3: it has a selector, or completes what has one; all is a default" in lines
        assert lines[-1] == "Assigned: 10.1.0.0/26, fd00::/64 from ccc/v4-small and ccc/v6"

    def test_validate(self, cidrella: Cidrella) -> None:
        """K1: what is sound is counted by kind."""
        result = cidrella("validate", "-f", "-", stdin=f"{POOL}---{PAIR}---\n{NODES}")
        assert result.out == "1 ClusterCIDR, 2 ClusterCIDRConfigs, 2 Nodes: no problem\n"

    @pytest.mark.parametrize(
        ("wrong", "place"),
        [
            ("cidr: 10.1.0.1/22", ":5: ClusterCIDRConfig v4: spec.cidr: '10.1.0.1/22' has host bits set"),
            ("cidr: 5", ":5: ClusterCIDRConfig v4: spec.cidr: must be text"),
            ("cidr: 10.1.0.0/26", ":5: ClusterCIDRConfig v4: spec.perNodeMaskSize: must be at least 26, not 24"),
            ("cdr: 10.1.0.0/26", ":5: ClusterCIDRConfig v4: spec.cdr: "),
            ("cidr: 10.1.0.0/22, perNodeHostBits: 8", ":5: ClusterCIDRConfig v4: spec.perNodeHostBits: "),
        ],
    )
    def test_faults(self, cidrella: Cidrella, tmp_path: Path, wrong: str, place: str) -> None:
        """K1: what is wrong with a config is said with file, line, object and field; nothing is done."""
        path = tmp_path / "pools.yaml"
        path.write_text(PAIR.replace("cidr: 10.1.0.0/22", wrong))
        for command in ("validate", "plan", "convert", "map"):
            result = cidrella(command, "-f", path)
            assert (result.code, result.out) == (2, "")
            assert f"{path}{place}" in result.err

    def test_faults_are_all_told(self, cidrella: Cidrella) -> None:
        """K1: a field that cannot be read keeps nobody from finding fault with the others."""
        text, _, _ = PAIR.partition("---")
        text = text.replace("10.1.0.0/22", "nonsense").replace("24", "many").replace('"yes"', '"-"')
        result = cidrella("validate", "-f", "-", stdin=text)
        assert result.err.endswith("3 problems; nothing was done\n")

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ("networking.x-k8s.io/v1", "apiVersion: is 'networking.x-k8s.io/v1'; that of a ClusterCIDRConfig is"),
            ("networking.k8s.io/v1alpha1", "that of a ClusterCIDRConfig is networking.x-k8s.io/v1alpha1"),
        ],
    )
    def test_wrong_version(self, cidrella: Cidrella, wrong: str, said: str) -> None:
        """K1: a config under another group or version is not passed over, but said to be wrong."""
        result = cidrella("plan", "-f", "-", stdin=PAIR.replace("networking.x-k8s.io/v1alpha1", wrong))
        assert result.code == 2
        assert said in result.err

    def test_misspelt_kind(self, cidrella: Cidrella) -> None:
        """K1: a kind that is almost ours is told which it was meant to be."""
        result = cidrella("plan", "-f", "-", stdin=PAIR.replace("ClusterCIDRConfig", "ClusterCidrConfigs"))
        assert "kind: is not known; did you mean ClusterCIDRConfig?" in result.err


class TestClusters:
    """Both kinds in a cluster."""

    def test_pools(self, cidrella: Cidrella, api: FakeApi) -> None:
        """A8, K5: configs are listed after ClusterCIDRs, with their own counts, finalizers and kind."""
        api.pool("all")
        config(api, "v4", FOUR)
        api.node("a", "10.1.1.0/24")
        found = told(cidrella("pools", "-o", "json"))["pools"]
        assert [each["name"] for each in found] == ["all", "ccc/v4"]
        assert found[1] == {
            "name": "ccc/v4",
            "state": "Active",
            "problem": None,
            "created": "2026-01-01T00:00:00Z",
            "selector": None,
            "nodes": 1,
            "ipv4": {"cidr": "10.1.0.0/22", "perNode": 24, "capacity": 4, "allocated": 1, "free": 3},
            "ipv6": None,
            "finalizers": [FINALIZER],
            "kind": "ClusterCIDRConfig",
        }
        wide = cidrella("pools", "-o", "wide").out.splitlines()
        assert "KIND" in wide[0]
        assert " ClusterCIDRConfig " in wide[2]

    def test_nodes(self, cidrella: Cidrella, api: FakeApi) -> None:
        """P3, K3: a node with blocks of two pools shows both, and is found by either."""
        config(api, "v4", FOUR)
        config(api, "v6", SIX)
        api.node("a", "10.1.1.0/24", "fd00::/64")
        api.node("b")
        kept, waiting = told(cidrella("nodes", "-o", "json"))["nodes"]
        assert kept["clusterCIDRs"] == ["ccc/v4", "ccc/v6"]
        assert waiting["wouldGet"]["pools"] == ["ccc/v4", "ccc/v6"]
        for name in ("ccc/v4", "ccc/v6"):
            assert [each["name"] for each in told(cidrella("nodes", "-o", "json", "--pool", name))["nodes"]] == ["a"]
        assert "would get 10.1.0.0/24,fd00:0:0:1::/64 from ccc/v4 and ccc/v6\n" in cidrella("nodes").out
        assert "did you mean ccc/v4?" in cidrella("nodes", "--pool", "cc/v4").err

    def test_map(self, cidrella: Cidrella, api: FakeApi) -> None:
        """The ranges of configs are drawn like any other, under the pools' names."""
        config(api, "v4", FOUR)
        api.node("a", "10.1.1.0/24")
        drawn = cidrella("map").out
        assert "ccc/v4 (10.1.0.0/22 by /24)" in drawn
        assert "ccc/v4: a" in drawn
        assert "pool ccc/v4" in cidrella("map", "--svg", "-").out

    def test_explain(self, cidrella: Cidrella, api: FakeApi) -> None:
        """P1, K3: a family whose pool has no finalizer yet keeps a node waiting, and that is said of this pool."""
        config(api, "v4", FOUR)
        config(api, "v6", SIX, finalizers=[])
        api.node("a")
        said = cidrella("explain", "a").out
        assert "it has yet to get its finalizer, and gives nothing before (P1)" in said
        assert "\nWaiting: no block\n" in said
        assert "it would get 10.1.0.0/24, fd00::/64 from ccc/v4 and ccc/v6 once ccc/v6 has its finalizer" in said
        assert told(cidrella("explain", "a", "-o", "json"))["wouldGet"]["pools"] == ["ccc/v4", "ccc/v6"]

    def test_explain_without_any_finalizer(self, cidrella: Cidrella, api: FakeApi) -> None:
        """P1: where no pool has its finalizer, what a node would get from both is said."""
        config(api, "v4", FOUR, finalizers=[])
        config(api, "v6", SIX, finalizers=[])
        api.node("a")
        said = cidrella("explain", "a").out
        assert "it would get 10.1.0.0/24, fd00::/64 from ccc/v4 and ccc/v6 once each of them has its finalizer" in said

    def test_overlay(self, cidrella: Cidrella, api: FakeApi, tmp_path: Path) -> None:
        """K2: a file says what if: a config replaces that of its name and no ClusterCIDR of the same, or is added."""
        api.pool("v4", "10.0.0.0/24")
        config(api, "v4", {**FOUR, "nodeSelector": {"matchLabels": {"no": "body"}}})
        config(api, "v6", {**SIX, "nodeSelector": {"matchLabels": {"no": "body"}}})
        api.node("a", labels={"dual": "yes"})
        path = tmp_path / "pools.yaml"
        path.write_text(PAIR)
        (alone,) = told(cidrella("plan", "--from-cluster", "-o", "json"))["nodes"]
        assert alone["pools"] == ["v4"]
        overlaid = told(cidrella("plan", "--from-cluster", "-f", path, "--add-nodes=1", "-o", "json"))
        assert [each["pools"] for each in overlaid["nodes"]] == [["ccc/v4", "ccc/v6"], ["v4"]]
        assert len(overlaid["pools"]) == 3

    def test_invalid(self, cidrella: Cidrella, api: FakeApi, tmp_path: Path) -> None:
        """C4, K1: an invalid config is listed with its problem, gives nothing, and a file may say what if not."""
        config(api, "v4", {**FOUR, "cidr": "10.1.0.1/22"})
        config(api, "odd", {"cidr": 7})
        result = cidrella("pools", "-o", "json")
        assert {each["name"]: each["state"] for each in told(result)["pools"]} == {
            "ccc/v4": "Invalid",
            "ccc/odd": "Invalid",
        }
        assert "warning: the cluster staging: ClusterCIDRConfig v4: is invalid: spec.cidr" in result.err
        path = tmp_path / "pools.yaml"
        path.write_text(PAIR)
        names = [each["name"] for each in told(cidrella("plan", "--from-cluster", "-f", path, "-o", "json"))["pools"]]
        assert sorted(names) == ["ccc/odd", "ccc/v4", "ccc/v6"]

    def test_release(self, cidrella: Cidrella, api: FakeApi) -> None:
        """F6, K5: the finalizers of configs are found, too."""
        api.pool("all")
        config(api, "v4", FOUR, deletionTimestamp="2026-01-01T00:00:00Z")
        said = cidrella("release", "--finalizers", "--dry-run").out
        assert said.splitlines() == [
            f"all: would lose {FINALIZER}",
            f"ccc/v4: would lose {FINALIZER}, and is gone, for it was being deleted",
        ]

    def test_not_installed(self, cidrella: Cidrella, api: FakeApi) -> None:
        """K6: a cluster without the kind is as it was, and no word is said of it."""
        del api.collections[CONFIGS]
        api.pool("all")
        api.node("a", "10.0.0.0/24")
        for command in (["pools"], ["nodes"], ["map"], ["explain", "a"], ["plan", "--from-cluster"]):
            result = cidrella(*command)
            assert (result.code, result.err) == (0, "")

    @pytest.mark.parametrize("served", [None, []])
    def test_not_installed_and_not_allowed(self, cidrella: Cidrella, api: FakeApi, served: list[object] | None) -> None:
        """K6: who may not list a kind that is not there is not told to ask for it."""
        api.pool("all")
        api.instead[CONFIGS] = refusal(403, "Forbidden")
        if served is not None:
            api.objects[GROUP] = {"resources": served}
        for command in (["pools"], ["release", "--finalizers", "--dry-run"]):
            result = cidrella(*command)
            assert (result.code, result.err) == (0, "")
            assert "all" in result.out

    @pytest.mark.parametrize("broken", [False, True])
    def test_installed_and_not_allowed(self, cidrella: Cidrella, api: FakeApi, broken: bool) -> None:
        """K6: where the kind is there, or may be, half of the pools would be no answer; the permission is named."""
        api.instead[CONFIGS] = refusal(403, "Forbidden")
        api.objects[GROUP] = {"resources": [{"name": "clustercidrconfigs"}]}
        if broken:
            api.instead[GROUP] = refusal(500, "InternalError")
        for command in (["pools"], ["release", "--finalizers", "--dry-run"]):
            result = cidrella(*command)
            assert result.code == 2
            assert "the permission to list clustercidrconfigs.networking.x-k8s.io" in result.err

    def test_the_other_kind_not_installed(self, cidrella: Cidrella, api: FakeApi) -> None:
        """K6: only ClusterCIDR is missed where it is not there."""
        del api.collections[POOLS]
        config(api, "v4", FOUR)
        result = cidrella("pools")
        assert "does not know the kind ClusterCIDR: install it" in result.err
        assert "ccc/v4" in result.out
