"""Whether a refusal only means that there is nothing to be had.

An API server asks what one may do before it asks what there is. So a collection that it does not serve is refused (403)
to whoever has no right to it, as one that it does serve would be. What it serves it tells everybody, elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.kube import watchfaults
from cidrella.kube.errors import ApiError, KubeError

if TYPE_CHECKING:
    from cidrella.kube.client import Client

_FORBIDDEN: Final = 403


class _Resource(msgspec.Struct):
    """A collection, by its name."""

    name: str


class _Resources(msgspec.Struct):
    """What a server serves of a group and version."""

    resources: list[_Resource]


async def is_absent(client: Client, path: str, error: ApiError) -> bool:
    """Whether what came of listing a collection says that the server does not serve it.

    Where a refusal cannot be looked into, it stands.
    """
    if error.code != _FORBIDDEN:
        return watchfaults.is_absence(error)
    group, _, plural = path.rpartition("/")
    try:
        served = await client.get(group, _Resources)
    except KubeError as fault:
        return watchfaults.is_absence(fault)
    return all(each.name != plural for each in served.resources)
