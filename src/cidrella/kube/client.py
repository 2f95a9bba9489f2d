"""One server's API: bytes and structs go out and come in, and what goes wrong is a `KubeError`.

Rules:

- Nothing is sent twice, except once more after a 401, and only if there are other credentials then. A 401 that is no
  `Status` of Kubernetes may come from an intermediary that forwards the request later: after it no reply and no error
  of the same request is a definite refusal.
- A success has to look like one: a reply that is not JSON where JSON was asked for is none.

The paths given here are what stands in the URL after the server, with their parts escaped where that is needed; names
of Kubernetes objects never need it.
"""

from __future__ import annotations

import time
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self, TypeVar
from urllib.parse import urlencode

import msgspec

from cidrella.kube.errors import ApiError, ConfigError, KubeError, MalformedReplyError, quote, refusal
from cidrella.kube.transport import Call, Reply, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from types import TracebackType

    from cidrella.kube.credentials import Access, Credentials
    from cidrella.kube.transport import Stream

T = TypeVar("T")

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

_UNAUTHORIZED: Final = 401
_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}
_encode: Final = msgspec.json.Encoder().encode


class _ReceiptMeta(msgspec.Struct):
    uid: str


class Receipt(msgspec.Struct):
    """The least that a reply to a write says if it is one: which object was written. For those who want no more."""

    metadata: _ReceiptMeta


class Client:
    """A client with connections of its own, made when the first request is, in the event loop that makes it.

    `timeout` is for a whole request with its reply, in seconds; watches have it until the reply begins. At most
    `connections` are open at a time, watches included. `observe` is told of each request that was sent: its verb (get,
    list, watch, create, replace, patch, delete), the code of the reply or "none", and the seconds it took.
    """

    def __init__(
        self,
        access: Access,
        *,
        timeout: float = 15.0,
        connections: int = 100,
        observe: Callable[[str, str, float], None] | None = None,
    ) -> None:
        self.access = access
        self._transport = Transport(access, timeout=timeout, connections=connections)
        self._observe = observe

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, those of requests under way too. Nothing can be sent afterwards."""
        await self._transport.close()

    async def request(  # noqa: PLR0913 -- a request has as many parts
        self,
        method: str,
        path: str,
        *,
        verb: str = "",
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """The body of the reply, which is JSON if that was asked for. Raises KubeError.

        `verb` is what the request is counted as, by default what its method means for one object. What is not JSON
        (`/readyz`) has to be asked for as such.
        """
        call = Call(method, self._url(path, params), body, content_type, accept)
        verb = verb or _VERBS[method]
        credentials = await self.access.credentials()
        reply = await self._exchange(call, verb, credentials, timeout)
        if reply.code != _UNAUTHORIZED:
            _check(call, reply)
            return reply.body
        rejected = _refusal(reply)
        try:
            if fresh := await self._other_than(credentials):
                reply = await self._exchange(call, verb, fresh, timeout)
            _check(call, reply)
        except ApiError as error:
            error.is_status = error.is_status and rejected.is_status
            raise
        except ConfigError as error:
            if rejected.is_status:
                raise
            raise rejected from error
        return reply.body

    async def get(self, path: str, kind: type[T], **params: str) -> T:
        """Read an object, or a list if that is what is at the path."""
        return _decode(await self.request("GET", path, params=params), kind)

    async def create(self, path: str, obj: object, kind: type[T], **params: str) -> T:
        """Create an object in the collection at the path, and return it as stored."""
        return _decode(await self.request("POST", path, params=params, body=_encode(obj)), kind)

    async def replace(self, path: str, obj: object, kind: type[T], **params: str) -> T:
        """Replace the object at the path, and return it as stored."""
        return _decode(await self.request("PUT", path, params=params, body=_encode(obj)), kind)

    async def patch(
        self,
        path: str,
        patch: object,
        kind: type[T],
        *,
        content_type: str = MERGE_PATCH,
        accept: str = JSON,
        **params: str,
    ) -> T:
        """Patch the object at the path, and return it as stored, or what of it `accept` asks for."""
        body = _encode(patch)
        reply = await self.request("PATCH", path, params=params, body=body, content_type=content_type, accept=accept)
        return _decode(reply, kind)

    async def delete(self, path: str, *, uid: str = "", **params: str) -> None:
        """Delete the object at the path; with a uid, only if it is still that one (409 if not)."""
        body = None
        if uid:
            body = _encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})
        await self.request("DELETE", path, params=params, body=body)

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch that has begun, as the chunks of bytes that come in; they end when the server ends it.

        `watch=true` is sent along. Raises KubeError, from the chunks as well. There is no time limit once it has begun:
        whoever wants to give up on a silent watch does so from outside.
        """
        call = Call("GET", self._url(path, {"watch": "true", **params}), None, JSON, JSON)
        credentials = await self.access.credentials()
        stream = await self._open(call, credentials)
        try:
            if stream.head.code == _UNAUTHORIZED and (fresh := await self._other_than(credentials)):
                stream.close()
                stream = await self._open(call, fresh)
            _check(call, stream.head if stream.head.code == 200 else await stream.read())
            async with aclosing(stream.chunks()) as chunks:
                yield chunks
        finally:
            stream.close()

    async def _exchange(self, call: Call, verb: str, credentials: Credentials, timeout: float | None) -> Reply:
        began = time.perf_counter()
        try:
            reply = await self._transport.exchange(call, credentials, timeout)
        except KubeError:
            self._tell(verb, "none", began)
            raise
        self._tell(verb, str(reply.code), began)
        return reply

    async def _open(self, call: Call, credentials: Credentials) -> Stream:
        began = time.perf_counter()
        try:
            stream = await self._transport.open(call, credentials)
        except KubeError:
            self._tell("watch", "none", began)
            raise
        self._tell("watch", str(stream.head.code), began)
        return stream

    def _tell(self, verb: str, code: str, began: float) -> None:
        if self._observe:
            self._observe(verb, code, time.perf_counter() - began)

    async def _other_than(self, rejected: Credentials) -> Credentials | None:
        """Credentials to try after the server did not take these; None if there are no others."""
        self.access.rejected(rejected)
        fresh = await self.access.credentials()
        return None if fresh is rejected else fresh

    def _url(self, path: str, params: Mapping[str, str] | None) -> str:
        query = f"?{urlencode(params)}" if params else ""
        return f"{self.access.server}{path}{query}"


def _check(call: Call, reply: Reply) -> None:
    """Raise what a reply other than the success that was asked for stands for."""
    if not 200 <= reply.code < 300:
        raise _refusal(reply)
    if "json" in call.accept and "json" not in reply.content_type:
        raise MalformedReplyError(f"{call}: not JSON but {reply.content_type or 'nothing'}: {quote(reply.body)}")


def _refusal(reply: Reply) -> ApiError:
    return refusal(reply.code, reply.retry_after, reply.body)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReplyError(f"not a {kind.__name__}: {error}: {quote(body)}") from error
