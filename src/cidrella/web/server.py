"""The page and its API, beside what a kubelet and a Prometheus ask. docs/page-api.md is for those who write scripts.

Nothing is changed by anything here, but that a login begins a session and a logout ends it.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from cidrella.kube.listening import CODING_REFUSED, Listener
from cidrella.web import answers
from cidrella.web.assets import FOR_LOGIN, LOGIN_PAGE, PAGE, Assets
from cidrella.web.doors import LOGIN, LOGOUT, GuardedDoor
from cidrella.web.probes import GRACE, HEALTH, add_health, add_metrics
from cidrella.web.stream import Streams

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Handler, Middleware
    from prometheus_client import CollectorRegistry

    from cidrella.web.board import Board, Explainer
    from cidrella.web.doors import Door
    from cidrella.web.series import WebSeries

API: Final = "/api/v1"
STATIC: Final = "/static/"
SESSION_HEADER: Final = "Cidrella-Session"
"""For the page: there is a session, which can be ended."""
_PATIENCE: Final = 10.0
"""Seconds that one who is the first to look waits for something to see."""
_BODY_MAX: Final = 16 << 10
"""Bytes: a login is all that anybody sends."""

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class WebServer(Listener):
    """The server, between entering and leaving it. Entering raises `CannotListenError`.

    Without a registry there are no metrics here, with a context it speaks TLS.
    """

    def __init__(  # noqa: PLR0913 -- where it is, what it shows, and to whom
        self,
        host: str,
        port: int,
        *,
        readiness: Callable[[], list[str]],
        registry: CollectorRegistry | None,
        board: Board,
        explain: Explainer,
        door: Door,
        series: WebSeries,
        context: ssl.SSLContext | None = None,
    ) -> None:
        app = web.Application(client_max_size=_BODY_MAX)
        add_health(app, readiness)
        if registry is not None:
            add_metrics(app, registry)
        self.streams = Streams(board, series)
        _add_api(app, board, explain, self.streams)
        _add_page(app, door, Assets())
        app.on_response_prepare.append(_heading(door))
        app.on_shutdown.append(_ending(board))
        super().__init__(app, host, port, grace=GRACE, context=context, on_stalled=series.dropped.inc)
        app.middlewares.append(_guarding(door))  # the innermost: a refusal may take longer than a head

    async def _refuse_coding(self, _: web.Request) -> web.StreamResponse:
        return answers.fault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, CODING_REFUSED)


def _guarding(door: Door) -> Middleware:
    public = {LOGIN, LOGOUT, *(f"{STATIC}{name}" for name in FOR_LOGIN)}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        free = request.path in HEALTH or (request.path in public and isinstance(door, GuardedDoor))
        refusal = None if free else await door.refuse(request)
        if refusal is not None:
            return refusal
        try:
            return await handler(request)
        except web.HTTPException as error:  # there is no such thing, or it is not to be had like this
            allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            return answers.fault(error.status, error.reason, **allowed)

    return guard


def _ending(board: Board) -> Callable[[web.Application], Awaitable[None]]:
    async def end(_: web.Application) -> None:
        board.history.end()

    return end


def _heading(door: Door) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def head(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(HEADERS)
        if isinstance(door, GuardedDoor) and door.in_session(request):
            response.headers[SESSION_HEADER] = "yes"

    return head


def _add_page(app: web.Application, door: Door, assets: Assets) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return assets.answer(request, PAGE)

    async def static(request: web.Request) -> web.StreamResponse:
        return assets.answer(request, request.match_info["name"])

    async def login(request: web.Request) -> web.StreamResponse:
        return assets.answer(request, LOGIN_PAGE)

    app.router.add_get("/", page)
    app.router.add_get(f"{STATIC}{{name}}", static)
    if isinstance(door, GuardedDoor):
        app.router.add_get(LOGIN, login)
        app.router.add_post(LOGIN, door.log_in)
        app.router.add_post(LOGOUT, door.log_out)


def _add_api(app: web.Application, board: Board, explain: Explainer, streams: Streams) -> None:
    def of_board(read: Callable[[], bytes]) -> Handler:
        async def answer(_: web.Request) -> web.StreamResponse:
            return answers.json(read()) if await _seen(board) else _not_yet()

        return answer

    async def explanation(request: web.Request) -> web.StreamResponse:
        name = request.match_info["node"]
        if not await _seen(board):
            return _not_yet()
        found = explain(name)
        if found is None:
            return answers.fault(404, f"there is no node {name}")
        return answers.json(msgspec.json.encode(found))

    for name, read in (
        ("state", board.state),
        ("pools", board.pools),
        ("nodes", board.nodes),
        ("services", board.services),
    ):
        app.router.add_get(f"{API}/{name}", of_board(read))
    app.router.add_get(f"{API}/explain/{{node}}", explanation)
    app.router.add_get(f"{API}/stream", streams.answer, allow_head=False)


async def _seen(board: Board) -> bool:
    """Look; whether there is something to see."""
    board.look()
    try:
        async with asyncio.timeout(_PATIENCE):
            await board.filled.wait()
    except TimeoutError:
        return False
    return True


def _not_yet() -> web.Response:
    return answers.fault(503, "nothing is known yet; ask again", **{"Retry-After": "2"})
