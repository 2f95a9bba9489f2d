"""Who may look: everybody on this machine, nobody, or who shows that they may.

Rules:

- Health and readiness are for everybody, always, and no door is asked about them.
- Where nothing is asked for, only this machine can connect. A page of somebody else's, in a browser here, can still
  have the browser ask us under a name of its own; so the name that we are asked by has to be one of this machine.
- Where something is asked for, there is nothing without it but the login: not even to learn what there is.
- A session is a credential that is remembered: with each request it is looked at anew whether that is still right.
- What is wrong takes its time to be refused, and so many at a time can be wrong: what else comes then is not looked at.
  So guessing has a rate, and closing the connection does not raise it. Who is known is looked at all the same: that is
  a credential together with the address that it came from, until anything wrong comes from there. Else a right guess
  could be told from a wrong one at any rate, while others keep the few busy who are looked at.
- Where nobody can tell, nobody is let in; but nobody is told to be wrong, and a session is not over.
- A form counts only if it is our own: a page of somebody else's logs nobody in, and nobody out.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from cidrella.kube.complaints import Complaints
from cidrella.kube.errors import KubeError
from cidrella.kube.loopback import is_loopback
from cidrella.web.answers import fault
from cidrella.web.known import Known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.web.checkers import Checker
    from cidrella.web.series import WebSeries

COOKIE: Final = "cidrella-session"
SAME_SITE: Final = "Lax"
"""A link from elsewhere finds the session, a form of somebody else's does not; and following a link changes nothing."""
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
METRICS: Final = "/metrics"
FORM: Final = 10.0
"""Seconds for what is typed to come in: whoever sends half of it holds a connection."""
SLOW: Final = 1.0
"""Seconds until what is wrong is refused."""
SUSPECTS_MAX: Final = 10
"""Credentials that are looked at, or served their time, at once, of those that nobody knows."""
SESSIONS_MAX: Final = 1000
SESSION: Final = 12 * 3600.0
"""Seconds that a session lasts."""
_UNTOLD: Final = "whether a credential is right cannot be told"
_TOLD_AGAIN: Final = "whether a credential is right can be told again"


class Door(Protocol):
    """Who says whether a request is answered."""

    async def refuse(self, request: web.Request) -> web.StreamResponse | None:
        """The answer to one who may not look; None for who may."""


class OpenDoor:
    """For a server that only this machine can connect to."""

    async def refuse(self, request: web.Request) -> web.StreamResponse | None:
        """What keeps pages of others out. Metrics are as open as ever."""
        if request.path == METRICS or _is_of_this_machine(request.host):
            return None
        return fault(403, "ask by the name localhost or by an address of this machine's loopback interface")


class ClosedDoor:
    """For a server that others can connect to, and that was given nothing to know them by. Metrics stay open."""

    async def refuse(self, request: web.Request) -> web.StreamResponse | None:
        """What to do about it."""
        if request.path == METRICS:
            return None
        return fault(
            403,
            "others than this machine can connect to this address, so that the page needs to know who may look: start "
            "with --web-token-file, --web-password-file or --web-auth=kubernetes, or listen on the loopback interface",
        )


