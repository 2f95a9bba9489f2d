"""A proxy in front of a stand-in, and plain clients of it, for the tests of the proxy itself."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.testenv.proxy import FaultProxy
from tests.testenv.standin import PATIENCE, StandIn, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.standin_certificates import Certificates


class Clients(ExitStack):
    """Plain clients of a proxy, with a connection each. All are closed at the end of `with`, or by `close`."""

    def __init__(self, proxy: FaultProxy, certificates: Certificates | None = None) -> None:
        super().__init__()
        self.proxy = proxy
        self.certificates = certificates

    def client(self) -> HTTPConnection:
        """Return a client that keeps its connection."""
        address = urlsplit(self.proxy.url).netloc
        client = (
            HTTPSConnection(address, timeout=PATIENCE, context=self.certificates.for_client())
            if self.certificates
            else HTTPConnection(address, timeout=PATIENCE)
        )
        self.callback(client.close)
        return client

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> HTTPResponse:
        """Send a request on a connection of its own and return the reply, of which the head is read."""
        client = self.client()
        client.request(method, path, body)
        return client.getresponse()

    def tcp(self) -> socket.socket:
        """Return a connection without TLS, whatever the proxy speaks."""
        address = urlsplit(self.proxy.url)
        return self.enter_context(socket.create_connection((address.hostname, address.port), PATIENCE))

    def raw(self, data: bytes = b"") -> socket.socket:
        """Return a connection on which this was sent, and on which an end of TCP before that of TLS is an error."""
        client = self.tcp()
        if self.certificates:
            context = self.certificates.for_client()
            client = self.enter_context(
                context.wrap_socket(client, server_hostname="127.0.0.1", suppress_ragged_eofs=False)
            )
        client.sendall(data)
        return client


class Bench(Clients):
    """Clients, the proxy that they talk to, and the stand-in behind it."""

    def __init__(self, standin: StandIn, proxy: FaultProxy, certificates: Certificates | None) -> None:
        super().__init__(proxy, certificates)
        self.standin = standin


@contextmanager
def bench_of(certificates: Certificates | None = None, seed: int = 0) -> Iterator[Bench]:
    """Run a stand-in and a proxy, with TLS on both sides of the proxy or on neither."""
    with serving(certificates) as standin:
        proxy = FaultProxy(
            standin.url,
            certificate=certificates.server if certificates else None,
            key=certificates.server_key if certificates else None,
            ca=certificates.ca if certificates else None,
            seed=seed,
        )
        with proxy, Bench(standin, proxy, certificates) as bench:
            yield bench
