"""One of the two servers: what it answered so far, and its answers with everything in them that is its own by right.

What a server decides by itself, uids, versions, times, addresses, becomes a number in the order in which it was first
seen; so two servers that did the same say the same.
"""

from __future__ import annotations

import http.client
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import yaml

from tests.conformance.lockstep.requests import key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.lockstep.requests import Request
    from tests.conformance.talking import Reply, Talk

    Json = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Addresses below are only given to who names them.
_ADDRESS = re.compile(r"10\.96\.(?!0\.)\d+\.\d+")
_NODE_PORT = re.compile(r"(?<=:)3[0-2]\d{3}(?=/)")
_GENERATED = re.compile(r"\b(gen-\d+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_AGES = frozenset({"Age", "Last Seen", "First Seen", "Created At"})
_DEFINED = frozenset({"networking.x-k8s.io", "cidrella.dev"})
_NOW = timedelta(minutes=20)
# A patch whose result cannot be read: the real server quotes all of what it could not read, in the order of Go's
# structs, and what it says of it is the reader's own words.
_UNREADABLE = re.compile(r'(?<=patch: Invalid value: ").*', re.DOTALL)
# Which address that was to be counts for nothing: it is not given.
_ADDRESS_OBJECT = re.compile(r'(IPAddress\.networking\.k8s\.io )"[^"]*"')
_VERSION = re.compile(
    r"(?<=ResourceVersion in )((?:the )?(?:precondition: |precondition \(|object meta: |record \())(\d+)"
)

NO_ANSWER: Json = {"code": 0}
"""The handler of a request died; the real server's does, of a few patches that are none."""


class Side:
    """A server, in one sequence of requests."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._labels: dict[tuple[str, str], str] = {}
        self._versions: dict[str, list[str]] = {}
        self._uids: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._contents: dict[str, Json] = {}
        self._latest = 0
        self.complaints: list[str] = []
        """What cannot be right, whatever another server says."""

    def answer(self, request: Request) -> Json:
        """Send it: code, warnings and body, comparable with another server's."""
        sent = request.filled(self._known)
        try:
            reply = self._talk(
                sent.method, sent.path, sent.body, content_type=sent.content_type, accept=sent.accept, **sent.query
            )
        except http.client.RemoteDisconnected:
            return NO_ANSWER
        body = _read(reply)
        self._remember(request, body)
        return {
            "code": reply.code,
            "type": reply.headers.get("Content-Type", ""),
            "warnings": sorted(self._text(each) for each in reply.warnings),
            "body": self._normal(body),
        }

    def events(self, path: str, since: str) -> list[Json]:
        """Everything that happened in a collection since a version, as it came."""
        with self._talk.watch(path, resourceVersion=since, timeoutSeconds="3") as watching:
            return list(watching)

    def normal(self, events: list[Json]) -> list[Any]:
        """What came, comparable with what came from another server; without changes of what is not compared."""
        told: dict[str, Any] = {}
        kept = []
        for event in map(self._normal, events):
            name = event["object"]["metadata"].get("name", "")
            if event["type"] != "MODIFIED" or told.get(name) != event["object"]:
                kept.append(event)
            told[name] = event["object"]
        return kept

    # --- what requests may name ---

    def _known(self, what: str, path: str, age: int) -> str:
        if what == "version":
            seen = self._versions.get(key_of(path), [])
            return seen[-1 - age] if age < len(seen) else "1"
        if what == "uid":
            return self._uids.get(key_of(path), "11111111-1111-4111-8111-111111111111")
        return self._tokens.get(path, "")

    def _remember(self, request: Request, body: Any) -> None:
        if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
            return
        metadata = body["metadata"]
        if request.verb == "list":
            self._tokens[request.path] = metadata.get("continue", "")
            return
        if body.get("kind") == "Table" and body["rows"]:
            metadata = body["rows"][0]["object"]["metadata"]
        name, version = metadata.get("name"), metadata.get("resourceVersion")
        if not name or not version or request.query.get("dryRun"):
            return
        key = key_of(request.path if request.method != "POST" else f"{request.path}/{name}")
        self._uids[key] = metadata.get("uid", "")
        seen = self._versions.setdefault(key, [])
        if version not in seen:
            if self._is_as_before(key, version):
                self._labels["version", version] = self._label("version", seen.pop())
            elif request.method == "POST" and int(version) <= self._latest:
                self.complaints.append(f"{request}: version {version} after {self._latest}")
            seen.append(version)
            self._latest = max(self._latest, int(version))

    def _is_as_before(self, path: str, version: str) -> bool:
        """Whether a version is the one before, but for what is not compared: who manages which field."""
        found = self._talk.get(path)
        if found.code != 200 or found.body["metadata"]["resourceVersion"] != version:
            return False
        body = found.body
        del body["metadata"]["resourceVersion"]
        body["metadata"].pop("managedFields", None)
        before, self._contents[path] = self._contents.get(path), body
        return before == body

    # --- what is compared ---

    def _label(self, kind: str, value: str) -> str:
        found = {label for (each, _), label in self._labels.items() if each == kind}  # of which some have two values
        return self._labels.setdefault((kind, value), f"<{kind} {len(found)}>")

    def _normal(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._normal(each, key) for each in value]
        if isinstance(value, str):
            return self._string(value, key)
        return "<port>" if key == "nodePort" and value else value

    def _object(self, value: Json) -> Json:
        value = {key: each for key, each in value.items() if key != "managedFields"}
        if value.get("kind") == "Table":
            value = self._table(value)
        if "items" in value or "rows" in value:
            metadata = dict(value.get("metadata") or {})
            metadata.pop("resourceVersion", None)
            if metadata.get("continue"):
                metadata["continue"] = "<token>"
            value["metadata"] = metadata
        if value.get("field") == "patch":
            value["message"] = "<unreadable>"
        if value.get("kind") == "Status":
            value = _in_order(value)
        return {key: self._normal(each, key) for key, each in sorted(value.items())}

    def _table(self, table: Json) -> Json:
        """Without ages, and without how columns are described."""
        columns = table.get("columnDefinitions") or []
        ages = {number for number, column in enumerate(columns) if column["name"] in _AGES}
        rows = [
            {**row, "cells": ["<age>" if number in ages else cell for number, cell in enumerate(row["cells"])]}
            for row in table["rows"]
        ]
        told = [{key: each for key, each in column.items() if key != "description"} for column in columns]
        return {**table, "columnDefinitions": told, "rows": rows}

    def _string(self, value: str, key: str) -> str:
        if key == "resourceVersion" and value.isdigit():
            return self._label("version", value)
        if _TIME.fullmatch(value) and abs(datetime.now(UTC) - datetime.fromisoformat(value)) < _NOW:
            return "<now>"
        return self._text(value)

    def _text(self, text: str) -> str:
        rules: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [
            (_UNREADABLE, lambda _: "<unreadable>"),
            (_ADDRESS_OBJECT, lambda found: found[1]),
            (_VERSION, lambda found: found[1] + self._label("version", found[2])),
            (_UID, lambda found: self._label("uid", found[0])),
            (_ADDRESS, lambda found: self._label("address", found[0])),
            (_NODE_PORT, lambda _: "<port>"),
            (_GENERATED, lambda found: f"{found[1]}<random>"),
        ]
        for pattern, replaced in rules:
            text = pattern.sub(replaced, text)
        return text


def _in_order(status: Json) -> Json:
    """Faults of what CRDs define come in an order by chance; all of the message but its beginning repeats them."""
    details = status.get("details") or {}
    causes = details.get("causes", [])
    if details.get("group") not in _DEFINED or len(causes) < 2:
        return status
    message = status["message"].partition(" is invalid: ")[0]
    return {**status, "message": message, "details": {**details, "causes": sorted(causes, key=str)}}


def _read(reply: Reply) -> Any:
    if reply.headers.get("Content-Type", "").startswith("application/yaml"):
        return yaml.safe_load(reply.text)
    try:
        return json.loads(reply.text)
    except ValueError:
        return reply.text
