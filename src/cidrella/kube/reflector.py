"""A collection of the API, kept as it is there: listed, then watched, for ever.

Rules:

- A list is a consistent one, in pages, and is told as the difference to what was known: an object that was deleted
  while nobody watched is told as gone (pitfall 26).
- A watch goes on from the last version that was heard of, over any number of connections. A version that the server no
  longer has (410) means a new list.
- Whatever goes wrong is followed by a pause: decorrelated, growing, and short again only after a watch has lasted, or
  has brought something before its connection was lost. So a server that refuses every watch right after every list
  meets no storm (pitfall 25).
- What cannot be understood about a stream (a line that is no event, a page of HTML) is answered by a list. For objects
  that cannot be read, see `replica`.

Theory of operation: `run` is one task that goes round: list if there is no version to go on from or if somebody asked
for a list, watch until that ends, pause if it did not end well. A watch is under an `asyncio.timeout`, whose deadline
is moved: back with every chunk that comes, and to now when somebody wants a list.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Generic

import structlog

from cidrella.kube import watchfaults
from cidrella.kube.backoff import Backoff
from cidrella.kube.complaints import Complaints
from cidrella.kube.errors import ApiError
from cidrella.kube.mirror import Change, Named, T
from cidrella.kube.paging import PageReader
from cidrella.kube.presence import is_absent
from cidrella.kube.reflector_settings import Absence, ReflectorSettings
from cidrella.kube.replica import Listing, Replica
from cidrella.kube.watchfaults import FAULTS, ShortWatchError, StallError
from cidrella.kube.wire import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import msgspec

    from cidrella.kube.client import Client
    from cidrella.kube.watchfaults import Fault

__all__ = ["Change", "Named", "Reflector", "ReflectorSettings"]

_log = structlog.get_logger()

_ABSENCES: Final = 5
"""Answers in a row that say that there is no such collection, before what is known of it is taken for gone."""
_FAILURES: Final = 3
"""Watches of one version that fail in a row before it is given up for a list."""
_HEARD: Final = 0.1
"""Seconds: a deadline that is moved with every one of hundreds of chunks a second costs more than it is worth."""


class Reflector(Generic[T]):
    """The objects of one collection, and a call for whatever changes in them.

    `decode` makes an object of the JSON that the API sent, and must not keep hold of it; what it raises is a fault of
    that object alone. An object that is equal to the one known before is no change. `known_as` makes of the name that
    an object has in the API the one that `decode` gives it, where that is another.

    `on_changes` is told everything, in order, in batches that are never empty: the whole difference that a list makes
    in one call, the first one too, and what one chunk of a watch brings in one call. During the call, `objects` and
    `synced` are already as they are after it. What it raises ends `run`: nobody could tell any more what it knows.

    `rng` is for pauses and timeouts.
    """

    def __init__(  # noqa: PLR0913 - what it is about, and what may be left out
        self,
        client: Client,
        path: str,
        decode: Callable[[bytes | msgspec.Raw], T],
        on_changes: Callable[[list[Change[T]]], None],
        *,
        known_as: Callable[[str], str] = str,
        settings: ReflectorSettings | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._path = path
        self._on_changes = on_changes
        self._settings = settings or ReflectorSettings()
        self._pages = PageReader(client, path, self._settings.page)
        self._rng = rng or random.Random()  # noqa: S311 - it spreads load and keeps no secrets
        self._backoff = Backoff(self._settings.base, self._settings.cap, self._rng)
        self._complaints = Complaints(path)
        self._replica: Replica[T] = Replica(decode, self._complaints, known_as)
        self._failures = 0
        self._absences = 0
        self._watched_from = ""
        """The version that the last watch began with."""
        self._callers: list[asyncio.Future[None]] = []
        """Those who want a list that begins after they asked."""
        self._patience: asyncio.Timeout | None = None
        """The deadline of what somebody who wants a list may interrupt."""
        self._synced = asyncio.Event()
        self.objects: Mapping[str, T] = self._replica.objects
        """By name, as last told."""
        self.absent = False
        """The server does not serve this (404). There are no objects then; it is asked again now and then."""
        self.away_since: float | None = None
        """The event loop's time since which lists and watches have failed; None while they work."""
        self.trouble = ""
        """Why, for people; "" while all is well."""

    @property
    def synced(self) -> bool:
        """Whether the first list is in, or the server does not serve this."""
        return self._synced.is_set()

    @property
    def faults(self) -> int:
        """How many faults there were, ever: of the connection, and objects that could not be read."""
        return self._complaints.total

    async def wait_synced(self) -> None:
        """Wait until `synced`."""
        await self._synced.wait()

    async def relist(self) -> None:
        """Wait for a list that begins now, and for its difference to be told. The watch goes on from there.

        Several who ask before it begins share one. While the API is away this waits; it needs `run` to be running.
        """
        loop = asyncio.get_running_loop()
        caller = loop.create_future()
        self._callers.append(caller)
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(loop.time())
        await caller

    async def run(self) -> None:
        """List and watch for ever, until cancelled. Raises only what `on_changes` does."""
        while True:
            try:
                if self._callers or not self._replica.version:
                    await self._list()
                if self._callers:
                    continue  # they asked while the list was under way, and get one of their own
                await (self._await_presence() if self.absent else self._watch())
            except FAULTS as fault:
                await asyncio.sleep(self._went_wrong(fault))

    async def _list(self) -> None:
        """Make a list and tell the difference."""
        callers, self._callers = self._callers, []
        try:
            changes = self._replica.replace(await self._read_pages())
            self._absences = 0
            self._answered()
            self._synced.set()
            self._tell(changes)
        except BaseException:
            self._callers += callers
            raise
        for caller in callers:
            if not caller.done():
                caller.set_result(None)

    async def _read_pages(self) -> Listing[T]:
        """Everything there is, or an empty list without a version where the server does not serve this."""
        listing: Listing[T] = Listing()
        try:
            while not listing.version or listing.next_page:
                reply = await self._pages.read(listing.next_page)
                self._replica.read_page(reply, listing)
                del reply  # a page at a time is enough to have in memory
        except ApiError as error:
            if not await self._is_absence(error) or not self._believes_absence():
                raise
            listing = Listing()
        self._note_absence(not listing.version)
        return listing

    async def _is_absence(self, error: ApiError) -> bool:
        if self._settings.optional:
            return await is_absent(self._client, self._path, error)
        return watchfaults.is_absence(error)

    def _believes_absence(self) -> bool:
        """Whether the server does not serve this, if it says so once more."""
        self._absences += 1
        if self._settings.absence is Absence.NEVER:
            return False
        if not self.objects:
            return True
        return self._settings.absence is Absence.REPEATED and self._absences >= _ABSENCES

    def _note_absence(self, absent: bool) -> None:
        if absent != self.absent:
            _log.info("the server does not serve this" if absent else "the server serves this now", path=self._path)
        self.absent = absent

    async def _await_presence(self) -> None:
        """Wait until it is time to ask again for what the server does not serve."""
        with suppress(TimeoutError):
            async with self._patient(self._settings.absent_period):
                await asyncio.Event().wait()

    async def _watch(self) -> None:
        """Watch from the version on, until the server ends it or somebody wants a list. Raises `FAULTS`."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._watched_from = self._replica.version
        well = loop.call_later(self._settings.settled, self._went_well)
        try:
            async with self._patient(self._settings.stall) as patience:
                await self._follow(patience)
        except TimeoutError:
            if not self._callers:
                raise StallError(f"nothing was heard for {self._settings.stall:g} s") from None
        finally:
            well.cancel()
        if not self._callers and loop.time() - began < self._settings.short:
            raise ShortWatchError("the server ended the watch as soon as it had begun")

    async def _follow(self, patience: asyncio.Timeout) -> None:
        """Take in what a watch brings, until it ends or somebody wants a list."""
        loop = asyncio.get_running_loop()
        lines = LineSplitter()
        async with self._client.watch(self._path, self._watch_params()) as chunks:
            self._answered()
            heard = loop.time()
            async for chunk in chunks:
                self._take_in(lines.feed(chunk))
                if self._callers:
                    return
                if loop.time() - heard > _HEARD:
                    heard = loop.time()
                    patience.reschedule(heard + self._settings.stall)

    def _watch_params(self) -> dict[str, str]:
        return {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._replica.version,
            "timeoutSeconds": str(self._rng.randint(*self._settings.watch)),
        }

    def _take_in(self, lines: list[bytes]) -> None:
        """Apply events and tell what they change; also what they had changed before one of them raised."""
        changes: list[Change[T]] = []
        try:
            for line in lines:
                changes += self._replica.apply(line)
        finally:
            self._tell(changes)

    def _tell(self, changes: list[Change[T]]) -> None:
        if changes:
            self._on_changes(changes)

    @asynccontextmanager
    async def _patient(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """A time limit that somebody who wants a list cuts short. Raises TimeoutError."""
        try:
            async with asyncio.timeout(seconds) as self._patience:
                yield self._patience
        finally:
            self._patience = None

    def _answered(self) -> None:
        self.trouble, self.away_since = "", None

    def _went_well(self) -> None:
        self._backoff.reset()
        self._complaints.settle("listing and watching works again")

    def _went_wrong(self, fault: Fault) -> float:
        """Take note of a fault, and return the pause that it calls for."""
        self._complaints.make("listing and watching does not work", kind=watchfaults.kind(fault), error=fault)
        self.trouble = watchfaults.told(fault, self._path)
        if self.away_since is None and watchfaults.is_away(fault):
            silence = self._settings.stall if isinstance(fault, StallError) else 0.0
            self.away_since = asyncio.get_running_loop().time() - silence
        doubtful = self._settings.optional and watchfaults.is_refused(fault)  # what to make of it, a list finds out
        if doubtful or watchfaults.calls_for_list(fault) or self._fails_again(fault):
            self._replica.version = ""
        elif self._replica.version not in {"", self._watched_from}:
            self._watched_from = self._replica.version
            self._backoff.reset()
        return self._pause(fault)

    def _fails_again(self, fault: Fault) -> bool:
        """Whether the server has failed at this version several times in a row: it may not be one of its versions.

        So it is after etcd was restored from a backup, when the version lies in the future.
        """
        fails = isinstance(fault, ApiError) and fault.code >= 500 and self._replica.version == self._watched_from
        self._failures = self._failures + 1 if fails else 0
        return self._failures >= _FAILURES

    def _pause(self, fault: Fault) -> float:
        if watchfaults.is_refused(fault):
            return self._backoff.next(self._settings.refused_cap)
        asked = (fault.retry_after or 0.0) if isinstance(fault, ApiError) else 0.0
        return max(self._backoff.next(), min(asked, self._settings.retry_after_max))
