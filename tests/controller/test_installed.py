"""What the installed CRD of a kind can hold: ours, an older one, another's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from cidrella.controller.installed import Installed, look_at_crd
from cidrella.kube.errors import ApiError
from cidrella.model.crd import pool_crd
from cidrella.model.kinds import POOL_KINDS

if TYPE_CHECKING:
    from cidrella.kube.client import Client
    from cidrella.model.kinds import PoolKind

every_kind = pytest.mark.parametrize("kind", POOL_KINDS, ids=str)


class _Server:
    """Stands in for the client: it has one object, or refuses."""

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.answer = answer

    async def get(self, path: str, kind: type[Any]) -> Any:
        assert path == f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"
        if isinstance(self.answer, Exception):
            raise self.answer
        return msgspec.json.decode(json.dumps(self.answer), type=kind)


def look(kind: PoolKind, answer: object) -> Installed:
    return asyncio.run(look_at_crd(cast("Client", _Server(kind.resource, answer)), kind))


def ours(kind: PoolKind) -> Any:
    return json.loads(json.dumps(pool_crd(kind)))


def version(crd: Any) -> Any:
    return crd["spec"]["versions"][0]


@every_kind
def test_ours_holds_everything(kind: PoolKind) -> None:
    """C4: with our own CRD nothing is missing."""
    assert look(kind, ours(kind)) == Installed()


@every_kind
def test_without_a_status_none_is_written(kind: PoolKind) -> None:
    """C4: where there is no status subresource, or one that would lose what is written, status is left out."""
    crd = ours(kind)
    del version(crd)["subresources"]
    assert not look(kind, crd).status
    crd = ours(kind)
    del version(crd)["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]
    assert not look(kind, crd).status
    crd = ours(kind)
    del version(crd)["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert not look(kind, crd).status


@every_kind
def test_fields_that_would_be_dropped(kind: PoolKind) -> None:
    """C4: a CRD without a field of ours is found out; one that keeps what it does not know is not blamed."""
    for field in kind.spec_fields:
        crd = ours(kind)
        spec = version(crd)["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"][field]
        assert look(kind, crd).missing == {field}
        spec["x-kubernetes-preserve-unknown-fields"] = True
        assert look(kind, crd) == Installed()
    crd = ours(kind)
    version(crd)["schema"]["openAPIV3Schema"] = {"x-kubernetes-preserve-unknown-fields": True}
    assert look(kind, crd) == Installed()


@every_kind
def test_a_crd_that_cannot_be_read_is_taken_to_be_ours(kind: PoolKind) -> None:
    """C4: whoever may not read the CRD goes on, and relies on it."""
    assert look(kind, ApiError(403, "Forbidden", "no")) == Installed()
