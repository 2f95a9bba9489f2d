"""The way to an embedded API that runs, and to no other: to play with nodes and pools has no place in a cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.app.inventory import ClusterError
from cidrella.app.live import faults_told, open_access
from cidrella.app.up_place import KUBECONFIG, PlaceError, default_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.kube.access import Access
    from cidrella.kube.client import Client

_MARK: Final = "+cidrella"
"""At the end of the version that it says."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815 -- the API's name


async def server_version(client: Client) -> str:
    """What a server says that it is. Raises `KubeError`."""
    return (await client.get("/version", _Version)).gitVersion


def find_embedded(kubeconfig: str, context: str, environ: Mapping[str, str] = os.environ) -> Access:
    """The way that the options or $KUBECONFIG name, else that of the `cidrella up` that runs. Raises `ClusterError`."""
    if kubeconfig or context or environ.get("KUBECONFIG"):
        return open_access(kubeconfig, context)
    try:
        found = default_directory(environ) / KUBECONFIG
    except PlaceError as error:
        raise ClusterError(str(error)) from error
    if not found.exists():
        raise ClusterError(
            f"no cidrella up runs here: there is no {found}; start one, or say where its kubeconfig is: --kubeconfig"
        )
    return open_access(str(found), "")


async def require_embedded(client: Client) -> str:
    """The version of the embedded API. Raises `ClusterError` for any other one, and for one that does not answer."""
    with faults_told(client.access, "get /version"):
        version = await server_version(client)
    if not version.endswith(_MARK):
        raise ClusterError(
            f"{client.access.server} is a cluster ({version}), not an embedded API: this is for cidrella up alone"
        )
    return version
