"""Watching: what there is, and then every change, as it happens.

Events are made of what is stored, which is bytes already. A change that makes an object match is told as if the object
had come, one after which it does not match any more as if it had gone. Now and then, and shortly before the end, a
bookmark says up to which version everything has been told. Who reads too slowly is cut off, and has to begin anew.
"""

from __future__ import annotations

import asyncio
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms import rendering
from cidrella.apiserver.forms.negotiation import METADATA, PLAIN, TABLE, Form, form_of
from cidrella.apiserver.serving.calls import encode
from cidrella.apiserver.serving.reading import asked_version, check_version
from cidrella.apiserver.serving.selection import Selection
from cidrella.apiserver.store.entries import Entry
from cidrella.apiserver.store.history import GoneError
from cidrella.apiserver.store.journal import StoreError
from cidrella.apiserver.store.watcher import OverrunError
from cidrella.apiserver.words.statuses import StatusError, expired, internal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.options import ListOptions
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.entries import Change
    from cidrella.apiserver.store.watcher import Watcher

    Json = dict[str, Any]

BOOKMARK: Final = 60.0
"""Seconds between bookmarks."""
_BEFORE_END: Final = 2.0
"""Seconds before its end that a watch has its last bookmark."""
_MOMENT: Final = 0.05
"""Seconds between looks at whether everything has been told, when the end is near."""
_LONGEST: Final = (1800, 3600)
"""Seconds that a watch may take where the client does not say: anything between these, so that not all end at once."""
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}
_random: Final = SystemRandom()


class Watch:
    """A watch that can begin. Raises `StatusError` where it cannot."""

    def __init__(self, holdings: Holdings, call: Call, target: Target, served: Served, options: ListOptions) -> None:
        self._teller = _Teller(served, form_of(call.accept, served.resource, many=True, watch=True), call)
        self._options = options
        self._selection = Selection(served, options)
        self._initial: list[Entry] = []
        self._after = 0
        """What is not later than this is not told: a version that is still to come, known to the client from before."""
        since = asked_version(options.version)
        begins = options.initial if options.initial is not None else not since
        self._marks = begins and options.bookmarks
        """Whether a bookmark says that all there was has been told."""
        self._begun = str(holdings.store.version)
        self._watcher: Watcher | None = None
        self._error = b""
        self._last: int | None = None
        """The version with which it ends, once that is known."""
        self._patience: asyncio.Timeout | None = None
        self.target = target
        storage = (served.resource.store_key, target.namespace)
        try:
            if begins:
                check_version(holdings, served, since)
            self._watcher = self._begin(holdings, storage) if begins else self._open(holdings, storage, since)
        except GoneError as error:
            self._error = _refusal(expired(f"too old resource version: {since} ({error.oldest})"))
        except StatusError as error:
            self._error = _refusal(error)

    def _begin(self, holdings: Holdings, storage: tuple[str, str]) -> Watcher:
        """With what there is, and from there on."""
        self._initial = self._selection.of(holdings.store.entries(*storage))
        return holdings.store.watch(*storage)

    def _open(self, holdings: Holdings, storage: tuple[str, str], since: int) -> Watcher:
        """From a version on, or from now on."""
        if since > holdings.store.version:
            self._after = since
            since = 0
        return holdings.store.watch(*storage, since=since or None)

    @property
    def media(self) -> str:
        """Of what comes."""
        return self._teller.form.media

    def end(self) -> None:
        """End it, for whoever reads it."""
        if self._watcher is not None:
            self._watcher.close()

    def finish(self, version: int) -> None:
        """End it when everything up to a version has been told: there will be no more."""
        self._last = version
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def lines(self) -> AsyncGenerator[bytes]:
        """What to send, piece by piece, until the watch ends. Now and then it is nothing, for a look around."""
        if self._watcher is None:
            yield self._error
            return
        yield self._beginning()
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._options.timeout or _random.uniform(*_LONGEST))
        mark = _next_mark(loop.time(), end)
        while loop.time() < end and (self._last is None or self._watcher.version < self._last):
            try:
                soon = end if self._last is None else loop.time() + _MOMENT
                async with asyncio.timeout_at(min(end, mark, soon)) as self._patience:
                    changes = await anext(self._watcher)
            except TimeoutError:
                if loop.time() >= mark:
                    mark = _next_mark(loop.time(), end)
                    yield self._bookmark(self._watcher)
            except StopAsyncIteration:
                return
            except (OverrunError, StoreError) as error:
                yield _failure(error)
                return
            else:
                yield b"".join([self._told(each) for each in changes])

    def _beginning(self) -> bytes:
        told = [self._teller.tell("ADDED", each) for each in self._initial]
        self._initial = []
        if self._marks:
            told.append(self._teller.mark(self._begun, annotations=_INITIAL_END))
        return b"".join(told)

    def _told(self, change: Change) -> bytes:
        if change.version <= self._after:
            return b""
        matched, matches = self._selection.matches(change.before), self._selection.matches(change.after)
        if matches:
            return self._teller.tell("MODIFIED" if matched else "ADDED", change.shown)
        return self._teller.tell("DELETED", _last(change)) if matched else b""

    def _bookmark(self, watcher: Watcher) -> bytes:
        if not self._options.bookmarks:
            return b""
        return self._teller.mark(str(max(watcher.version, self._after)))


class _Teller:
    """Events, in the form that was asked for."""

    def __init__(self, served: Served, form: Form, call: Call) -> None:
        self.form = form
        self._served = served
        self._include = call.option("includeObject")
        self._columns_told = False

    def tell(self, kind: str, entry: Entry) -> bytes:
        """What happened to an object."""
        if self.form is PLAIN:
            return _event(kind, self._served.head + self._served.raw(entry)[1:])
        return _event(kind, self._formed(self._served.read(entry)))

    def mark(self, version: str, **more: Json) -> bytes:
        """A bookmark: an object of which nothing is known but its version."""
        empty: Json = {}
        self._served.resource.strategy.read(empty)
        return _event("BOOKMARK", self._formed({**empty, "metadata": {"resourceVersion": version, **more}}))

    def _formed(self, obj: Json) -> bytes:
        if self.form.kind != TABLE:
            return rendering.one_of(self._served, obj, Form(kind=METADATA) if self.form.kind else PLAIN)
        found = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        table = rendering.rows(self._served, [obj], found, self._include)
        if self._columns_told:
            table["columnDefinitions"] = None
        self._columns_told = True
        return encode(table)


def _last(change: Change) -> Entry:
    """What an object was when it last matched, with the version at which it does not any more."""
    if change.after is None or change.before is None:
        return change.shown
    return Entry.write(change.before.path, change.version, change.before.read())


def _next_mark(now: float, end: float) -> float:
    """When the next bookmark is due: after a while, or shortly before the end; never, if that is too near."""
    last = end - _BEFORE_END
    return min(now + BOOKMARK, last) if now < last else end + BOOKMARK


def _failure(error: OverrunError | StoreError) -> bytes:
    if isinstance(error, OverrunError):
        return _refusal(expired("too old resource version: changes were read too slowly"))
    return _refusal(internal(str(error)))


def _refusal(error: StatusError) -> bytes:
    return _event("ERROR", encode(error.status()))


def _event(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)
