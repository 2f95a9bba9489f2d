"""`cidrella run`, put together: access, client, controller, probes, logs and signals.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from cidrella import __version__
from cidrella.app.process import WRONG_INPUT, beside, listening, run_process, told_election
from cidrella.kube.errors import ConfigError
from cidrella.kube.loopback import is_loopback
from cidrella.model.flags import AllocatorType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from prometheus_client import CollectorRegistry

    from cidrella.app.certificate import Certificate
    from cidrella.app.lifetime import Lifetime
    from cidrella.app.page import Page
    from cidrella.app.settings import Settings
    from cidrella.controller.controller import Controller
    from cidrella.kube.access import Access
    from cidrella.kube.client import Client
    from cidrella.kube.listening import Listener
    from cidrella.model.flags import IpamFlags

_log = structlog.get_logger()


def run_controller(settings: Settings, warnings: Sequence[str] = (), *, records: bool = True) -> int:
    """Run until a signal says to stop, and return the exit code, as `run_process` has them.

    `records` is for tests, as `ControllerSettings` has it: no flag and no variable changes it.
    """

    async def main(access: Access, lifetime: Lifetime) -> int:
        return await _run(settings, access, lifetime, records=records)

    return run_process(settings, warnings, main, "the controller")


async def _run(settings: Settings, access: Access, lifetime: Lifetime, *, records: bool) -> int:
    from cidrella.controller.controller import Controller, ControllerSettings  # noqa: PLC0415
    from cidrella.controller.metrics import Metrics  # noqa: PLC0415
    from cidrella.kube.client import Client  # noqa: PLC0415
    from cidrella.kube.election import make_identity  # noqa: PLC0415

    metrics = Metrics()
    async with Client(access, timeout=settings.api_timeout, observe=metrics.observe_request) as client:
        told = ControllerSettings(
            settings.ipam, make_identity(), settings.election, heartbeat=settings.heartbeat, records=records
        )
        controller = Controller(client, told, metrics)
        try:
            certificate = _certificate(settings)
        except ConfigError as error:
            _log.error("--tls-cert-file and --tls-private-key-file are of no use", error=str(error))
            return WRONG_INPUT
        try:
            serving = _Serving(settings, access, controller, client, metrics.registry, certificate=certificate)
        except ConfigError as error:
            _log.error("who may see the page cannot be told", error=str(error))
            return WRONG_INPUT
        async with serving.begun() as url:
            _announce(settings, access, url)
            serving.tell_of_page(url)
            return await lifetime.spend_on(controller.run())


def _certificate(settings: Settings) -> Certificate | None:
    """What to show to those who connect; None where that is nothing. Raises `ConfigError`."""
    from cidrella.app.certificate import Certificate  # noqa: PLC0415

    if not settings.tls_cert_file:
        return None
    return Certificate(settings.tls_cert_file, settings.tls_private_key_file)


class _Serving:
    """Everything that answers HTTP: probes, metrics, the page. Raises `ConfigError`."""

    def __init__(  # noqa: PLR0913 -- everything that is asked about
        self,
        settings: Settings,
        access: Access,
        controller: Controller,
        client: Client,
        registry: CollectorRegistry,
        *,
        certificate: Certificate | None,
    ) -> None:
        from cidrella.app.page import Page, make_door  # noqa: PLC0415
        from cidrella.web.probes import MetricsServer, Probes  # noqa: PLC0415
        from cidrella.web.series import WebSeries  # noqa: PLC0415

        self._settings = settings
        self._certificate = certificate
        context = certificate.context if certificate else None
        apart = settings.metrics_bind_address
        self._metrics = None if apart is None else MetricsServer(*apart, registry=registry)
        here = registry if apart is None else None
        self._page: Page | None = None
        if settings.web:
            series = WebSeries(registry)
            self._page = Page(controller, client, access.context or access.server)
            door = make_door(settings, client, series)
            self._server: Listener = self._page.server(settings.bind_address, here, door, series, context=context)
        else:
            ready = controller.readiness
            self._server = Probes(*settings.bind_address, readiness=ready, registry=here, context=context)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[str]:
        """While this lasts, all of it is answered; where the probes are."""
        async with AsyncExitStack() as stack:
            address, apart = self._settings.bind_address, self._settings.metrics_bind_address
            if self._metrics is not None and apart is not None:
                await stack.enter_async_context(listening(self._metrics, "--metrics-bind-address", apart))
                _log.info("metrics have an address of their own", url=f"{self._metrics.url}/metrics")
            if self._certificate is not None:
                await stack.enter_async_context(beside(self._certificate.keep()))
            await stack.enter_async_context(listening(self._server, "--bind-address", address))
            if self._page is not None:
                await stack.enter_async_context(self._page.kept_up())
            yield self._server.url

    def tell_of_page(self, url: str) -> None:
        """One line about where it is, and who may look; one more where others can listen in on that."""
        from cidrella.app.page import asked_for  # noqa: PLC0415

        if self._page is None:
            return
        here_alone = is_loopback(self._settings.bind_address.host)
        if asks := asked_for(self._settings):
            _log.info("the page is served", url=f"{url}/", asks_for=" or ".join(asks))
            if not here_alone and self._certificate is None:
                _log.warning(
                    "what people show to see the page goes over the network in clear; give --tls-cert-file and "
                    "--tls-private-key-file, unless something before it speaks TLS"
                )
        elif here_alone:
            _log.info("the page is served", url=f"{url}/", asks_for="nothing, for only this machine can connect")
        else:
            _log.warning(
                "the page is not served, because others than this machine can connect to --bind-address; say who may "
                "look with --web-token-file, --web-password-file or --web-auth=kubernetes, or say --web=false"
            )


def _announce(settings: Settings, access: Access, probes: str) -> None:
    """One line about what this process is, and one more where that is the old way (F4)."""
    flags = settings.ipam
    _log.info(
        "cidrella starts",
        version=__version__,
        allocator=flags.allocator.value,
        ranges=_ranges(flags),
        allocates=flags.allocate,
        probes=probes,
        server=access.server,
        access=access.context,
        election=told_election(settings.election),
    )
    if flags.allocator is AllocatorType.RANGE:
        _log.warning(
            "RangeAllocator is the old way: it gives out the ranges of --cluster-cidr and looks at no pool in the API; "
            f"{AllocatorType.MULTI.value} does both"
        )


def _ranges(flags: IpamFlags) -> str:
    written = ", ".join(f"{each.cidr} in /{each.length}s" for each in flags.ranges)
    if flags.allocator is AllocatorType.RANGE:
        return written
    return f"{written}, and pools in the API" if written else "pools in the API"
