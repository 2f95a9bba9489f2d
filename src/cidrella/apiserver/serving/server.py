"""The embedded API, served over HTTP.

Every request goes through one door: who sends it, and what it names. Nothing is answered, not even a refusal, before
all that it may rest on is durable.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

import structlog
from aiohttp import web

from cidrella.apiserver.customs import customs
from cidrella.apiserver.forms import rendering
from cidrella.apiserver.forms.bodies import BODY_MAX, too_large
from cidrella.apiserver.forms.negotiation import media_of
from cidrella.apiserver.kinds import builtins
from cidrella.apiserver.registry import Registry
from cidrella.apiserver.serving import auditing, paths
from cidrella.apiserver.serving.calls import Answer, Call, parse_query
from cidrella.apiserver.serving.holdings import NAMESPACES, Holdings
from cidrella.apiserver.serving.life import Life
from cidrella.apiserver.serving.routing import VERSION, Routing
from cidrella.apiserver.serving.users import ANONYMOUS, User, Users
from cidrella.apiserver.serving.watching import Watch
from cidrella.apiserver.store.store import StoreError
from cidrella.apiserver.words.statuses import StatusError, internal
from cidrella.kube.listening import CODING_REFUSED, Listener

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping

    from cidrella.apiserver.services.addressing import ServiceAddresses
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.store import Store

    Json = dict[str, Any]

__all__ = ["VERSION", "ApiServer", "User"]

GRACE: Final = 2.0
"""Seconds that answers under way have at the end."""
STALLED: Final = 30.0
"""Seconds after which one who does not read what is told is cut off."""
_KEPT: Final = 120.0
"""Seconds that a connection may be idle: longer than Go's clients keep one (90)."""
_WARNINGS_MAX: Final = 64
"""In a reply; what is more is left out, for clients take a hundred headers at most."""
_WARNINGS_LENGTH: Final = 4096
"""Characters of all of them together, likewise."""
_UNCACHED: Final = {"Cache-Control": "no-cache, private"}

_log = structlog.get_logger()


class ApiServer(Listener):
    """The server, between entering and leaving it. Entering raises `CannotListenError`.

    `users` by token: where there are none, nobody is asked for one. `audit` is told of each request before it is
    answered. `ready` has a say in what /readyz answers.
    """

    def __init__(  # noqa: PLR0913 -- what it holds, where it listens, and who looks on
        self,
        store: Store,
        host: str,
        port: int,
        *,
        context: ssl.SSLContext | None = None,
        users: Mapping[str, User] | None = None,
        audit: Callable[[Json], None] | None = None,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        definition = customs.definition_resource()
        kinds = builtins()
        namespace = next(each for each in kinds if each.store_key == NAMESPACES)
        self._holdings = Holdings(store, Registry([*kinds, definition]))
        self._holdings.withdrawn = self._end_watches
        self._life = Life(self._holdings, namespace, definition)
        self._routing = Routing(self._holdings, ready)
        self._users = Users(users or {})
        self._audit = audit
        self._watches: set[Watch] = set()
        self._ending = False
        app = web.Application(client_max_size=BODY_MAX + 1)
        app.router.add_route("*", "/{path:.*}", self._answer)
        super().__init__(app, host, port, grace=GRACE, keep_alive=_KEPT, context=context)

    def admit_services(self, addresses: ServiceAddresses) -> None:
        """From now on, Services get their addresses from here."""
        self._holdings.addresses = addresses

    async def __aenter__(self) -> Self:
        self._life.begin()
        try:
            await self._holdings.store.settle()
            return await super().__aenter__()
        except BaseException:
            await self._life.end()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._ending = True
        for watch in self._watches:
            watch.end()
        await super().__aexit__(*error)
        await self._life.end()

    def _end_watches(self) -> None:
        """End those of what is no longer served."""
        registry, version = self._holdings.registry, self._holdings.store.version
        for watch in self._watches:
            if registry.find(*watch.target[:3]) is None:
                watch.finish(version)

    async def _refuse_coding(self, request: web.Request) -> web.StreamResponse:
        refusal = StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", CODING_REFUSED)
        return await self._answer(request, refusal)

    async def _answer(self, request: web.Request, refusal: StatusError | None = None) -> web.StreamResponse:
        """Answer a request; with a refusal, which rests on nothing that is stored, before who asks is looked at."""
        headers = request.headers
        call = Call(
            request.method,
            request.path,
            parse_query(request.rel_url.raw_query_string),
            headers.get("Accept", ""),
            headers.get("Content-Type", ""),
            agent=headers.get("User-Agent", ""),
        )
        target = paths.parse(call.path)
        user, answer = (
            (ANONYMOUS, rendering.refusal(refusal, media_of(call.accept)))
            if refusal
            else await self._decide(request, call, target)
        )
        if self._audit:
            code = answer.code if isinstance(answer, Answer) else 200
            self._audit(auditing.record(call, request.path_qs, target, user, code))
        return await self._stream(request, answer) if isinstance(answer, Watch) else _reply(answer, call.warnings)

    async def _decide(self, request: web.Request, call: Call, target: Target | None) -> tuple[User, Answer | Watch]:
        """Who asks, and what the answer is, once that can be told."""
        user = ANONYMOUS
        answer: Answer | Watch
        try:
            user = self._users.identify(call.path, request.headers.get("Authorization", ""))
            call.body = await _body(request)
            answer = await self._routing.answer(call, target)
        except StatusError as error:
            answer = rendering.refusal(error, media_of(call.accept))
        except StoreError as error:
            answer = rendering.refusal(internal(str(error)))
        except Exception as error:  # whatever it is, the client is told so
            _log.exception("a request failed", method=call.method, path=call.path)
            answer = rendering.refusal(internal(repr(error)))
        try:
            await self._holdings.store.settle()
        except StoreError as error:
            answer = rendering.refusal(internal(str(error)))
        return user, answer

    async def _stream(self, request: web.Request, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": watch.media, **_UNCACHED})
        response.enable_chunked_encoding()
        self._watches.add(watch)
        try:
            await response.prepare(request)
            async with aclosing(watch.lines()) as lines:
                async for line in lines:
                    if self._ending or request.transport is None:
                        break
                    async with asyncio.timeout(STALLED):
                        if line:
                            await response.write(line)
                    del line  # what there was at the beginning may be large, and the next may be long in coming
        except (ConnectionError, TimeoutError):  # whoever watched has gone, or does not read
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._watches.discard(watch)
            watch.end()
        return response


async def _body(request: web.Request) -> bytes:
    if not request.can_read_body:
        return b""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large() from None


def _reply(answer: Answer, warnings: Iterable[str]) -> web.Response:
    reply = web.Response(status=answer.code, body=answer.body, headers={"Content-Type": answer.media, **_UNCACHED})
    room = _WARNINGS_LENGTH
    for warning in islice(dict.fromkeys(warnings), _WARNINGS_MAX):
        room -= len(warning)
        if room < 0:
            break
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        reply.headers.add("Warning", f'299 - "{escaped}"')
    return reply
