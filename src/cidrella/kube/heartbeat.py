"""The heartbeat Lease: how a controller without leader election can be found (F6).

Rules:

- It is neither a lock nor an election. Several processes may write it; it names the last one that did.
- Failing to write it stops nothing. A failure is logged once, and so is its end.
- Each write names the version of the Lease that it is based on. A conflict means that another process writes it, too.
- At an orderly end the process releases the Lease if it names this process, and has named no other for a lease's
  duration. Otherwise it is left to expire, because the other process may still run.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import structlog

from cidrella.kube.campaign import JITTER
from cidrella.kube.complaints import Complaints
from cidrella.kube.election import RELEASE_SECONDS, read_holder, steady_clock
from cidrella.kube.errors import ApiError, KubeError
from cidrella.model.lease import API_VERSION, KIND, Lease, LeaseSpec, lease_path, leases_path, micro_time
from cidrella.model.objects import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.kube.campaign import ElectionSettings
    from cidrella.kube.client import Client
    from cidrella.kube.election import Holder

_ATTEMPTS: Final = 3
"""Writes in a row where others write or delete the Lease in between; the next renewal comes soon enough."""
_RETRIED: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)

_log = structlog.get_logger()


async def read_holders(client: Client, election: ElectionSettings) -> list[Holder]:
    """The holders of the election Lease and of its heartbeat Lease, as far as there are any. Raises KubeError."""
    found = [await read_holder(client, each) for each in (election, election.heartbeat)]
    return [each for each in found if each is not None]


class Heartbeat:
    """Keeps the heartbeat Lease of one process. `settings` are those of the heartbeat Lease itself."""

    def __init__(
        self,
        client: Client,
        identity: str,
        settings: ElectionSettings,
        *,
        clock: Callable[[], float] = steady_clock,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._path = lease_path(settings.namespace, settings.name)
        self._lease: Lease | None = None  # as last written; None where it has to be read
        self._sent = False  # whether it may name this process
        self._other_seen = -math.inf  # when it last named another process
        self._errors = Complaints(self._path)
        self.attempted = asyncio.Event()
        """Set after the first attempt to write the Lease, whatever came of it."""

    async def run(self) -> None:
        """Write the Lease, and renew it until cancelled; then release it."""
        try:
            while True:
                await self._renew()
                self.attempted.set()
                await asyncio.sleep(self._settings.retry_period * random.uniform(1, JITTER))  # noqa: S311
        finally:
            await self._release()

    async def _renew(self) -> None:
        seconds = self._settings.renew_deadline / 2
        try:
            async with asyncio.timeout(seconds):
                await _retry(self._claim)
        except (KubeError, TimeoutError) as error:
            kind = str(error.code) if isinstance(error, ApiError) else type(error).__name__
            self._errors.make(
                "cannot write the heartbeat Lease; cidrella release and cidrella explain do not find this controller",
                kind=kind,
                error=str(error) or f"no answer within {seconds:g} s",
            )
        else:
            self._errors.settle("wrote the heartbeat Lease again")

    async def _release(self) -> None:
        if not self._sent:
            return
        # Not asyncio.timeout: before Python 3.11.3 it raises no TimeoutError in a task that is being cancelled.
        releasing = asyncio.create_task(_retry(self._give_up))
        done, _ = await asyncio.wait([releasing], timeout=RELEASE_SECONDS)
        if not done:
            releasing.cancel()
            self._not_released(f"no answer within {RELEASE_SECONDS:g} s")
            return
        try:
            releasing.result()
        except KubeError as error:
            self._not_released(str(error))

    def _not_released(self, why: str) -> None:
        _log.warning("cannot release the heartbeat Lease; it expires by itself", path=self._path, error=why)

    async def _claim(self) -> None:
        lease = self._lease or await self._read()
        await self._write(lease, self._identity, math.ceil(self._settings.lease_duration))

    async def _give_up(self) -> None:
        lease = self._lease or await self._read()
        shared = self._clock() < self._other_seen + self._settings.lease_duration
        if lease is not None and lease.holder == self._identity and not shared:
            await self._write(lease, "", 1)

    async def _read(self) -> Lease | None:
        """The Lease as it is; None where there is none. Raises KubeError."""
        try:
            lease = await self._client.get(self._path, Lease)
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        if lease.holder not in ("", self._identity):
            self._other_seen = self._clock()
        return lease

    async def _write(self, lease: Lease | None, holder: str, seconds: int) -> None:
        """Write on top of the Lease that was read, or create it. Raises KubeError."""
        self._lease, self._sent = None, True
        now = micro_time(self._wall())
        spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=seconds, renew_time=now)
        if lease is not None:
            body = Lease(metadata=ObjectMeta(resource_version=lease.version), spec=spec)
            self._lease = await self._client.patch(self._path, body, Lease)
        else:
            metadata = ObjectMeta(name=self._settings.name)
            body = Lease(api_version=API_VERSION, kind=KIND, metadata=metadata, spec=spec)
            self._lease = await self._client.create(leases_path(self._settings.namespace), body, Lease)


async def _retry(write: Callable[[], Awaitable[None]]) -> None:
    """Try again where the Lease was changed, created or deleted in between. Raises KubeError."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            await write()
        except ApiError as error:
            if not left or error.code not in _RETRIED:
                raise
        else:
            return
