"""Node ports for Services: each number is one Service's, whatever the protocol."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.servicetypes import needs_health_port, needs_node_ports
from cidrella.apiserver.words import faults
from cidrella.apiserver.words.statuses import internal, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    Json = dict[str, Any]

FIRST: Final = 30000
LAST: Final = 32767
_OUTSIDE: Final = f"provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}"
_TAKEN: Final = "provided port is already allocated"


def give_node_ports(service: Json, others: Iterable[Json]) -> None:
    """Write the ports that a Service lacks into it. Raises StatusError where it names one that it cannot have."""
    spec = service["spec"]
    if not needs_node_ports(spec) and not needs_health_port(spec):
        return
    taken = {number for other in others for number in ports_of(other["spec"])}
    if needs_node_ports(spec):
        _give_ports(service, taken)
    if needs_health_port(spec):
        _give_health_port(spec, taken | ports_of({"ports": spec.get("ports", [])}))


def ports_of(spec: Json) -> set[int]:
    """The numbers that a Service has."""
    numbers = {port.get("nodePort", 0) for port in spec.get("ports", [])}
    return {*numbers, spec.get("healthCheckNodePort", 0)} - {0}


def _give_ports(service: Json, taken: set[int]) -> None:
    ports = service["spec"].get("ports", [])
    used: set[tuple[str, int]] = set()
    for place, port in enumerate(ports):
        number = port.get("nodePort", 0)
        if not number:
            continue
        why = "" if FIRST <= number <= LAST else _OUTSIDE
        if not why and (number in taken or (port["protocol"], number) in used):
            why = _TAKEN
        if why:
            fault = faults.invalid(f"spec.ports[{place}].nodePort", number, why)
            raise invalid("Service", "", service["metadata"].get("name", ""), [fault])
        used.add((port["protocol"], number))
    drawn: dict[int, int] = {}  # one port with several protocols has one number
    for port in ports:
        if not port.get("nodePort"):
            port["nodePort"] = drawn.get(port["port"]) or _draw(taken | {number for _, number in used})
            used.add((port["protocol"], port["nodePort"]))
        drawn[port["port"]] = port["nodePort"]


def _give_health_port(spec: Json, taken: set[int]) -> None:
    number = spec.get("healthCheckNodePort", 0)
    if not number:
        spec["healthCheckNodePort"] = _draw(taken)
    elif not FIRST <= number <= LAST:
        raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {_OUTSIDE}")
    elif number in taken:
        raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {_TAKEN}")


def _draw(taken: set[int]) -> int:
    free = [number for number in range(FIRST, LAST + 1) if number not in taken]
    if not free:
        raise internal("failed to allocate a nodePort: range is full")
    return secrets.choice(free)
