"""What answers the kubelet and Prometheus."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from cidrella.kube.listening import CannotListenError
from cidrella.web.probes import Probes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TypeAlias

    Ask: TypeAlias = Callable[..., Coroutine[None, None, "Asked"]]


class Asked:
    """An answer, as far as tests look at it."""

    def __init__(self, response: aiohttp.ClientResponse, text: str) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = text


def probe(
    scenario: Callable[[Ask], Coroutine[None, None, None]],
    missing: list[str] | None = None,
    registry: CollectorRegistry | None = None,
    host: str = "127.0.0.1",
) -> None:
    """Serve probes, and hand the scenario what asks them."""

    async def all_of_it() -> None:
        probes = Probes(host, 0, readiness=lambda: missing or [], registry=registry or CollectorRegistry())
        async with probes, aiohttp.ClientSession(skip_auto_headers=["Accept"]) as session:

            async def ask(path: str, method: str = "GET", **headers: str) -> Asked:
                async with session.request(method, f"{probes.url}{path}", headers=headers) as response:
                    return Asked(response, await response.text())

            await scenario(ask)

    asyncio.run(all_of_it())


def test_health() -> None:
    """O2, O6: alive is who answers, whatever is missing."""

    async def scenario(ask: Ask) -> None:
        answer = await ask("/healthz")
        assert (answer.status, answer.text, answer.headers["Content-Type"]) == (200, "ok", "text/plain; charset=utf-8")

    probe(scenario, missing=["the API server does not answer"])


def test_ready() -> None:
    """O2: ready is who misses nothing."""

    async def scenario(ask: Ask) -> None:
        plain, verbose = await ask("/readyz"), await ask("/readyz?verbose")
        assert (plain.status, plain.text) == (200, "ok")
        assert (verbose.status, verbose.text) == (200, "[+]nothing is missing\nreadyz check passed")

    probe(scenario)


def test_not_ready() -> None:
    """O2, pitfall 22: while caches are empty /readyz says no, with a line for each thing that is missing."""
    missing = ["nodes are not listed yet", "pools are not listed yet"]

    async def scenario(ask: Ask) -> None:
        plain, verbose = await ask("/readyz"), await ask("/readyz?verbose=1")
        assert (plain.status, plain.text.splitlines()) == (503, missing)
        assert verbose.status == 503
        assert verbose.text.splitlines() == [*(f"[-]{each}" for each in missing), "readyz check failed"]
        missing.clear()
        assert (await ask("/readyz")).status == 200

    probe(scenario, missing=missing)


def test_metrics() -> None:
    """O1, O2: series are served as Prometheus reads them, in the form that it asks for."""
    registry = CollectorRegistry()
    Counter("cidrella_tests", "Tests.", registry=registry).inc()

    async def scenario(ask: Ask) -> None:
        plain = await ask("/metrics")
        assert plain.headers["Content-Type"].startswith("text/plain; version=")
        assert "cidrella_tests_total 1.0" in plain.text
        modern = await ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert modern.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert modern.text.endswith("# EOF\n")

    probe(scenario, registry=registry)


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metricsx", "/debug/pprof", "/healthz%0a", "/../etc/passwd"])
def test_anything_else(path: str) -> None:
    """O2: there is nothing else to be found."""

    async def scenario(ask: Ask) -> None:
        assert (await ask(path)).status == 404

    probe(scenario)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_methods(path: str) -> None:
    """O2: probes are read, with GET or HEAD, and tell nobody which library answers."""

    async def scenario(ask: Ask) -> None:
        head = await ask(path, "HEAD")
        assert (head.status, head.text) == (200, "")
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            refused = await ask(path, method)
            assert refused.status == 405
            assert "Server" not in refused.headers
            assert (await ask(path, method, **{"Content-Encoding": "gzip"})).status == 415
        assert "Server" not in head.headers
        assert "Server" not in (await ask("/nowhere")).headers

    probe(scenario)


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_ipv6() -> None:
    """An IPv6 address is in brackets in the URL; on a machine without IPv6 it cannot be had, and that is told."""

    async def scenario(ask: Ask) -> None:
        assert (await ask("/healthz")).text == "ok"

    if _has_ipv6():
        probe(scenario, host="::1")
    else:
        with pytest.raises(CannotListenError):
            probe(scenario, host="::1")


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_to_be_had(host: str) -> None:
    """A port that is taken, or an address of somebody else, is told in words."""

    async def scenario(port: int) -> None:
        probes = Probes(host, port, readiness=list, registry=CollectorRegistry())
        with pytest.raises(CannotListenError) as error:
            await probes.__aenter__()
        assert str(error.value)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        asyncio.run(scenario(taken.getsockname()[1]))
