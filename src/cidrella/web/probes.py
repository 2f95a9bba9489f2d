"""What a kubelet and a Prometheus ask: /healthz, /readyz and /metrics (O2).

`/healthz` is answered as long as the event loop turns, whatever the API server does: a restart would not bring it back
(O6). `/readyz` says everything that is missing, so that `kubectl describe pod` shows why.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from cidrella.kube.listening import Listener

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

GRACE: Final = 0.5
"""Seconds that answers under way are given at the end."""
HEALTH: Final = ("/healthz", "/readyz")


class Probes(Listener):
    """All of them; without a registry, no metrics; with a context, over TLS.

    The server, between entering and leaving it. Entering raises `CannotListenError`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        readiness: Callable[[], list[str]],
        registry: CollectorRegistry | None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        app = web.Application()
        add_health(app, readiness)
        if registry is not None:
            add_metrics(app, registry)
        super().__init__(app, host, port, grace=GRACE, context=context)


class MetricsServer(Listener):
    """Metrics alone, for an address of their own."""

    def __init__(self, host: str, port: int, *, registry: CollectorRegistry) -> None:
        app = web.Application()
        add_metrics(app, registry)
        super().__init__(app, host, port, grace=GRACE)


def add_health(app: web.Application, readiness: Callable[[], list[str]]) -> None:
    """Answer what a kubelet asks."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        missing = readiness()
        if "verbose" in request.query:
            return _verbose(missing)
        return web.Response(text="\n".join(missing), status=503) if missing else web.Response(text="ok")

    for path, answer in zip(HEALTH, (healthz, readyz), strict=True):
        app.router.add_get(path, answer)


def add_metrics(app: web.Application, registry: CollectorRegistry) -> None:
    """Answer what a Prometheus asks."""

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Elsewhere, for with thousands of pools it takes long enough to be missed here.
        body = await asyncio.to_thread(encode, registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    app.router.add_get("/metrics", metrics)


def _verbose(missing: list[str]) -> web.Response:
    """The answer as Kubernetes' own components give it to `?verbose`."""
    lines = [f"[-]{each}" for each in missing] or ["[+]nothing is missing"]
    lines.append(f"readyz check {'failed' if missing else 'passed'}")
    return web.Response(text="\n".join(lines), status=503 if missing else 200)
