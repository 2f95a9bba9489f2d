"""The object of one range, and the one way to change it: compare and swap (B6).

Theory of operation:

- A change is an `edit`: a function of the state. It is applied to a draft of the newest state that is known, and the
  draft is written if the object still has the version that it was made from. If it has not, the race was lost: the
  object is read, and the edit applied to what is there now. A lost race is nobody's business but ours.
- One write is in flight at a time. The edits that come in meanwhile go out together in the next one (group commit).
- What an edit says counts if the state that it saw was current at some time after it was asked for. A write that lands
  proves that, for every edit that was in it; where nothing is to be written, a read does. So nobody is told that an
  address is taken because we have not looked for a while.
- A write whose reply was lost is a doubt. It is settled by reading (see `fate`) before anything else is written. Where
  nobody can tell, edits are applied anew, except those that were to be applied `once`.
- A reply to a write that is neither a success nor a definite refusal leaves the write in doubt as well: an intermediary
  may have sent it and forward the write later. So 404 and 409 are a lost race only as a definite refusal.
- An outage is borne for `PATIENCE` seconds; then those who wait are told. What they asked for may still have been done,
  or be done: then, as for those who were cancelled, it is undone when that is known. What is not known, the repairer
  finds.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import structlog

from cidrella.core.bitmap import Bitmap
from cidrella.kube.backoff import Backoff
from cidrella.kube.errors import ApiError, KubeError
from cidrella.model.objects import ObjectMeta
from cidrella.serviceip.errors import Refusal, UnusableError
from cidrella.serviceip.fate import Fate, fate
from cidrella.serviceip.shelf import Shelf
from cidrella.serviceip.state import State, by_offset
from cidrella.serviceip.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cidrella.core.bands import ServiceRange
    from cidrella.kube.client import Client

_log = structlog.get_logger()

T = TypeVar("T")

GROUP: Final = 256
"""How many edits go out in one write at most: their grants are all remembered (`state.RECENT`)."""
PATIENCE: Final = 5.0
"""Seconds that a request waits for an API that is away; it may be told `shelf.REQUEST_SECONDS` later. Admission, which
waits for it, has ten by default."""
_RETRY_FIRST: Final = 0.02
_RETRY_LAST: Final = 1.0
"""Seconds before an API that is away is asked again."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_MOVED: Final = frozenset({_CONFLICT, _NOT_FOUND})
"""The object is no longer what it was when it was read: it is to be read again."""


@dataclass(eq=False, slots=True)
class _Request(Generic[T]):
    """An edit that somebody waits for."""

    edit: Callable[[State], T]
    undo: Callable[[State, T], None] | None
    once: bool
    future: asyncio.Future[T]
    reads: int
    """How many reads had begun when it came in."""
    since: float
    """When it came in."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What an edit came to, if the draft that it was applied to is written."""

    request: _Request[Any]
    result: Any = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """A draft with all that was done to it."""

    base: State
    draft: State
    outcomes: list[_Outcome]

    @property
    def wanted(self) -> bool:
        return not all(each.request.future.done() for each in self.outcomes)


