"""What the API server talks to: AdmissionReviews over TLS.

Rules:

- Whoever asks has to be quick and brief: a request has its size and its time, and is refused in words beyond either.
  All of them together have their size, too. It is what has come in that counts: nobody takes room by announcing much.
- A decision, also one to deny, is a reply of 200. Where there can be none it is another, and the `failurePolicy` of
  the configuration says what that means: 400 and its like for what is no question of the API server, 503 for later.
- Certificates, and whose are asked for, change under way: for each new connection the newest count.
- The end waits for answers under way, and takes no new questions.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from aiohttp import web

from cidrella.kube.listening import Listener
from cidrella.kube.tls import ServingTls
from cidrella.model.admission import API_VERSION, KIND, AdmissionReview
from cidrella.serviceip.review import MalformedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.kube.tls import Serving
    from cidrella.model.admission import AdmissionRequest, AdmissionResponse

PATH: Final = "/mutate-services"
BODY_MAX: Final = 7 << 20
"""Bytes. The API server takes objects of up to 3 MiB, and sends an update with the one before it."""
BODIES_MAX: Final = 8 * BODY_MAX
"""Bytes of all that is read and not yet answered: room for thousands of Services of an ordinary size."""
UID_MAX: Final = 64
"""Characters. A uid has 36, and is kept."""
GRACE: Final = 2.0
"""Seconds that answers under way have at the end: those that give an address take milliseconds."""
_READING: Final = 5.0
"""Seconds for a question to come in."""
_WAITING: Final = 10.0
"""Seconds for an answer where the API server does not say how long it waits: its own default."""
_MARGIN: Final = 0.9
"""The share of the time the API server waits that is used: the rest is for the way."""
_KEPT: Final = 120.0
"""Seconds that a connection may be idle: longer than Go's clients keep one (90), so that it is never closed under a
question that is just being sent."""
_WORDS_MAX: Final = 1000
"""Characters of why there is no answer."""
_TIMEOUT: Final = re.compile(r"([0-9]{1,3})s", re.ASCII)

_log = structlog.get_logger()
_decode: Final = msgspec.json.Decoder(AdmissionReview).decode


class WebhookServer(Listener):
    """The server, between entering and leaving it. Entering raises `CannotListenError`."""

    def __init__(
        self,
        host: str,
        port: int,
        serving: Serving,
        review: Callable[[AdmissionRequest, float], Awaitable[AdmissionResponse]],
    ) -> None:
        self._review = review
        self._tls = ServingTls(serving)
        self._held = 0
        """Bytes of bodies."""
        app = web.Application()
        app.router.add_post(PATH, self._answer)
        super().__init__(app, host, port, grace=GRACE, keep_alive=_KEPT, context=self._tls.context)

    def show(self, serving: Serving) -> None:
        """Show this certificate from the next connection on. Raises ConfigError, and keeps the last, if it cannot."""
        self._tls.show(serving)

    async def _answer(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return _refused(415, f"send application/json, not {request.content_type}")
        body = bytearray()
        try:
            async with asyncio.timeout(_READING):
                await self._receive(request, body)
            return await self._decide(request, body)
        except TimeoutError:
            return _refused(408, f"the request did not come in within {_READING:g} s", close=True)
        except _TooMuchError as error:
            return _refused(error.code, str(error), close=True)
        finally:
            self._held -= len(body)

    async def _decide(self, request: web.Request, body: bytearray) -> web.Response:
        try:
            answer = await self._review(_question(body), _patience(request))
        except MalformedError as error:
            return _refused(400, str(error))
        except UnavailableError as error:
            return _refused(503, str(error))
        reply = AdmissionReview(api_version=API_VERSION, kind=KIND, response=answer)
        return web.Response(body=msgspec.json.encode(reply), content_type="application/json")

    async def _receive(self, request: web.Request, body: bytearray) -> None:
        """Read a body, which counts as long as it is there. Raises _TooMuchError."""
        if (request.content_length or 0) > BODY_MAX:
            raise _TooMuchError(413, f"a request may have {BODY_MAX:,} bytes")
        async for part in request.content.iter_any():
            body += part
            self._held += len(part)
            if len(body) > BODY_MAX:
                raise _TooMuchError(413, f"a request may have {BODY_MAX:,} bytes")
            if self._held > BODIES_MAX:
                raise _TooMuchError(503, f"requests that are not yet answered have more than {BODIES_MAX:,} bytes")


class _TooMuchError(Exception):
    """More than there is room for, in words, with the code to say it."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def _question(body: bytearray) -> AdmissionRequest:
    try:
        review = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise MalformedError(f"{review.kind} of {review.api_version}; {KIND} of {API_VERSION} is understood")
    if review.request is None or not review.request.uid:
        raise MalformedError("an AdmissionReview without a request, or a request without a uid")
    if len(review.request.uid) > UID_MAX:
        raise MalformedError(f"a uid of more than {UID_MAX} characters")
    return review.request


def _patience(request: web.Request) -> float:
    """Seconds within which an answer is of use; the API server says how long it waits."""
    said = _TIMEOUT.fullmatch(request.query.get("timeout", ""))
    return _MARGIN * (float(said[1]) if said else _WAITING)


def _refused(code: int, why: str, *, close: bool = False) -> web.Response:
    """The reply, in words that may be those of who asks; `close` if more of the request may be on its way."""
    why = why[:_WORDS_MAX]
    _log.warning("a request to the webhook got no decision", code=code, why=why)
    reply = web.Response(status=code, text=f"{why}\n")
    if close:
        reply.force_close()
    return reply
