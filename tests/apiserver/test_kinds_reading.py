"""JSON in the types of built-in kinds: what does not fit, and the one form of what does."""

from __future__ import annotations

from typing import Any

import pytest

from cidrella.apiserver.kinds.quantities import canonical
from tests.apiserver.kinds import kind, read, unread

NODES = kind("nodes")
SERVICES = kind("services")
LEASES = kind("leases", "coordination.k8s.io")
FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"
PORT = "DaemonEndpoint.status.daemonEndpoints.kubeletEndpoint.Port"


@pytest.mark.parametrize(
    ("parts", "what", "where", "wanted"),
    [
        ({"spec": "a"}, "string", "Node.spec", "v1.NodeSpec"),
        ({"spec": [1]}, "array", "Node.spec", "v1.NodeSpec"),
        ({"spec": {"podCIDRs": "a"}}, "string", "NodeSpec.spec.podCIDRs", "[]string"),
        ({"spec": {"podCIDRs": [1]}}, "number", "NodeSpec.spec.podCIDRs", "string"),
        ({"spec": {"podCIDR": 1.5}}, "number", "NodeSpec.spec.podCIDR", "string"),
        ({"spec": {"unschedulable": "yes"}}, "string", "NodeSpec.spec.unschedulable", "bool"),
        ({"spec": {"taints": [{"key": 1}]}}, "number", "Taint.spec.taints.key", "string"),
        ({"spec": {"taints": [{"effect": {}}]}}, "object", "Taint.spec.taints.effect", "v1.TaintEffect"),
        ({"spec": {"taints": ["x"]}}, "string", "NodeSpec.spec.taints", "v1.Taint"),
        ({"spec": {"taints": {"x": 1}}}, "object", "NodeSpec.spec.taints", "[]v1.Taint"),
        ({"status": {"capacity": "x"}}, "string", "NodeStatus.status.capacity", "v1.ResourceList"),
        (
            {"status": {"conditions": [{"lastHeartbeatTime": 3}]}},
            "number",
            "NodeCondition.status.conditions.lastHeartbeatTime",
            "string",
        ),
        ({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": "x"}}}}, "string", PORT, "int32"),
        ({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": True}}}}, "bool", PORT, "int32"),
        ({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1.0}}}}, "number 1.0", PORT, "int32"),
        ({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1 << 31}}}}, "number 2147483648", PORT, "int32"),
    ],
)
def test_types(parts: dict[str, Any], what: str, where: str, wanted: str) -> None:
    """A value of another type is told as the decoder of a real server tells it."""
    assert unread(NODES, **parts) == FIELD.format(what, where, wanted)


@pytest.mark.parametrize(
    ("spec", "what", "where", "wanted"),
    [
        ({"selector": {"a": 1}}, "number", "ServiceSpec.spec.selector", "string"),
        ({"selector": 1}, "number", "ServiceSpec.spec.selector", "map[string]string"),
        ({"ports": [{"targetPort": True}]}, "bool", "ServicePort.spec.ports.targetPort", "int32"),
        ({"ports": [{"targetPort": 1.5}]}, "number 1.5", "ServicePort.spec.ports.targetPort", "int32"),
        ({"ipFamilies": 3}, "number", "ServiceSpec.spec.ipFamilies", "[]v1.IPFamily"),
        ({"ipFamilies": [3]}, "number", "ServiceSpec.spec.ipFamilies", "v1.IPFamily"),
        ({"ipFamilyPolicy": 3}, "number", "ServiceSpec.spec.ipFamilyPolicy", "v1.IPFamilyPolicy"),
    ],
)
def test_named_types(spec: dict[str, Any], what: str, where: str, wanted: str) -> None:
    """Strings that have a type of their own, and maps of strings, are told by it."""
    assert unread(SERVICES, spec=spec) == FIELD.format(what, where, wanted)


@pytest.mark.parametrize(
    ("resource", "parts", "told"),
    [
        (NODES, {"status": {"capacity": {"cpu": "x"}}}, "quantities must match the regular expression"),
        (NODES, {"status": {"capacity": {"cpu": True}}}, "quantities must match the regular expression"),
        (NODES, {"status": {"capacity": {"cpu": "1e"}}}, "unable to parse quantity's suffix"),
        (
            NODES,
            {"status": {"conditions": [{"lastHeartbeatTime": "x"}]}},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            LEASES,
            {"spec": {"renewTime": "x"}},
            'parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"',
        ),
        (
            LEASES,
            {"spec": {"renewTime": "2020-01-01T00:00:00Z"}},
            'parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
        ),
    ],
)
def test_texts_with_a_form(resource: Any, parts: dict[str, Any], told: str) -> None:
    """Amounts and times that are none are told without their place."""
    assert unread(resource, **parts).startswith(told)


def test_empty_fields() -> None:
    """What is empty, false or null is left out, but for what is always written."""
    spec = {"podCIDRs": [], "podCIDR": "", "unschedulable": False, "providerID": None}
    found = read(NODES, spec=spec, status={"images": None, "nodeInfo": {"osImage": "linux"}})
    assert found["spec"] == {}
    assert found["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert found["status"]["nodeInfo"] == {
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kernelVersion": "",
        "osImage": "linux",
        "containerRuntimeVersion": "",
        "kubeletVersion": "",
        "kubeProxyVersion": "",
        "operatingSystem": "",
        "architecture": "",
    }
    assert "images" not in found["status"]


def test_fields_that_can_be_unset() -> None:
    """What can be unset is kept when it is zero, and gone when it is null."""
    assert read(LEASES, spec={"leaseTransitions": 0, "holderIdentity": ""})["spec"] == {
        "leaseTransitions": 0,
        "holderIdentity": "",
    }
    assert read(LEASES, spec={"leaseTransitions": None})["spec"] == {}


def test_nulls_in_lists_and_maps() -> None:
    """In a list or a map null stands for what is empty."""
    assert read(NODES, spec={"podCIDRs": ["10.0.0.0/24", None]})["spec"]["podCIDRs"] == ["10.0.0.0/24", ""]
    assert read(NODES, spec={"taints": [None]})["spec"]["taints"] == [{"key": "", "effect": ""}]
    assert read(SERVICES, spec={"selector": {"a": None}})["spec"]["selector"] == {"a": ""}


def test_conditions() -> None:
    """Times that nobody told of stand as null in a condition."""
    found = read(NODES, status={"conditions": [{"type": "Ready", "status": "True"}]})["status"]["conditions"]
    assert found == [{"type": "Ready", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}]


def test_times() -> None:
    """Times are in UTC: to the second, or where the type has it to the microsecond."""
    taint = {"key": "a", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00.9+01:00"}
    assert read(NODES, spec={"taints": [taint]})["spec"]["taints"][0]["timeAdded"] == "2019-12-31T23:00:00Z"
    lease = read(LEASES, spec={"renewTime": "2020-01-01T00:00:00.123456+01:00"})
    assert lease["spec"]["renewTime"] == "2019-12-31T23:00:00.123456Z"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("4.0", "4"),
        ("16777216Ki", "16Gi"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1n", "1m"),
        ("123456789n", "124m"),
        ("12e6", "12e6"),
        ("1e3", "1e3"),
        ("1000k", "1M"),
        ("0", "0"),
        ("0Ki", "0"),
        ("0.1Ki", "102400m"),
        ("-1.5Ki", "-1536"),
        ("1e19", "10e18"),
    ],
)
def test_quantities(text: str, form: str) -> None:
    """Amounts have one form each, as a real server writes them in nodes."""
    assert canonical(text) == form
