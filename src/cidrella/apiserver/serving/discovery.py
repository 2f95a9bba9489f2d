"""What there is, told to clients: groups, versions, and the resources in each. Made once for each edition of it.

There are two forms: one for each group and version by itself, and one that has everything at once, which kubectl asks
for first.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms.negotiation import parse_accept
from cidrella.apiserver.serving.calls import JSON, Answer, encode

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Registry, Served
    from cidrella.apiserver.serving.calls import Call

    Json = dict[str, Any]

_AGGREGATED: Final = "APIGroupDiscoveryList"
_AGGREGATED_MEDIA: Final = f"{JSON};g=apidiscovery.k8s.io;v=v2;as={_AGGREGATED}"
_OF_STATUS: Final = ("get", "patch", "update")
_CUSTOM: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_LAST: Final = ("delete", "deletecollection", "get", "list", "watch")
"""What is left of the verbs of a resource whose definition goes."""


class Discovery:
    """Answers to those who ask what there is."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._edition = -1
        self._made: dict[tuple[str, bool], bytes] = {}

    def answer(self, call: Call) -> Answer | None:
        """What is at a path; None if that is no place to ask."""
        if self._edition != self._registry.edition:
            self._edition = self._registry.edition
            self._made.clear()
        path = call.path.rstrip("/")
        aggregated = path in {"/api", "/apis"} and _wants_all(call.accept)
        key = (path, aggregated)
        if key not in self._made:
            found = self._make(path, aggregated=aggregated)
            if found is None:
                return None
            self._made[key] = encode(found)
        return Answer(200, self._made[key], _AGGREGATED_MEDIA if aggregated else JSON)

    def _make(self, path: str, *, aggregated: bool) -> Json | None:
        match path.split("/")[1:]:
            case ["api"] if aggregated:
                return self._all([""])
            case ["apis"] if aggregated:
                return self._all(self._registry.groups())
            case ["api"]:
                return {"kind": "APIVersions", "versions": self._registry.versions("")}
            case ["api", version]:
                return self._resources("", version)
            case ["apis", *rest]:
                return self._named(rest)
        return None

    def _named(self, rest: list[str]) -> Json | None:
        match rest:
            case []:
                groups = [self._group(each) for each in self._registry.groups()]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case [group] if self._registry.versions(group):
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case [group, version]:
                return self._resources(group, version)
        return None

    def _group(self, group: str) -> Json:
        versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in self._registry.versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Json | None:
        found = self._registry.served(group, version)
        if not found:
            return None
        listed = [entry for each in found for entry in _listed(each)]
        named = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": named, "resources": listed}

    def _all(self, groups: list[str]) -> Json:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated(each) for each in self._registry.served(group, version)],
                        "freshness": "Current",
                    }
                    for version in self._registry.versions(group)
                ],
            }
            for group in groups
        ]
        return {"kind": _AGGREGATED, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _wants_all(accept: str) -> bool:
    return any(
        clause.parameters.get("as") == _AGGREGATED and clause.parameters.get("v") == "v2"
        for clause in parse_accept(accept)
    )


def _verbs(served: Served) -> list[str]:
    """Those of custom resources are in the order in which the real server names them."""
    if served.terminating:
        return list(_LAST)
    return sorted(served.resource.verbs, key=_CUSTOM.index) if served.resource.custom else list(served.resource.verbs)


def _listed(served: Served) -> list[Json]:
    resource = served.resource
    entry: Json = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(served),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "storageVersionHash": _storage_hash(served),
    }
    found = [{name: value for name, value in entry.items() if value or name == "namespaced"}]
    if resource.status and not served.terminating:
        found.append(
            {
                "name": f"{resource.plural}/status",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(_OF_STATUS),
            }
        )
    return found


def _aggregated(served: Served) -> Json:
    resource = served.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Json = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": _verbs(served),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
    }
    if resource.status and not served.terminating:
        entry["subresources"] = [{"subresource": "status", "responseKind": kind, "verbs": list(_OF_STATUS)}]
    return {name: value for name, value in entry.items() if value}


def _storage_hash(served: Served) -> str:
    """What tells clients whether the form in which objects are stored has changed."""
    named = f"{served.resource.group}/{served.resource.version}/{served.resource.kind}"
    return base64.b64encode(hashlib.sha256(named.encode()).digest()[:8]).decode()
