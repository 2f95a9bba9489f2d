"""ssl contexts for a server: whom to trust and what to show, as kubectl does, made anew when either changes.

Rules:

- The server is verified, its name too, unless the kubeconfig says not to.
- A CA that is named is the only one that is trusted. Like kubectl we take an intermediate one for as good as a root,
  and do not mind what pedants find wrong with CAs that people made by hand (Python from 3.13 on does).
- A rotation that is half done (the new certificate with the old key) leaves the last context in use.
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
        context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
        if self._insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif made_of.ca is None:
            context.load_default_certs()
        else:
            _trust(context, made_of.ca)
        if made_of.pair:
            show_pair(context, made_of.pair, "client")
        return context


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", errors="ignore"))  # comments may be in any script
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificate authority is not a certificate in PEM: {_words(error)}") from error


def serving_context(pair: KeyPair) -> ssl.SSLContext:
    """A context for one who is connected to: TLS 1.2 or newer, HTTP/1.1. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    show_pair(context, pair, "serving")
    return context


def check_pair(pair: KeyPair) -> None:
    """Raise ConfigError for a pair that is of no use to one who is connected to."""
    serving_context(pair)


def show_pair(context: ssl.SSLContext, pair: KeyPair, whose: str) -> None:
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
