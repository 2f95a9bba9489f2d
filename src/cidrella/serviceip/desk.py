"""Everything that one replica needs to give Service addresses: the desk at which they are asked for.

Theory of operation:

- Every replica follows Services, ServiceCIDRs and IPAddresses (the last two where the API server has them), and keeps a
  ledger for each range. Any of them gives addresses at any time: every change is a compare and swap, and nobody needs
  to lead for that (B6).
- One holds the lease, and is the repairer: it makes the objects of ranges (`restorer`), frees what Services let go
  (`follower`), and goes its rounds (`repairer`). What it writes is fenced by its term (`tenure`).
- Every few seconds each replica looks at which ranges and objects there are (`keeper`).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from cidrella.kube.client import METADATA_ONLY
from cidrella.kube.election import Elector
from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.events import Recorder
from cidrella.kube.parts import run_parts
from cidrella.kube.readiness import not_followed, not_led
from cidrella.kube.reflector import Reflector
from cidrella.kube.reflector_settings import Absence, ReflectorSettings
from cidrella.model.objects import SERVICE_CIDRS_PATH
from cidrella.model.serviceip import (
    IP_ADDRESSES_PATH,
    SERVICES_PATH,
    read_ip_address,
    read_service,
    read_service_cidr,
)
from cidrella.serviceip.allocator import Allocator
from cidrella.serviceip.books import Books
from cidrella.serviceip.errors import DeposedError, UnusableError
from cidrella.serviceip.follower import Follower
from cidrella.serviceip.foreign import Foreign
from cidrella.serviceip.holders import Holders
from cidrella.serviceip.keeper import Keeper
from cidrella.serviceip.metrics import Metrics
from cidrella.serviceip.notices import Notices
from cidrella.serviceip.repairer import Repairer
from cidrella.serviceip.restorer import Restorer
from cidrella.serviceip.tenure import Tenure

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from cidrella.core.address import Address
    from cidrella.core.prefix import Family, Prefix
    from cidrella.kube.client import Client
    from cidrella.kube.election import ElectionSettings
    from cidrella.kube.mirror import Change
    from cidrella.model.serviceip import SeenIPAddress, SeenService, SeenServiceCIDR
    from cidrella.serviceip.ranges import Ranges

_log = structlog.get_logger()

LEASE: Final = "cidrella-services"
"""The name of the repairer's lease."""
_NOT_FOUND: Final = 404
_FINISH: Final = 1.5
"""Seconds that writes under way have to come home when the process is told to end."""
_POLL: Final = 0.05
"""Seconds between two looks at an address that is about to be freed."""


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """What the flags say. Times are in seconds."""

    ranges: tuple[Prefix, ...]
    """Those of the flag; none: ServiceCIDR objects say which there are."""
    identity: str
    election: ElectionSettings | None
    """None: there is no other, and no lease."""
    banded: bool = True
    repair_interval: float = 60.0
    """Between two rounds. Three of them have to take longer than a Service can be on its way to be stored."""
    look_interval: float = 5.0
    """Between two looks at the objects of the ranges."""
    settle: float = 5.0
    """How long an object has to be missing or corrupt before it is made anew."""


