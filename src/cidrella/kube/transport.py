"""Requests and replies: what is sent to the server, and what went wrong in words.

Rules:

- Each request is sent once. A PUT that had gone through and was repeated would come back as a conflict with itself,
  and look refused (N9).
- Replies are asked for uncompressed: the server is near, and compressing costs it and us more than the bytes do.
- Redirects are not followed, cookies not kept: whoever sends them is not the API server.
- What the parser and the system raise comes out as a `KubeError`, chained. Cancelling closes the connection, and
  comes out as itself.

Below it: `pool` keeps connections, `dialing` makes them, `http1` is one of them, `replies` reads what comes in.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella import __version__
from cidrella.kube.dialing import Dialer
from cidrella.kube.errors import KubeError, MalformedReplyError, NoAnswerError, ReplyTooLargeError
from cidrella.kube.pool import Pool
from cidrella.kube.replies import BadReplyError, BodyTooLargeError, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from cidrella.kube.credentials import Access, Credentials
    from cidrella.kube.http1 import Connection

__all__ = ["BODY_MAX", "Call", "Reply", "Stream", "Transport"]

BODY_MAX: Final = 256 << 20
"""Bytes of a reply: more than any page of a list has, and less than would take the process with it."""
_HEADERS_MAX: Final = 64
"""Sets of headers that are kept ready: a few for each token, and tokens are rotated for ever."""
_ERRORS: Final = (BadReplyError, OSError)
"""All that is raised for what happens on the wire: ssl's errors and timeouts are OSErrors."""
_LOST: Final = "connection lost"
_loop: Final = asyncio.get_running_loop
_is_target: Final = re.compile(r"[!-~]+").fullmatch
"""What can stand in the first line of a request."""


class Call(NamedTuple):
    """A request, but for who asks. The URL begins with the server's; `body` is None for none."""

    method: str
    url: str
    body: bytes | None
    content_type: str
    accept: str

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


class Transport:
    """Connections to a server, made when they are needed, in the event loop that needs them first."""

    def __init__(self, access: Access, *, timeout: float, connections: int) -> None:
        self._dialer = Dialer(access.server, access.tls_server_name, access.proxy)
        self._pool = Pool(self._dialer, connections)
        self._timeout = timeout
        self._before_target = 0 if self._dialer.by_proxy else len(self._dialer.origin)
        self._headers: dict[tuple[str, str, str], bytes] = {}
        self._default_tls: ssl.SSLContext | None = None

    async def close(self) -> None:
        """Close all connections, those of requests under way too. Nothing can be sent afterwards."""
        await self._pool.close()

    async def exchange(self, call: Call, credentials: Credentials, timeout: float | None) -> Reply:
        """Send a request and read the whole reply. `timeout` is for both together, None for the usual one."""
        deadline = _loop().time() + (self._timeout if timeout is None else timeout)
        request = self._request(call, credentials)
        connection = await self._take(call, credentials, deadline)
        try:
            return await connection.exchange(request, deadline, BODY_MAX)
        except _ERRORS as error:
            raise _told(call, error, _LOST) from error
        finally:
            self._pool.give_back(connection)

    async def open(self, call: Call, credentials: Credentials) -> Stream:
        """Send a request and return when the reply begins. Whoever calls closes it."""
        deadline = _loop().time() + self._timeout
        request = self._request(call, credentials)
        connection = await self._take(call, credentials, deadline)
        try:
            head = await connection.begin(request, deadline)
        except BaseException as error:
            self._pool.give_back(connection)
            if isinstance(error, _ERRORS):
                raise _told(call, error, _LOST) from error
            raise
        return Stream(call, head, connection, self._pool, self._timeout)

    async def _take(self, call: Call, credentials: Credentials, deadline: float) -> Connection:
        tls = None
        if self._dialer.secure:
            tls = credentials.tls or self._trusting_the_system()
        try:
            return await self._pool.take(tls, deadline)
        except (*_ERRORS, UnicodeError) as error:
            raise _told(call, error, "no connection") from error

    def _trusting_the_system(self) -> ssl.SSLContext:
        if self._default_tls is None:
            self._default_tls = ssl.create_default_context()
        return self._default_tls

    def _request(self, call: Call, credentials: Credentials) -> bytes:
        """What is sent."""
        method, url, body, content_type, accept = call
        target = url[self._before_target :]
        if not _is_target(target):
            raise ValueError(f"{url!r} is not the URL of a request")
        key = (credentials.authorization, content_type, accept)
        headers = self._headers.get(key) or self._new_headers(*key)
        length = b"" if body is None and method == "GET" else b"Content-Length: %d\r\n" % len(body or b"")
        return b"".join((f"{method} {target} HTTP/1.1\r\n".encode(), headers, length, b"\r\n", body or b""))

    def _new_headers(self, authorization: str, content_type: str, accept: str) -> bytes:
        """What many requests have in common."""
        named = {
            "Host": self._dialer.host,
            "User-Agent": f"cidrella/{__version__}",
            "Accept-Encoding": "identity",
            "Accept": accept,
            "Content-Type": content_type,
            "Authorization": authorization,
            "Proxy-Authorization": self._dialer.proxy_authorization if self._dialer.by_proxy else "",
        }
        if not all(value.isprintable() for value in named.values()):
            raise ValueError("a header has characters that no header has")
        headers = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value).encode()
        if len(self._headers) >= _HEADERS_MAX:
            self._headers.clear()
        self._headers[authorization, content_type, accept] = headers
        return headers


class Stream:
    """A reply whose body is still coming in."""

    def __init__(self, call: Call, head: Reply, connection: Connection, pool: Pool, timeout: float) -> None:
        self.head = head
        self._call = call
        self._connection: Connection | None = connection
        self._pool = pool
        self._timeout = timeout

    async def read(self) -> Reply:
        """All of it, in the time that a request has."""
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout), aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    pieces.append(chunk)
                    size += len(chunk)
                    if size > BODY_MAX:
                        pieces.clear()
                        raise ReplyTooLargeError(f"{self._call}: the reply has more than {BODY_MAX} bytes")
        except TimeoutError as error:
            raise _told(self._call, error, _LOST) from error
        return self.head._replace(body=b"".join(pieces))

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """What comes in, as it does, however long that takes."""
        try:
            while self._connection is not None and (chunk := await self._connection.piece()):
                yield chunk
        except _ERRORS as error:
            raise _told(self._call, error, _LOST) from error

    def close(self) -> None:
        """Close the connection, unless the reply has ended and it is used again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)


def _told(call: object, error: Exception, otherwise: str) -> KubeError:
    """What happened on the wire, in words for people; `otherwise` if nothing else is known."""
    if isinstance(error, BodyTooLargeError):
        return ReplyTooLargeError(f"{call}: {error}")
    if isinstance(error, BadReplyError):
        return MalformedReplyError(f"{call}: {error}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return NoAnswerError(f"{call}: the server's certificate is not trusted: {_reason(error)}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return NoAnswerError(f"{call}: TLS failed: {_reason(error)}")
    if isinstance(error, TimeoutError):
        return NoAnswerError(f"{call}: no answer in time")
    return NoAnswerError(f"{call}: {otherwise}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """The system's words, without the numbers around them."""
    return getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error) or type(error).__name__
