"""What a kubelet and a Prometheus ask: /healthz, /readyz and /metrics (O2).

`/healthz` is answered as long as the event loop turns, whatever the API server does: a restart would not bring it back
(O6). `/readyz` says everything that is missing, so that `kubectl describe pod` shows why.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from cidrella.kube.listening import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

_GRACE = 0.5
"""Seconds that answers under way are given at the end."""


class Probes(Listener):
    """The server, between entering and leaving it. Entering raises `CannotListenError`."""

    def __init__(
        self, host: str, port: int, *, readiness: Callable[[], list[str]], registry: CollectorRegistry
    ) -> None:
        super().__init__(_application(readiness, registry), host, port, grace=_GRACE)


def _application(readiness: Callable[[], list[str]], registry: CollectorRegistry) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        missing = readiness()
        if "verbose" in request.query:
            return _verbose(missing)
        return web.Response(text="\n".join(missing), status=503) if missing else web.Response(text="ok")

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Elsewhere, for with thousands of pools it takes long enough to be missed here.
        body = await asyncio.to_thread(encode, registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


def _verbose(missing: list[str]) -> web.Response:
    """The answer as Kubernetes' own components give it to `?verbose`."""
    lines = [f"[-]{each}" for each in missing] or ["[+]nothing is missing"]
    lines.append(f"readyz check {'failed' if missing else 'passed'}")
    return web.Response(text="\n".join(lines), status=503 if missing else 200)
