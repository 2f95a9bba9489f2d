"""A validating webhook that fails every UPDATE of the nodes labelled `bad=yes`: part of `make bench-failing-nodes`.

It answers 500, at once or after it has hung for longer than the API server waits. In both cases the API server answers
the PATCH of such a node with 500 and changes nothing. The webhook notes which nodes it was asked about.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.testenv.client import ApiError
from tests.testenv.nodes import NODES
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    import socket
    from types import TracebackType

    from tests.testenv.cluster import Cluster

LABEL = {"bad": "yes"}
API_TIMEOUT = 10
"""Seconds that the API server waits for the webhook."""
_HANG = API_TIMEOUT + 0.5
_NAME = "failing.bench.cidrella.dev"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_ACTIVE_SECONDS = 60.0
"""Within which the API server has to call a new webhook."""
_POLL = 0.1


class FailingWebhook(ThreadingHTTPServer):
    """The webhook, while it is open; installed in a cluster by `install`."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, cluster: Cluster) -> None:
        self.asked: set[str] = set()
        """Names of the nodes whose UPDATE has failed. A hanging UPDATE counts at its end."""
        self.hangs = False
        self.closing = threading.Event()
        self._cluster = cluster
        serving = cluster.authority.server("failing-webhook")
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(serving.certificate, serving.key)
        super().__init__(("127.0.0.1", free_port()), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, name="webhook", daemon=True)

    def __enter__(self) -> FailingWebhook:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection. Its handshake is left to the thread that reads from it."""
        connection, address = self.socket.accept()
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def fail(self, name: str) -> None:
        """Hang if this webhook does, then note the node."""
        if self.hangs:
            self.closing.wait(_HANG)
        self.asked.add(name)

    def install(self, *, hangs: bool) -> None:
        """Have the API server call this webhook, and wait until it does. Without hanging until then."""
        admin, probe = self._cluster.admin, f"{NODES}/probe"
        admin.create(_CONFIGURATIONS, self._configuration())
        admin.create(NODES, {"metadata": {"name": "probe", "labels": LABEL}})
        deadline = time.monotonic() + _ACTIVE_SECONDS
        while "probe" not in self.asked:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the API server did not call the webhook within {_ACTIVE_SECONDS:.0f} s")
            with suppress(ApiError):
                admin.patch(probe, {"metadata": {"annotations": {"at": str(time.monotonic())}}})
            time.sleep(_POLL)
        admin.delete(probe)
        self.asked.clear()
        self.hangs = hangs

    def _configuration(self) -> dict[str, object]:
        bundle = base64.b64encode(self._cluster.authority.certificate.read_bytes()).decode()
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["UPDATE"]}
        webhook = {
            "name": _NAME,
            "clientConfig": {"url": f"https://127.0.0.1:{self.server_port}/", "caBundle": bundle},
            "rules": [rule],
            "objectSelector": {"matchLabels": LABEL},
            "failurePolicy": "Fail",
            "timeoutSeconds": API_TIMEOUT,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {"metadata": {"name": _NAME}, "webhooks": [webhook]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FailingWebhook

    def handle(self) -> None:
        with suppress(OSError):  # the API server has closed the connection of a call that hung
            super().handle()

    def do_POST(self) -> None:
        """Fail, whatever the question is."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.fail(json.loads(body)["request"]["name"])
        self.send_response(HTTPStatus.INTERNAL_SERVER_ERROR)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing."""
