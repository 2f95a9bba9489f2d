"""Leader election with a Lease: the part that talks to the API (F5).

Rules, on top of those of `campaign`, which decides:

- `leading` looks at the clock itself. A process that was stopped and wakes after its deadline leads no more at the
  first look, whatever its event loop gets to first.
- Stop leading first, ask later: a deadline that has passed is told (`on_stopped`) before anything else is sent,
  and before an answer that came in meanwhile counts.
- No refusal and no outage ends it, however long: it is told in `trouble`, and the next turn comes.
- Whoever cancels `run` gets the Lease released, if the API can be reached within `RELEASE_SECONDS`.
- Whoever leads may keep a note in the Lease, and wait until it is there (`record`). That takes a renewal out of turn;
  those who want one while another is under way share the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import socket
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from cidrella.kube.campaign import LEASE_DURATION_MAX, Ask, Campaign, ElectionSettings, Verb
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.model.lease import Lease, lease_path, leases_path, read_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.kube.client import Client

__all__ = ["ElectionSettings", "Elector", "Holder", "Note", "make_identity", "read_holder", "steady_clock"]

RELEASE_SECONDS: Final = 2.0
"""What giving the Lease back may take: more would keep a process that is told to end."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

_log = structlog.get_logger()


def make_identity() -> str:
    """A name for this process that no other has, with which people find its host."""
    return f"{socket.gethostname()}_{secrets.token_hex(8)}"


def steady_clock() -> float:
    """Seconds that nobody sets, and that go on while the machine is suspended, where there is such a clock."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class Note(NamedTuple):
    """What a leader keeps in the Lease for its successor: under which annotation, and what it is to say right now.

    None from `read` leaves what is there as it is, and "" takes it away. It is called for each write of a leader.
    """

    key: str
    read: Callable[[], str | None]


class Elector:
    """One candidate for the Lease. `on_started` and `on_stopped` are called in turn, from within `run`.

    Neither may block or raise. `leading` may be asked at any time, and is the one to ask before anything is written.
    """

    def __init__(  # noqa: PLR0913 -- the last three are there for tests
        self,
        client: Client,
        identity: str,
        settings: ElectionSettings,
        *,
        on_started: Callable[[], None],
        on_stopped: Callable[[], None],
        note: Note | None = None,
        clock: Callable[[], float] = steady_clock,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._identity = identity
        self._settings = settings
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._clock = clock
        self._wall = wall
        self._note = note
        self._campaign = Campaign(identity, settings, jitter, note.key if note else "")
        self._told = False
        self._callers: list[tuple[int, asyncio.Future[bool]]] = []
        """Those who want the note to be written, each with its number."""
        self._numbered = 0
        self._stirred = asyncio.Event()
        self._trouble = ""
        self._logged: tuple[object, ...] = ()

    @property
    def leading(self) -> bool:
        """Whether this is the leader, at this moment."""
        return self._campaign.leads(self._clock())

    @property
    def holder(self) -> str:
        """Who holds the Lease, as last seen; "" for nobody."""
        return self._campaign.holder

    @property
    def trouble(self) -> str:
        """Why the Lease cannot be read or written, for people; "" while it can."""
        return self._trouble

    @property
    def noted(self) -> str:
        """What the note in the Lease says, as last seen; to who begins to lead, what its predecessors left there."""
        return self._campaign.note

    async def record(self) -> bool:
        """Wait until the Lease holds the note as it is now, or as it became since. False if leading ends first."""
        if not self.leading:
            return False
        self._numbered += 1
        caller: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._callers.append((self._numbered, caller))
        self._stirred.set()
        return await caller

    async def run(self) -> None:
        """Stand for election, for ever. When cancelled: stops leading, then gives the Lease back."""
        try:
            while True:
                await self._turn()
                await self._rest()
        finally:
            note = self._read_note()
            self._campaign.resign()
            self._tell()
            await self._release(note)

    async def _rest(self) -> None:
        """Wait until it is time to ask again: at once if somebody wants the note written and nothing went wrong."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._campaign.pause(self._clock())
        while not (self._callers and self._campaign.at_rest(self._clock())) and (left := until - loop.time()) > 0:
            self._stirred.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._stirred.wait()

    def _read_note(self) -> str | None:
        """What the note is to say; None while it is not ours to write."""
        return self._note.read() if self._note and self._told and self.leading else None

    async def _turn(self) -> None:
        """Ask once, and draw the consequences."""
        self._tell()
        note, carried = self._read_note(), self._numbered
        ask = self._campaign.ask(self._clock(), self._wall(), note)
        try:
            lease = await self._send(ask)
        except KubeError as error:
            self._tell()
            self._refused(ask, error)
        else:
            self._tell()
            self._campaign.answered(ask, lease, self._clock())
            if note is not None and ask.verb is not Verb.READ and self.leading:
                self._settle(carried, True)
        if self._campaign.at_rest(self._clock()):
            self._well()
        self._tell()

    def _settle(self, carried: int, recorded: bool) -> None:
        """Tell those who wanted the note written, up to a number, whether it was."""
        for number, caller in self._callers:
            if number <= carried and not caller.done():
                caller.set_result(recorded)
        self._callers = [each for each in self._callers if each[0] > carried]

    async def _send(self, ask: Ask) -> Lease:
        """Send a request. Raises KubeError, also when it takes longer than it may."""
        path = lease_path(self._settings.namespace, self._settings.name)
        try:
            async with asyncio.timeout(ask.timeout):
                if ask.verb is Verb.READ:
                    return await self._client.get(path, Lease)
                if ask.verb is Verb.WRITE:
                    return await self._client.patch(path, ask.body, Lease)
                return await self._client.create(leases_path(self._settings.namespace), ask.body, Lease)
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {ask.timeout:.1f} s") from error

    def _refused(self, ask: Ask, error: KubeError) -> None:
        """Draw the consequences of a request that failed."""
        code = error.code if isinstance(error, ApiError) else 0
        if code == _NOT_FOUND and ask.verb is not Verb.CREATE:
            self._campaign.absent(self._clock())
            return
        self._campaign.failed()
        if code == _CONFLICT:
            return  # somebody was faster
        lease = f"the Lease {self._settings.namespace}/{self._settings.name}"
        if code == _NOT_FOUND:
            self._trouble = f"cannot create {lease}: {error}; does the namespace exist?"
        else:
            self._trouble = f"cannot {ask.verb.value} {lease}: {error}"
        kind = (type(error), code, ask.verb)
        if kind != self._logged:
            self._logged = kind
            _log.warning("the election is in trouble", trouble=self._trouble)

    def _well(self) -> None:
        if self._trouble:
            _log.info("the election goes on", holder=self.holder)
        self._trouble = ""
        self._logged = ()

    def _tell(self) -> None:
        """Call whoever wants to know, if we have begun or ceased to lead."""
        leading = self.leading
        if leading == self._told:
            return
        self._told = leading
        if leading:
            _log.info("leading", identity=self._identity)
            self._on_started()
        else:
            _log.info("no longer leading", identity=self._identity, holder=self.holder, trouble=self._trouble)
            self._settle(self._numbered, False)
            self._on_stopped()

    async def _release(self, note: str | None) -> None:
        """Give the Lease back, if it may be ours and the API can be reached in time."""
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                while ask := self._campaign.release(self._clock(), self._wall(), note):
                    await self._release_step(ask)
        except (KubeError, TimeoutError) as error:
            _log.warning("the lease could not be released; it ends by itself", error=str(error))

    async def _release_step(self, ask: Ask) -> None:
        """Ask once. Raises KubeError, except where reading and trying again is the answer."""
        try:
            self._campaign.answered(ask, await self._send(ask), self._clock())
        except ApiError as error:
            if error.code == _NOT_FOUND:
                self._campaign.absent(self._clock())
            elif error.code != _CONFLICT:
                raise


