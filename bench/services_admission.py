"""What one decision of the webhook takes beside a bare PATCH: part of `make bench-services`.

The webhook is installed from `deploy/webhook` and runs as a process of its own, as in a cluster. It is asked over HTTPS
what the API server would ask when a Service is created, on a connection that is kept, as the API server keeps it. Each
decision gives an address, with the write that this takes. The bare PATCH is that of `make bench-cluster`: a node's. One
of a ConfigMap, the least that the API server can store, is there for comparison. All go through the same transport,
from the same process, one after the other, in turns.
"""

from __future__ import annotations

import base64
import ssl
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import uvloop
from tests.real.webhook import CONFIGURATION, PATH, service
from tests.testenv.nodes import NODES, create_nodes

from bench.cluster_arrivals import percentile
from cidrella.kube.credentials import Access, Credentials
from cidrella.kube.transport import Call, Transport
from cidrella.serviceip.state import RECENT

if TYPE_CHECKING:
    from tests.real.webhook import WebhookSite
    from tests.testenv.cluster import Cluster

    from bench.report import Report

TIMES_A_PATCH = 3
"""What the median of a decision is held to."""
DECISIONS = 500
"""How many of each there are in a round."""
_WARMING = RECENT + 10
"""How many come before them: then the object remembers as much as it ever does, and is as large."""
_NAME = "bench-services"
_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_NODE = f"{NODES}/{_NAME}?fieldValidation=Ignore"
_JSON = "application/json"
_PATCH = "application/strategic-merge-patch+json"
_TIMEOUT = 30.0
_CONNECTIONS = 4


@dataclass(frozen=True)
class Party:
    """Somebody to talk to, on a connection that is kept."""

    server: str
    tls: ssl.SSLContext
    transport: Transport

    async def milliseconds(self, method: str, path: str, body: bytes, content_type: str = _JSON) -> tuple[float, bytes]:
        """How long an answer takes, and the answer."""
        call = Call(method, f"{self.server}{path}", body, content_type, _JSON)
        began = time.perf_counter()
        reply = await self.transport.exchange(call, Credentials("", self.tls), None)
        took = (time.perf_counter() - began) * 1e3
        if reply.code != 200:
            raise RuntimeError(f"{call}: {reply.code} {reply.body[:200]!r}")
        return took, reply.body


@dataclass
class Round:
    """The milliseconds of each PATCH and of each decision, and the addresses that were given."""

    least: list[float] = field(default_factory=list)
    patches: list[float] = field(default_factory=list)
    decisions: list[float] = field(default_factory=list)
    given: list[str] = field(default_factory=list)


def compare_admission(report: Report, site: WebhookSite, rounds: int, count: int = DECISIONS) -> None:
    """Both, in turns."""
    site.run(1, "--repair-interval=60s")
    site.admin.create(_CONFIG_MAPS, {"metadata": {"name": _NAME}})
    create_nodes(site.admin, [_NAME])
    measured = uvloop.run(_compare(site, rounds, count))
    given = [address for each in measured for address in each.given]
    assert len({*given}) == len(given)
    assert {*given} <= site.booked()
    note_rounds(report, measured[1:])


async def _compare(site: WebhookSite, rounds: int, count: int) -> list[Round]:
    """The rounds, and before them one that only warms up."""
    api, webhook = _api(site.cluster), _webhook(site)
    try:
        print("admission: warming up", flush=True)
        measured = [await _round(api, webhook, _WARMING)]
        for number in range(rounds):
            print(f"admission: round {number + 1} of {rounds}", flush=True)
            measured.append(await _round(api, webhook, count))
    finally:
        await api.transport.close()
        await webhook.transport.close()
    return measured


async def _round(api: Party, webhook: Party, count: int) -> Round:
    """So many PATCHes of both kinds, and as many decisions."""
    measured = Round()
    for _ in range(count):
        word = uuid4().hex[:8]
        body = msgspec.json.encode({"metadata": {"annotations": {"cidrella.dev/pool": word}}})
        took, _ = await api.milliseconds("PATCH", f"{_CONFIG_MAPS}/{_NAME}", body, _PATCH)
        measured.least.append(took)
        took, _ = await api.milliseconds("PATCH", _NODE, body, _PATCH)
        measured.patches.append(took)
        took, reply = await webhook.milliseconds("POST", f"{PATH}?timeout=10s", question(f"bench-{word}"))
        measured.decisions.append(took)
        measured.given.append(given_address(reply))
    return measured


def note_rounds(report: Report, measured: list[Round]) -> None:
    """The median of the rounds, of each one's median and p99."""
    medians = []
    for name, took in (
        ("a PATCH of a ConfigMap", [each.least for each in measured]),
        ("a bare PATCH, of a node", [each.patches for each in measured]),
        ("a decision of the webhook", [each.decisions for each in measured]),
    ):
        medians.append(statistics.median(map(statistics.median, took)))
        report.figure(f"{name}: median, ms", medians[-1])
        report.figure(f"{name}: p99, ms", statistics.median(percentile(each, 99) for each in took))
    least, patch, decision = medians
    report.ratio("a decision's median: times that of a bare PATCH", decision / patch, at_most=TIMES_A_PATCH)
    report.ratio("a decision's median: times that of a PATCH of a ConfigMap", decision / least)


def question(name: str) -> bytes:
    """What the API server asks about a Service that somebody creates."""
    kind = {"group": "", "version": "v1", "kind": "Service"}
    resource = {"group": "", "version": "v1", "resource": "services"}
    port = {"protocol": "TCP", "port": 80, "targetPort": 80}
    spec = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    made = service(name, **spec, ports=[port])
    made["metadata"] |= {"namespace": "default", "creationTimestamp": None}
    request = {
        "uid": str(uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": name,
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "bench", "groups": ["system:authenticated"]},
        "object": made | {"status": {"loadBalancer": {}}},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def given_address(reply: bytes) -> str:
    """The address in an answer."""
    response = msgspec.json.decode(reply)["response"]
    assert response["allowed"], response
    steps = msgspec.json.decode(base64.b64decode(response["patch"]))
    (address,) = [step["value"] for step in steps if step["path"] == "/spec/clusterIP"]
    return str(address)


def _api(cluster: Cluster) -> Party:
    identity = cluster.admin.identity
    assert identity is not None
    tls = ssl.create_default_context(cafile=cluster.authority.certificate)
    tls.load_cert_chain(identity.certificate, identity.key)
    return _party(cluster.server, tls)


def _webhook(site: WebhookSite) -> Party:
    """The webhook, by the CA that it wrote into its configuration."""
    (replica,) = site.replicas
    bundle = site.admin.get(CONFIGURATION)["webhooks"][0]["clientConfig"]["caBundle"]
    tls = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    return _party(f"https://127.0.0.1:{replica.webhook_port}", tls)


def _party(server: str, tls: ssl.SSLContext) -> Party:
    return Party(server, tls, Transport(Access(server), timeout=_TIMEOUT, connections=_CONNECTIONS))
