"""Objects of files, brought into the embedded API: created, or changed where they are there already.

What makes others possible comes first: definitions, namespaces, ranges, pools. Of nodes, those that have their blocks
come before those that want some. Otherwise it is the order of the files, one after another: that is the order in which
nodes are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.app.inventory import Fault
from cidrella.kube.errors import ApiError
from cidrella.model.kinds import POOL_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.app.documents import FieldPath
    from cidrella.app.intake import Manifest
    from cidrella.kube.client import Client

    Json = dict[str, object]
    Progress = Callable[[int, int], None]

_NOT_FOUND: Final = 404
_FIRST: Final = ("CustomResourceDefinition", "Namespace", "ServiceCIDR", *(each.kind for each in POOL_KINDS), "Node")
_SERVERS_OWN: Final = frozenset(
    ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
"""Metadata that the server decides on: objects as kubectl prints them have it."""


class _Resource(msgspec.Struct):
    """What a server says of one that it serves."""

    name: str
    kind: str
    namespaced: bool


class _Resources(msgspec.Struct):
    resources: list[_Resource]


class _RefusedError(Exception):
    """Why an object cannot be applied, and which field of it is to blame."""

    def __init__(self, path: FieldPath, message: str) -> None:
        super().__init__(message)
        self.path = path


async def apply_manifests(
    client: Client, manifests: Iterable[Manifest], progress: Progress = lambda _done, _total: None
) -> list[Fault]:
    """Apply all of them; what was refused comes back, with its place. Raises `KubeError` where nobody answers."""
    applier, faults, ordered = _Applier(client), [], sorted(manifests, key=_rank)
    for done, each in enumerate(ordered, 1):
        try:
            await applier.apply(each)
        except _RefusedError as error:
            document = each.document
            field = ".".join(map(str, error.path))
            faults.append(Fault(document.source.name, document.line(error.path), each.subject, field, str(error)))
        progress(done, len(ordered))
    return faults


def _rank(manifest: Manifest) -> tuple[int, bool]:
    place = _FIRST.index(manifest.kind) if manifest.kind in _FIRST else len(_FIRST)
    spec = _mapping(manifest.document.raw).get("spec")
    return place, manifest.kind == "Node" and not _mapping(spec).get("podCIDRs")


class _Applier:
    """Knows where the server has objects of a kind, once it was asked."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: dict[str, dict[str, _Resource]] = {}

    async def apply(self, manifest: Manifest) -> None:
        """Have this object. Raises `_RefusedError`, `KubeError`."""
        resource = await self._resource(manifest)
        body = _body(manifest)
        metadata = _mapping(body["metadata"])
        name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
        if not isinstance(name, str) or not name:
            raise _RefusedError(("metadata", "name"), "is missing")
        within = f"/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"{_group_path(manifest.api_version)}{within}/{resource.name}"
        try:
            await self._write(collection, name, body)
        except ApiError as error:
            if error.unsettled:
                raise
            raise _RefusedError((), f"the API refuses it: {error.message}") from error

    async def _write(self, collection: str, name: str, body: Json) -> None:
        try:
            await self._client.patch(f"{collection}/{name}", body, msgspec.Raw)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            await self._client.create(collection, body, msgspec.Raw)

    async def _resource(self, manifest: Manifest) -> _Resource:
        version = manifest.api_version
        if version not in self._served:
            try:
                listed = await self._client.get(_group_path(version), _Resources)
            except ApiError as error:
                if error.code != _NOT_FOUND:
                    raise
                raise _RefusedError(("apiVersion",), f"{version} is not served by the embedded API") from error
            self._served[version] = {each.kind: each for each in listed.resources if "/" not in each.name}
        found = self._served[version].get(manifest.kind)
        if found is None:
            self._served.pop(version)  # a definition that is applied next may bring it
            raise _RefusedError(("kind",), f"{manifest.kind} of {version} is not served by the embedded API")
        return found


def _group_path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _body(manifest: Manifest) -> Json:
    """The object as it is to be sent."""
    raw = _mapping(manifest.document.raw)
    metadata = {key: value for key, value in _mapping(raw.get("metadata")).items() if key not in _SERVERS_OWN}
    return {**raw, "apiVersion": manifest.api_version, "kind": manifest.kind, "metadata": metadata}


def _mapping(raw: object) -> Json:
    return raw if isinstance(raw, dict) else {}
