"""Nodes, as a real API server writes, checks and shows them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.kinds import created, kind, read, refused, row, updated, with_status

Json = dict[str, Any]

NODES = kind("nodes")
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
ONCE = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def ranges(*cidrs: str) -> list[str]:
    """What is wrong with a node that has these."""
    return refused(NODES, spec={"podCIDRs": list(cidrs)})


class TestRanges:
    """podCIDR and podCIDRs."""

    @pytest.mark.parametrize(
        ("spec", "first", "both"),
        [
            ({"podCIDR": "10.1.0.0/24"}, "10.1.0.0/24", ["10.1.0.0/24"]),
            ({"podCIDRs": ["10.1.0.0/24", "fd00::/64"]}, "10.1.0.0/24", ["10.1.0.0/24", "fd00::/64"]),
            ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]}, "10.1.0.0/24", ["10.1.0.0/24"]),
            (
                {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
                "10.1.0.0/24",
                ["10.1.0.0/24", "fd00::/64"],
            ),
        ],
    )
    def test_both_forms(self, spec: Json, first: str, both: list[str]) -> None:
        """Each form is made from the other; where they differ, the older one wins."""
        found = read(NODES, spec=spec)["spec"]
        assert (found["podCIDR"], found["podCIDRs"]) == (first, both)

    @pytest.mark.parametrize(
        ("cidr", "why"),
        [
            ("x", NO_CIDR),
            ("", NO_CIDR),
            ("10.1.0.0", NO_CIDR),
            ("10.1.0.0/33", NO_CIDR),
            ("10.1.0.0/+24", NO_CIDR),
            (" 10.1.0.0/24", NO_CIDR),
            ("256.1.0.0/24", NO_CIDR),
            ("fe80::1%eth0/64", NO_CIDR),
            ("10.1.0.1/24", "must not have bits set beyond the prefix length"),
            ("fd00::1/64", "must not have bits set beyond the prefix length"),
            ("010.1.0.0/24", "must not have leading 0s in IP or prefix length"),
            ("10.1.0.0/024", "must not have leading 0s in IP or prefix length"),
            ("fd00::00001/128", "must not have leading 0s in IP or prefix length"),
            ("::ffff:10.1.0.0/120", "must not have an IPv4-mapped IPv6 address"),
        ],
    )
    def test_no_range(self, cidr: str, why: str) -> None:
        """What is no range, or not written as one, is told in a real server's words."""
        assert ranges(cidr) == [f'spec.podCIDRs[0]: Invalid value: "{cidr}": {why}']

    @pytest.mark.parametrize(
        "cidrs", [("10.1.0.0/24", "10.2.0.0/24"), ("10.1.0.0/24", "fd00::/64", "fd01::/64"), ("fd00::/64", "fd00::/64")]
    )
    def test_one_of_each_family(self, cidrs: tuple[str, ...]) -> None:
        """There is one range, or one of each family."""
        listed = ",".join(f'"{each}"' for each in cidrs)
        why = "may specify no more than one CIDR for each IP family"
        assert ranges(*cidrs) == [f"spec.podCIDRs: Invalid value: [{listed}]: {why}"]

    def test_families_that_cannot_be_told(self) -> None:
        """One of two that is no range is told three times over."""
        assert ranges("10.1.0.0/24", "x") == [
            f'spec.podCIDRs[1]: Invalid value: "x": {NO_CIDR}',
            "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:"
            "invalid CIDR[1]: <nil> (invalid CIDR address: x)",
            'spec.podCIDRs: Invalid value: ["10.1.0.0/24","x"]: may specify no more than one CIDR for each IP family',
        ]

    def test_set_once(self) -> None:
        """What a node has none of it can get; what it has it keeps."""
        bare = created(NODES)
        given, faults = updated(NODES, bare, spec={"podCIDR": "10.3.0.0/24"})
        assert faults == []
        assert given["spec"]["podCIDRs"] == ["10.3.0.0/24"]
        for spec, times in (
            ({"podCIDR": "10.4.0.0/24"}, 1),
            ({}, 1),
            ({"podCIDRs": ["10.3.0.0/24", "fd00::/64"]}, 1),
        ):
            assert updated(NODES, given, spec=spec)[1] == [ONCE] * times

    def test_each_changed_range_is_told(self) -> None:
        """Two that trade places are two changes."""
        both = created(NODES, spec={"podCIDRs": ["10.3.0.0/24", "fd00::/64"]})
        assert updated(NODES, both, spec={"podCIDRs": ["fd00::/64", "10.3.0.0/24"]})[1] == [ONCE, ONCE]

    def test_canonical_form(self) -> None:
        """A range that could be written otherwise is taken, with a warning."""
        node = created(NODES, spec={"podCIDRs": ["FD00::/64"]})
        assert NODES.strategy.warnings(node) == [
            'spec.podCIDRs[0]: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")'
        ]


