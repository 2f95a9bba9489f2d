"""Certificates for the stand-in of the API server, for the proxy in front of it and for a client of either."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.testenv.certs import Authority

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files with a CA, and with certificates and keys that it has signed for a server on the loopback and a client."""

    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def for_server(self, ask_for_certificate: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.server_key)
        if ask_for_certificate:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def for_client(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as newer versions of Python do by themselves
        return context


def make_certificates(directory: Path) -> Certificates:
    """Make a CA and what it signs."""
    authority = Authority(directory)
    server, client = authority.server("stand-in"), authority.client("stand-in client")
    return Certificates(authority.certificate, server.certificate, server.key, client.certificate, client.key)
