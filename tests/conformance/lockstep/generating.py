"""Random requests, from a seed alone: what servers answer does not decide what is asked next."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from tests.conformance.lockstep.material import (
    ADDRESSES,
    FINALIZERS,
    KINDS,
    LABELS,
    NONSENSE,
    SELECTORS,
    UNTYPED,
)
from tests.conformance.lockstep.requests import Request, continue_of, uid_of, version_of
from tests.conformance.talking import JSON, JSON_PATCH, MERGE, PARTIAL, PARTIAL_LIST, STRATEGIC, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.conformance.lockstep.material import Kind

    Json = dict[str, Any]

_PATHS = ("/apis/networking.x-k8s.io/v1/nothings", "/api/v1/nothings/a", "/apis/nothing.example.com/v1/things")

_BEGINNING = 0.12
"""Of a sequence: objects are made, and looked at."""
_FIRST = frozenset({"create", "get"})


class Generator:
    """Requests about a few objects of each kind, in one namespace."""

    def __init__(self, rng: Random, namespace: str) -> None:
        self._rng = rng
        self._namespace = namespace
        self._generated = 0
        self._makers: dict[str, tuple[int, Callable[[Kind], Request]]] = {
            "create": (24, self._create),
            "get": (8, self._get),
            "list": (10, self._list),
            "replace": (14, self._replace),
            "patch": (30, self._patch),
            "delete": (9, self._delete),
            "deletecollection": (1, self._delete_collection),
        }

    def sequence(self, length: int) -> list[Request]:
        """So many requests."""
        return [self._request(begin=number < length * _BEGINNING) for number in range(length)]

    def _request(self, *, begin: bool) -> Request:
        if self._rng.random() < 0.01:
            return Request("get", "GET", self._rng.choice(_PATHS))
        kind = self._rng.choices(list(KINDS.values()), [each.weight for each in KINDS.values()])[0]
        verbs = [verb for verb in self._makers if verb in kind.verbs and (verb in _FIRST or not begin)]
        verb = self._rng.choices(verbs, [self._makers[each][0] for each in verbs])[0]
        made = self._makers[verb][1](kind)
        if verb in kind.only_dry and made.method != "GET":
            made.query["dryRun"] = "All"
        if made.query.get("dryRun") and isinstance(made.body, dict):
            _leave_out_address(made.body)
        return made

    # --- what is asked ---

    def _create(self, kind: Kind) -> Request:
        body = self._body(kind, self._name(kind))
        if self._chance(0.25):
            body = self._spoiled(body)
        metadata = body["metadata"]
        if isinstance(metadata, dict) and self._chance(0.06):
            self._generated += 1
            metadata["generateName"] = f"gen-{self._generated}-"
            if self._chance(0.8):
                metadata.pop("name", None)
        if isinstance(metadata, dict) and self._chance(0.03):
            metadata["resourceVersion"] = self._rng.choice(("1", "0", "x"))
        return Request("create", "POST", self._path(kind), body, query=self._write_query(), accept=self._accept_one())

    def _get(self, kind: Kind) -> Request:
        path = self._path(kind, self._name(kind))
        query = {}
        if kind.status and self._chance(0.2):
            path += "/status"
        elif self._chance(0.1):
            query["resourceVersion"] = self._rng.choice(("0", version_of(path), "x"))
        return Request("get", "GET", path, query=query, accept=self._accept_one())

    def _list(self, kind: Kind) -> Request:
        path = self._path(kind)
        query = self._selection(kind)
        if self._chance(0.35):
            query["limit"] = self._rng.choice(("1", "2", "3", "100"))
        if self._chance(0.25):
            query["continue"] = continue_of(path)
        elif self._chance(0.2):
            query["resourceVersion"] = version_of(self._path(kind, self._name(kind)), self._rng.randrange(3))
            query["resourceVersionMatch"] = self._rng.choice(("Exact", "NotOlderThan"))
        elif self._chance(0.04):
            query[self._rng.choice(("resourceVersion", "resourceVersionMatch", "limit"))] = "x"
        accept = self._rng.choices((JSON, TABLE, PARTIAL_LIST, PARTIAL), (70, 20, 8, 2))[0]
        return Request("list", "GET", path, query=query, accept=accept)

    def _replace(self, kind: Kind) -> Request:
        name = self._name(kind)
        path = self._path(kind, name)
        body = self._body(kind, name)
        body["metadata"] |= self._preconditions(path, 0.8, odd=not kind.creates)
        target = path
        if kind.status and kind.put_status and self._chance(0.3):
            target = f"{path}/status"
            for pointer, values in kind.status.items():
                if self._chance(0.6):
                    _put(body, pointer, self._rng.choice(values))
        if self._chance(0.05):
            body["metadata"]["name"] = self._rng.choice(("other", "", "Not Valid"))
        if self._chance(0.2):
            body = self._spoiled(body)
        return Request("replace", "PUT", target, body, query=self._write_query(), accept=self._accept_one())

    def _patch(self, kind: Kind) -> Request:
        path = self._path(kind, self._name(kind))
        fields = dict(kind.values)
        target = path
        if kind.status and self._chance(0.35):
            target, fields = f"{path}/status", fields | kind.status
        forms = (MERGE, JSON_PATCH, STRATEGIC)
        form = self._rng.choices(forms, (45, 30, 25 if kind.strategic else 2))[0]
        body: Any = self._steps(fields, path) if form == JSON_PATCH else self._merge(fields, path)
        if self._chance(0.02):
            body = self._rng.choice(("{", "[]", "null", "5", '{"a": 1}'))
        elif self._chance(0.01):
            form = JSON
        query = self._write_query()
        return Request("patch", "PATCH", target, body, form, query=query, accept=self._accept_one())

    def _delete(self, kind: Kind) -> Request:
        path = self._path(kind, self._name(kind))
        # Options in the body take the place of those in the query.
        options = None if "delete" in kind.only_dry else self._delete_options(path)
        return Request("delete", "DELETE", path, options, query=self._dry_run(0.08))

    def _delete_collection(self, kind: Kind) -> Request:
        query = self._selection(kind, 0.7) | self._dry_run(0.2)
        return Request("deletecollection", "DELETE", self._path(kind), query=query)

    # --- what it is made of ---

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _name(self, kind: Kind) -> str:
        name = self._rng.choice(kind.names)
        return name.replace("${namespace}", self._namespace)

    def _path(self, kind: Kind, name: str = "") -> str:
        path = kind.path.format(namespace=self._namespace)
        return f"{path}/{name}" if name else path

    def _body(self, kind: Kind, name: str) -> Json:
        text = json.dumps(kind.good(self._rng, name)).replace("${namespace}", self._namespace)
        body: Json = json.loads(text)
        metadata = body["metadata"]
        if labels := self._rng.choice(LABELS):
            metadata["labels"] = dict(labels)
        if self._chance(0.15):
            metadata["annotations"] = {"example.com/note": self._rng.choice(("x", "y"))}
        if self._chance(0.12):
            metadata["finalizers"] = list(self._rng.choice(FINALIZERS))
        if self._chance(0.05):
            owner = {"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "u-1"}
            metadata["ownerReferences"] = [owner | self._rng.choice(({}, {"controller": True}, {"name": ""}))]
        return body

    def _preconditions(self, path: str, usually: float, *, odd: bool = True) -> Json:
        """The version and the uid that are expected: mostly those that are, perhaps what is no version."""
        found: Json = {}
        if self._chance(usually):
            found["resourceVersion"] = version_of(path, 0 if self._chance(0.85) else self._rng.randrange(1, 4))
        elif odd and self._chance(0.1):
            found["resourceVersion"] = self._rng.choice(("1", "x", "0", ""))
        if self._chance(0.15):
            found["uid"] = uid_of(path) if self._chance(0.8) else "22222222-2222-4222-8222-222222222222"
        return found

    def _merge(self, fields: dict[str, tuple[Any, ...]], path: str) -> Json:
        patch: Json = {}
        for pointer in self._rng.sample(sorted(fields), min(len(fields), self._rng.randrange(3))):
            _put(patch, pointer, self._value(fields[pointer]))
        if self._chance(0.6) or not patch:
            self._patch_metadata(patch.setdefault("metadata", {}))
        if self._chance(0.25):
            patch.setdefault("metadata", {}).update(self._preconditions(path, 0.5))
        if self._chance(0.03):
            key = self._rng.choice(("kind", "apiVersion", "nonsense"))
            patch = {"metadata": patch.get("metadata", {})} if key in UNTYPED else patch
            patch[key] = "x"
        return patch

    def _patch_metadata(self, metadata: Json) -> None:
        choice = self._rng.random()
        if choice < 0.5:
            metadata["labels"] = {
                "color": self._rng.choice(("red", "blue", None)),
                "size": self._rng.choice(("9", None)),
            }
        elif choice < 0.75:
            metadata["finalizers"] = self._rng.choice((*FINALIZERS, None))
        elif choice < 0.9:
            metadata["annotations"] = self._rng.choice(({"example.com/note": "z"}, None, {}))
        else:
            key = self._rng.choice(
                ("name", "namespace", "uid", "generation", "creationTimestamp", "labels", "nonsense")
            )
            metadata[key] = self._rng.choice(("x", 5, None))

    def _steps(self, fields: dict[str, tuple[Any, ...]], path: str) -> list[Json]:
        """A JSON patch."""
        places = [
            "/metadata/labels",
            "/metadata/labels/color",
            "/metadata/annotations",
            "/metadata/finalizers",
            *fields,
        ]
        steps = []
        for _ in range(self._rng.randrange(1, 4)):
            place = self._rng.choice(places)
            operation = self._rng.choices(
                ("add", "replace", "remove", "test", "copy", "move", "x"), (50, 20, 15, 5, 4, 4, 2)
            )[0]
            step: Json = {"op": operation, "path": place}
            if operation in {"add", "replace", "test"}:
                step["value"] = self._step_value(place, fields)
            elif operation in {"copy", "move"}:
                step["from"] = self._rng.choice(places)
            steps.append(step)
        if self._chance(0.15):
            steps.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(path)})
        return steps

    def _step_value(self, place: str, fields: dict[str, tuple[Any, ...]]) -> Any:
        known: dict[str, tuple[Any, ...]] = {
            "/metadata/labels": ({"color": "red"}, {"size": "9"}),
            "/metadata/labels/color": ("red", "green"),
            "/metadata/annotations": ({"example.com/note": "z"},),
            "/metadata/finalizers": FINALIZERS,
        }
        return self._value(known.get(place) or fields[place])

    def _value(self, good: tuple[Any, ...]) -> Any:
        return deepcopy(self._rng.choice(good if self._chance(0.85) else NONSENSE))

    def _spoiled(self, body: Json) -> Json:
        """With something wrong in it, perhaps."""
        places = list(_places(body))
        parent, key = self._rng.choice(places)
        choice = self._rng.random()
        if choice < 0.3:
            del parent[key]
        elif choice < 0.45 and isinstance(parent, dict):
            parent["nonsense"] = self._rng.choice((1, "x", {"a": 1}))
        else:
            parent[key] = deepcopy(self._rng.choice(NONSENSE))
        body.setdefault("metadata", {})
        return body

    def _selection(self, kind: Kind, usually: float = 0.4) -> dict[str, str]:
        query = {}
        if self._chance(usually):
            query["labelSelector"] = (
                self._rng.choice(SELECTORS) if self._chance(0.9) else self._rng.choice(("a b", "=x"))
            )
        if self._chance(usually / 2):
            named = (f"metadata.name={kind.names[0]}", f"metadata.name!={kind.names[0]}")
            fields = self._rng.choice((*named, *kind.selectors, "spec.nonsense=x", "metadata.name"))
            query["fieldSelector"] = fields.replace("${namespace}", self._namespace)
        return query

    def _write_query(self) -> dict[str, str]:
        query = self._dry_run(0.1)
        if self._chance(0.3):
            query["fieldValidation"] = self._rng.choices(("Strict", "Warn", "Ignore", "x"), (50, 25, 20, 5))[0]
        return query

    def _dry_run(self, probability: float) -> dict[str, str]:
        return {"dryRun": self._rng.choices(("All", "x"), (95, 5))[0]} if self._chance(probability) else {}

    def _delete_options(self, path: str) -> Any:
        choice = self._rng.random()
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if choice < 0.5:
            return None
        if choice < 0.7:
            return options | {"preconditions": self._preconditions(path, 0.7)}
        if choice < 0.9:
            return options | self._rng.choice(
                ({"propagationPolicy": "Background"}, {"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {})
            )
        return self._rng.choice(
            ("{", {"propagationPolicy": "x"}, {"dryRun": ["x"]}, {"kind": "x"}, options | {"gracePeriodSeconds": "x"})
        )

    def _accept_one(self) -> str:
        return self._rng.choices((JSON, TABLE, PARTIAL, "application/yaml"), (88, 5, 5, 2))[0]


def _leave_out_address(body: Json) -> None:
    spec = body.get("spec")
    if isinstance(spec, dict) and spec.get("clusterIP") in ADDRESSES:
        del spec["clusterIP"]


def _put(body: Json, pointer: str, value: Any) -> None:
    """Set a field by its JSON pointer."""
    *parents, last = (part.replace("~1", "/") for part in pointer.split("/")[1:])
    for part in parents:
        body = body.setdefault(part, {})
    body[last] = deepcopy(value)


def _places(value: Any) -> Any:
    """Every place in a document, as its parent and its key."""
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for key in range(len(value)):
            yield value, key
            yield from _places(value[key])