class Desk:
    """One replica."""

    def __init__(self, client: Client, settings: DeskSettings, registry: CollectorRegistry) -> None:
        self._client = client
        self._settings = settings
        self._moved = asyncio.Event()
        self._start: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        always = ReflectorSettings(absence=Absence.NEVER)
        unseen = ReflectorSettings(absence=Absence.UNSEEN)  # what was seen is not given up for a stray 404
        self._services = Reflector(client, SERVICES_PATH, read_service, self._services_changed, settings=always)
        self._cidrs = Reflector(client, SERVICE_CIDRS_PATH, read_service_cidr, self._cidrs_changed, settings=unseen)
        self._addresses = Reflector(
            client, IP_ADDRESSES_PATH, read_ip_address, self._addresses_changed, settings=unseen
        )
        self._reflectors: dict[str, Reflector[Any]] = {
            "Services": self._services,
            "ServiceCIDRs": self._cidrs,
            "IPAddresses": self._addresses,
        }

        self._elector = self._make_elector(settings.election) if settings.election else None
        self._tenure = Tenure(lambda: self._elector is None or self._elector.leading, settings.identity)
        self._recorder = Recorder(client, instance=settings.identity, controller="cidrella.dev/services")
        self._holders = Holders()
        self.foreign = Foreign()
        self._books = Books(client, self.foreign)
        notices = Notices(self._recorder, self._services.objects)
        self._restorer = Restorer(self._services, self._holders, self._tenure, notices, settings.settle)
        self._follower = Follower(self._books, self._holders, self._tenure, notices, lifetime=settings.repair_interval)
        self._repairer = Repairer(
            self._books,
            self._services,
            self._holders,
            self._tenure,
            notices,
            spared=self.foreign,
            interval=settings.repair_interval,
        )
        self._keeper = Keeper(
            client,
            self._books,
            self._restorer,
            self._cidrs.objects,
            ranges=settings.ranges,
            banded=settings.banded,
            interval=settings.look_interval,
            settle=settings.settle,
        )
        metrics = Metrics(registry, self._books.ledgers)
        self.allocator = Allocator(self._books.giving, idle=lambda address: not self.holder(address), metrics=metrics)

    def _make_elector(self, election: ElectionSettings) -> Elector:
        return Elector(
            self._client,
            self._settings.identity,
            election,
            on_started=self._began_to_lead,
            on_stopped=self._stopped_leading,
        )

    # What others ask

    @property
    def ranges(self) -> Ranges:
        """Those there are, and those that are refused; none before they are known."""
        return self._books.ranges

    @property
    def families(self) -> tuple[Family, ...]:
        """Those that Services can have addresses of, the default first."""
        return self.ranges.families

    def holder(self, address: Address) -> str:
        """The Service that has an address, by the watch; "" if none does."""
        return self._holders.holder(address)

    async def exists(self, service: str) -> bool:
        """Whether there is a Service of this name; one that the watch shows is asked for. Raises KubeError."""
        if service not in self._services.objects:
            return False
        namespace, _, name = service.partition("/")
        try:
            await self._client.request("GET", f"/api/v1/namespaces/{namespace}/services/{name}", accept=METADATA_ONLY)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            return False
        return True

    async def wait_free(self, address: Address, seconds: float) -> bool:
        """Wait until an address that a Service is about to let go is free to be given; False if that takes longer.

        Raises KubeError, UnusableError.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while address in self._holders:
                    self._moved.clear()
                    await self._moved.wait()
                while await self._is_given(address):
                    await asyncio.sleep(_POLL)
                return True
        return False

    async def _is_given(self, address: Address) -> bool:
        for ledger in self._books.ledgers():
            if (offset := ledger.range.offset(address)) is not None:
                return offset in (await ledger.refresh()).bitmap
        return False

    def readiness(self) -> list[str]:
        """What keeps this replica from serving; nothing where it is ready.

        A range that has just come, and whose object is still to be made, keeps nobody if another of its family gives.
        """
        missing = not_followed(self._reflectors)
        if self._keeper.trouble:
            missing.append(self._keeper.trouble)
        elif not self.families:
            missing.append("there is no range of Services: neither a ServiceCIDR nor --service-cluster-ip-range")
        used = {each.range.cidr.family for each in self.ranges.known}
        missing += [str(each) for each in self.ranges.refused if each.cidr.family not in used]
        faults = self._restorer.faults
        for ledger in self._books.giving():
            if ledger in faults or ledger.state is None:
                missing.append(faults.get(ledger, f"what is given of {ledger.range.cidr} is not known yet"))
        return missing + not_led(self._elector)

    # The life of a replica

    async def run(self) -> None:
        """Work until cancelled; then let writes come home, release the lease and return. Raises what it died of."""
        following = [each.run() for each in self._reflectors.values()]
        lead = self._elector.run() if self._elector else self._lead_alone()
        parts = [lead, *following, self._recorder.run(), self._follower.run(), self._keep()]
        await run_parts(parts, self._failed, self._finish, "the desk")

    async def _keep(self) -> None:
        for each in self._reflectors.values():
            await each.wait_synced()
        await self._keeper.run()

    async def _lead_alone(self) -> None:
        self._began_to_lead()
        await asyncio.Event().wait()

    async def _finish(self) -> None:
        self._tenure.lay_down()
        if self._start is not None:
            self._start.cancel()
        await asyncio.gather(*(each.finish(_FINISH) for each in self._books.ledgers()))

    # Leading

    def _began_to_lead(self) -> None:
        _log.info("this replica repairs")
        self._start = asyncio.ensure_future(self._repair())
        self._start.add_done_callback(self._end_with)

    def _end_with(self, start: asyncio.Task[None]) -> None:
        if not start.cancelled() and (error := start.exception()) is not None and not self._failed.done():
            self._failed.set_exception(error)

    def _stopped_leading(self) -> None:
        _log.warning("this replica no longer repairs")
        self._tenure.lay_down()
        if self._start is not None:
            self._start.cancel()

    async def _repair(self) -> None:
        """A term as repairer: written into every object, then the rounds."""
        await self._keeper.wait_looked()
        self._tenure.begin()
        for ledger in self._books.ledgers():
            # Where that does not work now, the rounds do it.
            with suppress(KubeError, UnusableError, DeposedError):
                await self._tenure.appoint(ledger)
        self._tenure.take_up()
        _log.info("on duty", services=len(self._services.objects), ranges=len(self.ranges.known))
        self._keeper.stir()
        await self._repairer.run()

    # What the API tells

    def _services_changed(self, changes: list[Change[SeenService]]) -> None:
        self._follower.hear(self._holders.apply(changes))
        self._moved.set()

    def _cidrs_changed(self, _: list[Change[SeenServiceCIDR]]) -> None:
        self._keeper.stir()

    def _addresses_changed(self, changes: list[Change[SeenIPAddress]]) -> None:
        self.foreign.apply(changes)