class TestTaints:
    """Taints."""

    def test_new_nodes_are_not_ready(self) -> None:
        """A new node has the taint that says so, once, after its own."""
        assert created(NODES)["spec"]["taints"] == [NOT_READY]
        mine = {"key": "a", "value": "b", "effect": "NoExecute"}
        assert created(NODES, spec={"taints": [mine]})["spec"]["taints"] == [mine, NOT_READY]
        assert created(NODES, spec={"taints": [NOT_READY]})["spec"]["taints"] == [NOT_READY]
        other = {**NOT_READY, "effect": "NoExecute"}
        assert created(NODES, spec={"taints": [other]})["spec"]["taints"] == [other, NOT_READY]

    def test_updates_leave_them(self) -> None:
        """Later it is for others to take away."""
        new, faults = updated(NODES, created(NODES), spec={"taints": []})
        assert (new["spec"], faults) == ({}, [])

    def test_faults(self) -> None:
        """Keys, values and effects are checked; a real server looks for them in metadata."""
        taints = [{"key": "a", "effect": "Foo"}, {"key": "b"}, {"key": "b@", "value": "%", "effect": "NoSchedule"}]
        told = refused(NODES, spec={"taints": taints})
        assert told[0] == (
            'metadata.taints[0].effect: Unsupported value: "Foo": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
        )
        assert told[1] == "metadata.taints[1].effect: Required value"
        assert told[2].startswith('metadata.taints[2].key: Invalid value: "b@": name part must consist of')
        assert told[3].startswith('metadata.taints[2].value: Invalid value: "%": a valid label must be')
        assert len(told) == 4

    def test_unique(self) -> None:
        """Of each key there is one taint of each effect."""
        taints = [{"key": "a", "value": each, "effect": "NoSchedule"} for each in "bc"]
        assert refused(NODES, spec={"taints": taints}) == [
            'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"c","Effect":"NoSchedule","TimeAdded":null}: '
            "taints must be unique by key and effect pair"
        ]

    def test_told_twice_on_updates(self) -> None:
        """A write to the node checks them twice, and tells them twice."""
        told = updated(NODES, created(NODES), spec={"taints": [{"key": "a", "effect": "x"}]})[1]
        assert len(told) == 2
        assert told[0] == told[1]


class TestOtherFields:
    """The rest of the spec."""

    def test_provider(self) -> None:
        """What the cloud calls the machine is set once."""
        node, faults = updated(NODES, created(NODES), spec={"providerID": "y"})
        assert faults == []
        assert updated(NODES, node, spec={"providerID": "z"})[1] == [
            'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'
        ]

    def test_external(self) -> None:
        """The field that is out of use can be set at the beginning only, with a warning."""
        node = created(NODES, spec={"externalID": "e"})
        assert NODES.strategy.warnings(node) == [
            "spec.externalID: this field is deprecated, and is unused by Kubernetes"
        ]
        assert updated(NODES, created(NODES), spec={"externalID": "e"})[1] == [
            "spec.externalID: Forbidden: may not be updated"
        ]

    def test_configuration(self) -> None:
        """Nobody sets the configuration of a kubelet this way any more: it is dropped."""
        source = {"configMap": {"name": "x", "namespace": "y", "kubeletConfigKey": "k"}}
        assert "configSource" not in created(NODES, spec={"configSource": source})["spec"]
        assert "configSource" not in updated(NODES, created(NODES), spec={"configSource": source})[0]["spec"]


