"""Requests and their whole replies: code, headers and body, whether granted or refused."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.testenv.client import Client

    Json = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_TIMEOUT = 90.0
_IDLE = 30.0
"""Seconds after which a connection is not used again: kube-apiserver closes it after 90."""
_SILENCE = 15.0
_STORAGE_IN_THE_MAKING = "storage is (re)initializing"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Json:
        """The JSON in it."""
        read: Json = json.loads(self.text)
        return read

    @property
    def warnings(self) -> list[str]:
        """What the Warning headers say, without code and agent."""
        found = self.headers.get("Warning", "")
        return [json.loads(part.split(" - ", 1)[1]) for part in found.split("\n") if part]

    @property
    def reason(self) -> str:
        """Of a refusal, for programs."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """Of a refusal, for people."""
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> list[tuple[str, str]]:
        """What is wrong with which field: reason and field."""
        found = self.body.get("details", {}).get("causes", [])
        return [(each.get("reason", ""), each.get("field", "")) for each in found]

    def granted(self, code: int = 200) -> Json:
        """The body of a request that has to be granted."""
        assert self.code == code, f"{self.code}: {self.text}"
        return self.body

    def refused(self, code: int, reason: str, *said: str) -> Reply:
        """This, of a request that has to be refused, with all of this in the message."""
        assert (self.code, self.reason) == (code, reason), f"{self.code}: {self.text}"
        assert self.body["kind"] == "Status"
        assert self.body["status"] == "Failure"
        assert self.body["code"] == code
        for each in said:
            assert each in self.message, self.message
        return self


class Watching:
    """The events of a watch that is under way."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[Json]:
        for line in self._reply:
            yield json.loads(line)

    def next(self) -> tuple[str, Json]:
        """The next one: its type and its object."""
        line = self._reply.readline()
        assert line, "the watch ended"
        event = json.loads(line)
        return event["type"], event["object"]

    def take(self, count: int) -> list[tuple[str, str]]:
        """So many: the type and the name of each."""
        events = [self.next() for _ in range(count)]
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in events]


class Talk:
    """One identity at one server. May be used from many threads; each has a connection of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        parts = urlsplit(client.server)
        self._host, self._port = parts.hostname or "", parts.port
        self._context = ssl.create_default_context(cafile=str(client.ca))
        if client.identity is not None:
            self._context.load_cert_chain(client.identity.certificate, client.identity.key)
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close every connection."""
        for each in self._connections:
            each.close()

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        **query: str,
    ) -> Reply:
        """One request and its reply. A body that is text is sent as it is.

        A kind whose CRD is new answers 429 for a moment, until its storage is made: that is waited out.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        headers = self._headers(accept) | ({"Content-Type": content_type} if data is not None else {})
        deadline = time.monotonic() + _TIMEOUT
        while True:
            reply = self._once(method, target, data, headers)
            if reply.code != 429 or _STORAGE_IN_THE_MAKING not in reply.text or time.monotonic() > deadline:
                return reply
            time.sleep(0.05)

    def get(self, path: str, **query: str) -> Reply:
        """Read."""
        return self("GET", path, **query)

    def create(self, path: str, body: object, **query: str) -> Reply:
        """Create."""
        return self("POST", path, body, **query)

    def replace(self, path: str, body: object, **query: str) -> Reply:
        """Replace."""
        return self("PUT", path, body, **query)

    def patch(self, path: str, body: object, content_type: str = MERGE, **query: str) -> Reply:
        """Change."""
        return self("PATCH", path, body, content_type=content_type, **query)

    def delete(self, path: str, body: object = None, **query: str) -> Reply:
        """Delete."""
        return self("DELETE", path, body, **query)

    @contextmanager
    def watch(self, path: str, *, accept: str = JSON, **query: str) -> Iterator[Watching]:
        """A watch; where it says nothing for too long, reading from it raises `TimeoutError`."""
        connection = self._connect(_SILENCE)
        try:
            connection.request("GET", f"{path}?{urlencode({'watch': 'true', **query})}", headers=self._headers(accept))
            reply = connection.getresponse()
            assert reply.status == http.client.OK, reply.read()
            yield Watching(reply)
        finally:
            connection.close()

    def _once(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect(_TIMEOUT)
            self._connections.append(connection)
        elif time.monotonic() - self._local.used > _IDLE:
            connection.close()  # it connects again by itself; the server may have closed it
        self._local.used = time.monotonic()
        try:
            connection.request(method, target, data, headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        return Reply(reply.status, _joined(reply), text)

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)

    def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": "cidrella-conformance"}
        if self._client.token:
            headers["Authorization"] = f"Bearer {self._client.token}"
        return headers


def _joined(reply: http.client.HTTPResponse) -> dict[str, str]:
    """The headers; those that come more than once with a line for each."""
    found: dict[str, str] = {}
    for name, value in reply.getheaders():
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found
