"""Tokens of the cluster: the API server says whose one is, and whether that one may list nodes.

What it said is believed for a moment, so that a page costs it two requests in half a minute and not two for each of its
own.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.kube.client import Client

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 -- a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
BELIEVED: Final = 30.0
"""Seconds: for so long one is let in whose rights were taken away."""
DOUBTED: Final = 5.0
"""Seconds for which a refusal is believed: rights that were just given should be of use soon."""
_KNOWN_MAX: Final = 1024


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)


class _TokenStatus(Struct):
    authenticated: bool = False
    user: _User = field(default_factory=_User)


class _TokenReview(Struct):
    status: _TokenStatus = field(default_factory=_TokenStatus)


class _AccessStatus(Struct):
    allowed: bool = False


class _AccessReview(Struct):
    status: _AccessStatus = field(default_factory=_AccessStatus)


class Reviewer:
    """Asks the API server."""

    name = "TokenReview"
    bearer = True

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[bytes, tuple[bool, float]] = {}
        """By the token's hash: what was said, and until when it is believed."""

    async def accepts(self, credential: str) -> bool:
        """Whether the bearer may list nodes. Raises `KubeError`."""
        try:
            digest = hashlib.sha256(credential.encode()).digest()
        except UnicodeEncodeError:  # bytes that are no text come as surrogates
            return False
        if not credential:
            return False
        answer, until = self._known.get(digest, (False, float("-inf")))
        if self._clock() < until:
            return answer
        answer = await self._ask(credential)
        self._known.pop(digest, None)
        self._known[digest] = answer, self._clock() + (BELIEVED if answer else DOUBTED)
        while len(self._known) > _KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return answer

    async def _ask(self, token: str) -> bool:
        body = _review("authentication.k8s.io", "TokenReview", {"token": token})
        found = (await self._client.create(TOKEN_REVIEWS, body, _TokenReview)).status
        if not found.authenticated or not found.user.username:
            return False
        who, wanted = found.user, {"verb": "list", "resource": "nodes"}
        spec = {
            "user": who.username,
            "uid": who.uid,
            "groups": who.groups,
            "extra": who.extra,
            "resourceAttributes": wanted,
        }
        body = _review("authorization.k8s.io", "SubjectAccessReview", spec)
        return (await self._client.create(ACCESS_REVIEWS, body, _AccessReview)).status.allowed


def _review(group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
