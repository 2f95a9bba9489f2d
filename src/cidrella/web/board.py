"""What is to be seen: everything as it stands, and what changed of late.

Whoever knows something posts it; who asks for everything gets it as of the latest version, who follows gets changes
from the history. What is posted and was known already is no change.

It is filled for those who look: while nobody does, nobody has to keep it up (`looked_at`), and it is cleared.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import msgspec

from cidrella.web import api
from cidrella.web.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LAST: Final = 200
"""Events that are kept, and as many allocations."""
LINGER: Final = 60.0
"""Seconds for which it is kept up after somebody looked."""
FAMILIES: Final = ("IPv4", "IPv6")
_VERSION_BITS: Final = 52
"""So that every version is a number that every reader of JSON can hold."""

T = TypeVar("T", bound=msgspec.Struct)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(kw_only=True)
class News:
    """Something to be posted; what is None or empty is as it was."""

    cluster: api.Facts | None = None
    ranges: list[api.Range] | None = None
    service_ranges: list[api.ServiceRange] | None = None
    pools: Iterable[api.Pool] = ()
    pools_gone: Iterable[str] = ()
    nodes: Iterable[api.Node] = ()
    nodes_gone: Iterable[str] = ()
    services: Iterable[api.Service] = ()
    services_gone: Iterable[str] = ()
    events: Sequence[api.Event] = ()
    allocations: Sequence[api.Allocation] = ()


class Explainer(Protocol):
    """Who knows why a node has what it has."""

    def __call__(self, name: str) -> api.Explanation | None:
        """None where there is no such node."""


class Board:
    """One per process.

    Where its versions begin is drawn, so that no process takes another's for its own: replicas begin together, and
    whoever follows may come back to another one.
    """

    def __init__(self, facts: api.Facts, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.history = History(secrets.randbits(_VERSION_BITS))
        self._facts = facts
        self.filled = asyncio.Event()
        """Set while there is something to show."""
        self._looks = asyncio.Event()
        self._looked_at = float("-inf")
        self._viewers = 0
        self._empty()

    def _empty(self) -> None:
        self.filled.clear()
        self._ranges: list[api.Range] = []
        self._service_ranges: list[api.ServiceRange] = []
        self._pools: Collection[api.Pool] = Collection("name")
        self._nodes: Collection[api.Node] = Collection("name")
        self._services: Collection[api.Service] = Collection("address")
        self._events: dict[str, api.Event] = {}
        self._allocations: deque[api.Allocation] = deque(maxlen=LAST)
        self._taken = self._now()
        self._encoded: dict[type, tuple[object, bytes]] = {}

    # Those who know

    def post(self, news: News) -> None:
        """Take in what is new. The first time, that is everything. Changes are best posted some at a time."""
        change = self._change(news)
        self._taken = change.taken
        fields = msgspec.structs.asdict(change)
        if any(value is not None for name, value in fields.items() if name not in {"version", "taken"}):
            data = _encode(change)
            self.history.add(b"event: change\nid: %d\ndata: %b\n\n" % (change.version, data))
        self.filled.set()

    def clear(self) -> None:
        """Show nothing until something is posted again."""
        self._empty()
        self.history.forget()

    def find_node(self, name: str) -> api.Node | None:
        """A node as it was last posted."""
        return self._nodes.rows.get(name)

    @property
    def node_names(self) -> list[str]:
        """Those of all nodes that were posted."""
        return list(self._nodes.rows)

    @property
    def looked_at(self) -> bool:
        """Whether somebody looks, or did a moment ago."""
        return self._viewers > 0 or self._clock() - self._looked_at < LINGER

    async def wait_looked_at(self) -> None:
        """Wait until somebody looks."""
        while not self.looked_at:
            self._looks.clear()
            await self._looks.wait()

    def _change(self, news: News) -> api.Change:
        families = None
        if news.ranges is not None:
            families = _differs(_families(news.ranges), _families(self._ranges))
        events = [each for each in news.events if self._events.get(each.id) != each]
        change = api.Change(
            version=self.history.version + 1,
            taken=self._now(),
            cluster=_differs(news.cluster, self._facts),
            families=families,
            ranges=_differs(news.ranges, self._ranges),
            service_ranges=_differs(news.service_ranges, self._service_ranges),
            pools=self._pools.merge(news.pools, news.pools_gone),
            nodes=self._nodes.merge(news.nodes, news.nodes_gone),
            services=self._services.merge(news.services, news.services_gone),
            events=events or None,
            allocations=list(news.allocations) or None,
        )
        self._facts = change.cluster or self._facts
        self._ranges = self._ranges if change.ranges is None else change.ranges
        self._service_ranges = self._service_ranges if change.service_ranges is None else change.service_ranges
        self._allocations.extend(news.allocations)
        for event in events:
            self._events.pop(event.id, None)
            self._events[event.id] = event
        for old in list(self._events)[:-LAST]:
            del self._events[old]
        return change

    # Those who look

    def look(self) -> None:
        """Somebody looks."""
        self._looked_at = self._clock()
        self._looks.set()

    def came(self) -> None:
        """Somebody looks, and stays."""
        self._viewers += 1
        self.look()

    def went(self) -> None:
        """One of those has gone."""
        self._viewers -= 1
        self.look()

    def state(self) -> bytes:
        """Everything, as JSON."""
        return self._once(api.State, self._state)

    def pools(self) -> bytes:
        """The pools."""
        return self._once(api.Pools, lambda version: api.Pools(version=version, pools=list(self._pools.rows.values())))

    def nodes(self) -> bytes:
        """The nodes."""
        return self._once(api.Nodes, lambda version: api.Nodes(version=version, nodes=list(self._nodes.rows.values())))

    def services(self) -> bytes:
        """The ranges of Services, and who has which address."""
        return self._once(
            api.Services,
            lambda version: api.Services(
                version=version, service_ranges=self._service_ranges, services=list(self._services.rows.values())
            ),
        )

    def _once(self, kind: type, make: Callable[[int], api.Doc]) -> bytes:
        """A document, encoded once for each version, and for each second where it says when it was taken."""
        version = self.history.version
        of = (version, self._taken) if kind is api.State else version
        known = self._encoded.get(kind)
        if known is None or known[0] != of:
            known = self._encoded[kind] = of, _encode(make(version))
        return known[1]

    def _state(self, version: int) -> api.State:
        return api.State(
            version=version,
            taken=self._taken,
            cluster=self._facts,
            families=_families(self._ranges),
            ranges=self._ranges,
            pools=list(self._pools.rows.values()),
            nodes=list(self._nodes.rows.values()),
            service_ranges=self._service_ranges,
            services=list(self._services.rows.values()),
            events=list(self._events.values()),
            allocations=list(self._allocations),
        )

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Collection(Generic[T]):
    """Rows by their name."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.rows: dict[str, T] = {}

    def merge(self, rows: Iterable[T], gone: Iterable[str]) -> api.Delta[T] | None:
        """Take in rows that are new or changed, and let others go; what that changes, or None."""
        changed: list[T] = []
        for row in rows:
            name = getattr(row, self._key)
            if self.rows.get(name) != row:
                self.rows[name] = row
                changed.append(row)
        went = [name for name in gone if self.rows.pop(name, None) is not None]
        return api.Delta(set=changed, gone=went) if changed or went else None


S = TypeVar("S")


def _differs(new: S | None, old: S) -> S | None:
    return None if new == old else new


def _families(ranges: Iterable[api.Range]) -> list[str]:
    used = {each.family for each in ranges}
    return [family for family in FAMILIES if family in used]
