"""The page, put together: who may look, what is drawn, and who serves it.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cidrella import __version__
from cidrella.app.process import beside
from cidrella.kube.loopback import is_loopback

if TYPE_CHECKING:
    import ssl
    from contextlib import AbstractAsyncContextManager

    from prometheus_client import CollectorRegistry

    from cidrella.app.settings import Settings
    from cidrella.app.values import Address
    from cidrella.controller.controller import Controller
    from cidrella.kube.client import Client
    from cidrella.web.api import Facts
    from cidrella.web.checkers import Checker
    from cidrella.web.doors import Door
    from cidrella.web.series import WebSeries
    from cidrella.web.server import WebServer


def asked_for(settings: Settings) -> list[str]:
    """What one has to show to look; nothing where nothing was said."""
    shown = {
        "a token": settings.web_token_file,
        "a password": settings.web_password_file,
        "a token of the cluster": settings.web_auth == "kubernetes",
    }
    return [what for what, given in shown.items() if given]


def make_door(settings: Settings, client: Client, series: WebSeries) -> Door:
    """Who may look. Raises `ConfigError` for a file that is of no use."""
    from cidrella.web.checkers import SecretFile  # noqa: PLC0415
    from cidrella.web.doors import ClosedDoor, GuardedDoor, OpenDoor  # noqa: PLC0415
    from cidrella.web.reviewing import Reviewer  # noqa: PLC0415

    checkers: list[Checker] = []
    if settings.web_token_file:
        checkers.append(SecretFile(Path(settings.web_token_file), bearer=True))
    if settings.web_password_file:
        checkers.append(SecretFile(Path(settings.web_password_file), bearer=False))
    if settings.web_auth == "kubernetes":
        checkers.append(Reviewer(client))
    if checkers:
        return GuardedDoor(checkers, series)
    return OpenDoor() if is_loopback(settings.bind_address.host) else ClosedDoor()


class Page:
    """What is shown of a controller: the board, and those who keep it up. `name` is the cluster's, for people."""

    def __init__(self, controller: Controller, client: Client, name: str) -> None:
        from cidrella.app.lookout import Lookout  # noqa: PLC0415
        from cidrella.app.surroundings import Surroundings  # noqa: PLC0415
        from cidrella.web.board import Board  # noqa: PLC0415

        self._controller = controller
        self._name = name
        self._surroundings: Surroundings | None = None
        self._board = Board(self._facts())
        self._surroundings = Surroundings(client, controller.insight)
        self._lookout = Lookout(controller.insight, self._board, self._surroundings, self._facts)
        controller.on_nodes = self._lookout.nodes_changed

    def server(
        self,
        address: Address,
        registry: CollectorRegistry | None,
        door: Door,
        series: WebSeries,
        *,
        context: ssl.SSLContext | None = None,
    ) -> WebServer:
        """Who serves it; without a registry, no metrics beside it; with a context, over TLS."""
        from cidrella.web.server import WebServer  # noqa: PLC0415

        return WebServer(
            *address,
            readiness=self._controller.readiness,
            registry=registry,
            board=self._board,
            explain=self._lookout.explain,
            door=door,
            series=series,
            context=context,
        )

    def kept_up(self) -> AbstractAsyncContextManager[None]:
        """While this lasts, the board is true."""
        return beside(self._lookout.run())

    def _facts(self) -> Facts:
        from cidrella.web.api import Facts  # noqa: PLC0415

        insight = self._controller.insight
        return Facts(
            name=self._name,
            replica=insight.identity,
            program=f"cidrella {__version__}",
            leading=insight.leads(),
            missing=insight.missing(),
            remarks=self._surroundings.remarks if self._surroundings is not None else [],
        )
