"""What may yet be written to nodes: recorded in the Lease before it is sent, read by whoever leads next (pitfall 27).

A lease alone does not make one writer of many: what a leader has sent may arrive after another took over, and a leader
that was paused sends before it looks at the clock. Hence, whatever the clocks do:

- Nothing is sent that does not stand in the Lease, written there by a compare and swap (`Elector.record`). Who leads no
  more can record nothing, and so cannot send anything that its successor has not read.
- An entry stays until its node has podCIDRs, which nobody can change, or is gone: a PATCH carries the uid. Only who
  sent it first, and knows that every PATCH of it was refused, may drop it before.
- Whoever begins to lead lists the nodes, and then takes every entry in (`take_over`): for a node without podCIDRs it is
  reserved and sent once more, just as it is; where it could not be given any more, its blocks are held, and the node
  may be given others: of two that may land only one can.
- Whoever cannot read what it finds gives nothing. Nothing that fails can bring that about, only somebody who writes to
  the Lease by hand, or another version of this program; and only they can say that nothing is on its way.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cidrella.core.prefix import Prefix

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision, Node

ANNOTATION: Final = "cidrella.dev/intents"
"""On the Lease: see `encode`."""
MOST: Final = 512
"""Entries at a time: what is recorded and not seen on its node yet, and what is about to be.

What is only held does not count: nobody who waits for room could make any by ending it.
"""
BATCH: Final = 256
"""Nodes that are decided on at a time, and recorded by one write: half of the above, so that one is sent meanwhile."""
_TEXT_MAX: Final = 240_000
"""Bytes of text. The API takes a quarter of a megabyte in all annotations of an object."""
_ENTRY_MAX: Final = 700
"""Bytes of one entry: names of two pools, as long as names can be, and a block of each."""
_STUCK: Final = 0.5
"""Seconds without any entry that ended, after which those that are left are not waited for."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Blocks that a node, this very one, is to be given, and what is to stand in its annotation."""

    uid: str
    pool: str
    blocks: tuple[Prefix, ...]

    @property
    def size(self) -> int:
        """As many bytes as it takes, or a few more."""
        return len(self.uid) + len(self.pool) + 50 * len(self.blocks) + 10


def encode(intents: Iterable[Intent]) -> str:
    """As text: a list of lists, each a uid, the annotation and the blocks; "" for none.

    >>> encode([Intent("u1", "pool", (Prefix.parse("10.0.0.0/24"),))])
    '[["u1","pool","10.0.0.0/24"]]'
    """
    entries = [[each.uid, each.pool, *map(str, each.blocks)] for each in intents]
    return json.dumps(entries, separators=(",", ":")) if entries else ""


def decode(text: str) -> list[Intent]:
    """What `encode` wrote. Raises ValueError for anything else.

    >>> decode('[["u1","pool","10.0.0.0/24"]]') == [Intent("u1", "pool", (Prefix.parse("10.0.0.0/24"),))]
    True
    """
    try:
        entries = json.loads(text) if text else []
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(entries, list):
        raise ValueError("it is no list")  # noqa: TRY004 -- of what is in the text, not of an argument
    return [_read(entry) for entry in entries]


def _read(entry: object) -> Intent:
    match entry:
        case [str(uid), str(pool), str(first), *more]:
            return Intent(uid, pool, tuple(Prefix.parse(str(block)) for block in (first, *more)))
    raise ValueError(f"no uid, pool and blocks: {str(entry)[:100]}")


def take_over(
    cluster: Cluster, nodes: Mapping[str, Node], own: Mapping[str, Intent], inherited: Iterable[Intent], *, adopts: bool
) -> dict[str, Intent]:
    """Take in what may have been sent, by whomever, in books that know what there is. What is to be sent, by node.

    `own` is what this process recorded when it led before, and has reserved; it is in the Lease, too, unless somebody
    meddled. Without `adopts` nothing is to be sent, and all is held.
    """
    wanting = {node.uid: node for node in nodes.values() if not node.pod_cidrs}
    held = [Intent(*each) for each in cluster.holds_kept()]
    cluster.end_holds()  # what could not be given once perhaps can be now
    to_send: dict[str, Intent] = {}
    for name in cluster.reserved():
        stands = cluster.stands(name)
        if stands and adopts and name in own:
            to_send[name] = own[name]
        elif not stands or name in own:
            cluster.cancel(name)
    for intent in (*own.values(), *inherited, *held):
        node = wanting.get(intent.uid)
        if node is None or to_send.get(node.name) == intent:
            continue
        if adopts and cluster.adopt(node, intent.pool, intent.blocks):
            to_send[node.name] = intent
        else:
            cluster.hold(node, intent.pool, intent.blocks)
    return to_send


