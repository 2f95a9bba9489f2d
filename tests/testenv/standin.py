"""A small HTTP server that stands in for the API server where the proxy itself is tested.

It is not Kubernetes and does not pretend to be: it has the shapes of replies that matter to a proxy, and tells what it
was sent. What is claimed of Kubernetes is tested on Kubernetes.

| path | reply |
|---|---|
| `/echo` | the request's body; its head is kept like that of every request |
| `/chunked` | the request's body in chunks, as it comes |
| `/watch` | what the test puts into `to_watch`, each in a chunk; None ends it properly, `BREAK` does not |
| `/hang` | none; `hanging` is set when it is asked for, `left` when its client has gone |
| `/goodbye` | the last of its connection |
| `/early` | so too, and given when there are four bytes of the request's body |
| any other | the path; nothing for DELETE, which is answered with 204 |
"""

from __future__ import annotations

import queue
import socket
import ssl
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.standin_certificates import Certificates

BREAK: Final = b""
"""For `to_watch`: end the connection in the middle of the reply."""
PATIENCE: Final = 90.0
"""How long the server waits for its client or for the test before it gives up, in seconds: for a slow day."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came in. `connection` is the port that it came from."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    connection: int
    certificate: str | None
    body: bytes = b""


@dataclass(slots=True)
class StandIn:
    """The server as tests see it."""

    url: str
    seen: list[Seen] = field(default_factory=list)
    pieces: queue.SimpleQueue[bytes] = field(default_factory=queue.SimpleQueue)
    """The pieces of bodies in chunks, put here as they arrive."""
    to_watch: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)
    hanging: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    sockets: list[socket.socket] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [f"{seen.method} {seen.path}" for seen in self.seen]

    def disconnect(self) -> None:
        """End all connections, of which none must be in use."""
        for connection in self.sockets:
            # Its thread takes this for the client's goodbye. SSLSocket.shutdown would first take TLS away from it.
            socket.socket.shutdown(connection, socket.SHUT_RD)


class Handler(BaseHTTPRequestHandler):
    """What the table above says."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    disable_nagle_algorithm = True  # head and body are written one after the other, and would wait for each other
    standin: StandIn  # given by `serving`

    def setup(self) -> None:
        super().setup()
        self.standin.sockets.append(self.connection)
        self.peer = _common_name(self.connection.getpeercert()) if isinstance(self.connection, ssl.SSLSocket) else None

    def do_GET(self) -> None:
        self._see(b"")
        match self.path.partition("?")[0]:
            case "/watch":
                self._watch()
            case "/hang":
                self.standin.hanging.set()
                if not self.rfile.read(1):
                    self.standin.left.set()
            case "/goodbye":
                self._reply(b"goodbye\n", ("Connection", "close"))
            case _:
                self._reply(self.path.encode(), ("X-Odd-Case", "Kept as it is"))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self._see(b"")
        self.send_response_only(204)
        self.end_headers()

    def do_POST(self) -> None:
        if self.path == "/chunked":
            self._head(("Transfer-Encoding", "chunked"))
            body = b""
            while piece := self._receive_chunk():
                body += piece
                self.standin.pieces.put(piece)
                self._send_chunk(piece)
            self._send_chunk(b"")
            self._see(body)
        elif self.path == "/early":
            self._see(self.rfile.read(4))
            self._reply(b"early\n", ("Connection", "close"))
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._see(body)
            self._reply(body)

    def do_PATCH(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the parent's
        """Say nothing."""

    def _watch(self) -> None:
        self._head(("Transfer-Encoding", "chunked"), ("Content-Type", "application/json"))
        while line := self.standin.to_watch.get(timeout=PATIENCE):
            self._send_chunk(line)
        if line is None:
            self._send_chunk(b"")
        else:
            self.close_connection = True

    def _see(self, body: bytes) -> None:
        headers = list(self.headers.items())
        self.standin.seen.append(Seen(self.command, self.path, headers, self.client_address[1], self.peer, body))

    def _head(self, *headers: tuple[str, str]) -> None:
        self.send_response_only(200)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _reply(self, body: bytes, *headers: tuple[str, str]) -> None:
        self._head(("Content-Length", str(len(body))), *headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _receive_chunk(self) -> bytes:
        piece = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return piece

    def _send_chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))


class Server(ThreadingHTTPServer):
    """A thread for each connection; closing waits for all of them, so that a connection left open shows."""

    daemon_threads = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone: that is what many of the tests are about."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def serving(certificates: Certificates | None = None, *, ask_for_certificate: bool = False) -> Iterator[StandIn]:
    """Run the server, over TLS if there are certificates for it."""
    standin = StandIn("")
    with Server(("127.0.0.1", 0), type("Handler", (Handler,), {"standin": standin})) as server:
        scheme = "http"
        if certificates:
            server.socket = certificates.for_server(ask_for_certificate).wrap_socket(server.socket, server_side=True)
            scheme = "https"
        standin.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="stand-in")
        thread.start()
        try:
            yield standin
        finally:
            for _ in standin.sockets:
                standin.to_watch.put(None)  # for watches that a test has left
            server.shutdown()
            thread.join()


def _common_name(certificate: Any) -> str | None:
    """Return the common name of a certificate in the form that `ssl` gives it, None if there is none."""
    return dict(part for parts in certificate["subject"] for part in parts)["commonName"] if certificate else None
