"""The faults that a proxy can do to a request: the words of a script.

A fault is a value and does nothing itself; `proxy_exchange` acts it out. Each function below makes one and says what
the client meets, and what the API server.

| fault | the API server | the client |
|---|---|---|
| `delay`, `hold` | gets the request late | waits |
| `cut`, `reset` | gets nothing | loses the connection, with or without a reset |
| `stall` | gets nothing | waits until it gives up |
| `answer` and its kin | gets nothing | gets a reply that is not the API server's |
| `answer_then_forward` | gets the request late | gets a reply that is not the API server's, at once |
| `flood` | gets nothing | gets the beginning of a reply of any size |
| `delay_reply` | gets the request | waits |
| `cut_reply`, `stall_watch` | gets the request | gets the beginning of the reply |
| `swallow` | gets the request and has replied | loses the connection, and cannot know |

A connection that is lost is lost without a goodbye: the last bytes sent arrive, and TCP ends without TLS having ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Event

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Delay:
    """See `delay`."""

    seconds: float
    even_if_gone: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """See `hold`."""

    let_go: Event


@dataclass(frozen=True, slots=True)
class DelayReply:
    """See `delay_reply`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """See `cut` and `reset`."""

    reset: bool


@dataclass(frozen=True, slots=True)
class Stall:
    """See `stall`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """See `answer`."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class AnswerThenForward:
    """See `answer_then_forward`."""

    own: Answer
    seconds: float


@dataclass(frozen=True, slots=True)
class Flood:
    """See `flood`."""

    size: int
    stall: bool


@dataclass(frozen=True, slots=True)
class StallWatch:
    """See `stall_watch`."""

    after_bytes: int


@dataclass(frozen=True, slots=True)
class CutReply:
    """See `cut_reply`. `after_lines` is None where bytes are counted, and the other way round."""

    after_bytes: int | None
    after_lines: int | None
    reset: bool


@dataclass(frozen=True, slots=True)
class Swallow:
    """See `swallow`."""

    reset: bool


Fault: TypeAlias = (
    Delay | Hold | DelayReply | Cut | Stall | Answer | AnswerThenForward | Flood | StallWatch | CutReply | Swallow
)


def delay(seconds: float, *, even_if_gone: bool = False) -> Fault:
    """Forward the request only after a while.

    A client that gives up before takes its request with it, as with a slow connection to the proxy; with `even_if_gone`
    the request still arrives, as with a slow network behind it: the write that its writer no longer counts on.
    """
    _not_negative(seconds)
    return Delay(seconds, even_if_gone)


def hold(let_go: Event) -> Fault:
    """Forward the request only when the event is set, even if the client has given up by then."""
    return Hold(let_go)


def delay_reply(seconds: float) -> Fault:
    """Forward the request at once, and hold back the whole reply for a while after its head is there."""
    _not_negative(seconds)
    return DelayReply(seconds)


def cut() -> Fault:
    """Close the connection when the whole request is read; forward nothing."""
    return Cut(reset=False)


def reset() -> Fault:
    """Reset the connection (TCP RST) when the whole request is read; forward nothing."""
    return Cut(reset=True)


def stall() -> Fault:
    """Forward nothing and answer nothing until the client gives up or the proxy stops."""
    return Stall()


def stall_watch(after_bytes: int = 0) -> Fault:
    """Forward the head and that many bytes of the reply's body, then nothing more; the connection stays open.

    A body that is shorter stalls where its end would be told. Nothing more is read from the API server either.
    """
    _not_negative(after_bytes)
    return StallWatch(after_bytes)