class Intents:
    """What this process has reserved and may send, and the part of it that is known to be in the Lease.

    `record` is the elector's; None where nothing is recorded, and everything may be sent at once.
    """

    def __init__(self, cluster: Cluster, record: Callable[[], Awaitable[bool]] | None) -> None:
        self._cluster = cluster
        self._record = record
        self._open: dict[str, Intent] = {}
        self._unrecorded: dict[str, Intent] = {}
        self._size = 0
        self._on = False
        self._ended = asyncio.Event()

    @property
    def records(self) -> bool:
        """Whether anything has to be recorded before it is sent."""
        return self._record is not None

    def __len__(self) -> int:
        """How many entries the Lease has, or is to have."""
        return len(self._open) + self._cluster.holds_count

    def text(self) -> str | None:
        """What the Lease is to say; None while it is not for this process to say."""
        if not self._on:
            return None
        return encode([*self._open.values(), *(Intent(*each) for each in self._cluster.holds_kept())])

    def get(self, name: str) -> Intent | None:
        """What may be sent to a node."""
        return self._open.get(name)

    def begin(self, nodes: Mapping[str, Node], inherited: Iterable[Intent], *, adopts: bool) -> list[str]:
        """This process leads, and knows what there is. The nodes for which something may have been sent already."""
        self._open = take_over(self._cluster, nodes, self._open, inherited, adopts=adopts)
        self._size = sum(each.size for each in self._open.values())
        self._on = self.records
        return list(self._open)

    def end(self) -> list[str]:
        """This process leads no more. The nodes for which something is reserved that nobody recorded or sent."""
        self._on = False
        unsent = list(self._unrecorded)
        for name in unsent:
            self.drop(name)
        return unsent

    def add(self, node: Node, decision: Decision) -> Intent | None:
        """Something was decided, perhaps again. What is to be recorded and sent; None where nothing is recorded."""
        if not self.records:
            return None
        intent = self._open.get(node.name)
        if intent is None or intent.uid != node.uid:
            self.drop(node.name)
            intent = Intent(node.uid, decision.pool_name, decision.blocks)
            self._open[node.name] = self._unrecorded[node.name] = intent
            self._size += intent.size
        return intent

    def drop(self, name: str) -> None:
        """Nothing that was sent to a node can land any more, or nothing was sent."""
        intent = self._open.pop(name, None)
        if intent is not None:
            self._size -= intent.size
            self._unrecorded.pop(name, None)
            self._ended.set()

    async def record(self) -> bool:
        """Have all that there is in the Lease. False if this process leads no more."""
        assert self._record is not None
        batch = dict(self._unrecorded)
        if not batch:
            return True
        if not await self._record():
            return False
        for name, intent in batch.items():
            if self._unrecorded.get(name) is intent:
                del self._unrecorded[name]
        return True

    def has_recorded(self, name: str) -> bool:
        """Whether there is something that may be sent to a node, as far as the Lease is concerned."""
        return name in self._open and name not in self._unrecorded

    def is_recorded(self, name: str, intent: Intent) -> bool:
        """Whether this, and nothing else, may be sent to a node."""
        return self._open.get(name) is intent and name not in self._unrecorded

    def revive(self, node: Node) -> bool:
        """Whether something that is held for a node can be given to it by now. It is in the Lease, and may be sent."""
        for held in (Intent(*each) for each in self._cluster.holds_kept(node.name)):
            if self._cluster.adopt(node, held.pool, held.blocks):
                self._open[node.name] = held
                self._size += held.size
                return True
        return False

    async def room(self) -> int:
        """Wait until there is room for many, or for some where no entry ends. For how many there is."""
        while True:
            held = sum(Intent(*each).size for each in self._cluster.holds_kept())
            room = min(BATCH, MOST - len(self._open), (_TEXT_MAX - self._size - held) // _ENTRY_MAX)
            if room == BATCH or (room > 0 and await self._none_ends()):
                return room
            if room <= 0:
                await self._none_ends()

    async def _none_ends(self) -> bool:
        """Wait for an entry to end. Whether none did for long."""
        self._ended.clear()
        try:
            async with asyncio.timeout(_STUCK):
                await self._ended.wait()
        except TimeoutError:
            return True
        return False
