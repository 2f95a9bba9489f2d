"""What can go wrong between us and the API server, told apart by what is known of the request afterwards.

| error | what happened | unsettled |
|---|---|---|
| `ConfigError` | the kubeconfig, the Pod's files or a credential plugin are wrong; nothing was sent | no |
| `ApiError` | the server refused, with a code | from 500 on |
| `NoAnswerError` | no connection, no reply in time, or half of one | yes |
| `MalformedReplyError` | a success that the API would not word like this | yes |

An unsettled request may have taken effect, or may yet (N9). The HTTP library's own errors never get out of this
package; they are chained under these.
"""

from __future__ import annotations

from typing import Final

import msgspec

_QUOTED: Final = 200
"""Characters of a reply that is not Kubernetes' own which are shown to people."""


class KubeError(Exception):
    """A request to the API that failed, in words for people."""

    @property
    def unsettled(self) -> bool:
        """Whether the request may have taken effect, or may yet."""
        return False


class ConfigError(KubeError):
    """The way to the server is not described, or not in a way that works: something for people to mend."""


class ApiError(KubeError):
    """The server's refusal.

    `reason` is Kubernetes' word for it, "" if the reply was not Kubernetes'. `retry_after` is in seconds, None if the
    server named no time.
    """

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def unsettled(self) -> bool:
        """A server that failed may have done so after storing what it was sent."""
        return self.code >= 500


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


class _Details(msgspec.Struct):
    retryAfterSeconds: int | None = None  # noqa: N815 -- the API's name


class _Status(msgspec.Struct):
    """The fields of a `Status` that are in use; those of other types count as absent."""

    kind: str = ""
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_decode_status: Final = msgspec.json.Decoder(_Status).decode


def refusal(code: int, retry_after: str, body: bytes) -> ApiError:
    """The error for a reply with a code other than success; `retry_after` is the header's text, "" if absent."""
    try:
        status = _decode_status(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        status = _Status()
    if status.kind != "Status":
        return ApiError(code, "", quote(body), _seconds(retry_after))
    seconds = _seconds(retry_after)
    if seconds is None and status.details is not None and (status.details.retryAfterSeconds or 0) > 0:
        seconds = float(status.details.retryAfterSeconds or 0)
    return ApiError(code, status.reason or "", status.message or "", seconds)


def quote(body: bytes) -> str:
    """The beginning of a text that is not Kubernetes' own, fit to be shown."""
    text = body[: 4 * _QUOTED].decode(errors="replace")[:_QUOTED]
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _seconds(text: str) -> float | None:
    """A Retry-After header that is a number of seconds; Kubernetes sends no dates."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
