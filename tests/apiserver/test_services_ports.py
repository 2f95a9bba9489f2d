"""Node ports of Services."""

from __future__ import annotations

from typing import Any

import pytest

from cidrella.apiserver.services import nodeports
from cidrella.apiserver.services.nodeports import give_node_ports, ports_of
from cidrella.apiserver.words.statuses import StatusError
from tests.apiserver.kinds import kind, read

Json = dict[str, Any]

SERVICES = kind("services")
TAKEN = "provided port is already allocated"
OUTSIDE = "provided port is not in the valid range. The range of valid ports is 30000-32767"


def give(others: list[Json] | None = None, **spec: Any) -> list[int]:
    """The node ports that a Service comes to have; the last is that for health, if there is one."""
    obj = read(SERVICES, spec={"type": "NodePort", **spec})
    give_node_ports(obj, others or [])
    ports = [port.get("nodePort", 0) for port in obj["spec"].get("ports", [])]
    health = obj["spec"].get("healthCheckNodePort")
    return [*ports, health] if health else ports


def test_given() -> None:
    """Each port gets a number of its own."""
    given = give(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])
    assert len(set(given)) == 2
    assert all(30000 <= each <= 32767 for each in given)


def test_protocols_share() -> None:
    """A port that speaks two protocols has one number."""
    given = give(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "UDP"}])
    assert given[0] == given[1]


def test_others_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is nobody's: neither another Service's, nor one that this Service names for another port."""
    monkeypatch.setattr(nodeports, "LAST", 30003)
    other = read(SERVICES, spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}]})
    health = read(SERVICES, spec={"type": "LoadBalancer", "healthCheckNodePort": 30001})
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "nodePort": 30002}]
    assert give([other, health], ports=ports) == [30003, 30002]
    with pytest.raises(StatusError, match="failed to allocate a nodePort: range is full"):
        give([other, health], ports=[*ports, {"port": 82, "name": "c"}])


@pytest.mark.parametrize(
    ("ports", "fault"),
    [
        ([{"port": 80, "nodePort": 30000}], f"spec.ports[0].nodePort: Invalid value: 30000: {TAKEN}"),
        ([{"port": 80, "nodePort": 3}], f"spec.ports[0].nodePort: Invalid value: 3: {OUTSIDE}"),
        ([{"port": 80, "nodePort": 32768}], f"spec.ports[0].nodePort: Invalid value: 32768: {OUTSIDE}"),
        (
            [{"port": 80, "name": "a", "nodePort": 30001}, {"port": 81, "name": "b", "nodePort": 30001}],
            f"spec.ports[1].nodePort: Invalid value: 30001: {TAKEN}",
        ),
    ],
)
def test_refused(ports: list[Json], fault: str) -> None:
    """A number that is named is in the range and nobody else's, whatever the protocol."""
    other = read(SERVICES, spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000, "protocol": "UDP"}]})
    with pytest.raises(StatusError) as caught:
        give([other], ports=ports)
    assert (caught.value.code, caught.value.message) == (422, f'Service "x" is invalid: {fault}')


def test_named() -> None:
    """One number for two protocols can be named as well."""
    ports = [
        {"port": 80, "name": "a", "nodePort": 30001},
        {"port": 80, "name": "b", "nodePort": 30001, "protocol": "UDP"},
    ]
    assert give(ports=ports) == [30001, 30001]


@pytest.mark.parametrize(
    ("spec", "ports", "health"),
    [
        ({"type": "ClusterIP"}, False, False),
        ({"type": "LoadBalancer"}, True, False),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, False, False),
        ({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, True, True),
        (
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": False},
            False,
            True,
        ),
    ],
)
def test_types(spec: Json, ports: bool, health: bool) -> None:
    """Load balancers have node ports unless they say no, and one for health if traffic stays on the node."""
    given = give(ports=[{"port": 80}], **spec)
    assert bool(given[0]) is ports
    assert len(given) == 1 + health


@pytest.mark.parametrize(("number", "why"), [(30500, TAKEN), (30000, TAKEN), (500, OUTSIDE)])
def test_health(number: int, why: str) -> None:
    """That for health is nobody else's, nor one of the Service's own; a real server takes the blame for it."""
    other = read(SERVICES, spec={"type": "LoadBalancer", "healthCheckNodePort": 30500})
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": number}
    with pytest.raises(StatusError) as caught:
        give([other], ports=[{"port": 80, "nodePort": 30000}], **spec)
    told = f"Internal error occurred: failed to allocate requested HealthCheck NodePort {number}: {why}"
    assert (caught.value.code, caught.value.message) == (500, told)
    assert give([other], ports=[{"port": 80}], **{**spec, "healthCheckNodePort": 30600})[1] == 30600


def test_ports_of() -> None:
    """All the numbers of a Service count."""
    assert ports_of({"ports": [{"nodePort": 1}, {}], "healthCheckNodePort": 2}) == {1, 2}
