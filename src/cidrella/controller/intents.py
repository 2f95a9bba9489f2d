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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cidrella.core.prefix import Prefix

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision, Node

ANNOTATION: Final = "cidrella.dev/intents"
"""On the Lease: see `encode`."""
MOST: Final = 512
"""First attempts at a time: entries that are recorded, or about to be, and whose first PATCH has no outcome yet.

Neither entries whose outcome is unknown count, nor what is only held: no new node could make room by ending them.
"""
MOST_REFUSED: Final = MOST // 4
"""Entries at a time for nodes whose last PATCH was refused: a share of their own, so that they keep no node waiting."""
BATCH: Final = 256
"""Nodes that are decided on at a time, and recorded by one write: half of the above, so that one is sent meanwhile."""
TEXT_MAX: Final = 240_000
"""Bytes of text. The API takes a quarter of a megabyte in all annotations of an object."""
_ENTRY_MAX: Final = 700
"""Bytes of one entry: names of two pools, as long as names can be, and a block of each."""
_LARGE: Final = 64 << 10
"""Bytes of text from which on a record is a load for the API server, and written less often."""
_LARGE_PERIOD: Final = 0.25
"""Seconds between two records of such a text."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Blocks that a node, this very one, is to be given, and what is to stand in its annotation."""

    uid: str
    pool: str
    blocks: tuple[Prefix, ...]
    text: str = field(init=False, compare=False, repr=False)
    """The entry in the Lease, a JSON list in ASCII: kept, as each write of the Lease asks for it."""

    def __post_init__(self) -> None:
        text = json.dumps([self.uid, self.pool, *map(str, self.blocks)], separators=(",", ":"))
        object.__setattr__(self, "text", text)

    @property
    def size(self) -> int:
        """Bytes that the entry takes, with the comma after it."""
        return len(self.text) + 1


def encode(intents: Iterable[Intent]) -> str:
    """As text: a list of lists, each a uid, the annotation and the blocks; "" for none.

    >>> encode([Intent("u1", "pool", (Prefix.parse("10.0.0.0/24"),))])
    '[["u1","pool","10.0.0.0/24"]]'
    """
    entries = ",".join(each.text for each in intents)
    return f"[{entries}]" if entries else ""


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

    `record` is the elector's; None where there is no Lease: then everything counts as recorded.
    """

    def __init__(self, cluster: Cluster, record: Callable[[], Awaitable[bool]] | None) -> None:
        self._cluster = cluster
        self._record = record
        self._open: dict[str, Intent] = {}
        self._unrecorded: dict[str, Intent] = {}
        self._unknown: set[str] = set()
        """Nodes with a PATCH that may still land: its outcome is unknown, or another leader may have sent it."""
        self._again: set[str] = set()
        """Nodes with an entry whose PATCH before that was refused."""
        self._size = 0
        self.written = 0
        """Bytes of the text when it was last asked for."""
        self.full = False
        """Whether the text had no room for another entry when it was last measured."""
        self._on = False
        self._recorded_at = float("-inf")
        self._ended = asyncio.Event()

    @property
    def records(self) -> bool:
        """Whether anything has to be recorded before it is sent."""
        return self._record is not None

    def __len__(self) -> int:
        """How many entries the Lease has, or is to have."""
        return len(self._open) + self._cluster.holds_count

    @property
    def size(self) -> int:
        """Bytes that the text has, or is to have; 0 where nothing is recorded."""
        if not self.records or not len(self):
            return 0
        return self._size + sum(Intent(*each).size for each in self._cluster.holds_kept()) + 1

    @property
    def unknown(self) -> int:
        """How many nodes have a PATCH that may still land."""
        return len(self._unknown)

    def text(self) -> str | None:
        """What the Lease is to say; None while it is not for this process to say."""
        if not self._on:
            return None
        text = encode([*self._open.values(), *(Intent(*each) for each in self._cluster.holds_kept())])
        self.written = len(text)
        return text

    def get(self, name: str) -> Intent | None:
        """What may be sent to a node."""
        return self._open.get(name)

    def begin(self, nodes: Mapping[str, Node], inherited: Iterable[Intent], *, adopts: bool) -> list[str]:
        """This process leads, and knows what there is. The nodes for which something may have been sent already."""
        self._open = take_over(self._cluster, nodes, self._open, inherited, adopts=adopts)
        self._size = sum(each.size for each in self._open.values())
        self._unknown = set(self._open)
        self._again.clear()
        self._on = self.records
        return list(self._open)

    def end(self) -> list[str]:
        """This process leads no more. The nodes for which something is reserved that nobody recorded or sent."""
        self._on = False
        self.written = 0
        self.full = False
        unsent = list(self._unrecorded)
        for name in unsent:
            self.drop(name)
        return unsent

    def add(self, node: Node, decision: Decision, *, again: bool) -> Intent:
        """Something was decided, perhaps once more. What is to be recorded and sent.

        `again` says that the node's last PATCH was refused.
        """
        intent = self._open.get(node.name)
        if intent is None or intent.uid != node.uid:
            self.drop(node.name)
            intent = self._open[node.name] = Intent(node.uid, decision.pool_name, decision.blocks)
            self._size += intent.size
            if self.records:
                self._unrecorded[node.name] = intent
            if again:
                self._again.add(node.name)
        return intent

    def drop(self, name: str) -> None:
        """Nothing that was sent to a node can land any more, or nothing was sent."""
        self._unknown.discard(name)
        self._again.discard(name)
        intent = self._open.pop(name, None)
        if intent is not None:
            self._size -= intent.size
            self._unrecorded.pop(name, None)
        self._ended.set()

    def mark_unknown(self, name: str) -> None:
        """A PATCH of what is reserved for a node may still land."""
        if name in self._open:
            self._unknown.add(name)
            self._again.discard(name)
            self._ended.set()

    def may_land(self, name: str) -> bool:
        """Whether a PATCH for a node may still land that is not under way."""
        return name in self._unknown

    async def record(self) -> bool:
        """Have all that there is in the Lease. False if this process leads no more."""
        batch = dict(self._unrecorded)
        if not batch or self._record is None:
            return True
        self._recorded_at = asyncio.get_running_loop().time()
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
                self._unknown.add(node.name)
                return True
        return False

    def fitting(self, first: int, again: int) -> tuple[int, int]:
        """How many entries more fit: for nodes of which none was refused before, and for others; at most so many each.

        Together they are never more than a batch. O(entries that are held).
        """
        text = (TEXT_MAX - self.size) // _ENTRY_MAX if self.records else BATCH
        self.full = text <= 0
        known = len(self._open) - len(self._unknown) - len(self._again)
        first = max(min(first, MOST - known, text, BATCH), 0)
        return first, max(min(again, MOST_REFUSED - len(self._again), text - first, BATCH - first), 0)

    async def wait_paced(self) -> None:
        """Wait until a record may be written again, where the text is large."""
        if self.size > _LARGE:
            await asyncio.sleep(self._recorded_at + _LARGE_PERIOD - asyncio.get_running_loop().time())

    async def wait_ended(self, seconds: float) -> bool:
        """Wait until an entry ends, or its outcome becomes unknown, for so long at most. Whether one did."""
        self._ended.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True
