"""Where a list that is answered in pages goes on: the token that a client sends back for the next page."""

from __future__ import annotations

import base64
import re
from typing import Any, Final, NamedTuple

import msgspec

from cidrella.apiserver.serving.calls import encode
from cidrella.apiserver.words import gojson
from cidrella.apiserver.words.faults import json_kind
from cidrella.apiserver.words.statuses import StatusError, bad_request

LATEST: Final = -1
"""The version of a token for a list that goes on with what there is, since what there was is no longer known."""
_FORMAT: Final = "meta.k8s.io/v1"
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_-]")
_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Token(NamedTuple):
    """Where to go on, and in what."""

    version: int
    start: str
    """The first path that may come next, from the namespace on where the list is of one."""

    def text(self) -> str:
        """As a client is given it."""
        data = encode({"v": _FORMAT, "rv": self.version, "start": f"/{self.start}"})
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def after(version: int, path: str) -> Token:
    """The token for what comes after a path."""
    return Token(version, f"{path}\0")


def parse(text: str) -> Token:
    """Read a token. Raises `StatusError`."""
    strange = _STRANGE.search(text)
    if strange or len(text) % 4 == 1:
        raise _invalid(f"illegal base64 data at input byte {strange.start() if strange else len(text) - 1}")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _invalid(gojson.why(data)) from None
    if not isinstance(found, dict):
        raise _invalid(f"json: cannot unmarshal {json_kind(found)} into Go value of type storage.continueToken")
    if found.get("v") != _FORMAT:
        raise _invalid(f"server does not recognize this encoded version {found.get('v', '')}")
    version, start = found.get("rv", 0), str(found.get("start", ""))
    if version == 0 or not isinstance(version, int):
        raise _invalid(f"incorrect encoded start resourceVersion (version {_FORMAT})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_FORMAT})")
    if ".." in start.split("/"):
        raise _invalid(start)
    return Token(version, start.removeprefix("/"))


class ExpiredTokenError(StatusError):
    """A token for a version that is no longer known, and one to go on with."""

    def __init__(self, token: Token) -> None:
        super().__init__(410, "Expired", _TOO_OLD)
        self._token = Token(LATEST, token.start)

    def status(self) -> dict[str, Any]:
        """With the other token."""
        return {**super().status(), "metadata": {"continue": self._token.text()}}


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
