"""What random requests are made of: the kinds, good objects of each, fields to patch and to select by, and nonsense.

What is left out, since the two servers answer differently and nobody lives by it:

- what comes of the real one's controllers a while later: deleting namespaces, what becomes of CRDs and ServiceCIDRs;
- `Foreground` and `Orphan` deletion, which wait for a garbage collector; server-side apply; protobuf;
- a version that is no number in a PUT that may create, on which the real one fails (500);
- another kind or apiVersion in a patch with anything else (`UNTYPED`);
- a PUT to the status of a Service that is not there, of which the real one makes a Service without an address; a dry
  run that names one of `ADDRESSES`, for it does not look up whether that is in use;
- what comes after a request on which a handler of the real one died: a PUT that makes a Service headless may.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.bodies import CONFIGS, CRDS, NAMESPACES, NODES, POOLS, RANGES, SERVICE_CIDRS, crd

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Json = dict[str, Any]

ALL_VERBS = frozenset({"create", "get", "list", "replace", "patch", "delete", "deletecollection"})
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"color": "red"},
    {"color": "blue"},
    {"color": "red", "size": "9"},
    {"example.com/x": ""},
)
SELECTORS = ("color=red", "color!=red", "color in (red,blue)", "!color", "size>5", "color,size=9", "example.com/x=")
NONSENSE: tuple[Any, ...] = (
    *(None, "", "x", "not valid!", "10.0.0.0/8", "fd00::/64", "x" * 70, "None", "IPv6", "2026-01-01T00:00:00Z", "-1"),
    *(0, 5, -1, 70000, 2**40, 1.5, True, False, [], {}, ["x"], [None], [5], {"x": "y"}, {"a": {"b": 1}}, [{}]),
)
FINALIZERS: tuple[list[str], ...] = ([], ["example.com/one"], ["example.com/one", "example.com/two"])
UNTYPED = frozenset({"kind", "apiVersion"})
"""Wrong in a patch of a custom resource, they keep Kubernetes from looking at types, and rules trip over what they do
not expect, each in words of its own. So nothing else of the object is patched with these."""
ADDRESSES = ("10.96.0.40", "10.96.0.41", "10.96.0.42")
"""Which Services ask for."""
LATER = "2026-01-01T00:00:05.000000Z"


@dataclass(frozen=True)
class Kind:
    """A kind, as far as making requests about it goes."""

    path: str
    """Its collection, with {namespace} in it where it has one."""
    good: Callable[[Random, str], Json]
    """An object of a name that will be taken."""
    names: tuple[str, ...] = ("a", "b", "c")
    values: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Fields, by JSON pointer, and what may be written there."""
    status: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Likewise of the status."""
    selectors: tuple[str, ...] = ()
    """By fields."""
    verbs: frozenset[str] = ALL_VERBS
    strategic: bool = True
    creates: bool = False
    """Whether PUT makes what is not there."""
    put_status: bool = True
    """Whether PUT goes to /status as well."""
    only_dry: frozenset[str] = frozenset()
    """Verbs that are tried, and never done: what comes of them takes a while, or a controller."""
    weight: int = 10


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Why",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def _node(rng: Random, name: str) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    if rng.random() < 0.6:
        body["spec"] = rng.choice(
            (
                {},
                {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
                {"podCIDRs": ["10.2.0.0/24", "fd00:2::/64"]},
                {"unschedulable": True, "providerID": "test:///1"},
                {"taints": [{"key": "a", "effect": "NoSchedule", "value": "v"}]},
            )
        )
    if rng.random() < 0.4:
        body["status"] = {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    return body


def _pool(rng: Random, name: str) -> Json:
    spec = rng.choice(
        (
            {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16"},
            {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "ipv6": "fd00::/112"},
            {
                "perNodeHostBits": 4,
                "ipv6": "fd00::/100",
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                    ]
                },
            },
        )
    )
    return {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": name}, "spec": spec}


def _config(rng: Random, name: str) -> Json:
    spec: Json = {"cidr": "10.0.0.0/16", "perNodeMaskSize": 24}
    if rng.random() < 0.5:
        spec["nodeSelector"] = {"matchLabels": {"zone": rng.choice("ab")}}
    return {
        "apiVersion": "networking.x-k8s.io/v1alpha1",
        "kind": "ClusterCIDRConfig",
        "metadata": {"name": name},
        "spec": spec,
    }


def _range(rng: Random, name: str) -> Json:
    return {
        "apiVersion": "cidrella.dev/v1alpha1",
        "kind": "RangeAllocation",
        "metadata": {"name": name},
        "range": "192.0.2.0/24",
        "data": rng.choice(("", "AQ==", "/w==")),
    }


def _lease(rng: Random, name: str) -> Json:
    spec = rng.choice(
        (
            {},
            {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z"},
            {"holderIdentity": "they", "leaseTransitions": 3, "acquireTime": "2026-01-01T00:00:00.000000Z"},
        )
    )
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def _service(rng: Random, name: str) -> Json:
    ports = rng.choice(([{"port": 80}], [{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 80, "name": "web"}]))
    spec = rng.choice(
        (
            {"ports": ports},
            {"ports": ports, "selector": {"app": "x"}},
            {"ports": ports, "clusterIP": rng.choice(ADDRESSES[:2])},
            {"ports": ports, "clusterIP": "None"},
            {"clusterIP": "None", "selector": {"app": "x"}},
            {"type": "ExternalName", "externalName": "example.com"},
            {"ports": ports, "ipFamilyPolicy": "PreferDualStack"},
            {"ports": ports, "type": "NodePort"},
            {"ports": ports, "type": "LoadBalancer"},
        )
    )
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _core_event(rng: Random, name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"kind": "Node", "name": "n", "namespace": "${namespace}", "apiVersion": "v1"},
        "reason": rng.choice(("Why", "Else")),
        "message": "What",
        "type": rng.choice(("Normal", "Warning")),
        "count": rng.choice((1, 3)),
        "source": {"component": "c"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:01Z",
    }


def _event(rng: Random, name: str) -> Json:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "regarding": {"kind": "Node", "name": "n", "apiVersion": "v1"},
        "reason": rng.choice(("Why", "Else")),
        "note": "What",
        "type": rng.choice(("Normal", "Warning")),
        "action": "Do",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "eventTime": "2026-01-01T00:00:00.123456Z",
    }


def _namespace(_: Random, name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _service_cidr(rng: Random, name: str) -> Json:
    spec = {"cidrs": rng.choice((["10.98.0.0/24"], ["10.98.0.0/24", "fd98::/112"]))}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}, "spec": spec}


def _crd(rng: Random, name: str) -> Json:
    rules = {"x-kubernetes-validations": [{"rule": rng.choice(("self.size > 1", "has(self.size)", "self.size < 3"))}]}
    made = crd("widgets", f"{name}.example.com", properties={"size": {"type": "integer"}}, **rules)
    version = made["spec"]["versions"][0]
    if rng.random() < 0.5:
        version["subresources"] = {"status": {}}
        version["additionalPrinterColumns"] = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    return made


KINDS = {
    "nodes": Kind(
        NODES,
        _node,
        values={
            "/spec/unschedulable": (True, False),
            "/spec/podCIDR": ("10.1.0.0/24", "10.3.0.0/24", ""),
            "/spec/podCIDRs": (["10.1.0.0/24"], ["10.3.0.0/24", "fd00:3::/64"], []),
            "/spec/providerID": ("test:///1", "test:///2"),
            "/spec/taints": ([], [{"key": "b", "effect": "NoExecute"}]),
        },
        status={
            "/status/capacity": ({"cpu": "2000m"}, {"pods": "10", "memory": "1024Ki"}),
            "/status/addresses": ([{"type": "Hostname", "address": "h"}], []),
            "/status/conditions": ([{"type": "Ready", "status": "False"}], [{"type": "Other", "status": "True"}]),
            "/status/phase": ("Running",),
        },
        selectors=("spec.unschedulable=true", "spec.unschedulable!=true"),
        weight=25,
    ),
    "pools": Kind(
        POOLS,
        _pool,
        values={
            "/spec/perNodeHostBits": (8, 9),
            "/spec/ipv4": ("10.0.0.0/16", "10.9.0.0/16", ""),
            "/spec/ipv6": ("fd00::/112", ""),
        },
        status={
            "/status/conditions": ([CONDITION], [{**CONDITION, "status": "False"}], []),
            "/status/nodes": (0, 3),
            "/status/free": (200,),
        },
        strategic=False,
        weight=25,
    ),
    "configs": Kind(
        CONFIGS,
        _config,
        values={
            "/spec/nodeSelector": ({"matchLabels": {"zone": "c"}}, {"matchExpressions": []}, {}),
            "/spec/cidr": ("10.0.0.0/16", "10.9.0.0/16"),
        },
        status={"/status/conditions": ([CONDITION], [])},
        strategic=False,
        weight=15,
    ),
    "ranges": Kind(
        RANGES,
        _range,
        values={"/data": ("AQ==", "Ag=="), "/recent": ("x", ""), "/range": ("192.0.2.0/24", "nonsense")},
        strategic=False,
        # There are others where Services get their addresses from these.
        verbs=ALL_VERBS - {"list", "deletecollection"},
        weight=6,
    ),
    "leases": Kind(
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        _lease,
        values={
            "/spec/holderIdentity": ("me", "they", ""),
            "/spec/renewTime": (LATER, "nonsense"),
            "/spec/leaseDurationSeconds": (15, 0),
            "/spec/leaseTransitions": (1, -1),
        },
        creates=True,
        weight=15,
    ),
    "services": Kind(
        # Kubernetes tells there, in Events, what it finds odd about Services.
        "/api/v1/namespaces/{namespace}-services/services",
        _service,
        values={
            "/spec/clusterIP": (ADDRESSES[2], "None", "", "10.97.0.1"),
            "/spec/type": ("ClusterIP", "ExternalName", "NodePort"),
            "/spec/externalName": ("example.com", ""),
            "/spec/selector": ({"app": "y"}, {}),
            "/spec/ports": ([{"port": 81}], [{"port": 80, "targetPort": "web"}]),
            "/spec/sessionAffinity": ("ClientIP", "None"),
            "/spec/ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
        },
        status={"/status/loadBalancer": ({}, {"ingress": [{"ip": "192.0.2.9"}]}), "/status/conditions": ([CONDITION],)},
        selectors=("spec.type=ClusterIP", "spec.clusterIP=None"),
        # Of a Service that is not there, Kubernetes makes one of it, without the address that it needs.
        put_status=False,
        creates=True,
        weight=20,
    ),
    "core-events": Kind(
        "/api/v1/namespaces/{namespace}/events",
        _core_event,
        names=("e", "f", "g"),
        values={"/count": (2, 5), "/lastTimestamp": ("2026-01-01T00:00:09Z",), "/message": ("Other",)},
        selectors=("involvedObject.name=n", "reason=Why", "type!=Normal", "involvedObject.kind=Pod"),
        creates=True,
        weight=8,
    ),
    "events": Kind(
        "/apis/events.k8s.io/v1/namespaces/{namespace}/events",
        _event,
        names=("e", "f", "g"),
        values={"/series": ({"count": 2, "lastObservedTime": LATER},), "/note": ("Other",), "/deprecatedCount": (4,)},
        selectors=("regarding.name=n", "reason=Why", "type!=Normal"),
        creates=True,
        weight=8,
    ),
    "namespaces": Kind(
        NAMESPACES,
        _namespace,
        names=("${namespace}-x", "${namespace}-y"),
        values={"/metadata/labels/kubernetes.io~1metadata.name": ("x",), "/spec/finalizers": (["example.com/x"], [])},
        status={"/status/phase": ("Terminating", "Active")},
        verbs=frozenset({"create", "get", "replace", "patch", "delete"}),
        only_dry=frozenset({"delete"}),
        weight=6,
    ),
    "servicecidrs": Kind(
        SERVICE_CIDRS,
        _service_cidr,
        names=("kubernetes", "more"),
        values={"/spec/cidrs": (["10.98.0.0/24"], ["10.98.1.0/24"])},
        verbs=ALL_VERBS - {"deletecollection", "list"},
        only_dry=ALL_VERBS,
        weight=3,
    ),
    "crds": Kind(
        CRDS,
        _crd,
        names=("p", "q"),
        values={"/spec/scope": ("Namespaced",), "/spec/preserveUnknownFields": (True, False)},
        verbs=frozenset({"create"}),
        only_dry=ALL_VERBS,
        weight=5,
    ),
    "pods": Kind(
        "/api/v1/namespaces/{namespace}/pods",
        _namespace,
        verbs=frozenset({"get", "list"}),
        selectors=("spec.nodeName=a", "status.phase=Running"),
        weight=1,
    ),
}
