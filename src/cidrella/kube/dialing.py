"""New connections to a server: straight or through a proxy, with TLS or without.

Rules:

- All addresses of a name are tried, the next one when the last has not answered after a moment: of the machines behind
  a name one may be down.
- A peer that went without a word is noticed.
- A proxy is told what it has to know: where to connect to. For TLS the rest goes through it unread.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from aiohappyeyeballs import start_connection

from cidrella.kube.http1 import Connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import MutableSet, Sequence

    from aiohappyeyeballs import AddrInfoType

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""A peer that went without a word is noticed after a minute, where the system lets us say so."""
_NEXT_ADDRESS: Final = 0.25
"""Seconds after which the next address of a name is tried as well."""
_PORTS: Final = {"http": 80, "https": 443}


class Dialer:
    """The way to one server; `server` and `proxy` are URLs, "" for no proxy."""

    def __init__(self, server: str, server_name: str, proxy: str) -> None:
        url, first = urlsplit(server), urlsplit(proxy or server)
        self.origin = f"{url.scheme}://{url.netloc}"
        self.host = url.netloc
        self.secure = url.scheme == "https"
        self._server_name = server_name or (url.hostname or "").rstrip(".")
        self._port = url.port or _PORTS[url.scheme]
        self._first = (first.hostname or "", first.port or _PORTS[first.scheme])
        self._tunnelled = bool(proxy) and self.secure
        self.by_proxy = bool(proxy) and not self.secure
        """Whether a proxy reads the requests, and needs whole URLs in them."""
        self.proxy_authorization = _basic(first.username, first.password or "") if proxy and first.username else ""

    async def dial(self, tls: ssl.SSLContext | None, alive: MutableSet[Connection], deadline: float) -> Connection:
        """Connect; `tls` is None for none. Raises OSError, ssl's errors among them, or UnicodeError for a bad name."""
        peer = await start_connection(
            await _addresses(*self._first),
            happy_eyeballs_delay=_NEXT_ADDRESS,
            interleave=1,
            socket_factory=_socket,
        )
        if tls is not None and self._tunnelled:
            return await self._through(peer, tls, alive, deadline)
        loop = asyncio.get_running_loop()
        name = None if tls is None else self._server_name
        _, made = await loop.create_connection(lambda: Connection(alive), sock=peer, ssl=tls, server_hostname=name)
        return made

    async def _through(
        self, peer: socket.socket, tls: ssl.SSLContext, alive: MutableSet[Connection], deadline: float
    ) -> Connection:
        """TLS to the server, through a connection to the proxy."""
        loop = asyncio.get_running_loop()
        transport, proxied = await loop.create_connection(lambda: Connection(set()), sock=peer)
        authorization = f"Proxy-Authorization: {self.proxy_authorization}\r\n" if self.proxy_authorization else ""
        target = self.host if urlsplit(self.origin).port else f"{self.host}:{self._port}"
        asked = await proxied.begin(
            f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n".encode(), deadline
        )
        if not 200 <= asked.code < 300:
            proxied.abort()
            raise ConnectionRefusedError(f"the proxy answered {asked.code}")
        made = Connection(alive)
        secured = await loop.start_tls(transport, made, tls, server_hostname=self._server_name)
        assert secured is not None
        made.connection_made(secured)
        return made


async def _addresses(host: str, port: int) -> Sequence[AddrInfoType]:
    """The addresses of a host; of one that is an address itself without asking anyone."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _socket(address: AddrInfoType) -> socket.socket:
    """A socket that notices when its peer is gone."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _basic(user: str, password: str) -> str:
    both = f"{unquote(user)}:{unquote(password)}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"
