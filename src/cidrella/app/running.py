"""`cidrella run`, put together: access, client, controller, probes, logs and signals.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import structlog

from cidrella import __version__
from cidrella.app.process import listening, run_process, told_election
from cidrella.model.flags import AllocatorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.app.lifetime import Lifetime
    from cidrella.app.settings import Settings
    from cidrella.kube.access import Access
    from cidrella.model.flags import IpamFlags

_log = structlog.get_logger()

UNSAFE: Final = "CIDRELLA_UNSAFE_WITHOUT_INTENTS"
"""A variable of the environment, for tests alone: nothing is recorded before it is sent, to show what that prevents."""


def run_controller(settings: Settings, warnings: Sequence[str] = ()) -> int:
    """Run until a signal says to stop, and return the exit code, as `run_process` has them."""

    async def main(access: Access, lifetime: Lifetime) -> int:
        return await _run(settings, access, lifetime)

    return run_process(settings, warnings, main, "the controller")


async def _run(settings: Settings, access: Access, lifetime: Lifetime) -> int:
    from cidrella.controller.controller import Controller, ControllerSettings  # noqa: PLC0415
    from cidrella.controller.metrics import Metrics  # noqa: PLC0415
    from cidrella.kube.client import Client  # noqa: PLC0415
    from cidrella.kube.election import make_identity  # noqa: PLC0415
    from cidrella.web.probes import Probes  # noqa: PLC0415

    metrics = Metrics()
    async with Client(access, timeout=settings.api_timeout, observe=metrics.observe_request) as client:
        records = not os.environ.get(UNSAFE)
        if not records:
            _log.warning("blocks are sent without being recorded, and may be given twice", because=UNSAFE)
        told = ControllerSettings(settings.ipam, make_identity(), settings.election, records=records)
        controller = Controller(client, told, metrics)
        probes = Probes(*settings.bind_address, readiness=controller.readiness, registry=metrics.registry)
        async with listening(probes, "--bind-address", settings.bind_address):
            _announce(settings, access, probes.url)
            return await lifetime.spend_on(controller.run())


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
