"""Pages of a list, with as many objects in each as fit into a reply.

A page whose reply is too large is asked for again with half the limit, down to one object. A continue token names a
version and a position in the collection, not a limit, so the list goes on where it was. The smaller limit is kept for a
while: otherwise each list would begin with replies that are read in vain.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from cidrella.kube.errors import ReplyTooLargeError

if TYPE_CHECKING:
    from cidrella.kube.client import Client

_log = structlog.get_logger()

KEPT: Final = 3600.0
"""Seconds for which a smaller limit is kept. A list that begins later tries the full one: objects may be smaller."""


class PageReader:
    """The pages of one collection, of at most `limit` objects each."""

    def __init__(self, client: Client, path: str, limit: int) -> None:
        self._client = client
        self._path = path
        self._full = limit
        self._limit = limit
        self._reduced_at = 0.0

    async def read(self, token: str) -> bytes:
        """Request a page: the first one, or the one that a continue token names. Raises `KubeError`."""
        if not token and asyncio.get_running_loop().time() > self._reduced_at + KEPT:
            self._limit = self._full
        while True:
            params = {"limit": str(self._limit)}
            if token:
                params["continue"] = token
            try:
                return await self._client.request("GET", self._path, verb="list", params=params)
            except ReplyTooLargeError as error:
                self._reduce(error)

    def _reduce(self, error: ReplyTooLargeError) -> None:
        """Halve the limit. Raises `ReplyTooLargeError` where a page has one object already."""
        self._reduced_at = asyncio.get_running_loop().time()
        if self._limit == 1:
            raise ReplyTooLargeError(f"a page with a single object is too large: {error}") from error
        self._limit //= 2
        _log.warning("list page too large", path=self._path, next_limit=self._limit)
