"""Where the object of a range is kept: the part that talks to the API.

Every request is answered within `REQUEST_SECONDS`, or counts as not answered. Replies to writes are asked for without
the object: its version is all that is news.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from cidrella.kube.client import METADATA_ONLY
from cidrella.kube.errors import ApiError, MalformedReplyError, NoAnswerError
from cidrella.model.serviceip import RANGE_ALLOCATIONS_PATH, range_name, read_range_allocation
from cidrella.serviceip.errors import MissingAllocationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.core.prefix import Prefix
    from cidrella.kube.client import Client
    from cidrella.model.serviceip import SeenRangeAllocation
    from cidrella.serviceip.state import State

T = TypeVar("T")

REQUEST_SECONDS: Final = 3.0
"""What one request may take."""
_NOT_FOUND: Final = 404
_UNCHECKED: Final = {"fieldValidation": "Ignore"}
"""The fields are those of our own struct: looking for unknown ones is work for nothing."""
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _StoredMeta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _Stored(msgspec.Struct):
    """What is news in the reply to a write."""

    metadata: _StoredMeta


class Shelf:
    """The object of one range. `took` is told how many seconds each request took."""

    def __init__(self, client: Client, cidr: Prefix, took: Callable[[float], None]) -> None:
        self.name = range_name(cidr)
        """The object's name."""
        self.asked = 0.0
        """When the API was asked last, by the event loop's clock."""
        self._client = client
        self._path = f"{RANGE_ALLOCATIONS_PATH}/{self.name}"
        self._took = took

    async def read(self) -> SeenRangeAllocation:
        """The object as it stands, corrupt or not. Raises KubeError, MissingAllocationError."""
        try:
            return read_range_allocation(await self._in_time(self._client.request("GET", self._path)))
        except ApiError as error:
            if error.code == _NOT_FOUND:
                raise MissingAllocationError(f"there is no RangeAllocation {self.name}") from error
            raise
        except _UNREADABLE as error:
            raise MalformedReplyError(f"{self.name}: {error}") from error

    async def replace(self, state: State) -> str:
        """Write the object if it still has the version of the state; the version that it then has. Raises KubeError."""
        stored = await self._write("PUT", self._path, state)
        if stored.uid != state.uid:
            raise MalformedReplyError(f"{self.name}: the reply is about another object")
        return stored.resource_version

    async def create(self, state: State) -> None:
        """Write the object if there is none. Raises KubeError."""
        await self._write("POST", RANGE_ALLOCATIONS_PATH, state)

    async def _write(self, method: str, path: str, state: State) -> _StoredMeta:
        body = msgspec.json.encode(state.encode())
        request = self._client.request(method, path, params=_UNCHECKED, body=body, accept=METADATA_ONLY)
        reply = await self._in_time(request)
        try:
            return msgspec.json.decode(reply, type=_Stored).metadata
        except _UNREADABLE as error:
            raise MalformedReplyError(f"{self.name}: {error}") from error

    async def _in_time(self, request: Awaitable[T]) -> T:
        loop = asyncio.get_running_loop()
        self.asked = began = loop.time()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await request
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {REQUEST_SECONDS:.0f} s") from error
        finally:
            self._took(loop.time() - began)
