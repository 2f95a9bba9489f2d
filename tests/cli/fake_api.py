"""A server with the shapes of the API that the live commands read, for what the real one cannot be made to say."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Json = dict[str, Any]

POOLS = "/apis/networking.x-k8s.io/v1/clustercidrs"
NODES = "/api/v1/nodes"
SERVICES = "/apis/networking.k8s.io/v1/servicecidrs"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cidrella"
HEARTBEAT = f"{LEASE}-alone"


@dataclass
class FakeApi:
    """What the server has, what it answers instead, and what it was asked."""

    kubeconfig: Path
    collections: dict[str, list[Json]] = field(default_factory=lambda: {POOLS: [], NODES: [], SERVICES: []})
    objects: dict[str, Json] = field(default_factory=dict)
    instead: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """For a path: a code and a body to answer with, whatever is asked."""
    forget_pages: int = 0
    """How often a page that is not the first is answered with 410."""
    asked: list[str] = field(default_factory=list)

    def pool(self, name: str, ipv4: str = "10.0.0.0/16", bits: int = 8, *, key: str = "", **more: object) -> None:
        """Add a pool with its finalizer on, in the order in which they are added. `key` is a label that it asks for."""
        created = f"2026-01-01T00:00:{len(self.collections[POOLS]):02}Z"
        metadata = {"name": name, "creationTimestamp": created, "finalizers": [FINALIZER], **more}
        spec: Json = {"perNodeHostBits": bits, "ipv4": ipv4}
        if key:
            wanted = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
            spec["nodeSelector"] = {"nodeSelectorTerms": [wanted]}
        made = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": metadata, "spec": spec}
        self.collections[POOLS].append(made)

    def node(self, name: str, *pod_cidrs: str, taint: str = "", **more: object) -> None:
        """Add a node."""
        spec: Json = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
        if taint:
            spec["taints"] = [{"key": taint, "effect": "NoSchedule"}]
        self.collections[NODES].append({"metadata": {"name": name, "uid": f"uid-{name}", **more}, "spec": spec})

    def reply(self, method: str, target: str) -> tuple[int, bytes]:
        """The code and the body for a request."""
        parts = urlsplit(target)
        self.asked.append(f"{method} {parts.path}")
        if parts.path in self.instead:
            return self.instead[parts.path]
        if parts.path in self.objects:
            return 200, json.dumps(self.objects[parts.path]).encode()
        if parts.path not in self.collections:
            return refusal(404, "NotFound")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        first, limit = int(query.get("continue", "0")), int(query["limit"])
        if first and self.forget_pages:
            self.forget_pages -= 1
            return refusal(410, "Expired")
        every = self.collections[parts.path]
        metadata: Json = {"resourceVersion": "1"}
        if first + limit < len(every):
            metadata |= {"continue": str(first + limit), "remainingItemCount": len(every) - first - limit}
        return 200, json.dumps({"metadata": metadata, "items": every[first : first + limit]}).encode()


FINALIZER = "networking.kubernetes.io/cluster-cidr-config-finalizer"


@contextmanager
def serving(directory: Path) -> Iterator[FakeApi]:
    """A server at work, with a kubeconfig in the directory that leads to it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            code, body = api.reply("GET", self.path)
            self.send_response(code)
            self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{server.server_address[1]}")))
    api = FakeApi(path)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(server: str) -> Json:
    """The contents of a kubeconfig file, with nobody's credentials."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "staging", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "staging",
    }


def refusal(code: int, reason: str) -> tuple[int, bytes]:
    """An answer of the API server that refuses."""
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": f"told so: {reason}"}
    return code, json.dumps(body).encode()
