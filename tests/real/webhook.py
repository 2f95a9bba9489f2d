"""The webhook of `deploy/webhook` in a cluster: replicas of the real program, with exactly the rights given there.

All of it is applied as a person would, with the real kubectl, by way of an overlay that changes only where the API
server finds it: a loopback port, since nobody is there to start the Deployment's Pods. Behind that port the replicas
take turns, as behind a Service. Tests look at it through the plain client and kubectl, and at what the webhook did
through the API server's audit log: the API server has bands of its own, so an address alone proves nothing.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import sys
import time
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Self

import yaml

from tests.real.balancer import Balancer
from tests.real.rbac import DEPLOY, account_token, apply_directory
from tests.real.site import Replica, eventually
from tests.testenv.api import kubeconfig
from tests.testenv.audit import writes
from tests.testenv.client import ApiError
from tests.testenv.ports import free_port
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

WEBHOOK = DEPLOY / "webhook"
PATH = "/mutate-services"
RANGES = "/apis/cidrella.dev/v1alpha1/rangeallocations"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cidrella-webhook"
ACCOUNT = "system:serviceaccount:kube-system:cidrella-webhook"
CRD = "customresourcedefinition/rangeallocations.cidrella.dev"
SERVICES = "/api/v1/namespaces/default/services"
IP_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
ALL_SERVICES = "/api/v1/services"
HOST = "cidrella-webhook.kube-system.svc"
FLAGS = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--repair-interval=1s",
)
GIVEN = "cidrella_clusterip_allocator_allocation_total"


def apply_webhook(cluster: Cluster, directory: Path, url: str, ca: str = "") -> None:
    """`kubectl apply -k` of the overlay, which is written to an empty directory. `ca`, in base64, if there is one."""
    client = {"url": f"{url}{PATH}"} | ({"caBundle": ca} if ca else {})
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": client}]
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(WEBHOOK, directory.resolve())],
        "patches": [{"target": {"kind": "MutatingWebhookConfiguration"}, "patch": json.dumps(patch)}],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    apply_directory(cluster, directory, CRD)
    cluster.admin.get(RANGES)  # established, its storage is still made; the client waits for that


def service(name: str, **spec: Any) -> Json:
    """A Service with one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


class WebhookReplica(Replica):
    """One `cidrella webhook`."""

    def __init__(self, name: str, kubeconfig: Path, log: Path, flags: tuple[str, ...]) -> None:
        self.port, self.webhook_port = free_port(), free_port()
        self.log = log
        command = [sys.executable, "-m", "cidrella", "webhook", f"--kubeconfig={kubeconfig}", "--log-format=json"]
        command += [f"--bind-address=127.0.0.1:{self.port}", f"--webhook-bind-address=127.0.0.1:{self.webhook_port}"]
        command += [f"--webhook-dns-names={HOST},127.0.0.1", *FLAGS, *flags]
        self.process = Process(name, command, log)

    def certificate(self, ca: str = "") -> bytes:
        """The certificate that it shows; with a CA's, in PEM, only if it is of that CA and for the webhook's name."""
        return shown_certificate(self.webhook_port, ca)

    def given(self, scope: str) -> float:
        """How many addresses it has given in this way, of all ranges."""
        return sum(float(each.value) for each in self.samples() if each.name == GIVEN and each.labels["scope"] == scope)