class Holder(NamedTuple):
    """Who holds a Lease: the seconds since they renewed it (None if it does not say), and whether it has run out.

    Both are by this machine's clock and the holder's, which may differ: fit for people, not for deciding who leads.
    """

    identity: str
    renewed: float | None
    expired: bool
    lease: str
    """The Lease, with its namespace before it."""
    duration: float
    """The seconds for which the Lease says that it holds, or the reader's own where it says nothing sensible."""
    renew_time: str = ""
    """When the Lease was renewed, as it says itself: only whether this changes is independent of clocks."""


async def read_holder(
    client: Client, settings: ElectionSettings, *, wall: Callable[[], float] = time.time
) -> Holder | None:
    """Who holds the Lease; None if it is not there or released. Raises KubeError.

    A Lease that does not say when it was renewed, or for how long, has not expired as far as anyone can tell.
    """
    try:
        lease = await client.get(lease_path(settings.namespace, settings.name), Lease)
    except ApiError as error:
        if error.code == _NOT_FOUND:
            return None
        raise
    if not lease.holder:
        return None
    moment = read_time(lease.terms.renew_time)
    duration = lease.terms.lease_duration_seconds
    renewed = None if moment is None else wall() - moment
    expired = renewed is not None and duration is not None and renewed > duration
    lasts = min(duration, LEASE_DURATION_MAX) if duration and duration > 0 else settings.lease_duration
    return Holder(
        lease.holder, renewed, expired, f"{settings.namespace}/{settings.name}", lasts, lease.terms.renew_time or ""
    )
