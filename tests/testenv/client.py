"""A plain client of the Kubernetes API, on the standard library alone.

Tests look at the cluster through this, and not through the code under test: what we claim is checked by something that
shares nothing with it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.testenv.certs import Identity

    Json = dict[str, Any]

T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
_TIMEOUT = 90.0
_IDLE = 30.0
"""Seconds after which a connection that nobody used is not trusted with a write: the API server closes idle ones."""
_STORAGE_IN_THE_MAKING = "storage is (re)initializing"


class ApiError(Exception):
    """The API server's refusal, with the Status it sent."""

    def __init__(self, code: int, body: bytes) -> None:
        self.code = code
        try:
            self.status: Json = json.loads(body)
        except ValueError:
            self.status = {}
        self.reason: str = self.status.get("reason", "")
        self.message: str = self.status.get("message", body.decode(errors="replace"))
        super().__init__(f"{code} {self.reason}: {self.message}")


class Client:
    """One identity at one server. May be used from many threads; each has a connection of its own."""

    def __init__(
        self, server: str, ca: Path, identity: Identity | None = None, token: str = "", timeout: float = _TIMEOUT
    ) -> None:
        self.server = server
        self._timeout = timeout
        self.ca = ca
        self.identity = identity
        self.token = token
        self._context = ssl.create_default_context(cafile=str(ca))
        if identity is not None:
            self._context.load_cert_chain(identity.certificate, identity.key)
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.close()
        self._connections = []
        self._local = threading.local()

    def get(self, path: str, **parameters: str) -> Json:
        """Read an object or a list."""
        return self.request("GET", path, parameters=parameters)

    def items(self, path: str, **parameters: str) -> list[Json]:
        """The objects of a collection."""
        items: list[Json] = self.get(path, **parameters)["items"]
        return items

    def create(self, path: str, body: Json, **parameters: str) -> Json:
        """Create an object in a collection."""
        return self.request("POST", path, body, parameters=parameters)

    def replace(self, path: str, body: Json, **parameters: str) -> Json:
        """Replace an object."""
        return self.request("PUT", path, body, parameters=parameters)

    def patch(self, path: str, body: Json, content_type: str = MERGE_PATCH, **parameters: str) -> Json:
        """Change an object."""
        return self.request("PATCH", path, body, content_type=content_type, parameters=parameters)

    def delete(self, path: str, **parameters: str) -> Json:
        """Delete an object."""
        return self.request("DELETE", path, parameters=parameters)

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        parameters: Mapping[str, str] | None = None,
    ) -> Json:
        """One request and its reply. Raises `ApiError` for a refusal, `OSError` where there is no reply.

        A GET is tried once more on a new connection: the old one may have been closed while nobody used it. A kind
        whose CRD is new or was just replaced has its storage made, which answers 429 for a moment, now and then also
        after it answered once: that is waited out, and any other 429 is the test's to see.
        """
        target = f"{path}?{urlencode(parameters)}" if parameters else path
        data = json.dumps(body).encode() if body is not None else None
        headers = self._headers(content_type if data else "")
        return self._once_storage_is_made(lambda: self._request(method, target, data, headers))

    def _request(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Json:
        for attempt in (1, 2):
            connection = self._connection()
            try:
                connection.request(method, target, data, headers)
                reply = connection.getresponse()
                text = reply.read()
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if method != "GET" or attempt == 2:
                    raise ConnectionError(f"{method} {target}: {error!r}") from error
        if reply.status >= http.client.BAD_REQUEST:
            raise ApiError(reply.status, text)
        return json.loads(text) if text[:1] == b"{" else {"text": text.decode()}

    def watch(self, path: str, resource_version: str, timeout: float = _TIMEOUT, **parameters: str) -> Iterator[Json]:
        """The events of a collection since a version, until the time is up."""
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(int(timeout) + 1)}
        connection = self._new_connection(timeout)
        try:
            target = f"{path}?{urlencode(query | parameters)}"
            for line in self._once_storage_is_made(lambda: self._stream(connection, target)):
                yield json.loads(line)
        finally:
            connection.close()

    def _stream(self, connection: http.client.HTTPSConnection, target: str) -> http.client.HTTPResponse:
        connection.request("GET", target, headers=self._headers(""))
        reply = connection.getresponse()
        if reply.status != http.client.OK:
            raise ApiError(reply.status, reply.read())
        return reply

    def _once_storage_is_made(self, attempt: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return attempt()
            except ApiError as error:
                if _STORAGE_IN_THE_MAKING not in error.message or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def wait(self, path: str, met: Callable[[dict[str, Json]], bool], timeout: float = _TIMEOUT) -> dict[str, Json]:
        """Wait, by watching, until the objects of a collection, by name, meet a condition. Raises `TimeoutError`.

        A watch may end before: the API server drops who reads too slowly. Then it is listed and watched anew.
        """
        deadline = time.monotonic() + timeout
        while True:
            listed = self.get(path)
            found: dict[str, Json] = {each["metadata"]["name"]: each for each in listed["items"]}
            if met(found) or self._follow(path, listed["metadata"]["resourceVersion"], found, met, deadline):
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path}: not met within {timeout} s; last seen: {sorted(found)[:10]}")

    def _follow(
        self, path: str, version: str, found: dict[str, Json], met: Callable[[dict[str, Json]], bool], deadline: float
    ) -> bool:
        """Keep objects up to date, by watching, until they meet a condition, or the watch or the time ends."""
        try:
            for event in self.watch(path, version, max(1.0, deadline - time.monotonic())):
                if event["type"] == "ERROR":
                    return False
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    found.pop(name, None)
                else:
                    found[name] = event["object"]
                if met(found):
                    return True
                if time.monotonic() > deadline:
                    return False
        except (OSError, http.client.HTTPException):
            pass  # the time is up, or the connection is lost: the caller lists again, and says what is wrong
        return False

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._new_connection(self._timeout)
            self._connections.append(connection)
        elif time.monotonic() - self._local.used > _IDLE:
            connection.close()  # it connects anew by itself
        self._local.used = time.monotonic()
        return connection

    def _new_connection(self, timeout: float) -> http.client.HTTPSConnection:
        parts = urlsplit(self.server)
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=self._context)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "cidrella-tests"}
        if content_type:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers
