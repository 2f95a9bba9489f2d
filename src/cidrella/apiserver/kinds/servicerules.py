"""What is wrong with a Service, in the words and in the order of a real API server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.addresses import address_fault, cidr_fault, family_of
from cidrella.apiserver.kinds.servicetypes import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    TYPES,
    has_outside,
    is_headless,
    needs_health_port,
)
from cidrella.apiserver.words.faults import duplicate, forbidden, invalid, not_supported, required
from cidrella.apiserver.words.naming import key_faults, label_faults, subdomain_faults, value_faults
from cidrella.core.address import Address
from cidrella.core.prefix import Prefix
from cidrella.model.serviceip import HEADLESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

FAMILIES: Final = ("IPv4", "IPv6")
POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TRAFFIC: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_PORT_NAME_MAX: Final = 15
_AFFINITY_MAX: Final = 86400
_PORT: Final = "must be between 1 and 65535, inclusive"
_BALANCERS_ONLY: Final = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL: Final = "may not be set for ExternalName services"
_STAYS: Final = "may not change once set"
_SPECIAL: Final = (
    (Prefix.parse("0.0.0.0/32"), "may not be unspecified (0.0.0.0)"),
    (Prefix.parse("::/128"), "may not be unspecified (::)"),
    (Prefix.parse("127.0.0.0/8"), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    (Prefix.parse("::1/128"), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    (Prefix.parse("169.254.0.0/16"), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    (Prefix.parse("fe80::/10"), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    (Prefix.parse("224.0.0.0/24"), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    (Prefix.parse("ff02::/16"), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
)


def service_faults(spec: Json) -> Iterator[Fault]:
    """Of a Service as it is."""
    if not spec.get("ports") and not is_headless(spec) and spec["type"] != EXTERNAL_NAME:
        yield required("spec.ports")
    yield from _type_faults(spec)
    names: set[str] = set()
    for place, port in enumerate(spec.get("ports", [])):
        yield from _port_faults(f"spec.ports[{place}]", port, names, alone=len(spec["ports"]) == 1)
    for key, value in spec.get("selector", {}).items():
        yield from (invalid("spec.selector", key, why) for why in key_faults(key))
        yield from (invalid("spec.selector", value, why) for why in value_faults(value))
    yield from _affinity_faults(spec)
    yield from address_faults(spec)
    yield from _external_ip_faults(spec)
    if spec["type"] not in TYPES:
        yield not_supported("spec.type", spec["type"], TYPES)
    yield from _repeated_port_faults(spec)
    yield from _balancer_faults(spec)
    yield from _traffic_faults(spec)


def change_faults(new: Json, old: Json) -> Iterator[Fault]:
    """Of what was changed, and may not be."""
    if EXTERNAL_NAME not in {new["type"], old["type"]}:
        yield from _address_changes(new, old)
        yield from _family_changes(new, old)
    balancers = new["type"] == old["type"] == LOAD_BALANCER
    if balancers and new.get("loadBalancerClass") != old.get("loadBalancerClass"):
        yield invalid("spec.loadBalancerClass", new.get("loadBalancerClass"), _STAYS)
    health = (new.get("healthCheckNodePort"), old.get("healthCheckNodePort"))
    if needs_health_port(new) and needs_health_port(old) and health[0] != health[1]:
        yield forbidden("spec.healthCheckNodePort", "field is immutable")


def status_faults(service: Json) -> Iterator[Fault]:
    """Of a load balancer as it is told of."""
    ingress = service["status"]["loadBalancer"].get("ingress", [])
    at = "status.loadBalancer.ingress"
    if ingress and service["spec"]["type"] != LOAD_BALANCER:
        yield forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for place, each in enumerate(ingress):
        yield from _ingress_faults(f"{at}[{place}]", each)


def _ingress_faults(at: str, ingress: Json) -> Iterator[Fault]:
    address, mode = ingress.get("ip", ""), ingress.get("ipMode")
    if address and (why := address_fault(address)):
        yield invalid(f"{at}.ip", address, why)
    if address and mode is None:
        yield required(f"{at}.ipMode", "must be specified when `ip` is set")
    elif not address and mode is not None:
        yield forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
    elif mode is not None and mode not in {"VIP", "Proxy"}:
        yield not_supported(f"{at}.ipMode", mode, ("Proxy", "VIP"))
    if name := ingress.get("hostname", ""):
        yield from (invalid(f"{at}.hostname", name, why) for why in subdomain_faults(name))
        if family_of(name) is not None:
            yield invalid(f"{at}.hostname", name, "must be a DNS name, not an IP address")


def address_faults(spec: Json) -> list[Fault]:
    """Of the fields that say which addresses of which families there are to be."""
    if spec["type"] == EXTERNAL_NAME:
        return []
    return [*_first_address_faults(spec), *_family_faults(spec), *_each_address_faults(spec)]


def _first_address_faults(spec: Json) -> Iterator[Fault]:
    first, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    if addresses and not first:
        yield invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")
    elif addresses and first != addresses[0]:
        yield invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")


def _family_faults(spec: Json) -> Iterator[Fault]:
    families = spec.get("ipFamilies", [])
    for place, each in enumerate(families):
        if each not in FAMILIES:
            yield not_supported(f"spec.ipFamilies[{place}]", each, FAMILIES)
        elif each in families[:place]:
            yield duplicate(f"spec.ipFamilies[{place}]", each)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, POLICIES)


def _each_address_faults(spec: Json) -> Iterator[Fault]:
    addresses, families = spec.get("clusterIPs", []), spec.get("ipFamilies", [])
    headless = is_headless(spec)
    if headless and len(addresses) > 1:
        yield invalid("spec.clusterIPs", addresses, "'None' must be the first and only value")
    wrong = False
    for place, each in enumerate(addresses):
        if place == 0 and each == HEADLESS:
            continue
        if why := address_fault(each):
            wrong = True
            yield invalid(f"spec.clusterIPs[{place}]", each, why)
    if len(addresses) > 2:
        yield invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")
    if headless or wrong or len(addresses) > 2:
        return
    if len(addresses) == 2 and family_of(addresses[0]) is family_of(addresses[1]):
        yield invalid("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family")
    for place, (family, each) in enumerate(zip(families, addresses, strict=False)):
        if family in FAMILIES and str(family_of(each)) != family:
            why = f"expected an {family} value as indicated by `ipFamilies[{place}]`"
            yield invalid(f"spec.clusterIPs[{place}]", each, why)


def _type_faults(spec: Json) -> Iterator[Fault]:
    kind = spec["type"]
    if kind in {LOAD_BALANCER, NODE_PORT} and is_headless(spec):
        yield invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {kind} services")
    if kind != EXTERNAL_NAME:
        return
    if spec.get("clusterIPs"):
        yield forbidden("spec.clusterIPs", _NOT_EXTERNAL)
    if spec.get("ipFamilies"):
        yield forbidden("spec.ipFamilies", _NOT_EXTERNAL)
    if spec.get("ipFamilyPolicy") is not None:
        yield forbidden("spec.ipFamilyPolicy", _NOT_EXTERNAL)
    if name := spec.get("externalName", "").removesuffix("."):
        yield from (invalid("spec.externalName", name, why) for why in subdomain_faults(name))
    else:
        yield required("spec.externalName")


def _port_faults(at: str, port: Json, names: set[str], *, alone: bool) -> Iterator[Fault]:
    name = port.get("name", "")
    if name:
        yield from (invalid(f"{at}.name", name, why) for why in label_faults(name))
        if name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
    elif not alone:
        yield required(f"{at}.name")
    if not 1 <= port["port"] <= 65535:
        yield invalid(f"{at}.port", port["port"], _PORT)
    if port["protocol"] not in _PROTOCOLS:
        yield not_supported(f"{at}.protocol", port["protocol"], _PROTOCOLS)
    target = port["targetPort"]
    if isinstance(target, str):
        yield from (invalid(f"{at}.targetPort", target, why) for why in _port_name_faults(target))
    elif not 1 <= target <= 65535:
        yield invalid(f"{at}.targetPort", target, _PORT)
    if (spoken := port.get("appProtocol")) is not None:
        yield from (invalid(f"{at}.appProtocol", spoken, why) for why in key_faults(spoken))


def _port_name_faults(name: str) -> Iterator[str]:
    if len(name) > _PORT_NAME_MAX:
        yield f"must be no more than {_PORT_NAME_MAX} characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def _affinity_faults(spec: Json) -> Iterator[Fault]:
    affinity = spec["sessionAffinity"]
    if affinity not in {"ClientIP", "None"}:
        yield not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _AFFINITY_MAX:
            at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield invalid(at, seconds, f"must be greater than 0 and less than {_AFFINITY_MAX}")


def _external_ip_faults(spec: Json) -> Iterator[Fault]:
    for place, each in enumerate(spec.get("externalIPs", [])):
        at = f"spec.externalIPs[{place}]"
        if why := address_fault(each):
            yield invalid(at, each, why)
        else:
            address = Address.parse_lenient(each)
            yield from (invalid(at, each, why) for cidr, why in _SPECIAL if address.inside(cidr))


def _repeated_port_faults(spec: Json) -> Iterator[Fault]:
    ports = spec.get("ports", [])
    if spec["type"] == CLUSTER_IP:
        for place, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{place}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen = set()
    for place, port in enumerate(ports):
        both = (port["protocol"], port.get("nodePort", 0))
        if both[1] and both in seen:
            yield duplicate(f"spec.ports[{place}].nodePort", both[1])
        seen.add(both)
    seen = set()
    for place, port in enumerate(ports):
        both = (port["protocol"], port["port"])
        if both in seen:
            told = {"Name": "", "Protocol": both[0], "AppProtocol": None, "Port": both[1]}
            yield duplicate(f"spec.ports[{place}]", {**told, "TargetPort": 0, "NodePort": 0})
        seen.add(both)


def _balancer_faults(spec: Json) -> Iterator[Fault]:
    balancer = spec["type"] == LOAD_BALANCER
    sources = spec.get("loadBalancerSourceRanges", [])
    if sources and not balancer:
        yield forbidden("spec.LoadBalancerSourceRanges", _BALANCERS_ONLY)
    for place, each in enumerate(sources):
        if why := cidr_fault(each.strip()):
            yield invalid(f"spec.LoadBalancerSourceRanges[{place}]", each, why)
    if not balancer and "allocateLoadBalancerNodePorts" in spec:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _BALANCERS_ONLY)
    if (kind := spec.get("loadBalancerClass")) is None:
        return
    if not balancer:
        yield forbidden("spec.loadBalancerClass", _BALANCERS_ONLY)
    else:
        yield from (invalid("spec.loadBalancerClass", kind, why) for why in key_faults(kind))


def _traffic_faults(spec: Json) -> Iterator[Fault]:
    outside, health = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    if not has_outside(spec):
        if outside:
            why = "may only be set for externally-accessible services"
            yield invalid("spec.externalTrafficPolicy", outside, why)
    elif outside not in _TRAFFIC:
        yield not_supported("spec.externalTrafficPolicy", outside, _TRAFFIC)
    if health and not needs_health_port(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", health, why)
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _TRAFFIC:
        yield not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in _DISTRIBUTIONS:
        yield not_supported("spec.trafficDistribution", spread, _DISTRIBUTIONS)


def _address_changes(new: Json, old: Json) -> Iterator[Fault]:
    before, after = old.get("clusterIPs", []), new.get("clusterIPs", [])
    if is_headless(new) and is_headless(old):
        return
    compared = 2 if len(before) == len(after) else 1
    for place, (one, other) in enumerate(zip(before[:compared], after, strict=False)):
        if one != other:
            yield invalid(f"spec.clusterIPs[{place}]", after, _STAYS)


def _family_changes(new: Json, old: Json) -> Iterator[Fault]:
    before, after = old.get("ipFamilies", []), new.get("ipFamilies", [])
    if before and after and before[0] != after[0] and not is_headless(new):
        yield invalid("spec.ipFamilies[0]", new.get("clusterIPs", []), _STAYS)
