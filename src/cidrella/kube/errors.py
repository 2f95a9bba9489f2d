"""What can go wrong between us and the API server, told apart by what is known of the request afterwards.

| error | what happened | unsettled |
|---|---|---|
| `ConfigError` | the kubeconfig, the Pod's files or a credential plugin are wrong; nothing was sent | no |
| `ApiError` | a reply with another code than success | unless it is a definite refusal |
| `NoAnswerError` | no connection, no reply in time, or half of one | yes |
| `MalformedReplyError` | a success that the API would not word like this | yes |

An unsettled request may have taken effect, or may yet (N9). The HTTP library's own errors never get out of this
package; they are chained under these.

A definite refusal is a 4xx whose body is a Kubernetes `Status` with the same code. Everything else may come from an
intermediary that forwards the request afterwards. Four codes are no refusal in any form: 408, 425, 429 and 499 say that
the server has not yet worked on the request, or that it stopped waiting for something else that does.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

import msgspec

_QUOTED: Final = 200
"""Characters of a reply that is not Kubernetes' own which are shown to people."""
_CLIENT_CLOSED_REQUEST: Final = 499
"""Written by nginx and by proxies after it when the client closed the connection."""
_NO_REFUSAL: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        _CLIENT_CLOSED_REQUEST,
    }
)
_INT32_MAX: Final = 2**31 - 1
"""The largest `retryAfterSeconds` that Kubernetes can write."""


class KubeError(Exception):
    """A request to the API that failed, in words for people."""

    @property
    def unsettled(self) -> bool:
        """Whether the request may have taken effect, or may yet."""
        return False


class ConfigError(KubeError):
    """The way to the server is not described, or not in a way that works: something for people to mend."""


class ApiError(KubeError):
    """A reply with another code than success.

    `reason` is Kubernetes' word for it, "" if the reply was not Kubernetes'. `retry_after` is in seconds, None if the
    server named no time. `is_status` says whether every reply to the request was a `Status` with the code of its reply.
    """

    def __init__(
        self, code: int, reason: str, message: str, retry_after: float | None = None, *, is_status: bool = True
    ) -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.is_status = is_status

    @property
    def unsettled(self) -> bool:
        """Only a definite refusal says that the request had no effect, and will have none."""
        return not (self.is_status and 400 <= self.code < 500 and self.code not in _NO_REFUSAL)


class NoAnswerError(KubeError):
    """No connection, no reply in time, or a reply that was cut off."""

    @property
    def unsettled(self) -> bool:
        """Nobody knows whether the server got the request."""
        return True


class MalformedReplyError(KubeError):
    """The reply says success, but is not what the API sends: a page of HTML, half a JSON text, another kind."""

    @property
    def unsettled(self) -> bool:
        """Whoever replied, the server may have got the request."""
        return True


class ReplyTooLargeError(MalformedReplyError):
    """The reply has more bytes than a client reads. A list is asked for again in smaller pages (`paging`)."""


class _Details(msgspec.Struct):
    retryAfterSeconds: Annotated[int, msgspec.Meta(le=_INT32_MAX)] | None = None  # noqa: N815 -- the API's name


class _Status(msgspec.Struct):
    """The fields of a `Status` that are in use. A body with a field of another type counts as no `Status`."""

    kind: str = ""
    apiVersion: str = ""  # noqa: N815 -- the API's name
    status: str = ""
    code: int = 0
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_decode_status: Final = msgspec.json.Decoder(_Status).decode


def refusal(code: int, retry_after: str, body: bytes) -> ApiError:
    """The error for a reply with a code other than success; `retry_after` is the header's text, "" if absent."""
    try:
        status = _decode_status(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        status = _Status()
    if status.kind != "Status":
        return ApiError(code, "", quote(body), _seconds(retry_after), is_status=False)
    seconds = _seconds(retry_after)
    if seconds is None and status.details is not None and (status.details.retryAfterSeconds or 0) > 0:
        seconds = float(status.details.retryAfterSeconds or 0)
    matches = (status.apiVersion, status.status, status.code) == ("v1", "Failure", code)
    return ApiError(code, status.reason or "", status.message or "", seconds, is_status=matches)


def quote(body: bytes) -> str:
    """The beginning of a text that is not Kubernetes' own, fit to be shown."""
    text = body[: 4 * _QUOTED].decode(errors="replace")[:_QUOTED]
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _seconds(text: str) -> float | None:
    """A Retry-After header that is a number of seconds; Kubernetes sends no dates."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
