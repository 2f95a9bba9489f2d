"""How to reach a server, and as whom: `Access`, made from a kubeconfig or a Pod's files by `access.load_access`.

Theory of operation. Asked before every request, `credentials` has to cost next to nothing while nothing changes, and to
notice within seconds when something does: tokens and certificates are rotated under a running process. So files are
looked at again only every few seconds, an ssl context is made anew only when what it was made of has changed, and a
plugin runs only when what it gave has expired. A 401 puts all of that aside: `rejected` has everything looked at anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import ssl

    from cidrella.kube.tls import KeyPair, Tls

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class Credentials:
    """What a request is sent with."""

    authorization: str
    """The value of the Authorization header, "" for none."""
    tls: ssl.SSLContext | None
    """None for http://."""


class Proof(NamedTuple):
    """What a user shows to the server: a header, a certificate, both or neither."""

    authorization: str = ""
    pair: KeyPair | None = None


class Identity(Protocol):
    """Whoever we are to the server."""

    async def proof(self) -> Proof:
        """What to show now; an equal value while nothing changed. Raises ConfigError."""

    def expire(self) -> None:
        """The server did not take it: find out anew next time."""


class Header:
    """Whoever is known by a header that stays: a token, a password, or nothing at all."""

    def __init__(self, authorization: str = "") -> None:
        self._proof = Proof(authorization)

    async def proof(self) -> Proof:
        """The same, always."""
        return self._proof

    def expire(self) -> None:
        """There is nothing to find out."""


@dataclass(eq=False)
class Access:
    """The way to one server as one user."""

    server: str
    """ "https://host:port", with a path if it has one, without a slash at its end."""
    tls: Tls | None = None
    """None for http://."""
    identity: Identity = field(default_factory=Header)
    namespace: str = DEFAULT_NAMESPACE
    context: str = ""
    """Its name, for people."""
    origin: str = ""
    """Where it was found, for people: a file, or a Pod's ServiceAccount."""
    tls_server_name: str = ""
    """The name in the server's certificate, if it is not the one in its URL."""
    proxy: str = ""
    """The URL of an HTTP proxy to go through, "" for none."""
    _last: Credentials = field(default=Credentials("", None), init=False, repr=False)

    async def credentials(self) -> Credentials:
        """What to send the next request with: the same object as before while nothing changed. Raises ConfigError."""
        proof = await self.identity.proof()
        context = self.tls.context(proof.pair) if self.tls else None
        last = self._last
        if last.tls is not context or last.authorization != proof.authorization:
            last = self._last = Credentials(proof.authorization, context)
        return last

    def rejected(self, credentials: Credentials | None = None) -> None:
        """The server answered 401: do not serve these again unless they are found anew, all if none are given.

        Of many requests that are refused at the same time only the first counts: the others were sent with what has
        been replaced since.
        """
        if credentials is None or credentials is self._last:
            self.identity.expire()
            if self.tls:
                self.tls.expire()
