"""A webhook that lets everything pass and notes down what it was asked about."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from tests.testenv.certs import Identity
    from tests.testenv.client import Json


class Listener:
    """An admission webhook on a loopback port, between entering and leaving it."""

    def __init__(self, identity: Identity) -> None:
        self.heard: list[Json] = []
        """The requests, in the order in which they came."""
        handler = type("Handler", (_Handler,), {"heard": self.heard})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    heard: ClassVar[list[Json]]
    protocol_version = "HTTP/1.1"
    timeout = 1.0  # kept connections must not outlive the server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append(review["request"])
        review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""
