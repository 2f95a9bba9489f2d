"""`cidrella run`, put together: access, client, controller, probes, logs and signals.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Final

import structlog

from cidrella import __version__
from cidrella.app.lifetime import FAILED, Lifetime
from cidrella.app.logs import set_up_logs
from cidrella.model.flags import AllocatorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.app.settings import Settings
    from cidrella.kube.access import Access
    from cidrella.model.flags import IpamFlags

WRONG_INPUT: Final = 2

_log = structlog.get_logger()


def run_controller(settings: Settings, warnings: Sequence[str] = ()) -> int:
    """Run until a signal says to stop, and return the exit code.

    0: stopped as told. 1: failed, or cannot listen. 2: there is no usable way to a cluster; nothing was touched.
    """
    from cidrella.kube.access import load_access  # noqa: PLC0415
    from cidrella.kube.errors import ConfigError  # noqa: PLC0415

    set_up_logs(settings.log_level, settings.log_format)
    for warning in warnings:
        _log.warning(warning)
    try:
        access = load_access(settings.kubeconfig, settings.context)
    except ConfigError as error:
        _log.error("there is no way to a cluster", error=str(error))
        return WRONG_INPUT
    # A request makes hundreds of short-lived objects, and few cycles among them: Python looks for those far too often.
    gc.set_threshold(5_000, 20, 50)
    with Lifetime() as lifetime, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(settings, access, lifetime))


async def _run(settings: Settings, access: Access, lifetime: Lifetime) -> int:
    from cidrella.controller.controller import Controller, ControllerSettings  # noqa: PLC0415
    from cidrella.controller.metrics import Metrics  # noqa: PLC0415
    from cidrella.kube.client import Client  # noqa: PLC0415
    from cidrella.kube.election import make_identity  # noqa: PLC0415
    from cidrella.kube.listening import CannotListenError  # noqa: PLC0415
    from cidrella.web.probes import Probes  # noqa: PLC0415

    metrics = Metrics()
    host, port = settings.bind_address
    async with Client(access, timeout=settings.api_timeout, observe=metrics.observe_request) as client:
        told = ControllerSettings(flags=settings.ipam, identity=make_identity(), election=settings.election)
        controller = Controller(client, told, metrics)
        try:
            async with Probes(host, port, readiness=controller.readiness, registry=metrics.registry) as probes:
                _announce(settings, access, probes.url)
                return await lifetime.spend_on(controller.run())
        except CannotListenError as error:
            _log.error(
                "cannot listen; choose another --bind-address", address=str(settings.bind_address), error=str(error)
            )
            return FAILED


def _announce(settings: Settings, access: Access, probes: str) -> None:
    """One line about what this process is, and one more where that is the old way (F4)."""
    flags, election = settings.ipam, settings.election
    _log.info(
        "cidrella starts",
        version=__version__,
        allocator=flags.allocator.value,
        ranges=_ranges(flags),
        allocates=flags.allocate,
        probes=probes,
        server=access.server,
        access=access.context,
        election=f"{election.namespace}/{election.name}" if election else "off",
    )
    if flags.allocator is AllocatorType.RANGE:
        _log.warning(
            "RangeAllocator is the old way: it gives out the ranges of --cluster-cidr and looks at no ClusterCIDR; "
            f"{AllocatorType.MULTI.value} does both"
        )


def _ranges(flags: IpamFlags) -> str:
    written = ", ".join(f"{each.cidr} in /{each.length}s" for each in flags.ranges)
    if flags.allocator is AllocatorType.RANGE:
        return written
    return f"{written}, and ClusterCIDRs" if written else "ClusterCIDRs"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fast event loop where there is one."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
