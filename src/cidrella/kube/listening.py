"""Listening for HTTP: what those who answer it have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from aiohttp import web

if TYPE_CHECKING:
    import ssl


class CannotListenError(Exception):
    """The address is taken, or none of ours; in words for people."""


class Listener:
    """An application that is served between entering and leaving this. Entering raises `CannotListenError`.

    An empty host is every interface, port 0 any that is free. `grace` is what answers under way are given at the end,
    `keep_alive` what a connection may be idle, in seconds.
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
    ) -> None:
        app.on_response_prepare.append(_without_server)
        self._host = host or None
        self._port = port
        self._context = context
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=grace, keepalive_timeout=keep_alive
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._context).start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotListenError(error.strerror or str(error)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where it listens, with the port that was picked where any would do."""
        scheme = "https" if self._context else "http"
        host, port = self._runner.addresses[0][:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _without_server(_: web.Request, response: web.StreamResponse) -> None:
    """Tell nobody which library of which version answers."""
    response.headers.popall("Server", None)
