"""What the installed CRD of a kind can hold: it may be older than ours, or another controller's (C4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from cidrella.kube.errors import KubeError
from cidrella.model.objects import PoolStatus

if TYPE_CHECKING:
    from cidrella.kube.client import Client
    from cidrella.model.kinds import PoolKind

_log = structlog.get_logger()

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_STATUS_FIELDS = tuple(each.encode_name for each in msgspec.structs.fields(PoolStatus))
_HOW = "kubectl apply -f deploy/crds, or: cidrella crds | kubectl apply -f -"


class Installed(NamedTuple):
    """Whether a status can be written, and the fields of the spec that would be dropped without a word."""

    status: bool = True
    missing: frozenset[str] = frozenset()


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, _Schema] = {}
    preserves: bool | None = msgspec.field(default=None, name="x-kubernetes-preserve-unknown-fields")

    def lacks(self, fields: tuple[str, ...]) -> frozenset[str]:
        """Those of the fields that an object would lose."""
        return frozenset() if self.preserves else frozenset(fields).difference(self.properties)


class _Validation(msgspec.Struct, frozen=True):
    openAPIV3Schema: _Schema = _Schema()  # noqa: N815 -- the API's name


class _Version(msgspec.Struct, frozen=True):
    name: str = ""
    schema: _Validation = _Validation()
    subresources: dict[str, msgspec.Raw] = {}


class _Spec(msgspec.Struct):
    versions: list[_Version] = []


class _Definition(msgspec.Struct):
    spec: _Spec


async def look_at_crd(client: Client, kind: PoolKind, known: Installed | None = None) -> Installed:
    """What the installed CRD of a kind can hold, all of it if it cannot be read.

    Said in the log where it is less than ours, unless that is known already.
    """
    try:
        definition = await client.get(f"{_PATH}/{kind.resource}", _Definition)
    except KubeError as error:
        _log.warning(f"the {kind} CRD cannot be read, and is taken to be ours", error=str(error))
        return Installed()
    found = _judge(definition, kind)
    if found == known:
        return found
    if not found.status:
        _log.warning(f"the installed {kind} CRD has no status like ours: none is written", how=_HOW)
    if found.missing:
        fields = sorted(found.missing)
        _log.warning(f"the installed {kind} CRD drops fields, which are not relied on", fields=fields, how=_HOW)
    return found


def _judge(definition: _Definition, kind: PoolKind) -> Installed:
    version = next((each for each in definition.spec.versions if each.name == kind.version), _Version())
    schema = version.schema.openAPIV3Schema
    if schema.preserves:
        return Installed(status="status" in version.subresources)
    status = schema.properties.get("status", _Schema())
    return Installed(
        status="status" in version.subresources and not status.lacks(_STATUS_FIELDS),
        missing=schema.properties.get("spec", _Schema()).lacks(kind.spec_fields),
    )
