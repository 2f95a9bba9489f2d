"""What an API needs before anybody uses it: our definitions, and the range of Services.

Definitions that are there already are brought up to date: a directory may have been filled by an older version.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from cidrella.core.prefix import format_address
from cidrella.kube.errors import ApiError
from cidrella.model.crd import crds
from cidrella.model.objects import SERVICE_CIDRS_PATH
from cidrella.model.serviceip import GROUP, RANGE_ALLOCATION_PLURAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.core.prefix import Prefix
    from cidrella.kube.client import Client

    Json = dict[str, Any]

DEFINITIONS_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULT_SERVICE_CIDR: Final = "kubernetes"
"""Its name in every cluster."""
_OWN_SERVICES: Final = "/api/v1/namespaces/default/services"
_NOT_FOUND: Final = 404
_POLL: Final = 0.01
_log = structlog.get_logger()


async def found(client: Client, *, pools: bool, service_ranges: Sequence[Prefix]) -> None:
    """Have the definitions, served, and the range of Services. Raises `KubeError`.

    Without `pools`, their definitions are left to whoever wants them.
    """
    own = f"{RANGE_ALLOCATION_PLURAL}.{GROUP}"
    await asyncio.gather(
        *(_define(client, name, definition) for name, definition in crds().items() if pools or name == own),
        _have_service_range(client, service_ranges),
    )


async def have_own_service(client: Client, ranges: Sequence[Prefix], port: int) -> None:
    """Have the Service that every cluster has for its API, at the first address of the range. Raises `KubeError`.

    To be called when Services can have addresses. Where something else has that address, it is left to it.
    """
    if await _read(client, f"{_OWN_SERVICES}/kubernetes") is not None:
        return
    first = format_address(ranges[0].family, ranges[0].network + 1)
    meta = {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}}
    spec = {"clusterIP": first, "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]}
    try:
        await client.create(
            _OWN_SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}, dict
        )
    except ApiError as error:
        if error.unsettled:
            raise
        _log.warning("there is no Service for the API itself", error=error.message)


async def _define(client: Client, name: str, definition: Json) -> None:
    path = f"{DEFINITIONS_PATH}/{name}"
    there = await _read(client, path)
    if there is None:
        await client.create(DEFINITIONS_PATH, definition, dict)
    else:
        # Without a change the server stores nothing.
        await client.replace(path, {**definition, "metadata": there["metadata"]}, dict)
    spec = definition["spec"]
    served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    while await _read(client, served) is None:
        await asyncio.sleep(_POLL)


async def _have_service_range(client: Client, ranges: Sequence[Prefix]) -> None:
    path = f"{SERVICE_CIDRS_PATH}/{DEFAULT_SERVICE_CIDR}"
    cidrs = list(map(str, ranges))
    there = await _read(client, path)
    if there is not None:
        if there["spec"].get("cidrs") != cidrs:
            _log.warning(
                "the range of Services stays as it is: addresses are given from it",
                stays=there["spec"].get("cidrs"),
                asked=cidrs,
            )
        return
    meta = {"name": DEFAULT_SERVICE_CIDR}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR"}
    await client.create(SERVICE_CIDRS_PATH, {**kind, "metadata": meta, "spec": {"cidrs": cidrs}}, dict)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = "Kubernetes default Service CIDR is ready"
    ready = {"type": "Ready", "status": "True", "reason": "", "message": told, "lastTransitionTime": now}
    await client.patch(f"{path}/status", {"status": {"conditions": [ready]}}, dict)


async def _read(client: Client, path: str) -> Json | None:
    """What is there; None where nothing is."""
    try:
        return await client.get(path, dict)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return None
