"""What the installed CRD can hold: ours, an older one, another's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cidrella.controller.installed import Installed, look_at_crd
from cidrella.kube.errors import ApiError
from cidrella.model.crd import cluster_cidr_crd

if TYPE_CHECKING:
    from cidrella.kube.client import Client


class _Server:
    """Stands in for the client: it has one object, or refuses."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def get(self, path: str, kind: type[Any]) -> Any:
        assert path.endswith("/clustercidrs.networking.x-k8s.io")
        if isinstance(self.answer, Exception):
            raise self.answer
        return msgspec.json.decode(json.dumps(self.answer), type=kind)


def look(answer: object) -> Installed:
    return asyncio.run(look_at_crd(cast("Client", _Server(answer))))


def ours() -> Any:
    return cluster_cidr_crd()


def version(crd: Any) -> Any:
    return crd["spec"]["versions"][0]


def test_ours_holds_everything() -> None:
    """C4: with our own CRD nothing is missing."""
    assert look(ours()) == Installed()


def test_without_a_status_none_is_written() -> None:
    """C4: where there is no status subresource, or one that would lose what is written, status is left out."""
    crd = ours()
    del version(crd)["subresources"]
    assert not look(crd).status
    crd = ours()
    del version(crd)["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]
    assert not look(crd).status
    crd = ours()
    del version(crd)["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert not look(crd).status


def test_fields_that_would_be_dropped() -> None:
    """C4: a CRD without a field of ours is found out; one that keeps what it does not know is not blamed."""
    crd = ours()
    spec = version(crd)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["perNodeHostBitsIPv6"]
    assert look(crd).missing == {"perNodeHostBitsIPv6"}
    spec["x-kubernetes-preserve-unknown-fields"] = True
    assert look(crd) == Installed()
    crd = ours()
    version(crd)["schema"]["openAPIV3Schema"] = {"x-kubernetes-preserve-unknown-fields": True}
    assert look(crd) == Installed()


def test_a_crd_that_cannot_be_read_is_taken_to_be_ours() -> None:
    """C4: whoever may not read the CRD goes on, and relies on it."""
    assert look(ApiError(403, "Forbidden", "no")) == Installed()
