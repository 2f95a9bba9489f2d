"""ssl contexts: whom to trust and what to show, made anew when either changes.

Rules for a client, as kubectl has them:

- The server is verified, its name too, unless the kubeconfig says not to.
- A CA that is named is the only one that is trusted. Like kubectl we take an intermediate one for as good as a root,
  and do not mind what pedants find wrong with CAs that people made by hand (Python from 3.13 on does).
- A rotation that is half done (the new certificate with the old key) leaves the last context in use.

Rules for a server:

- Who connects is asked for a certificate where there is a CA to tell by, and then nobody is let in without.
- Each new connection finds what is newest, and those that there are stay. A context forgets no CA that it was given, so
  that it is another one for each change: the one that listens hands every handshake on to it.
- With certificates of clients it is TLS 1.3 without tickets: nobody resumes what began with another CA.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cidrella.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.kube.files import Material

_log = structlog.get_logger()


class KeyPair(NamedTuple):
    """A certificate, with its chain, and its key, in PEM."""

    certificate: bytes
    key: bytes


class Serving(NamedTuple):
    """What a server shows, and whom it lets in."""

    pair: KeyPair
    client_ca: bytes | None = None
    """Of those who may connect, in PEM; None lets everybody in."""


class _Made(NamedTuple):
    """What a context was made of."""

    ca: bytes | None
    pair: KeyPair | None


class Tls:
    """The TLS side of an access: `ca` None trusts what the system trusts; `certificate` and `key` go together."""

    def __init__(
        self,
        ca: Material | None = None,
        certificate: Material | None = None,
        key: Material | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        self._ca = ca
        self._certificate = certificate
        self._key = key
        self._insecure = insecure
        self._context: ssl.SSLContext | None = None
        self._made_of = _Made(None, None)

    def context(self, pair: KeyPair | None) -> ssl.SSLContext:
        """The context that shows this pair, or without one our own; the same object while nothing changed.

        Raises ConfigError where there is nothing to make one of, and never was.
        """
        if pair is None and self._certificate and self._key:
            pair = KeyPair(self._certificate.read(), self._key.read())
        made_of = _Made(self._ca.read() if self._ca else None, pair)
        if self._context is None:
            self._context = self._make(made_of)
        elif made_of != self._made_of:
            try:
                self._context = self._make(made_of)
            except ConfigError as error:
                _log.warning("new certificates are of no use, the old ones stay", error=str(error))
        self._made_of = made_of
        return self._context

    def expire(self) -> None:
        """Look at all files again."""
        for each in (self._ca, self._certificate, self._key):
            if each:
                each.expire()

    def _make(self, made_of: _Made) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["http/1.1"])
        _be_lenient(context)
        if self._insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif made_of.ca is None:
            context.load_default_certs()
        else:
            _trust(context, made_of.ca)
        if made_of.pair:
            _show_pair(context, made_of.pair, "client")
        return context


def _be_lenient(context: ssl.SSLContext) -> None:
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", errors="ignore"))  # comments may be in any script
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificate authority is not a certificate in PEM: {_words(error)}") from error


def check_ca(ca: bytes) -> None:
    """Raise ConfigError for what is no certificate."""
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ca)


def serving_context(serving: Serving) -> ssl.SSLContext:
    """A context for one who is connected to: TLS 1.2 or newer, HTTP/1.1. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if serving.client_ca is not None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_REQUIRED
        _be_lenient(context)
        _trust(context, serving.client_ca)
    _show_pair(context, serving.pair, "serving")
    return context


class ServingTls:
    """The TLS side of one who is connected to. Whether clients need certificates stays as it was at first."""

    def __init__(self, serving: Serving) -> None:
        self.context = serving_context(serving)
        """To listen with."""
        self._newest = serving_context(serving)
        self.context.sni_callback = self._hand_on

    def show(self, serving: Serving) -> None:
        """From the next connection on. Raises ConfigError, and keeps what there was."""
        self._newest = serving_context(serving)

    def _hand_on(self, handshake: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        """Called at each handshake, whether or not it names the server."""
        handshake.context = self._newest


def _show_pair(context: ssl.SSLContext, pair: KeyPair, whose: str) -> None:
    """Load a pair, through what only we can read: ssl takes it as files and in no other way. Raises ConfigError."""

    def no_password() -> str:
        """Asked for the password of an encrypted key: without this, ssl would ask on the terminal."""
        raise ConfigError(f"the {whose} key is encrypted, which is not supported")

    try:
        with _as_file(pair.certificate) as certificate, _as_file(pair.key) as key:
            context.load_cert_chain(certificate, key, password=no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"the {whose} certificate and key are of no use: {_words(error)}") from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """The name of a file with this in it: in memory where that can be, for nothing may be writable otherwise."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("cidrella"), "wb") as file:  # noqa: PTH123 -- a descriptor, not a path
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile(prefix="cidrella-") as file:
        file.write(data)
        file.flush()
        yield file.name


def _words(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
