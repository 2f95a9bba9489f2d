"""A collection of the API in memory, with the two methods of a client that a reflector uses, and faults to order."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from cidrella.kube.errors import ApiError, ReplyTooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from cidrella.kube.client import Client

PATH = "/api/v1/things"
Json = dict[str, Any]


@dataclass(frozen=True)
class Thing:
    """What the tests reflect: a name, a uid and a size. Versions are not kept, as nobody needs them."""

    name: str
    uid: str
    size: int


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Thing(msgspec.Struct):
    metadata: _Meta
    size: int = 0


def decode(raw: bytes | msgspec.Raw) -> Thing:
    """Read a thing. Raises `msgspec.ValidationError`."""
    read = msgspec.json.decode(raw, type=_Thing)
    return Thing(read.metadata.name, read.metadata.uid, read.size)


def gone() -> ApiError:
    """The refusal of a version that is no longer there."""
    return ApiError(410, "Expired", "too old resource version: 1 (2)")


class Request(NamedTuple):
    """A request that came."""

    verb: str
    time: float
    params: Mapping[str, str]


class FakeApi:
    """One collection. What its methods change is in the next list, and in the watches that are open."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 100
        self.oldest = 0
        """Versions before this are forgotten."""
        self.requests: list[Request] = []
        self.list_faults: deque[Exception | bytes] = deque()
        """What lists meet instead of a page, in order; then all is well."""
        self.watch_faults: deque[Exception | bytes] = deque()
        """Likewise for watches; bytes are all that comes before the watch ends."""
        self.refuse_watches: Callable[[], bytes | Exception] | None = None
        """What every watch meets, after those faults."""
        self.served = True
        self.mute = False
        """Whether the watches that are open hear nothing."""
        self.cut: Callable[[bytes], list[bytes]] = lambda line: [line]
        """How a line gets into chunks."""
        self.before_page: Callable[[int], None] = lambda _: None
        """Called with the number of its first object before a page of a list is made."""
        self.page_max = sys.maxsize
        """Bytes of a page that the client accepts."""
        self._history: list[tuple[int, bytes]] = []
        self._snapshots: dict[int, list[Json]] = {}
        self._open: list[asyncio.Queue[bytes | Exception | None]] = []

    @property
    def client(self) -> Client:
        """This, as what a reflector asks for."""
        return cast("Client", self)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._open)

    def count(self, verb: str) -> int:
        """How many requests of this kind there were."""
        return sum(request.verb == verb for request in self.requests)

    @property
    def limits(self) -> list[int]:
        """The limits of the pages that were asked for."""
        return [int(request.params["limit"]) for request in self.requests if request.verb == "list"]

    @property
    def tokens(self) -> list[str | None]:
        """The tokens that lists went on with, None for each beginning."""
        return [request.params.get("continue") for request in self.requests if request.verb == "list"]

    # Changes

    def put(self, name: str, size: object = 0, uid: str = "") -> None:
        """Create or modify an object; another uid makes it another object, without a word on the old one."""
        known = name in self.objects
        self.version += 1
        uid = uid or (self.objects[name]["metadata"]["uid"] if known else f"uid-{self.version}")
        metadata = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        self.objects[name] = {"metadata": metadata, "size": size}
        self.tell("MODIFIED" if known else "ADDED", self.objects[name])

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.version += 1
        obj = self.objects.pop(name)
        self.tell("DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}})

    def bookmark(self) -> None:
        """Have watches told the version."""
        self.version += 1
        self.tell("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(self.version)}})

    def tell(self, kind: str, obj: Json) -> None:
        """Send an event to the watches that are open and to those that resume from before it."""
        line = json.dumps({"type": kind, "object": obj}).encode() + b"\n"
        self._history.append((self.version, line))
        if not self.mute:
            for chunk in self.cut(line):
                self.send(chunk)

    def send(self, chunk: bytes | Exception | None) -> None:
        """Send anything to all open watches: bytes, an error, or None for an end in good order."""
        for stream in self._open:
            stream.put_nowait(chunk)

    def compact(self) -> None:
        """Forget all versions but the last one."""
        self.oldest = self.version

    # The client

    async def request(self, method: str, path: str, *, verb: str, params: Mapping[str, str]) -> bytes:
        """A page of a list."""
        assert (method, path, verb) == ("GET", PATH, "list")
        assert "resourceVersion" not in params
        self._note("list", params)
        await asyncio.sleep(0.001)
        if self.list_faults:
            return _bytes_or_raise(self.list_faults.popleft())
        if not self.served:
            raise ApiError(404, "", "404 page not found")
        version, start = map(int, params.get("continue", f"{self.version}/0").split("/"))
        self.before_page(start)
        page = self._page(version, start, int(params["limit"]))
        if len(page) > self.page_max:
            raise ReplyTooLargeError(f"the reply has more than {self.page_max} bytes")
        return page

    def _page(self, version: int, start: int, limit: int) -> bytes:
        if start == 0:
            self._snapshots[version] = list(self.objects.values())
        elif version < self.oldest:
            raise gone()
        objects = self._snapshots[version]
        end = start + limit
        metadata = {"resourceVersion": str(version), "continue": f"{version}/{end}" if end < len(objects) else None}
        return json.dumps({"kind": "ThingList", "metadata": metadata, "items": objects[start:end] or None}).encode()

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch."""
        assert path == PATH
        assert (params["watch"], params["allowWatchBookmarks"]) == ("1", "true")
        assert 300 <= int(params["timeoutSeconds"]) <= 600
        self._note("watch", params)
        await asyncio.sleep(0.001)
        stream: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._begin(stream, int(params["resourceVersion"]))
        self._open.append(stream)
        try:
            yield _chunks(stream)
        finally:
            self._open.remove(stream)

    def _begin(self, stream: asyncio.Queue[bytes | Exception | None], version: int) -> None:
        if self.watch_faults or self.refuse_watches:
            fault = (
                self.watch_faults.popleft() if self.watch_faults or not self.refuse_watches else self.refuse_watches()
            )
            stream.put_nowait(_bytes_or_raise(fault))
            stream.put_nowait(None)
        elif not self.served:
            raise ApiError(404, "", "404 page not found")
        elif version < self.oldest:
            stream.put_nowait(error_event(410))
            stream.put_nowait(None)
        for at, line in self._history:
            if at > version:
                for chunk in self.cut(line):
                    stream.put_nowait(chunk)

    def _note(self, verb: str, params: Mapping[str, str]) -> None:
        self.requests.append(Request(verb, asyncio.get_running_loop().time(), dict(params)))


def error_event(code: int) -> bytes:
    """An ERROR event."""
    status = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old resource version"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def _bytes_or_raise(fault: Exception | bytes) -> bytes:
    if isinstance(fault, Exception):
        raise fault
    return fault


async def _chunks(stream: asyncio.Queue[bytes | Exception | None]) -> AsyncIterator[bytes]:
    while (chunk := await stream.get()) is not None:
        yield _bytes_or_raise(chunk)
