"""`cidrella webhook`, put together: access, client, desk, reviewer, certificates, servers, logs and signals.

What is heavy is imported here, when it is wanted: the other commands start without it.

The end: the server takes no more questions and lets those under way be answered, for which the desk is needed. So the
desk goes last.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cidrella import __version__
from cidrella.app.process import WRONG_INPUT, listening, run_process, told_election

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.app.lifetime import Lifetime
    from cidrella.app.webhook_settings import WebhookSettings
    from cidrella.kube.access import Access
    from cidrella.kube.client import Client
    from cidrella.kube.files import WatchedFile
    from cidrella.serviceip.desk import Desk
    from cidrella.webhook.certificates import CertificateFiles, Certificates, Keeper

_log = structlog.get_logger()


def run_webhook(settings: WebhookSettings, warnings: Sequence[str] = ()) -> int:
    """Run until a signal says to stop, and return the exit code, as `run_process` has them.

    2 is also for certificates in files that are of no use.
    """

    async def main(access: Access, lifetime: Lifetime) -> int:
        if settings.from_files and (fault := _fault_of(_check_files, settings)):
            _log.error("--tls-cert-file and --tls-private-key-file are of no use", error=fault)
            return WRONG_INPUT
        if settings.client_ca_file and (fault := _fault_of(_check_client_ca, settings)):
            _log.error("--client-ca-file is of no use", error=fault)
            return WRONG_INPUT
        return await _run(settings, access, lifetime)

    return run_process(settings, warnings, main, "the webhook")


async def _run(settings: WebhookSettings, access: Access, lifetime: Lifetime) -> int:
    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    from cidrella.kube.client import Client  # noqa: PLC0415
    from cidrella.kube.election import make_identity  # noqa: PLC0415
    from cidrella.kube.traffic import Traffic  # noqa: PLC0415
    from cidrella.serviceip.desk import Desk, DeskSettings  # noqa: PLC0415
    from cidrella.web.probes import Probes  # noqa: PLC0415
    from cidrella.webhook.certificates import Keeper  # noqa: PLC0415

    registry = CollectorRegistry()
    flags = settings.services
    async with Client(access, timeout=settings.api_timeout, observe=Traffic(registry).observe) as client:
        told = DeskSettings(
            ranges=flags.ranges,
            banded=flags.banded,
            identity=make_identity(),
            election=settings.election,
            repair_interval=settings.repair_interval,
        )
        desk = Desk(client, told, registry)
        keeper = Keeper(_certificates(settings, client), _client_ca(settings))

        def readiness() -> list[str]:
            return desk.readiness() + list(filter(None, [keeper.missing]))

        probes = Probes(*settings.bind_address, readiness=readiness, registry=registry)
        async with listening(probes, "--bind-address", settings.bind_address):
            _announce(settings, access, probes.url)
            return await lifetime.spend_on(_work(settings, desk, keeper))


async def _work(settings: WebhookSettings, desk: Desk, keeper: Keeper) -> None:
    """Both parts, until one of them fails or this is cancelled; the one that answers ends first."""
    keeping_books = asyncio.create_task(desk.run())
    answering = asyncio.create_task(_answer(settings, desk, keeper))
    try:
        done, _ = await asyncio.wait([keeping_books, answering], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (answering, keeping_books):
            task.cancel()
            await asyncio.wait([task])


async def _answer(settings: WebhookSettings, desk: Desk, keeper: Keeper) -> None:
    """Answer the API server, once there is a certificate, for ever."""
    from cidrella.serviceip.review import Reviewer  # noqa: PLC0415
    from cidrella.webhook.server import WebhookServer  # noqa: PLC0415

    reviewer = Reviewer(desk)
    serving = await keeper.first()
    server = WebhookServer(*settings.webhook_bind_address, serving, reviewer.review)
    try:
        async with listening(server, "--webhook-bind-address", settings.webhook_bind_address):
            _log.info("the API server is answered", url=server.url)
            await keeper.keep(server.show)
    finally:
        await reviewer.close()


def _certificates(settings: WebhookSettings, client: Client) -> Certificates:
    from cidrella.webhook.certificates import CertificateSecret, Place  # noqa: PLC0415

    if settings.from_files:
        return _files(settings)
    place = Place(
        settings.tls_secret_namespace, settings.tls_secret_name, settings.dns_names, settings.webhook_configuration_name
    )
    return CertificateSecret(client, place)


def _files(settings: WebhookSettings) -> CertificateFiles:
    from cidrella.kube.files import WatchedFile  # noqa: PLC0415
    from cidrella.webhook.certificates import CertificateFiles  # noqa: PLC0415

    return CertificateFiles(WatchedFile(Path(settings.tls_cert_file)), WatchedFile(Path(settings.tls_private_key_file)))


def _client_ca(settings: WebhookSettings) -> WatchedFile | None:
    from cidrella.kube.files import WatchedFile  # noqa: PLC0415

    return WatchedFile(Path(settings.client_ca_file)) if settings.client_ca_file else None


def _check_files(settings: WebhookSettings) -> None:
    from cidrella.kube.tls import Serving, serving_context  # noqa: PLC0415

    serving_context(Serving(_files(settings).read()))


def _check_client_ca(settings: WebhookSettings) -> None:
    from cidrella.kube.tls import check_ca  # noqa: PLC0415

    if file := _client_ca(settings):
        check_ca(file.read())


def _fault_of(check: Callable[[WebhookSettings], None], settings: WebhookSettings) -> str:
    """What is wrong with files, "" if nothing is."""
    from cidrella.kube.errors import ConfigError  # noqa: PLC0415

    try:
        check(settings)
    except ConfigError as error:
        return str(error)
    return ""


def _announce(settings: WebhookSettings, access: Access, probes: str) -> None:
    """One line about what this process is."""
    flags = settings.services
    secret = f"Secret {settings.tls_secret_namespace}/{settings.tls_secret_name}"
    _log.info(
        "cidrella webhook starts",
        version=__version__,
        ranges=", ".join(map(str, flags.ranges)) or "ServiceCIDRs",
        bands=flags.banded,
        certificate=settings.tls_cert_file or secret,
        clients=settings.client_ca_file or "anybody",
        probes=probes,
        server=access.server,
        access=access.context,
        election=told_election(settings.election),
    )
