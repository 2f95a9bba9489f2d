"""Whether a server is the embedded API: to play with nodes and pools has no place in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.app.inventory import ClusterError
from cidrella.app.live import faults_told

if TYPE_CHECKING:
    from cidrella.kube.client import Client

_MARK: Final = "+cidrella"
"""At the end of the version that it says."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815 -- the API's name


async def server_version(client: Client) -> str:
    """What a server says that it is. Raises `KubeError`."""
    return (await client.get("/version", _Version)).gitVersion


async def require_embedded(client: Client) -> str:
    """The version of the embedded API. Raises `ClusterError` for any other one, and for one that does not answer."""
    with faults_told(client.access, "get /version"):
        version = await server_version(client)
    if not version.endswith(_MARK):
        raise ClusterError(
            f"{client.access.server} is a cluster ({version}), not an embedded API: this is for cidrella up alone"
        )
    return version
