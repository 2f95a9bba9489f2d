"""Listening for HTTP: what those who answer it have in common."""

from __future__ import annotations

import asyncio
import logging
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from cidrella.kube.bounds import Connections
from cidrella.kube.descriptors import open_files_max

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from aiohttp.typedefs import Handler, Middleware

CONNECTIONS_MAX: Final = 2048
"""An API server opens as many as it has questions at a time, some hundreds at most; and there may be several of it."""
STALLED: Final = 30.0
"""Seconds for which somebody may take in nothing of what was sent: what is meant for them is in memory so long."""
HEAD: Final = 10.0
"""Seconds for the head of a request, and for the handshake of TLS."""
_LINGER: Final = 2.0
"""Seconds that what is left of a body is taken in, and dropped, so that who sends it reads the reply."""
CODING_REFUSED: Final = "Content-Encoding is not supported; send the body without one"


class CannotListenError(Exception):
    """The address is taken, or none of ours; in words for people."""


class Listener:
    """An application that is served between entering and leaving this. Entering raises `CannotListenError`.

    An empty host is every interface, port 0 any that is free. `grace` is what answers under way are given at the end,
    `keep_alive` what a connection may be idle, in seconds. `on_stalled` is told of each that was closed because the
    other side took in nothing.

    A request with a Content-Encoding other than identity gets 415. No body is ever decompressed: aiohttp would do so on
    the event loop before any handler runs, and a few small requests would stop every other one.
    """

    def __init__(  # noqa: PLR0913 -- an address and how to be there
        self,
        app: web.Application,
        host: str,
        port: int,
        *,
        grace: float,
        keep_alive: float = 75.0,
        context: ssl.SSLContext | None = None,
        on_stalled: Callable[[], None] = lambda: None,
    ) -> None:
        app.on_response_prepare.append(_without_server)
        app.middlewares.extend([self._told(), self._without_coding()])
        self._host = host or None
        self._port = port
        self._context = context
        # Half of the files, for the API server has to be reached as well.
        self._connections = Connections(min(CONNECTIONS_MAX, open_files_max() // 2), HEAD, on_stalled)
        self.or_any_port = False
        """Whether to listen at any port where the address is taken."""
        self._listening: asyncio.Server | None = None
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=grace,
            keepalive_timeout=keep_alive,
            lingering_time=_LINGER,
            auto_decompress=False,
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            try:
                self._listening = await self._listen(self._port)
            except OSError:
                if not self.or_any_port:
                    raise
                self._listening = await self._listen(0)
        except OSError as error:
            await self._runner.cleanup()
            raise CannotListenError(error.strerror or str(error)) from error
        _drop_who_stalls(self._listening)
        logging.getLogger("aiohttp.server").addFilter(_is_ours)
        return self

    async def _listen(self, port: int) -> asyncio.Server:
        serve = self._runner.server
        assert serve
        return await asyncio.get_running_loop().create_server(
            lambda: self._connections.accept(serve),
            self._host,
            port,
            ssl=self._context,
            ssl_handshake_timeout=HEAD if self._context else None,
        )

    async def __aexit__(self, *_: object) -> None:
        assert self._listening
        self._listening.close()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where it listens, with the port that was picked where any would do."""
        scheme = "https" if self._context else "http"
        assert self._listening
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def _told(self) -> Middleware:
        """A middleware that says which connection is answered."""

        @web.middleware
        async def tell(request: web.Request, handler: Handler) -> web.StreamResponse:
            with self._connections.answering(request.transport):
                return await handler(request)

        return tell

    def _without_coding(self) -> Middleware:
        """A middleware that refuses a body with a content coding, and says which are accepted (RFC 9110, 15.5.16)."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not _has_coding(request):
                return await handler(request)
            refusal = await self._refuse_coding(request)
            refusal.headers["Accept-Encoding"] = "identity"
            return refusal

        return check

    async def _refuse_coding(self, _: web.Request) -> web.StreamResponse:
        """The reply to a request with a content coding, for servers whose errors have another form to override."""
        return web.Response(status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text=f"{CODING_REFUSED}\n")


def _has_coding(request: web.Request) -> bool:
    """Whether Content-Encoding names any coding but identity: names in any case, empty elements ignored (RFC 9110)."""
    named = ",".join(request.headers.getall("Content-Encoding", ()))
    return not {each.strip(" \t").lower() for each in named.split(",")} <= {"", "identity"}


async def _without_server(_: web.Request, response: web.StreamResponse) -> None:
    """Tell nobody which library of which version answers."""
    response.headers.popall("Server", None)


def _drop_who_stalls(server: asyncio.Server) -> None:
    """Have the system close connections whose other side takes in nothing, as far as it can."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        for each in server.sockets:  # those who connect inherit it
            each.setsockopt(socket.IPPROTO_TCP, option, int(STALLED * 1000))


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether something to be logged is a fault of ours. That what others send is no HTTP is theirs; they are told."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