class TestStatus:
    """The status."""

    def test_apart_from_the_spec(self) -> None:
        """Writes to the node keep its status, and writes to its status the rest, but for metadata."""
        node = created(NODES)
        new, _ = updated(NODES, node, spec={"unschedulable": True}, status={"phase": "Running"})
        assert "phase" not in new["status"]
        labelled = {**node["metadata"], "labels": {"a": "b"}}
        new, faults = with_status(NODES, new, metadata=labelled, spec={}, status={"phase": "Running"})
        assert faults == []
        assert (new["spec"]["unschedulable"], new["status"]["phase"]) == (True, "Running")
        assert new["metadata"]["labels"] == {"a": "b"}

    def test_allocatable(self) -> None:
        """What Pods may use is all there is, unless it is told."""
        status = {"capacity": {"cpu": "4.0", "memory": "16777216Ki", "pods": 110}}
        found = read(NODES, status=status)["status"]
        assert found["capacity"] == found["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
        told = read(NODES, status={**status, "allocatable": {"cpu": "3"}})["status"]
        assert told["allocatable"] == {"cpu": "3"}

    def test_amounts(self) -> None:
        """There is no less than nothing of anything, and of what others count in whole there are no parts."""
        node = created(NODES)
        amounts = {"capacity": {"cpu": "-1", "a.b/c": "2"}, "allocatable": {"a.b/c": "1.5", "cpu": "0.5"}}
        _, faults = with_status(NODES, node, status=amounts)
        assert faults == [
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.a.b/c: Invalid value: "1500m": must be an integer',
        ]

    def test_addresses(self) -> None:
        """No address is there twice, once it is told of in the status."""
        status = {"addresses": [{"type": "InternalIP", "address": "a"}] * 2}
        assert created(NODES, status=status)
        assert with_status(NODES, created(NODES), status=status)[1] == [
            'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"a"}'
        ]


class TestMetadata:
    """What of metadata is checked by the kind."""

    def test_finalizers(self) -> None:
        """Those of built-in kinds have a domain; on an update the same is found twice."""
        node = created(NODES)
        fault = (
            'metadata.finalizers[0]: Invalid value: "zz": name is neither a standard finalizer name nor is it fully '
            "qualified"
        )
        metadata = {**node["metadata"], "finalizers": ["zz"]}
        assert updated(NODES, node, metadata=metadata)[1] == [fault, fault]
        assert with_status(NODES, node, metadata=metadata, status={"phase": "Running"})[1] == [fault]


class TestColumns:
    """What `kubectl get nodes` shows."""

    def test_bare(self) -> None:
        """Of a node that says nothing of itself."""
        cells = row(NODES, created(NODES))
        assert cells == ["Unknown", "<none>", "<unknown>", "", "<none>", "<none>", *["<unknown>"] * 3]

    def test_whole(self) -> None:
        """Of one that says everything."""
        metadata = {
            "name": "x",
            "uid": "u",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/": "",
                "kubernetes.io/role": "db",
            },
        }
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}, {"type": "ExternalIP", "address": "5.6.7.8"}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0",
                "osImage": "os",
                "kernelVersion": "6",
                "containerRuntimeVersion": "containerd://2",
            },
        }
        node = created(NODES, metadata=metadata, spec={"unschedulable": True}, status=status)
        assert row(NODES, node) == [
            "Ready,SchedulingDisabled",
            "db,worker",
            "2020-01-01T00:00:00+00:00",
            "v1.36.0",
            "1.2.3.4",
            "5.6.7.8",
            "os",
            "6",
            "containerd://2",
        ]

    def test_not_ready(self) -> None:
        """Ready is what says so, and nothing else."""
        status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        assert row(NODES, created(NODES, status=status))[0] == "NotReady"

    def test_field_selectors(self) -> None:
        """Nodes are selected by whether they take Pods."""
        select = NODES.fields["spec.unschedulable"]
        assert select(created(NODES)) == "false"
        assert select(created(NODES, spec={"unschedulable": True})) == "true"
