"""Who may look: everybody on this machine, nobody, or who shows that they may.

Rules:

- Health and readiness are for everybody, always, and no door is asked about them.
- Where nothing is asked for, only this machine can connect. A page of somebody else's, in a browser here, can still
  have the browser ask us under a name of its own; so the name that we are asked by has to be one of this machine.
- Where something is asked for, there is nothing without it but the login: not even to learn what there is.
- A session is a credential that is remembered: with each request it is looked at anew whether that is still right.
- What is wrong takes its time to be refused, and so many at a time can be wrong: what else comes then is not looked at.
  So guessing has a rate, and closing the connection does not raise it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from cidrella.kube.errors import KubeError
from cidrella.kube.loopback import is_loopback
from cidrella.web.answers import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.web.checkers import Checker
    from cidrella.web.series import WebSeries

COOKIE: Final = "cidrella-session"
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
METRICS: Final = "/metrics"
FORM: Final = 10.0
"""Seconds for what is typed to come in: whoever sends half of it holds a connection."""
SLOW: Final = 1.0
"""Seconds until what is wrong is refused."""
SUSPECTS_MAX: Final = 10
"""Credentials that are looked at, or served their time, at once."""
SESSIONS_MAX: Final = 1000
SESSION: Final = 12 * 3600.0
"""Seconds that a session lasts."""
_KNOWN_MAX: Final = 256


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
        self._known: dict[bytes, None] = {}
        """The hashes of credentials that were right of late: those are looked at whoever else knocks."""
        self._suspects = 0

    async def refuse(self, request: web.Request) -> web.StreamResponse | None:
        """Ask for a credential where there is none, or where it is wrong."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            return await self._judge(token.strip(), login=False)
        if (credential := self._remembered(request)) and await self._judge(credential, login=True, new=False) is None:
            return None
        if request.path == "/" and request.method == "GET":
            return _redirect(LOGIN)
        return fault(401, "show a token, or log in", **{"WWW-Authenticate": "Bearer"})

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Begin a session for who shows something right."""
        try:
            async with asyncio.timeout(FORM):
                credential = await _password(request)
        except TimeoutError:
            return fault(408, "the form did not come")
        refusal = await self._judge(credential, login=True)
        if refusal is not None:
            return _redirect(f"{LOGIN}#wrong") if refusal.status == 401 else refusal
        session = secrets.token_urlsafe(32)
        self._sessions[session] = credential, self._clock() + SESSION
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        response = _redirect("/")
        response.set_cookie(
            COOKIE, session, path="/", httponly=True, samesite="Strict", secure=_is_tls(request), max_age=int(SESSION)
        )
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """End a session."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        response = _redirect(LOGIN)
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict", secure=_is_tls(request))
        return response

    def in_session(self, request: web.Request) -> bool:
        """Whether there is a session that could be ended."""
        return request.cookies.get(COOKIE, "") in self._sessions

    def _remembered(self, request: web.Request) -> str:
        session = request.cookies.get(COOKIE, "")
        credential, until = self._sessions.get(session, ("", 0.0))
        if credential and self._clock() >= until:
            del self._sessions[session]
            return ""
        return credential

    async def _judge(self, credential: str, *, login: bool, new: bool = True) -> web.StreamResponse | None:
        """The answer to who shows something wrong, in its own time; None for who shows something right.

        What is not `new` was right once: it may be wrong by now, but is no guess.
        """
        digest = hashlib.sha256(credential.encode("utf-8", "replace")).digest()
        if new and digest not in self._known and self._suspects >= SUSPECTS_MAX:
            return fault(429, "too many wrong tokens at a time; ask again later", **{"Retry-After": "5"})
        self._suspects += 1
        try:
            if await self._accepted(credential, login=login):
                self._known.pop(digest, None)
                self._known[digest] = None
                while len(self._known) > _KNOWN_MAX:
                    del self._known[next(iter(self._known))]
                return None
            self._known.pop(digest, None)
            if new:
                self._series.refused.inc()
                await asyncio.sleep(self._slow)
        except KubeError as error:
            return fault(503, f"whether the token is right cannot be told: {error}", **{"Retry-After": "5"})
        finally:
            self._suspects -= 1
        return fault(401, "that is wrong", **{"WWW-Authenticate": 'Bearer error="invalid_token"'})

    async def _accepted(self, credential: str, *, login: bool) -> bool:
        for checker in self._checkers:
            if (login or checker.bearer) and await checker.accepts(credential):
                return True
        return False


async def _password(request: web.Request) -> str:
    """What was typed; "" for what is no such form."""
    try:
        found = (await request.post()).get("password")
    except (ValueError, LookupError):
        return ""
    return found if isinstance(found, str) else ""


def _is_of_this_machine(host: str) -> bool:
    """Whether the name that a request was sent to, with its port perhaps, is one that nobody else can have."""
    name = host[: host.index("]")].strip("[") if host.startswith("[") and "]" in host else host.partition(":")[0]
    return is_loopback(name.lower().rstrip("."))


def _is_tls(request: web.Request) -> bool:
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def _redirect(where: str) -> web.Response:
    return web.Response(status=303, headers={"Location": where, "Cache-Control": "no-store"})
