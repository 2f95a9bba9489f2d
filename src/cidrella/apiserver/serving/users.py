"""Who may talk to the API: whoever shows a token that is known, and where none is asked for, everybody."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN: Final = frozenset({"/healthz", "/livez", "/readyz", "/version"})
"""What needs no token."""


class User(NamedTuple):
    """Somebody, as the audit log names them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


ADMIN: Final = User("admin", groups=("system:masters", "system:authenticated"))
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


class Users:
    """Those who are known, by token; nobody: then all are the administrator."""

    def __init__(self, by_token: Mapping[str, User]) -> None:
        self._known = [(token.encode(), user) for token, user in by_token.items()]

    def identify(self, path: str, authorization: str) -> User:
        """Who sends a request. Raises `StatusError` (401)."""
        if not self._known:
            return ADMIN
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer":
            shown = token.strip().encode(errors="surrogateescape")
            found = [user for known, user in self._known if hmac.compare_digest(known, shown)]  # looks at all of them
            if found:
                return found[0]
        elif path in OPEN:
            return ANONYMOUS
        raise StatusError(401, "Unauthorized", "Unauthorized")