class Ledger:
    """The object of one range, as one process sees and changes it.

    `foreign` are offsets that others gave, each with who has it: it may change at any time. `identity` is a name that
    no other ledger has, and is made up unless it is given.
    """

    def __init__(
        self,
        client: Client,
        service_range: ServiceRange,
        *,
        foreign: Mapping[int, str] = MappingProxyType({}),
        identity: str = "",
        rng: random.Random | None = None,
    ) -> None:
        self.range = service_range
        self.foreign = foreign
        self.state: State | None = None
        """As last known; others may have written since. None before the first read."""
        rng = rng or random.Random()  # noqa: S311 - it spreads load and keeps no secrets
        self._turns = Turns(identity or secrets.token_hex(6), rng.random)
        self._shelf = Shelf(client, service_range.cidr, self._turns.took)
        self._backoff = Backoff(_RETRY_FIRST, _RETRY_LAST, rng)
        self._current: State | None = None
        """What the next draft is made from; None if the object is to be read first."""
        self._reads = 0
        self._read = 0
        """The number of the read that `_current` came from, or from which it came by writes of our own."""
        self._waiting: list[_Request[Any]] = []
        self._doubt: _Write | None = None
        """A write that may have landed, or may yet."""
        self._away: float | None = None
        """Since when the API has been away; None while it answers."""
        self._worker: asyncio.Task[None] | None = None

    async def change(
        self, edit: Callable[[State], T], *, undo: Callable[[State, T], None] | None = None, once: bool = False
    ) -> T:
        """Apply an edit, and return what it returned, when it is written.

        The edit may be applied several times, each time to another state; it must not have changed anything when it
        raises. `undo` is applied, later, to what nobody waits for any more. An edit to be applied `once` is not applied
        again where nobody can tell whether it was: then what it returned is returned.

        Raises what the edit raises, which is a Refusal; KubeError if the API cannot be reached; UnusableError.
        """
        request = self._submit(edit, undo, once=once)
        try:
            return await request.future
        except asyncio.CancelledError:
            if request.future.done() and not request.future.cancelled() and request.future.exception() is None:
                self._undo(request, request.future.result())
            raise

    def submit(self, edit: Callable[[State], T], *, once: bool = False) -> asyncio.Future[T]:
        """As `change`, for those who do not wait."""
        return self._submit(edit, None, once=once).future

    async def peek(self, edit: Callable[[State], T]) -> T:
        """What an edit would return, or raise, now. Nothing is changed (B7)."""
        return edit((await self.refresh()).draft(""))

    async def refresh(self) -> State:
        """The state as it is at some time after this was asked. Raises KubeError, UnusableError."""
        await self.change(lambda _: None)
        assert self.state is not None
        return self.state

    async def establish(self, held: Iterable[int], term: str, version: str) -> bool:
        """Make the object anew, with these offsets: a missing one, or a corrupt one of that version.

        What was given of late stays given, for those Services may be about to be stored: what a corrupt one remembers
        of it, or what we know of one that is gone or cannot be read at all. Returns False if somebody else was faster.
        Raises KubeError; MissingAllocationError if the corrupt one is gone.
        """
        metadata = ObjectMeta(name=self._shelf.name)
        recent = self.state.recent.copy() if self.state else {}
        try:
            if version:
                seen = await self._shelf.read()
                if seen.version != version:
                    return False
                metadata = seen.metadata
                recent = by_offset(seen.allocation.recent, self.range) if seen.allocation else recent
            bitmap = Bitmap(self.range.usable)
            for offset in (*held, *recent):
                bitmap.add(offset)
            state = State(self.range, metadata, bitmap, recent, [self._turns.next_id()], term)
            await (self._shelf.replace(state) if version else self._shelf.create(state))
        except ApiError as error:
            if error.code == _CONFLICT and not error.unsettled:
                return False
            raise
        finally:
            self._current = None
        return True

    async def finish(self, seconds: float) -> None:
        """Let what is under way come home, for so long at most."""
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=seconds)

    def _submit(
        self, edit: Callable[[State], T], undo: Callable[[State, T], None] | None, *, once: bool
    ) -> _Request[T]:
        loop = asyncio.get_running_loop()
        request = _Request(edit, undo, once, loop.create_future(), self._reads, loop.time())
        self._waiting.append(request)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return request

    async def _work(self) -> None:
        """Serve who waits. It is nobody's: who is cancelled cancels no write that others, or nobody, wait for."""
        try:
            while self._prune():
                await self._turn()
        except Exception as error:  # a mistake of ours: nobody is left waiting for what does not come
            self._fail(self._waiting, error)
        finally:
            self._worker = None

    def _prune(self) -> bool:
        """Leave out those who have been told, or no longer wait; whether anybody is left."""
        self._waiting = [each for each in self._waiting if not each.future.done()]
        return bool(self._waiting)

    async def _turn(self) -> None:
        """One attempt, whatever comes of it."""
        reading = True
        try:
            if self._current is None:
                await self._catch_up()
            reading = False
            if (write := self._doubt or self._draft()) is not None:
                await self._send(write)
        except UnusableError as error:  # those who came in while it was read may find it mended
            self._fail([each for each in self._waiting if each.reads < self._reads], error)
        except KubeError as error:
            await self._bear(error, passing=_passes(error) if reading else error.unsettled)
        else:
            self._away = None
            self._backoff.reset()

    async def _catch_up(self) -> None:
        """Read the object, and settle what is in doubt. Raises KubeError, UnusableError."""
        self._reads += 1
        number = self._reads
        found = State.read(await self._shelf.read(), self.range)
        self.state = self._current = found
        self._read = number
        self._turns.saw(found.writes)
        if self._doubt is not None:
            self._settle_doubt(self._doubt, found)

    def _settle_doubt(self, write: _Write, found: State) -> None:
        """Find out what became of a write. One that is still open, and wanted, stays in doubt, and is sent again."""
        outcome = fate(write.draft.last_write, write.base, found)
        if outcome is Fate.OPEN and write.wanted:
            return
        self._doubt = None
        if outcome is Fate.LANDED:
            self._settle(write.outcomes)
        elif outcome is Fate.UNKNOWN:
            _log.warning("nobody can tell whether a write took effect: it is for the repairer", range=self._shelf.name)
            self._settle([each for each in write.outcomes if each.request.once])

    def _draft(self) -> _Write | None:
        """The next write, for as many as it can serve; None if there is nothing to write."""
        base = self._current
        assert base is not None
        draft = base.draft(self._turns.next_id())
        outcomes = []
        batch = [each for each in self._waiting if not each.future.done()][:GROUP]
        for request in sorted(batch, key=lambda each: not each.once):  # what is given back first: others may want it
            try:
                outcomes.append(_Outcome(request, result=request.edit(draft)))
            except Refusal as refusal:
                outcomes.append(_Outcome(request, refusal=refusal))
            except Exception as error:  # a mistake of one who asked is theirs: the others go on
                request.future.set_exception(error)
                return None
        if draft.changed:
            return _Write(base, draft, outcomes)
        fresh = [each for each in outcomes if self._read > each.request.reads]
        self._settle(fresh)
        if len(fresh) < len(outcomes):
            self._current = None
        return None

    async def _send(self, write: _Write) -> None:
        """Write a draft, and tell those who wait if it landed. Raises KubeError, with the write in doubt if it is."""
        self._current = None
        try:
            version = await self._shelf.replace(write.draft)
        except KubeError as error:
            if isinstance(error, ApiError) and error.code in _MOVED and not error.unsettled:
                await asyncio.sleep(self._turns.lost())
                return
            if error.unsettled:
                self._doubt = write
            raise
        self._doubt = None
        self.state = write.draft.stored(version)
        self._settle(write.outcomes)
        pause = self._turns.won()
        if not pause:
            self._current = self.state
        elif self._prune():
            await asyncio.sleep(pause)

    async def _bear(self, error: KubeError, *, passing: bool) -> None:
        """The API is away, or has too much to do, or does not want us: wait, or tell those who have waited enough."""
        self._current = None
        retry_after = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
        now = asyncio.get_running_loop().time()
        self._away = self._shelf.asked if self._away is None else self._away
        latest = now - PATIENCE if passing else now
        self._fail([each for each in self._waiting if max(each.since, self._away) <= latest], error)
        if self._prune():
            patience = max(min(each.since for each in self._waiting), self._away) + PATIENCE - now
            await asyncio.sleep(min(patience, max(retry_after, self._backoff.next())))

    def _settle(self, outcomes: Iterable[_Outcome]) -> None:
        """Tell those who wait what their edit came to; what nobody waits for is undone."""
        for each in outcomes:
            if each.request.future.done():
                if each.refusal is None:
                    self._undo(each.request, each.result)
            elif each.refusal is not None:
                each.request.future.set_exception(each.refusal)
            else:
                each.request.future.set_result(each.result)

    def _undo(self, request: _Request[T], result: T) -> None:
        if request.undo is not None:
            undoing = self.submit(partial(_swapped, request.undo, result), once=True)
            undoing.add_done_callback(self._undone)

    def _undone(self, undoing: asyncio.Future[None]) -> None:
        if not undoing.cancelled() and (error := undoing.exception()) is not None:
            _log.warning(
                "what nobody waits for could not be undone: it is for the repairer",
                range=self._shelf.name,
                error=str(error),
            )

    @staticmethod
    def _fail(requests: Iterable[_Request[Any]], error: Exception) -> None:
        for each in requests:
            if not each.future.done():
                each.future.set_exception(error)


def _passes(error: KubeError) -> bool:
    """Whether a read that failed may succeed soon: no answer, a server that failed, or one that asks for a pause."""
    if isinstance(error, ApiError):
        return error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.TOO_MANY_REQUESTS
    return error.unsettled


def _swapped(undo: Callable[[State, T], None], result: T, state: State) -> None:
    undo(state, result)