def cut_reply(
    after_bytes: int | None = None, *, mid_line: bool = False, after_lines: int = 0, reset: bool = False
) -> Fault:
    """Forward the head and the beginning of the reply's body, then close or reset the connection.

    The beginning is either `after_bytes`, or with `mid_line` that many whole lines and half of the next one that is not
    empty. A body that is shorter is cut where its end would be told. Bytes are those of the body as it is sent, after
    compression if there is one; Kubernetes does not compress watches.
    """
    if mid_line == (after_bytes is not None):
        raise ValueError("cut_reply takes either after_bytes or mid_line=True")
    if after_lines and not mid_line:
        raise ValueError("cut_reply counts lines only with mid_line=True")
    _not_negative(after_lines, after_bytes or 0)
    return CutReply(after_bytes, after_lines if mid_line else None, reset)


def swallow(*, reset: bool = False) -> Fault:
    """Let the request through, read the whole reply, then close or reset the connection without a word of it.

    The request goes through even if the client gives up meanwhile.
    """
    return Swallow(reset)


def answer(
    status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None, content_type: str = JSON
) -> Answer:
    """Answer in place of the API server; forward nothing. The connection stays usable."""
    text = body.encode() if isinstance(body, str) else body
    own = {"Content-Type": content_type, "Content-Length": str(len(text))}
    return Answer(status, tuple((own | dict(headers or {})).items()), text)


def flood(size: int, *, stall: bool = False) -> Fault:
    """Answer 200 with that many bytes of a reply without an end, then close or stall; forward nothing."""
    _not_negative(size)
    return Flood(size, stall)


def answer_then_forward(own: Answer, seconds: float) -> Fault:
    """Answer in place of the API server at once, and forward the request after a while, even if the client has gone.

    The API server's reply is discarded. The connection stays usable meanwhile.
    """
    _not_negative(seconds)
    return AnswerThenForward(own, seconds)


def too_many_requests(retry_after: int = 1) -> Answer:
    """Answer 429 as kube-apiserver does when it has too much to do: plain text, with the seconds to wait."""
    headers = {"Retry-After": str(retry_after), "X-Content-Type-Options": "nosniff"}
    return answer(429, "Too many requests, please try again later.\n", headers, TEXT)


def too_many_requests_status(retry_after: int = 1) -> Answer:
    """Answer 429 as kube-apiserver does when an admission webhook denies a request with that code: with a `Status`."""
    message = 'admission webhook "limit.example.com" denied the request: too many requests'
    body = _status(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after})
    return answer(429, json.dumps(body), {"Retry-After": str(retry_after)})


def server_error(message: str = "etcdserver: request timed out") -> Answer:
    """Answer 500 as the API server does when something behind it fails."""
    return answer(500, json.dumps(_status(500, "InternalError", f"Internal error occurred: {message}")))


def gone() -> Answer:
    """Answer 410 as the API server does to a list or watch from a version that it no longer has."""
    return answer(410, json.dumps(_expired()))


def gone_event() -> Answer:
    """Answer a watch with 200 and one `ERROR` event that holds the 410: the form in which watches mostly meet it."""
    return answer(200, json.dumps({"type": "ERROR", "object": _expired()}) + "\n")


def html(status: int = 502) -> Answer:
    """Answer with a page of HTML, as load balancers do that know nothing of Kubernetes."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n"
    return answer(status, page, content_type="text/html")


def plain_text(status: int = 504) -> Answer:
    """Answer with a line of plain text, as proxies do that have lost patience."""
    return answer(status, f"{status}\n", content_type=TEXT)


def refused(code: int, reason: str, message: str) -> Answer:
    """Answer with a `Status`, as the API server does when it refuses."""
    return answer(code, json.dumps(_status(code, reason, message)))


def _expired() -> dict[str, object]:
    """Return the `Status` of a version that is too old."""
    return _status(410, "Expired", "too old resource version: 1 (2)")


def _status(code: int, reason: str, message: str, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a failure as Kubernetes words it, ready to be JSON."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": dict(details or {}),
        "code": code,
    }


def _not_negative(*numbers: float) -> None:
    for number in numbers:
        if number < 0:
            raise ValueError(f"negative: {number}")
