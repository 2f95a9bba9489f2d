"""What the API server talks to: AdmissionReviews over TLS.

Rules:

- Whoever asks has to be quick and brief: a request has its size and its time, and is refused in words beyond either.
- A decision, also one to deny, is a reply of 200. Where there can be none it is another, and the `failurePolicy` of
  the configuration says what that means: 400 and its like for what is no question of the API server, 503 for later.
- Certificates change under way: each new connection is shown the newest, and those that there are stay.
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
from cidrella.kube.tls import check_pair, serving_context, show_pair
from cidrella.model.admission import API_VERSION, KIND, AdmissionReview
from cidrella.serviceip.review import MalformedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.kube.tls import KeyPair
    from cidrella.model.admission import AdmissionRequest, AdmissionResponse

PATH: Final = "/mutate-services"
BODY_MAX: Final = 7 << 20
"""Bytes. The API server takes objects of up to 3 MiB, and sends an update with the one before it."""
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
_TIMEOUT: Final = re.compile(r"([0-9]{1,3})s", re.ASCII)

_log = structlog.get_logger()
_decode: Final = msgspec.json.Decoder(AdmissionReview).decode


class WebhookServer(Listener):
    """The server, between entering and leaving it. Entering raises `CannotListenError`."""

    def __init__(
        self,
        host: str,
        port: int,
        pair: KeyPair,
        review: Callable[[AdmissionRequest, float], Awaitable[AdmissionResponse]],
    ) -> None:
        self._review = review
        self._shown = serving_context(pair)
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post(PATH, self._answer)
        super().__init__(app, host, port, grace=GRACE, keep_alive=_KEPT, context=self._shown)

    def show(self, pair: KeyPair) -> None:
        """Show this certificate from the next connection on. Raises ConfigError, and keeps the last, if it cannot."""
        check_pair(pair)  # what does not go together is found before the one in use is touched
        show_pair(self._shown, pair, "serving")

    async def _answer(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return _refused(415, f"send application/json, not {request.content_type}")
        try:
            async with asyncio.timeout(_READING):
                body = await request.read()
        except TimeoutError:
            return _refused(408, f"the request did not come in within {_READING:g} s")
        except web.HTTPRequestEntityTooLarge:
            return _refused(413, f"a request may have {BODY_MAX:,} bytes")
        try:
            question = _question(body)
            answer = await self._review(question, _patience(request))
        except MalformedError as error:
            return _refused(400, str(error))
        except UnavailableError as error:
            return _refused(503, str(error))
        reply = AdmissionReview(api_version=API_VERSION, kind=KIND, response=answer)
        return web.Response(body=msgspec.json.encode(reply), content_type="application/json")


def _question(body: bytes) -> AdmissionRequest:
    try:
        review = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise MalformedError(f"{review.kind} of {review.api_version}; {KIND} of {API_VERSION} is understood")
    if review.request is None or not review.request.uid:
        raise MalformedError("an AdmissionReview without a request, or a request without a uid")
    return review.request


def _patience(request: web.Request) -> float:
    """Seconds within which an answer is of use; the API server says how long it waits."""
    said = _TIMEOUT.fullmatch(request.query.get("timeout", ""))
    return _MARGIN * (float(said[1]) if said else _WAITING)


def _refused(code: int, why: str) -> web.Response:
    _log.warning("a request to the webhook got no decision", code=code, why=why)
    return web.Response(status=code, text=f"{why}\n")
