"""Services. Addresses and node ports come from `apiserver.services`, between preparing and checking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.addresses import address_fault, canonical_address
from cidrella.apiserver.kinds.kind import NONE, BuiltIn, age
from cidrella.apiserver.kinds.servicerules import change_faults, service_faults, status_faults
from cidrella.apiserver.kinds.servicetypes import (
    EXTERNAL_NAME,
    LOAD_BALANCER,
    has_outside,
    is_headless,
    needs_address,
    needs_health_port,
    needs_node_ports,
)
from cidrella.apiserver.meta.metadata import finalizer_faults
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import quoted
from cidrella.apiserver.words.naming import label_faults

if TYPE_CHECKING:
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_AFFINITY_SECONDS: Final = 10800

_PORT: Final = shapes.item(
    "ServicePort",
    {
        "name": shapes.text("What it is called; unique, and needed if there are several."),
        "protocol": shapes.text("TCP, UDP or SCTP.", "Protocol"),
        "appProtocol": shapes.text("What is spoken there.", nullable=True),
        "port": shapes.number("The port of the Service.", default=0),
        "targetPort": shapes.port_or_name("The port of the Pods, or its name."),
        "nodePort": shapes.number("The port of every node, for the types NodePort and LoadBalancer."),
    },
)
_SPEC: Final = shapes.record(
    "ServiceSpec",
    "What is wanted of the Service.",
    {
        "ports": shapes.listing("Where it listens.", _PORT, **shapes.merged("port")),
        "selector": {**shapes.mapping("The labels of its Pods."), "x-kubernetes-map-type": "atomic"},
        "clusterIP": shapes.text("Its address: given unless named; None for a Service that has none (headless)."),
        "clusterIPs": shapes.texts("Its addresses: one, or one of each family. The first is clusterIP."),
        "type": shapes.text("ClusterIP, NodePort, LoadBalancer or ExternalName.", "ServiceType"),
        "externalIPs": shapes.texts("Other addresses at which nodes take traffic for it."),
        "sessionAffinity": shapes.text("ClientIP, or None.", "ServiceAffinity"),
        "loadBalancerIP": shapes.text("Out of use."),
        "loadBalancerSourceRanges": shapes.texts("Who may reach the load balancer."),
        "externalName": shapes.text("The name that an ExternalName stands for."),
        "externalTrafficPolicy": shapes.text(
            "Where traffic from outside goes: Cluster, or Local.", "ServiceExternalTrafficPolicy"
        ),
        "healthCheckNodePort": shapes.number("Where nodes say whether they have Pods of it."),
        "publishNotReadyAddresses": shapes.flag("Whether Pods count that are not ready."),
        "sessionAffinityConfig": shapes.optional(
            "SessionAffinityConfig",
            "How long affinity lasts.",
            {
                "clientIP": shapes.optional(
                    "ClientIPConfig",
                    "For ClientIP.",
                    {"timeoutSeconds": shapes.number("In seconds, up to a day.", nullable=True)},
                )
            },
        ),
        "ipFamilies": shapes.texts("The families of its addresses: IPv4, IPv6.", "IPFamily"),
        "ipFamilyPolicy": shapes.text(
            "How many families: SingleStack, PreferDualStack or RequireDualStack.", "IPFamilyPolicy", nullable=True
        ),
        "allocateLoadBalancerNodePorts": shapes.flag("Whether a LoadBalancer has node ports.", nullable=True),
        "loadBalancerClass": shapes.text("Who makes the load balancer.", nullable=True),
        "internalTrafficPolicy": shapes.text(
            "Where traffic from inside goes: Cluster, or Local.", "ServiceInternalTrafficPolicy", nullable=True
        ),
        "trafficDistribution": shapes.text("Which Pods are preferred.", nullable=True),
    },
)
_INGRESS: Final = shapes.item(
    "LoadBalancerIngress",
    {
        "ip": shapes.text("Its address."),
        "hostname": shapes.text("Its name."),
        "ipMode": shapes.text("VIP, or Proxy.", "LoadBalancerIPMode", nullable=True),
        "ports": shapes.listing(
            "Its ports.",
            shapes.item(
                "PortStatus",
                {
                    "port": shapes.number("The port.", default=0),
                    "protocol": shapes.text("TCP, UDP or SCTP.", "Protocol", default=""),
                    "error": shapes.text("What is wrong with it.", nullable=True),
                },
            ),
        ),
    },
)
_STATUS: Final = shapes.record(
    "ServiceStatus",
    "What became of it.",
    {
        "loadBalancer": shapes.record(
            "LoadBalancerStatus", "The load balancer.", {"ingress": shapes.listing("Where it listens.", _INGRESS)}
        ),
        "conditions": shapes.CONDITIONS,
    },
)
DEFINITION: Final = shapes.whole(
    "Service", "A name and an address for Pods that do the same.", {"spec": _SPEC, "status": _STATUS}
)


class Services(BuiltIn):
    """What is particular about Services."""

    def read(self, obj: Json) -> str:
        """Fill in what is left out."""
        trouble = super().read(obj)
        if not trouble:
            _fill(obj["spec"])
        return trouble

    def prepare_create(self, new: Json) -> None:
        """A new one has no status."""
        spec = new["spec"]
        new["status"] = {"loadBalancer": {}}
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        _drop_inside_policy(spec)

    def prepare_update(self, new: Json, old: Json) -> None:
        """What was given stays where it is left out, and goes where the type has no use for it."""
        super().prepare_update(new, old)
        _carry_over(new["spec"], old["spec"])
        _wipe(new["spec"], old["spec"])
        _drop_inside_policy(new["spec"])
        if new["spec"]["type"] != LOAD_BALANCER:
            new["status"] = {**new["status"], "loadBalancer": {}}

    def prepare_status(self, new: Json, old: Json) -> None:
        """Addresses of load balancers are of the usual mode, unless it is told; the type is that which was sent."""
        balanced = new["spec"]["type"] == LOAD_BALANCER
        super().prepare_status(new, old)
        if balanced:
            for each in new["status"]["loadBalancer"].get("ingress", []):
                if each.get("ip"):
                    each.setdefault("ipMode", "VIP")

    def validate_create(self, new: Json) -> list[Fault]:
        """All of it."""
        return [*finalizer_faults(new["metadata"]), *service_faults(new["spec"])]

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """What never changes, and all that is asked of new ones; of a write to the status, that."""
        found = finalizer_faults(new["metadata"])
        if new["spec"] is old["spec"]:
            return [*found, *status_faults(new)]
        return [*found, *change_faults(new["spec"], old["spec"]), *service_faults(new["spec"])]

    def warnings(self, new: Json) -> list[str]:
        """Of what does nothing, or is out of use."""
        spec = new["spec"]
        found = []
        if spec.get("externalIPs"):
            found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        if is_headless(spec) and spec["sessionAffinity"] != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
        found += [
            f"spec.clusterIPs[{place}]: IPv6 address {quoted(each)} should be in RFC 5952 canonical format "
            f"({quoted(canonical_address(each))})"
            for place, each in enumerate(spec.get("clusterIPs", []))
            if not address_fault(each) and each != canonical_address(each)
        ]
        if spec["type"] != EXTERNAL_NAME and "externalName" in spec:
            found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
        if spec.get("trafficDistribution") == "PreferClose":
            found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
        return found


def _fill(spec: Json) -> None:
    """The defaults, in the order in which they depend on each other."""
    spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port["targetPort"] = port.get("targetPort") or port["port"]
    if has_outside(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if needs_address(spec):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == LOAD_BALANCER:
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _drop_inside_policy(spec: Json) -> None:
    if spec["type"] == EXTERNAL_NAME:
        spec.pop("internalTrafficPolicy", None)


def _carry_over(new: Json, old: Json) -> None:
    """Take over what was given to the Service before, where it is left out."""
    if needs_address(new) and needs_address(old):
        new["clusterIP"] = new.get("clusterIP") or old.get("clusterIP", "")
        new["clusterIPs"] = new.get("clusterIPs") or list(old.get("clusterIPs", []))
    if new.get("clusterIP", "") != old.get("clusterIP", "") and new.get("clusterIPs") == old.get("clusterIPs"):
        # A client that knows one field only changed that.
        new["clusterIPs"] = [new["clusterIP"]] if new.get("clusterIP") else []
    _tidy(new)
    if needs_node_ports(new) and needs_node_ports(old):
        _carry_over_ports(new, old)
    if needs_health_port(new) and needs_health_port(old) and old.get("healthCheckNodePort"):
        new.setdefault("healthCheckNodePort", old["healthCheckNodePort"])


def _carry_over_ports(new: Json, old: Json) -> None:
    """By the names of ports, unless another port has taken the number."""
    before = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", [])}
    used = {port.get("nodePort", 0) for port in new.get("ports", [])}
    for port in new.get("ports", []):
        number = before.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number
            used.add(number)


def _wipe(new: Json, old: Json) -> None:
    """Take away what the new type has no use for, and the client did not touch."""
    if needs_address(old) and not needs_address(new):
        if new.get("clusterIPs") == old.get("clusterIPs"):
            new.pop("clusterIP", None)
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            _forget(new, old, name)
    if needs_node_ports(old) and not needs_node_ports(new) and _node_ports(new) == _node_ports(old):
        for port in new.get("ports", []):
            port.pop("nodePort", None)
    if needs_health_port(old) and not needs_health_port(new):
        _forget(new, old, "healthCheckNodePort")
    if old["type"] == LOAD_BALANCER and new["type"] != LOAD_BALANCER:
        _forget(new, old, "allocateLoadBalancerNodePorts")
        _forget(new, old, "loadBalancerClass")
    if has_outside(old) and not has_outside(new):
        _forget(new, old, "externalTrafficPolicy")


def _forget(new: Json, old: Json, name: str) -> None:
    if new.get(name) == old.get(name):
        new.pop(name, None)


def _tidy(spec: Json) -> None:
    for name in ("clusterIP", "clusterIPs"):
        if not spec.get(name, True):
            del spec[name]


def _node_ports(spec: Json) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports", []) if port.get("nodePort")}


def _address(service: Json) -> str:
    return str((service["spec"].get("clusterIPs") or [NONE])[0])


def _outside(service: Json) -> str:
    spec = service["spec"]
    if spec["type"] == EXTERNAL_NAME:
        return str(spec.get("externalName", ""))
    outside: list[str] = []
    if spec["type"] == LOAD_BALANCER:
        ingress = service["status"]["loadBalancer"].get("ingress", [])
        outside = sorted({each.get("ip") or each.get("hostname", "") for each in ingress} - {""})
    outside += spec.get("externalIPs", [])
    return ",".join(outside) or ("<pending>" if spec["type"] == LOAD_BALANCER else NONE)


def _ports(service: Json) -> str:
    written = [
        f"{port['port']}{f':{node}' if (node := port.get('nodePort')) else ''}/{port['protocol']}"
        for port in service["spec"].get("ports", [])
    ]
    return ",".join(written) or NONE


def _selector(service: Json) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(service["spec"].get("selector", {}).items())) or NONE


def resource() -> Resource:
    """The kind."""
    strategy = Services(DEFINITION)
    return Resource(
        group="",
        version="v1",
        plural="services",
        kind="Service",
        namespaced=True,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="service",
        short_names=("svc",),
        categories=("all",),
        status=True,
        fields={
            "spec.clusterIP": lambda service: str(service["spec"].get("clusterIP", "")),
            "spec.type": lambda service: str(service["spec"]["type"]),
        },
        name_fault=label_faults,
        creates=True,
        unconditional=True,
        returns_deleted=True,
        columns=strategy.columns(
            Column("Type", lambda service: service["spec"]["type"], description="How it is reached."),
            Column("Cluster-IP", _address, description="Its address."),
            Column("External-IP", _outside, description="Where it is reached from outside."),
            Column("Port(s)", _ports, description="Where it listens."),
            age(),
            Column("Selector", _selector, description="The labels of its Pods.", priority=1),
        ),
    )
