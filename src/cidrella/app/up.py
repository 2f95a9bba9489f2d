"""`cidrella up`, put together: store, embedded API, controller and the desk of Services, in one process.

What is heavy is imported here, when it is wanted: the other commands start without it.

The beginning: the API listens first; everything else is a client of it, and goes in through it. The end: those who work
end together, then the API, then the store.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import structlog

from cidrella.app.inventory import InputError
from cidrella.app.lifetime import ToldError
from cidrella.app.logs import set_up_logs
from cidrella.app.process import run_loop
from cidrella.app.up_control import controlled
from cidrella.app.up_place import KUBECONFIG, PlaceError, occupied
from cidrella.app.up_settings import DEFAULT_ADDRESS
from cidrella.app.up_trust import CONTROLLER, SERVER, reachable, settle_trust
from cidrella.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from cidrella.apiserver.serving.server import ApiServer
    from cidrella.apiserver.serving.users import User
    from cidrella.apiserver.store.store import Store
    from cidrella.app.lifetime import Lifetime
    from cidrella.app.up_example import Example
    from cidrella.app.up_place import Place
    from cidrella.app.up_settings import UpSettings
    from cidrella.app.up_trust import Trust
    from cidrella.kube.client import Client
    from cidrella.serviceip.desk import Desk

    Json = dict[str, Any]
    Progress = Callable[[int, int], None]

INSTALL: Final = "pip install 'cidrella[up]'"
_LIBRARY: Final = "cel_expr_python"
"""What the embedded API needs beyond everything else: it checks the rules of definitions."""
_LOOK: Final = 0.005
"""Seconds between two looks at whether Services can have addresses: it is a matter of some tenths."""
_PATIENCE: Final = 5.0
"""Seconds after which the rest begins although they cannot."""
_SETTLE: Final = 0.05
_LOOK_INTERVAL: Final = 1.0
"""Of the desk, in seconds: nobody else gives addresses here, so that nothing has to be waited for."""
_TIMEOUT: Final = 15.0
"""Seconds for a request."""

_log = structlog.get_logger()


class UpError(Exception):
    """It cannot begin: why, and what to do, in one line."""


class Ready(NamedTuple):
    """What there is to tell once it is."""

    url: str
    kubeconfig: Path
    asks_for_token: bool
    page: str
    """Where the page is; "" without a controller, of which it would show everything."""


class Teller(Protocol):
    """Whoever tells people how it goes."""

    def progress(self, doing: str) -> AbstractContextManager[Progress]:
        """Something that takes its time is done."""

    def ready(self, ready: Ready) -> None:
        """It can be used."""


def run_up(settings: UpSettings, teller: Teller) -> int:
    """Run until a signal says to stop, and return the exit code: 0 if it ended because it was told to, 1 if it failed.

    Raises `UpError` and `InputError` for what is wrong with the settings and with the objects of files.
    """
    from cidrella.kube.issuing import utc_now  # noqa: PLC0415

    if find_spec(_LIBRARY) is None:
        raise UpError(f"the embedded API needs a library that is not installed: {INSTALL}")
    set_up_logs(settings.log_level, settings.log_format)
    try:
        with occupied(settings.data_dir) as place:
            up = _Up(settings, place, settle_trust(settings, place, utc_now()), teller)
            code = run_loop(up.run, "cidrella up")
            if up.wrong is not None:
                raise up.wrong
            return code
    except (PlaceError, ConfigError) as error:
        raise UpError(str(error)) from error


class _Up:
    """One run."""

    def __init__(self, settings: UpSettings, place: Place, trust: Trust, teller: Teller) -> None:
        self._settings = settings
        self._place = place
        self._trust = trust
        self._teller = teller
        self._ready = False
        self.wrong: Exception | None = None
        """What is wrong with what it was told, if that ended it."""

    async def run(self, lifetime: Lifetime) -> int:
        """Until a signal comes; the exit code."""
        return await lifetime.spend_on(self._work())

    async def _work(self) -> None:
        from cidrella.apiserver.store.store import DataDirError  # noqa: PLC0415

        try:
            async with AsyncExitStack() as stack:
                store = await stack.enter_async_context(_store(self._place))
                server = await self._listen(store, stack)
                await self._serve(store, server, reachable(server.url))
        except Exception as error:
            cause = _cause(error)
            if isinstance(cause, DataDirError | ConfigError | PlaceError):
                cause = UpError(str(cause))
            if isinstance(cause, InputError | UpError):
                self.wrong = cause
                raise ToldError from cause
            raise cause from cause.__cause__

    async def _listen(self, store: Store, stack: AsyncExitStack) -> ApiServer:
        """The API at the address that was asked for, else at the default one, else at any port. Raises `UpError`."""
        from cidrella.apiserver.serving.server import ApiServer  # noqa: PLC0415
        from cidrella.kube.listening import CannotListenError  # noqa: PLC0415

        address = self._settings.bind_address or DEFAULT_ADDRESS
        server = ApiServer(
            store,
            *address,
            context=self._trust.context(),
            users=self._trust.users,
            audit=stack.enter_context(_audit_log(self._settings.audit_log)),
            ready=lambda: self._ready,
        )
        server.or_any_port = self._settings.bind_address is None
        try:
            return await stack.enter_async_context(server)
        except CannotListenError as error:
            raise UpError(f"cannot listen on {address}: {error}; choose another --bind-address") from error

    async def _serve(self, store: Store, server: ApiServer, url: str) -> None:
        """Everything but the API itself, until cancelled."""
        from cidrella.app.up_founding import found  # noqa: PLC0415

        wanted = self._settings
        async with self._client(url, SERVER) as client, self._client(url, CONTROLLER) as controllers:
            await found(client, pools=wanted.controller, service_ranges=wanted.service_ranges)
            admitted = asyncio.Event()
            desk = _desk(client)
            async with asyncio.TaskGroup() as group:
                group.create_task(desk.run())
                group.create_task(self._admit(desk, store, server, client, admitted))
                async with AsyncExitStack() as stack:
                    page = ""
                    if wanted.controller:
                        page = await stack.enter_async_context(controlled(controllers, group))
                    await self._furnish(client, url, admitted, page)
                    await asyncio.Event().wait()

    async def _admit(
        self, desk: Desk, store: Store, server: ApiServer, client: Client, admitted: asyncio.Event
    ) -> None:
        """Have Services given addresses, once that can be done, the API's own first."""
        from cidrella.apiserver.services.addressing import Addressing  # noqa: PLC0415
        from cidrella.app.up_founding import have_own_service  # noqa: PLC0415

        while desk.readiness():
            await asyncio.sleep(_LOOK)
        server.admit_services(Addressing(desk, lambda: (each.read() for each in store.entries("services"))))
        port = int(server.url.rpartition(":")[2])
        await have_own_service(client, self._settings.service_ranges, port)
        admitted.set()

    async def _furnish(self, client: Client, url: str, admitted: asyncio.Event, page: str) -> None:
        """What the files say, then nodes; and tell that it is ready. Ends only without an example that lives."""
        from cidrella.app.up_apply import apply_manifests  # noqa: PLC0415

        await _wait(admitted)
        with self._teller.progress("applying") as progress:
            if faults := await apply_manifests(client, self._settings.manifests, progress):
                raise InputError(faults)
        self._place.write(KUBECONFIG, self._trust.kubeconfig(url))
        self._ready = True
        example = await self._example(client)
        self._teller.ready(Ready(url, self._place.kubeconfig, bool(self._trust.users), page))
        if example and self._settings.churn:
            await example.live()

    async def _example(self, client: Client) -> Example | None:
        from cidrella.app.embedded import server_version  # noqa: PLC0415
        from cidrella.app.up_example import Example  # noqa: PLC0415

        if not self._settings.example_nodes:
            return None
        version = await server_version(client)
        example = Example(client, self._settings.example_nodes, version, pools=self._settings.controller)
        with self._teller.progress("adding nodes") as progress:
            await example.prepare(progress)
        return example

    def _client(self, url: str, user: User) -> Client:
        from cidrella.kube.client import Client  # noqa: PLC0415

        return Client(self._trust.access(url, user), timeout=_TIMEOUT)


