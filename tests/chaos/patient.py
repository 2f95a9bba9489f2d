"""A client that does not mind an API server which is away for a while: the workload's own, past every proxy."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from tests.testenv.client import ApiError, Client

if TYPE_CHECKING:
    from tests.testenv.client import Json

_ASK_SECONDS: Final = 5.0
_POLL: Final = 0.1
_REFUSALS: Final = (404, 409, 422)
"""What is there cannot be made, what is not cannot be changed, and podCIDRs that are set stay."""
_PASSING: Final = (401, 403, 429)
"""What an API server also says while it begins, before it knows everybody's rights."""


class GaveUpError(Exception):
    """The API server was away for too long."""


class Patient:
    """One identity. May be used from many threads."""

    def __init__(self, like: Client, patience: float = 30.0) -> None:
        """`like` is a client of the same identity, `patience` how many seconds it tries to do one thing."""
        self._client = Client(like.server, like.ca, like.identity, like.token, timeout=_ASK_SECONDS)
        self._patience = patience
        self._ending = threading.Event()

    def create(self, path: str, body: Json) -> bool:
        """Create an object. False if one of its name is there already, or if it could not be done."""
        return self._do("POST", path, body)

    def patch(self, path: str, body: Json) -> bool:
        """Change an object. False if it is not there, if it is refused, or if it could not be done."""
        return self._do("PATCH", path, body)

    def delete(self, path: str) -> bool:
        """Delete an object. False if it is not there, or if it could not be done."""
        return self._do("DELETE", path)

    def get(self, path: str) -> Json:
        """Read an object or a list. Raises GaveUpError."""
        found = self._request("GET", path)
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        """Try no longer."""
        self._ending.set()
        self._client.close()

    def _do(self, method: str, path: str, body: Json | None = None) -> bool:
        try:
            return self._request(method, path, body) is not False
        except GaveUpError:
            return False

    def _request(self, method: str, path: str, body: Json | None = None) -> Json | bool:
        """The reply; False for a refusal, True for one that shows that an earlier attempt had been granted."""
        deadline = time.monotonic() + self._patience
        unknown = False
        while True:
            try:
                content = "application/merge-patch+json" if method == "PATCH" else "application/json"
                return self._client.request(method, path, body, content_type=content)
            except ApiError as error:
                if error.code in _REFUSALS and method != "GET":
                    return unknown
                if error.code < 500 and error.code not in _PASSING:
                    raise
                unknown |= error.code >= 500
                problem: Exception = error
            except OSError as error:
                unknown = True
                problem = error
            if time.monotonic() > deadline or self._ending.is_set():
                raise GaveUpError(f"{method} {path}: {problem}") from problem
            time.sleep(_POLL)
