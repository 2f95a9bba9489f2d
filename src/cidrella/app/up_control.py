"""The controller of `cidrella up`, and its page.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from cidrella.app.up_settings import PAGE_ADDRESS
from cidrella.kube.campaign import ElectionSettings

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from cidrella.kube.client import Client

_HEARTBEAT: Final = ElectionSettings(lease_duration=60, renew_deadline=40, retry_period=20).heartbeat
"""So that `release` and `explain` find the controller here, too. Rarely renewed: each time is a write to the disk where
there is a data directory, and the Lease need not outlive the process, for the API does not either."""


@asynccontextmanager
async def controlled(client: Client, group: asyncio.TaskGroup) -> AsyncIterator[str]:
    """A controller at work in the group, and its page for who is on this machine: where that is."""
    from cidrella.app.page import Page  # noqa: PLC0415
    from cidrella.app.settings import Settings  # noqa: PLC0415
    from cidrella.controller.controller import Controller, ControllerSettings  # noqa: PLC0415
    from cidrella.controller.metrics import Metrics  # noqa: PLC0415
    from cidrella.kube.election import make_identity  # noqa: PLC0415
    from cidrella.web.doors import OpenDoor  # noqa: PLC0415
    from cidrella.web.series import WebSeries  # noqa: PLC0415

    metrics = Metrics()
    told = ControllerSettings(Settings().ipam, make_identity(), None, heartbeat=_HEARTBEAT)
    controller = Controller(client, told, metrics)
    page = Page(controller, client, "this machine")
    server = page.server(PAGE_ADDRESS, metrics.registry, OpenDoor(), WebSeries(metrics.registry))
    server.or_any_port = True
    async with server:
        group.create_task(controller.run())
        async with page.kept_up():
            yield f"{server.url}/"