@asynccontextmanager
async def _store(place: Place) -> AsyncIterator[Store]:
    """In memory, or in the directory. Raises `DataDirError`."""
    from cidrella.apiserver.store.store import Journal, Store  # noqa: PLC0415

    if not place.lasting:
        yield Store()
        return
    journal = Journal(place.directory)
    try:
        yield Store(journal)
    finally:
        await journal.close()


@contextmanager
def _audit_log(path: str) -> Iterator[Callable[[Json], None] | None]:
    """Who writes a line for each request; None where none is wanted. Raises `UpError`."""
    if not path:
        yield None
        return
    try:
        # It holds what was sent, which is not for everybody.
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0)
    except OSError as error:
        raise UpError(f"--audit-log: {path} cannot be written: {error.strerror}") from error

    def write(event: Json) -> None:
        file.write(msgspec.json.encode(event) + b"\n")

    with file:
        yield write


def _desk(client: Client) -> Desk:
    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    from cidrella.kube.election import make_identity  # noqa: PLC0415
    from cidrella.serviceip.desk import Desk, DeskSettings  # noqa: PLC0415

    told = DeskSettings((), make_identity(), None, look_interval=_LOOK_INTERVAL, settle=_SETTLE)
    return Desk(client, told, CollectorRegistry())


async def _wait(admitted: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await admitted.wait()
    except TimeoutError:
        _log.warning("Services cannot have addresses yet; everything else can be used")


def _cause(error: Exception) -> Exception:
    """What went wrong first, of what went wrong together."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
