"""Requests and replies on the wire: the only file that knows the HTTP library.

Rules:

- Each request is sent once. The library would repeat a GET, PUT or DELETE whose connection broke: a PUT that had gone
  through would come back as a conflict with itself, and look refused (N9). `_once` keeps it from that.
- Replies are asked for uncompressed: the server is near, and compressing costs it and us more than the bytes do.
- Redirects are not followed, cookies not kept: whoever sends them is not the API server.
- What the library and the system raise comes out as a `KubeError`, chained. Cancelling closes the connection, and
  comes out as itself.

Connections are kept and used again. They belong to the ssl context that they were made with: once certificates change,
new ones are made and the old ones time out.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from multidict import CIMultiDict

from cidrella import __version__
from cidrella.kube.errors import KubeError, MalformedReplyError, NoAnswerError, quote

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from yarl import URL

    from cidrella.kube.credentials import Access, Credentials

BODY_MAX: Final = 256 << 20
"""Bytes of a reply: more than any page of a list has, and less than would take the process with it."""
_READ_AHEAD: Final = 1 << 18
"""Bytes of a reply that wait to be read before the server is made to wait."""
_HEADERS_MAX: Final = 64
"""Sets of headers that are kept ready: a few for each token, and tokens are rotated for ever."""
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""A peer that went without a word is noticed after a minute, where the system lets us say so."""
_ERRORS: Final = (aiohttp.ClientError, OSError)
"""All that is raised for what happens on the wire: ssl's errors and timeouts are OSErrors."""
_REPEATED: Final = frozenset({"GET", "PUT", "DELETE"})
"""What the library would send again by itself."""
_NO_LIMIT: Final = aiohttp.ClientTimeout(total=None)
_TIMEOUT_MIN: Final = 0.001
"""Seconds. To the library none or fewer are no limit, and to whoever counts down to a deadline the opposite."""


class Call(NamedTuple):
    """A request, but for who asks. `body` is None for none."""

    method: str
    url: URL
    body: bytes | None
    content_type: str
    accept: str

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


class Reply(NamedTuple):
    """A reply. The texts of headers are "" if they are absent."""

    code: int
    content_type: str
    retry_after: str
    body: bytes = b""


class Transport:
    """Connections to a server, made when they are needed, in the event loop that needs them first."""

    def __init__(self, access: Access, *, timeout: float, connections: int) -> None:
        self._server_name = access.tls_server_name or None
        self._proxy = access.proxy or None
        self._timeout = timeout
        self._limit = _limit(timeout)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._headers: dict[tuple[str, str, str], CIMultiDict[str]] = {}

    async def close(self) -> None:
        """Close all connections, those of requests under way too. Nothing can be sent afterwards."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def exchange(self, call: Call, credentials: Credentials, timeout: float | None) -> Reply:
        """Send a request and read the whole reply. `timeout` is for both together, None for the usual one."""
        limit = self._limit if timeout is None else _limit(timeout)
        try:
            response = await self._send(call, credentials, limit)
            return await _read(response)
        except _ERRORS as error:
            raise _told(call, error) from error

    async def open(self, call: Call, credentials: Credentials) -> Stream:
        """Send a request and return when the reply begins. Whoever calls closes it."""
        try:
            async with asyncio.timeout(self._timeout):
                return Stream(call, await self._send(call, credentials, _NO_LIMIT), self._timeout)
        except _ERRORS as error:
            raise _told(call, error) from error

    async def _send(self, call: Call, credentials: Credentials, limit: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        session = self._session or self._new_session()
        headers = self._headers.get((credentials.authorization, call.content_type, call.accept))
        return await session.request(
            call.method,
            call.url,
            data=call.body,
            headers=headers or self._new_headers(credentials.authorization, call.content_type, call.accept),
            allow_redirects=False,
            timeout=limit,
            ssl=credentials.tls or True,
            server_hostname=self._server_name,
            proxy=self._proxy,
            middlewares=_ONCE if call.method in _REPEATED else (),
        )

    def _new_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise NoAnswerError("the client is closed")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"cidrella/{__version__}", "Accept-Encoding": "identity"},
            auto_decompress=False,
            read_bufsize=_READ_AHEAD,
        )
        return self._session

    def _new_headers(self, authorization: str, content_type: str, accept: str) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": accept, "Content-Type": content_type})
        if authorization:
            headers["Authorization"] = authorization
        if len(self._headers) >= _HEADERS_MAX:
            self._headers.clear()
        self._headers[authorization, content_type, accept] = headers
        return headers


class Stream:
    """A reply whose body is still coming in."""

    def __init__(self, call: Call, response: aiohttp.ClientResponse, timeout: float) -> None:
        self.head = _head(response)
        self._call = call
        self._response = response
        self._timeout = timeout

    async def read(self) -> Reply:
        """All of it, in the time that a request has."""
        try:
            async with asyncio.timeout(self._timeout):
                return await _read(self._response)
        except _ERRORS as error:
            raise _told(self._call, error) from error

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """What comes in, as it does, however long that takes."""
        content = self._response.content
        try:
            while chunk := await content.readany():
                yield chunk
        except _ERRORS as error:
            raise _told(self._call, error) from error

    def close(self) -> None:
        """Close the connection, unless the reply has ended and it is used again."""
        _drop(self._response)


def _drop(response: aiohttp.ClientResponse) -> None:
    """Give up a reply and, unless it has ended, its connection, without a goodbye: TLS would wait for the server's."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _limit(seconds: float) -> aiohttp.ClientTimeout:
    """A limit for a whole request, to the point: the library would round it up to a full second."""
    return aiohttp.ClientTimeout(total=max(seconds, _TIMEOUT_MIN), ceil_threshold=math.inf)


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Pass the request on, and let no error back that the library would repeat it for."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _told(f"{request.method} {request.url}", error) from error


_ONCE: Final = (_once,)


async def _read(response: aiohttp.ClientResponse) -> Reply:
    """The whole of a reply; its connection is free or closed afterwards."""
    try:
        length = response.content_length
        if length is not None and length <= BODY_MAX:
            body = await response.read()
        else:
            body = await _read_bounded(response)
    except BaseException:
        _drop(response)
        raise
    return _head(response)._replace(body=body)


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """A body of unknown length."""
    chunks: list[bytes] = []
    size = 0
    while chunk := await response.content.readany():
        size += len(chunk)
        if size > BODY_MAX:
            raise MalformedReplyError(f"{response.method} {response.url}: the reply has more than {BODY_MAX} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _head(response: aiohttp.ClientResponse) -> Reply:
    headers = response.headers
    return Reply(response.status, headers.get("Content-Type", ""), headers.get("Retry-After", ""))


def _told(call: object, error: Exception) -> KubeError:
    """What happened on the wire, in words for people."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return NoAnswerError(f"{call}: the server's certificate is not trusted: {_reason(error)}")
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return NoAnswerError(f"{call}: TLS failed: {_reason(error)}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return NoAnswerError(f"{call}: no connection: {_reason(error)}")
    if isinstance(error, aiohttp.ClientResponseError):
        return MalformedReplyError(f"{call}: the reply is no HTTP: {quote(error.message.encode())}")
    if isinstance(error, TimeoutError):
        return NoAnswerError(f"{call}: no answer in time")
    return NoAnswerError(f"{call}: connection lost: {str(error) or type(error).__name__}")


def _reason(error: Exception) -> str:
    """The system's words without the library's frame around them."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    return getattr(inner, "verify_message", "") or getattr(inner, "strerror", "") or str(inner)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices when its peer is gone."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
