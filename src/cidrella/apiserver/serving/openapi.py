"""The API, described in OpenAPI v3: what kubectl explains kinds by, and knows from whether the server validates fields.

Schemas are those that objects are checked with. An object in one that has a title, the name of its type, stands by
itself in the document, and is referred to.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.serving.calls import Answer, encode

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Registry, Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.calls import Call

    Json = dict[str, Any]

_ROOT: Final = "/openapi/v3"
_OLDER: Final = "/openapi/v2"
_NOTHING: Final = ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", b"\x0a\x032.0")
"""The older description, with no kinds in it: kubectl asks for it to apply lists, and passes over what it lacks."""
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_REFERENCE: Final = "#/components/schemas/"
_TYPE_FIELDS: Final = {
    "apiVersion": {"type": "string", "description": "The group and the version that this form of the object is of."},
    "kind": {"type": "string", "description": "What kind of object this is."},
}
_WRITES: Final = ("dryRun", "fieldManager", "fieldValidation")
_METHODS: Final = {"get": (), "put": _WRITES, "patch": (*_WRITES, "force"), "delete": ("dryRun",)}


class OpenApi:
    """Answers to those who ask for the description. Made once for each edition of what is served."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._edition = -1
        self._made: dict[str, bytes] = {}

    def answer(self, call: Call) -> Answer | None:
        """What is at a path; None if that is no place to ask."""
        if call.path == _OLDER:
            return Answer(200, _NOTHING[1], _NOTHING[0])
        if not call.path.startswith(_ROOT):
            return None
        if self._edition != self._registry.edition:
            self._edition = self._registry.edition
            self._made = self._make()
        found = self._made.get(call.path.removeprefix(_ROOT).strip("/"))
        return Answer(200, found) if found else None

    def _make(self) -> dict[str, bytes]:
        made: dict[str, bytes] = {}
        index: Json = {}
        for group in ("", *self._registry.groups()):
            for version in self._registry.versions(group):
                place = f"apis/{group}/{version}" if group else f"api/{version}"
                made[place] = encode(_document(self._registry.served(group, version)))
                digest = hashlib.sha256(made[place]).hexdigest().upper()
                index[place] = {"serverRelativeURL": f"{_ROOT}/{place}?hash={digest}"}
        made[""] = encode({"paths": index})
        return made


def _document(served: list[Served]) -> Json:
    schemas: Json = {_LIST_META: {"type": "object", "description": "What every list has."}}
    paths: Json = {}
    for each in served:
        _describe(each.resource, schemas)
        paths.update(_paths(each.resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Cidrella", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _describe(resource: Resource, schemas: Json) -> None:
    prefix = _prefix(resource)
    root = dict(resource.schema.definition)
    properties = {**_TYPE_FIELDS, **root.get("properties", {})}
    metadata = properties.pop("metadata", {"type": "object"})
    if "properties" in metadata or _OBJECT_META not in schemas:
        named = {**metadata, "title": "ObjectMeta", "properties": metadata.get("properties", {})}
        _hoisted(named, _OBJECT_META.rpartition(".")[0], schemas)
    properties["metadata"] = {"description": "What every object has.", "allOf": [_refer(_OBJECT_META)]}
    root["properties"] = {name: _hoisted(each, prefix, schemas) for name, each in properties.items()}
    root.pop("title", None)
    name = f"{prefix}.{resource.kind}"
    schemas[name] = {**root, "x-kubernetes-group-version-kind": [_kind(resource)]}
    list_kind = resource.list_kind or f"{resource.kind}List"
    schemas[f"{prefix}.{list_kind}"] = {
        "type": "object",
        "description": f"Objects of the kind {resource.kind}.",
        "required": ["items"],
        "properties": {
            **_TYPE_FIELDS,
            "items": {"type": "array", "items": {"allOf": [_refer(name)]}, "description": "The objects."},
            "metadata": {"description": "What every list has.", "allOf": [_refer(_LIST_META)]},
        },
        "x-kubernetes-group-version-kind": [{**_kind(resource), "kind": list_kind}],
    }


def _hoisted(schema: Any, prefix: str, schemas: Json) -> Any:
    """A schema with references to what in it has a name of its own, which goes into the document."""
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _hoisted(each, prefix, schemas) for name, each in found["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if inner in found:
            found[inner] = _hoisted(found[inner], prefix, schemas)
    title = found.pop("title", "")
    if not title or "properties" not in found:
        return found
    description, default = found.pop("description", ""), found.pop("default", None)
    schemas[f"{prefix}.{title}"] = {"type": "object", "description": description, **found}
    kept = {"description": description, "default": default}
    return {**{name: value for name, value in kept.items() if value}, "allOf": [_refer(f"{prefix}.{title}")]}


def _prefix(resource: Resource) -> str:
    """What the names of types begin with: as in Kubernetes for its own, with the group turned round for others."""
    if resource.custom:
        return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}"
    return f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{resource.version}"


def _paths(resource: Resource) -> Json:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    every = f"{root}/{resource.plural}"
    here = f"{inside}/{resource.plural}"
    creating = {"post": _operation(resource, "post", _WRITES)}
    found: Json = {every: {"get": _operation(resource, "list", ())}}
    found[here] = {**found.get(here, {"get": _operation(resource, "list", ())}), **creating}
    one = {method: _operation(resource, method, parameters) for method, parameters in _METHODS.items()}
    found[f"{here}/{{name}}"] = one
    if resource.status:
        found[f"{here}/{{name}}/status"] = {method: one[method] for method in ("get", "put", "patch")}
    return found


def _operation(resource: Resource, action: str, parameters: tuple[str, ...]) -> Json:
    return {
        "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
    }


def _kind(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _refer(name: str) -> Json:
    return {"$ref": f"{_REFERENCE}{name}"}