class WebhookSite:
    """A cluster with `deploy/webhook`, between entering and leaving it. Replicas are for tests to start."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.admin = cluster.admin
        self.directory = directory
        self._balancer = Balancer()
        self.replicas: list[WebhookReplica] = []

    def __enter__(self) -> Self:
        self._balancer.__enter__()
        overlay = self.directory / "overlay"
        overlay.mkdir()
        apply_webhook(self.cluster, overlay, self.url)
        self._kubeconfig = self.directory / "webhook.kubeconfig"
        user = {"token": account_token(self.cluster, "cidrella-webhook")}
        written = kubeconfig(self.cluster.server, self.cluster.authority.certificate, user)
        self._kubeconfig.write_text(yaml.safe_dump(written))
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._balancer.__exit__()

    @property
    def url(self) -> str:
        """Where the API server finds the replicas."""
        return f"https://127.0.0.1:{self._balancer.port}"

    def replica(self, *flags: str) -> WebhookReplica:
        """One more that takes its turn once it is started."""
        name = f"webhook-{len(self.replicas)}"
        made = WebhookReplica(name, self._kubeconfig, self.directory / f"{name}.log", flags)
        self.replicas.append(made)
        self._balancer.backends.append(made.webhook_port)
        return made

    def run(self, count: int, *flags: str) -> None:
        """Start replicas, and wait until they are ready and the API server asks them."""
        for replica in [self.replica(*flags) for _ in range(count)]:
            replica.process.start()
        self.wait_asked()

    def wait_asked(self) -> None:
        """Wait until every replica is ready, and the API server asks them: the refusal is in the webhook's words."""
        for replica in self.replicas:
            replica.wait_ready()
        eventually(self._asked, explain=lambda: self.replicas[0].process.tail(40))

    def _asked(self) -> bool:
        taken = self.admin.get(f"{SERVICES}/kubernetes")["spec"]["clusterIP"]
        try:
            self.admin.create(SERVICES, service("asked", clusterIP=taken), dryRun="All")
        except ApiError as error:
            return "admission webhook" in error.message
        return False

    def stop(self) -> None:
        """Stop every replica, and forget it."""
        for replica in self.replicas:
            replica.stop()
        self.replicas = []
        self._balancer.backends.clear()

    def kill(self) -> None:
        """End every replica at once, as a power cut would."""
        for replica in self.replicas:
            replica.process.kill()

    def restart(self) -> None:
        """Start those that were killed, and wait until they are asked."""
        for replica in self.replicas:
            replica.process.start()
        self.wait_asked()

    def configure(self, **fields: Any) -> None:
        """Change the webhook's entry in its configuration."""
        body = {"webhooks": [{"name": "services.cidrella.dev", **fields}]}
        self.admin.patch(CONFIGURATION, body, content_type="application/strategic-merge-patch+json")

    def copy_logs(self, directory: Path) -> None:
        """Keep the replicas' logs, for whoever has to find out what went wrong."""
        directory.mkdir(parents=True, exist_ok=True)
        for replica in self.replicas:
            if replica.log.exists():
                shutil.copy(replica.log, directory)

    def tail(self) -> str:
        """The ends of the replicas' logs."""
        return "\n".join(replica.process.tail(30) for replica in self.replicas)

    def create(self, name: str, **spec: Any) -> list[str]:
        """A Service; its addresses."""
        return list(self.admin.create(SERVICES, service(name, **spec))["spec"].get("clusterIPs", []))

    def patch(self, name: str, **spec: Any) -> list[str]:
        """A change to a Service's spec; the addresses it then has."""
        return list(self.admin.patch(f"{SERVICES}/{name}", {"spec": spec})["spec"].get("clusterIPs", []))

    def delete(self, name: str) -> None:
        """A Service goes."""
        self.admin.delete(f"{SERVICES}/{name}")

    def addresses(self) -> dict[str, list[str]]:
        """The addresses of each Service that has any, by namespace/name."""
        found = {}
        for each in self.admin.items(ALL_SERVICES):
            held = [address for address in each["spec"].get("clusterIPs", ()) if address != "None"]
            if held:
                found[f"{each['metadata']['namespace']}/{each['metadata']['name']}"] = held
        return found

    def metrics(self) -> str:
        """What the API server says of itself."""
        return str(self.admin.get("/metrics")["text"])

    def booked(self) -> set[str]:
        """The addresses whose bit is set, over all ranges, read without the code under test."""
        found = set()
        for each in self.admin.items(RANGES):
            bits = int.from_bytes(base64.b64decode(each.get("data", "")), "big")
            first = int(ip_network(each["range"]).network_address) + 1
            make = type(ip_network(each["range"]).network_address)
            found |= {str(make(first + n)) for n in range(bits.bit_length()) if bits >> n & 1}
        return found

    def wait_books(self, seconds: float = 20) -> None:
        """Wait until the bitmaps are what the Services have: nothing is missing, nothing is left over.

        An IPAddress keeps its bit. The API server makes one for a Service that is deleted as soon as it is created, at
        times, after it has deleted that Service's own, and finds out after a while.
        """
        deadline = time.monotonic() + seconds
        while differing := self._differing():
            assert time.monotonic() < deadline, f"not within {seconds} s: {differing}\n{self.tail()}"
            time.sleep(0.2)

    def _differing(self) -> str:
        have, books = {each for held in self.addresses().values() for each in held}, self.booked()
        over = books - have
        if over:
            over -= {each["metadata"]["name"] for each in self.admin.items(IP_ADDRESSES)}
        return f"missing {sorted(have - books)[:9]}, left over {sorted(over)[:9]}" if have - books or over else ""

    def writes_for(self, name: str) -> int:
        """How often something was to be written into the books that is, or was a moment before, of a Service.

        The books themselves move all the while: a repairer goes its rounds, or another begins.
        """
        sent = writes(self.cluster.audit_log, ACCOUNT, "rangeallocations")
        return sum(f" default/{name} " in str(each.body.get("recent")) for each in sent)

    def patched(self) -> dict[str, list[list[str]]]:
        """What the webhook put into each Service's clusterIPs, in order, by namespace/name, by the audit log."""
        found: dict[str, list[list[str]]] = {}
        with self.cluster.audit_log.open() as lines:
            for line in lines:
                if '"patch.webhook.admission.k8s.io/' in line and line.endswith("\n"):
                    event = json.loads(line)
                    for address in _patches(event):
                        found.setdefault(_name(event), []).append(address)
        return found

    def forbidden(self) -> list[str]:
        """What the API server did not let the webhook's account do."""
        found = []
        with self.cluster.audit_log.open() as lines:
            for line in lines:
                if ACCOUNT in line and line.endswith("\n"):
                    event = json.loads(line)
                    if event["user"]["username"] == ACCOUNT and event["responseStatus"]["code"] in {401, 403}:
                        found.append(f"{event['verb']} {event['requestURI']}")
        return found


def shown_certificate(port: int, ca: str = "") -> bytes:
    """The certificate that is shown at a loopback port; with a CA's, in PEM, only if that is to be believed."""
    context = ssl.create_default_context(cadata=ca or None)
    if not ca:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as wrapped,
    ):
        shown = wrapped.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def offset(address: str, cidr: str) -> int:
    """The place of an address among the usable ones of a range."""
    return int(ip_address(address)) - int(ip_network(cidr).network_address) - 1


def _name(event: Json) -> str:
    target = event["objectRef"]
    name = target.get("name") or event["requestObject"]["metadata"].get("name", "")
    return f"{target['namespace']}/{name}"


def _patches(event: Json) -> list[list[str]]:
    if event.get("responseStatus", {}).get("code", 0) >= 300 or "dryRun" in event["requestURI"]:
        return []
    kept = [text for key, text in event["annotations"].items() if key.startswith("patch.webhook.admission.k8s.io/")]
    steps = [step for text in kept for step in json.loads(text)["patch"]]
    return [step["value"] for step in steps if step["path"] == "/spec/clusterIPs"]