class GuardedDoor:
    """For who shows a credential that some checker accepts: with each request, or once, at the login."""

    def __init__(
        self,
        checkers: Sequence[Checker],
        series: WebSeries,
        *,
        slow: float = SLOW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checkers = checkers
        self._series = series
        self._slow = slow
        self._clock = clock
        self._sessions: dict[str, tuple[str, float]] = {}
        """By id: the credential that it was begun with, and when it is over."""
        self._known = Known()
        self._suspects = 0
        self._complaints = Complaints("the page")

    async def refuse(self, request: web.Request) -> web.StreamResponse | None:
        """Ask for a credential where there is none, or where it is wrong."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            return await self._judge(token.strip(), request, login=False)
        try:
            # It was right once: it may be wrong by now, but is no guess.
            if (credential := self._remembered(request)) and await self._accepted(credential, login=True):
                return None
        except KubeError:
            return _cannot_tell()
        if request.path == "/" and request.method == "GET":
            return _redirect(LOGIN)
        return fault(401, "show a token, or log in", **{"WWW-Authenticate": "Bearer"})

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Begin a session for who shows something right."""
        if _is_of_another_page(request):
            return _not_ours()
        try:
            async with asyncio.timeout(FORM):
                credential = await _password(request)
        except (TimeoutError, ConnectionError):
            return fault(408, "the form did not come")
        refusal = await self._judge(credential, request, login=True)
        if refusal is not None:
            return _redirect(f"{LOGIN}#wrong" if refusal.status == 401 else f"{LOGIN}#busy")
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        session = secrets.token_urlsafe(32)
        self._sessions[session] = credential, self._clock() + SESSION
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        response = _redirect("/")
        response.set_cookie(
            COOKIE, session, path="/", httponly=True, samesite=SAME_SITE, secure=_is_tls(request), max_age=int(SESSION)
        )
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """End a session. Who shows none keeps the cookie: another page's form comes without it, and would delete it."""
        if _is_of_another_page(request):
            return _not_ours()
        response = _redirect(LOGIN)
        if session := request.cookies.get(COOKIE):
            self._sessions.pop(session, None)
            response.del_cookie(COOKIE, path="/", httponly=True, samesite=SAME_SITE, secure=_is_tls(request))
        return response

    def in_session(self, request: web.Request) -> bool:
        """Whether there is a session that could be ended."""
        return bool(self._remembered(request))

    def _remembered(self, request: web.Request) -> str:
        session = request.cookies.get(COOKIE, "")
        credential, until = self._sessions.get(session, ("", 0.0))
        if credential and self._clock() >= until:
            del self._sessions[session]
            return ""
        return credential

    async def _judge(self, credential: str, request: web.Request, *, login: bool) -> web.StreamResponse | None:
        """The answer to who shows something wrong, in its own time; None for who shows something right."""
        whence = request.remote or ""
        known = self._known.has(whence, credential)
        if not known and self._suspects >= SUSPECTS_MAX:
            self._known.forget(whence)
            return fault(429, "too many wrong tokens at a time; ask again later", **{"Retry-After": "5"})
        self._suspects += not known
        try:
            if await self._accepted(credential, login=login):
                self._known.add(whence, credential)
                return None
            self._known.forget(whence)
            self._series.refused.inc()
            await asyncio.sleep(self._slow)
        except KubeError:
            await asyncio.sleep(self._slow)  # it may be us whom the API server cannot stand
            return _cannot_tell()
        finally:
            self._suspects -= not known
        return fault(401, "that is wrong", **{"WWW-Authenticate": 'Bearer error="invalid_token"'})

    async def _accepted(self, credential: str, *, login: bool) -> bool:
        """Whether any checker accepts it. Raises `KubeError` where none does, and one of them cannot tell."""
        trouble: KubeError | None = None
        for checker in self._checkers:
            if not (login or checker.bearer):
                continue
            try:
                right = await checker.accepts(credential)
            except KubeError as error:
                trouble, kind = error, type(error).__name__
                self._complaints.make(_UNTOLD, kind=kind, error=error, subject=checker.name)
                continue
            self._complaints.settle(_TOLD_AGAIN, subject=checker.name)
            if right:
                return True
        if trouble is not None:
            raise trouble
        return False


async def _password(request: web.Request) -> str:
    """What was typed; "" for what is no such form."""
    try:
        found = (await request.post()).get("password")
    except (ValueError, LookupError, RuntimeError, web.RequestPayloadError):
        return ""
    return found.strip() if isinstance(found, str) else ""


def _is_of_another_page(request: web.Request) -> bool:
    """Whether a browser says that the form is not ours; not all do, and not on every way."""
    return request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}


def _not_ours() -> web.Response:
    return fault(403, "that form is of another page")


def _cannot_tell() -> web.Response:
    """Why is in the log: it is not for everybody."""
    return fault(503, "whether that is right cannot be told; the log says why", **{"Retry-After": "5"})


def _is_of_this_machine(host: str) -> bool:
    """Whether the name that a request was sent to, with its port perhaps, is one that nobody else can have."""
    name = host[: host.index("]")].strip("[") if host.startswith("[") and "]" in host else host.partition(":")[0]
    return is_loopback(name.lower().rstrip("."))


def _is_tls(request: web.Request) -> bool:
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def _redirect(where: str) -> web.Response:
    return web.Response(status=303, headers={"Location": where, "Cache-Control": "no-store"})
