"""Nodes get their blocks: decided in memory, written many at a time.

Theory of operation:

- A node without podCIDRs is queued by name. Names are taken many at a time and decided on at once, on the event loop
  and without a lock; what comes out are reservations in the books. They are recorded in the Lease, all by one write
  (`Intents`), and only then sent: each PATCH beside others, as many as the API server takes well (`AdaptiveLimit`).
  While they go out, the next are recorded. A name stays in hand until its write is settled, so that a node is never
  decided twice. Where there is no Lease, everything counts as recorded.
- The Lease has room for so many. What it has already is sent again whether or not there is room for more. Entries whose
  outcome is unknown take no room from new ones.
- First attempts, inherited writes and retries each have a share of the writes in flight (`SendQueue`), so that nodes
  whose PATCH fails or hangs keep no other node waiting; a first attempt that hangs is excused. Nodes that were refused
  have a share of the record, too.
- A reservation ends in one of these ways, and no other: the watch shows the node with podCIDRs, ours or others' (N3);
  the node is gone (N8); it was never sent, or every PATCH that carried it was definitely refused (N9); this process
  leads, perhaps again, and it could not be given any more: then it is held instead (`intents.take_over`).
- A PATCH whose outcome is unknown, or that another leader may have sent, may land at any time, also after a later one
  was refused. From then on only the first two ways are open, and the same block is sent again until one of them
  happens; or it is held, and the node given another, where it is seen that others have the block (N6, A7).
- A node that no pool can serve waits: it is tried again with growing delays, and at once when the books say that there
  is an opening, or when the node itself changes (N4).
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import structlog

from cidrella.controller.cloud_provider_wait import CloudProviderWait
from cidrella.controller.intents import BATCH
from cidrella.controller.no_cidr_reason import LONG, NoCidrReason
from cidrella.controller.send_queue import Attempt, SendQueue
from cidrella.core.decision import Outcome, Reason
from cidrella.kube.client import METADATA_ONLY, STRATEGIC_PATCH, Receipt
from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.limiter import OVERDUE
from cidrella.kube.queue import WorkQueue
from cidrella.model.objects import NODES_PATH, POOL_ANNOTATION
from cidrella.model.reading import read_node

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from cidrella.controller.findings import Findings
    from cidrella.controller.intents import Intent, Intents
    from cidrella.controller.metrics import Metrics
    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Decision, Node
    from cidrella.kube.client import Client
    from cidrella.kube.duty import Duty
    from cidrella.kube.limiter import AdaptiveLimit

_log = structlog.get_logger()

_RETRY_FIRST = 0.1
_RETRY_LAST = 60.0
"""Seconds between two tries of a node that waits: a safety net, for what could help it wakes it at once."""
_RETRY_AFTER_MAX = 60.0
"""Seconds. A server that names more is not believed."""
_PAUSE = 0.05
"""Seconds to wait where the lease ran out and its keeper has yet to say so."""
_GATHER = 0.05
"""Seconds that little room in the record waits for more, so that fewer writes to the Lease do."""
_GATHER_REFUSED = 10
"""As many times as long for nodes that were refused: they are in no hurry."""
_LOOK = 0.5
"""Seconds between two looks at the room in the record: a safety net, for an entry that ends wakes who waits."""
_LOOK_AT_NODE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Refusals that may be about the node as it is by now: gone, another of that name, or with podCIDRs."""
_TELL_FAILURES = 3
"""PATCHes of unknown outcome in a row after which an event tells of it: one or two happen, and mend themselves."""


@dataclass(slots=True)
class _Flight:
    """A PATCH that is under way."""

    attempt: Attempt
    began: float
    timer: asyncio.TimerHandle | None = None
    excused: bool = False
    """Whether it hangs, and counts no longer towards the writes in flight."""


class Allocation:
    """Serves nodes while duty is on."""

    def __init__(  # noqa: PLR0913, PLR0917 -- wired once, in Controller
        self,
        client: Client,
        cluster: Cluster,
        nodes: Mapping[str, Node],
        duty: Duty,
        findings: Findings,
        metrics: Metrics,
        limit: AdaptiveLimit,
        intents: Intents,
        *,
        pools_settled: Callable[[], Awaitable[None]],
        fail: Callable[[BaseException], None],
        books_changed: Callable[[], None],
        cloud_provider_wait: float,
        annotate: bool,
        serves: bool,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._nodes = nodes
        self._duty = duty
        self._findings = findings
        self._metrics = metrics
        self._limit = limit
        self._intents = intents
        self._pools_settled = pools_settled
        self._fail = fail
        """Called with an error that nobody foresaw."""
        self._books_changed = books_changed
        """To be told of what no watch tells: a reservation that ended. Wakes those who wait, too."""
        self._annotate = annotate
        """Whether pools are objects that a node's annotation can name: one, or one for each family (K3)."""
        self._serves = serves
        """Whether nodes are given anything at all (F8)."""
        self.queue: WorkQueue[str] = WorkQueue(base=_RETRY_FIRST, cap=_RETRY_LAST)
        self.pending: dict[str, float] = {}
        """The nodes without podCIDRs, each with the time since which it has been seen so."""
        self.waiting: dict[str, int] = {}
        """Those of them that no pool could serve when they were last tried, each with the number of pools tried."""
        self._cloud_wait = CloudProviderWait(cluster, nodes, self.pending, findings, cloud_provider_wait)
        """Those that wait for their cloud provider (N10): `cloud_provider_wait` seconds each at most."""
        self.refused: set[str] = set()
        """Those whose last PATCH was definitely refused."""
        self._failures: Counter[str] = Counter()
        """PATCHes in a row that failed, by node."""
        self._backlogs: tuple[OrderedDict[str, None], OrderedDict[str, None]] = OrderedDict(), OrderedDict()
        """Those in hand for which nothing is recorded, and that wait for room in the Lease; the second has those whose
        last PATCH was refused."""
        self._backlogged = asyncio.Event()
        self._outbox: SendQueue[tuple[Node, Decision, Intent]] = SendQueue()
        """What is recorded, and is to be sent when there is a slot."""
        self._sendable = asyncio.Event()
        """Set when something was put into the outbox, or a write has ended."""
        self._written: dict[str, str] = {}
        """The uids of those whose PATCH succeeded, and of which the watch has yet to tell."""
        self._writes: dict[str, asyncio.Task[KubeError | None]] = {}
        self._openings = cluster.openings
        self._clock = clock

    @property
    def waiting_for_cloud(self) -> AbstractSet[str]:
        """The nodes that wait for their cloud provider now (N10)."""
        return self._cloud_wait.waiting.keys()

    def may_wait_for_cloud(self, name: str) -> bool:
        """Whether a node's time to wait for its cloud provider is not over (N10)."""
        return self._cloud_wait.remaining(name) > 0

    def node_seen(self, node: Node) -> None:
        """A node is new, or something that bears on its blocks has changed. The books know already."""
        if node.pod_cidrs:
            self._forget(node.name)
        else:
            self.pending.setdefault(node.name, self._clock())
            if self._serves:
                self.queue.add(node.name)

    def node_gone(self, name: str) -> None:
        """A node is gone from the API. A PATCH that is under way cannot reach another of that name: it has a uid."""
        self._forget(name)
        if name in self._writes:
            self._writes[name].cancel()

    def wake(self) -> None:
        """Try those who wait again, if anything happened that could help them (N4)."""
        openings = self._cluster.openings
        if openings != self._openings:
            self._openings = openings
            for name in self.waiting.keys() | self.waiting_for_cloud:
                self.queue.add(name)
        else:
            for name in self._cloud_wait.outdated():
                self.queue.add(name)
            for name in self._cluster.held_for() & self.waiting.keys():
                self.queue.add(name)  # what is held for it may be its own now, which is no opening for others

    def without_cidr(self) -> dict[NoCidrReason, tuple[int, int]]:
        """How many nodes have no podCIDRs, by the reason; and how many of them for more than a minute.

        It may be called from any thread.
        """
        counts = dict.fromkeys(NoCidrReason, (0, 0))
        full, held, now = self._intents.full, self._cluster.held_for(), self._clock()
        for name, since in self.pending.copy().items():
            reason = self._reason(name, record_full=full, held=name in held)
            some, long = counts[reason]
            counts[reason] = some + 1, long + (now - since > LONG)
        return counts

    def _reason(self, name: str, *, record_full: bool, held: bool) -> NoCidrReason:
        node = self._nodes.get(name)
        tried = self.waiting.get(name)
        if node is not None and node.terminating:
            return NoCidrReason.TERMINATING
        if name in self.waiting_for_cloud:
            return NoCidrReason.WAITING_FOR_CLOUD_PROVIDER
        if tried is not None:
            unmatched = NoCidrReason.FULL if tried else NoCidrReason.NO_MATCHING_POOL
            return NoCidrReason.HELD if held else unmatched
        if self._intents.may_land(name):
            return NoCidrReason.UNKNOWN_OUTCOME
        if name in self.refused:
            return NoCidrReason.REFUSED
        recorded = self._intents.has_recorded(name)
        return NoCidrReason.RECORD_FULL if record_full and not recorded else NoCidrReason.PENDING

    async def run(self) -> None:
        """Serve nodes, for ever."""
        async with asyncio.TaskGroup() as parts:
            for step in (self._sort, self._admit, self._empty_outbox):
                parts.create_task(step())

    async def _sort(self) -> None:
        """Send again what is recorded. All others wait until there is room for them in the Lease."""
        while True:
            await self._duty.wait()
            names = await self.queue.take(BATCH)
            if not await self._go_on(names):
                continue
            for name in names:
                if not self._intents.has_recorded(name):
                    self._backlogs[name in self.refused][name] = None
            recorded = [name for name in names if self._intents.has_recorded(name)]
            self._put_back([each[0].name for each in self._serve(recorded) if not self._hand_on(each)])
            if any(self._backlogs):
                self._backlogged.set()
            await asyncio.sleep(0)

    async def _admit(self) -> None:
        """Decide on nodes for which nothing is recorded, and have that recorded, as many as there is room for."""
        while True:
            await self._backlogged.wait()
            await self._wait_room()
            await self._pools_settled()
            names = self._take_backlog()
            if await self._go_on(names):
                await self._record(self._serve(names))
            await asyncio.sleep(0)  # thousands may be tried in vain, and others have work to do

    async def _wait_room(self) -> None:
        """Wait until there is room in the record for a batch of the backlog, or for some that would be sent at once."""
        await self._intents.wait_paced()
        while any(self._backlogs):
            first, again = self._fitting()
            if first and first in {BATCH, len(self._backlogs[0])}:
                return
            # While many wait to be sent, a record of more has no node served sooner.
            if first and self._outbox.first_attempts < BATCH // 2:
                await asyncio.sleep(_GATHER)
                return
            if again and not first:
                await self._gather_refused()
                return
            await self._intents.wait_ended(_LOOK)

    async def _gather_refused(self) -> None:
        """Wait a while for more nodes that were refused, which saves writes to the Lease; others end it."""
        for _ in range(_GATHER_REFUSED):
            if self._backlogs[0]:
                return
            await asyncio.sleep(_GATHER)

    def _fitting(self) -> tuple[int, int]:
        """How many of each backlog there is room for."""
        return self._intents.fitting(*map(len, self._backlogs))

    def _take_backlog(self) -> list[str]:
        """The names that there is room for."""
        fitting = zip(self._fitting(), self._backlogs, strict=True)
        taken = [names.popitem(last=False)[0] for fit, names in fitting for _ in range(fit)]
        if not any(self._backlogs):
            self._backlogged.clear()
        return taken

    async def _go_on(self, names: list[str]) -> bool:
        """Whether to decide on names that were taken. Else they are put back."""
        if not self._duty.on:
            self._put_back(names)
            await asyncio.sleep(_PAUSE)
            return False
        return True

    async def _record(self, decided: list[tuple[Node, Decision, Intent]]) -> None:
        """Have what was decided recorded, and see to it that it is sent."""
        if not decided:
            return
        await self._intents.record()
        # What is not recorded now never will be: the lease was lost, or the node is gone.
        self._put_back([each[0].name for each in decided if not self._hand_on(each)])

    def _hand_on(self, each: tuple[Node, Decision, Intent]) -> bool:
        """Have something sent, if it is recorded."""
        node, _, intent = each
        if not self._intents.is_recorded(node.name, intent):
            return False
        failures = self._failures[node.name]
        inherited = Attempt.INHERITED if self._intents.may_land(node.name) else Attempt.FIRST
        self._outbox.put(node.name, each, Attempt.RETRY if failures else inherited, failures)
        self._sendable.set()
        return True

    async def _empty_outbox(self) -> None:
        """Send what is recorded, as fast as the API server takes it well."""
        while True:
            await self._sendable.wait()
            slots = await self._limit.wait()
            self._sendable.clear()
            for _ in range(slots):
                if (taken := self._outbox.take(self._limit.limit)) is None:
                    break
                self._send_if_still(*taken)

    def _send_if_still(self, attempt: Attempt, each: tuple[Node, Decision, Intent]) -> None:
        """Send what was recorded a moment ago, unless something came in between."""
        node, decision, intent = each
        if self._duty.on and self._intents.get(node.name) is intent:
            if self._cluster.is_contested(node.name):
                self._give_up(node, intent)
            elif self._intents.may_land(node.name) or self._cluster.still_gives(node.name):
                self._send(node, decision, attempt)
                return
            else:
                self._release(node)
        self._outbox.ended(attempt)
        self._sendable.set()
        self._put_back([node.name])

    def _give_up(self, node: Node, intent: Intent) -> None:
        """What is reserved for a node was taken by others meanwhile. If it was sent before, it is held (see `hold`)."""
        if self._intents.may_land(node.name):
            self._cluster.cancel(node.name)
            self._intents.drop(node.name)
            self._cluster.hold(node, intent.pool, intent.blocks)
        else:
            self._release(node)

    def _put_back(self, names: Iterable[str]) -> None:
        """Look again at nodes that were taken, if there is anything to look at."""
        for name in names:
            self.queue.done(name)
            if name in self.pending:
                self.queue.add(name)

    async def finish(self, seconds: float) -> bool:
        """Let the writes that are out there come home, for so long at most. Whether none is left that may yet land."""
        if self._writes:
            await asyncio.wait(self._writes.values(), timeout=seconds)
        return not self._writes and not self._intents.unknown

    def suspend(self, *, cut: bool = True) -> None:
        """This process no longer leads. What was sent may land, and stays reserved, as does what another may send.

        Nobody waits for answers any more where writes are cut off.
        """
        for write in self._writes.values() if cut else ():
            write.cancel()
        for name in self._intents.end():
            self._cluster.cancel(name)
        self._put_back([*chain(*self._backlogs), *self._outbox.clear()])
        for names in self._backlogs:
            names.clear()
        self.waiting.clear()
        self.refused.clear()
        self._failures.clear()
        self._cloud_wait.clear()

    def resume(self, inherited: Iterable[Intent] = ()) -> None:
        """This process leads, and knows what there is. It takes in what its predecessors, or itself, may have sent."""
        sent = self._intents.begin(self._nodes, inherited, adopts=self._serves)
        reserved = set(self._cluster.reserved())
        self._written = {name: uid for name, uid in self._written.items() if name in reserved}
        if len(self._intents):
            _log.info("blocks may have been sent to nodes before", to_nodes=len(sent), entries=len(self._intents))
        for name in self.pending if self._serves else ():
            self.queue.add(name)

    def _forget(self, name: str) -> None:
        self.pending.pop(name, None)
        self.waiting.pop(name, None)
        self.refused.discard(name)
        self._failures.pop(name, None)
        self._cloud_wait.forget(name)
        self._written.pop(name, None)
        self._intents.drop(name)
        self.queue.discard(name)
        # What waits for its turn must not keep another node of that name waiting.
        backlogged = [names for names in self._backlogs if name in names]
        for names in backlogged:
            del names[name]
        if self._outbox.discard(name) or backlogged:
            self.queue.done(name)

    def _serve(self, names: list[str]) -> list[tuple[Node, Decision, Intent]]:
        """Decide on nodes that were taken. What was decided comes back, to be recorded and sent."""
        decided: list[tuple[Node, Decision, Intent]] = []
        wanting = [node for name in names if (node := self._nodes.get(name)) is not None and self._lacks_blocks(node)]
        over = self._cloud_wait.over(wanting)
        if len(wanting) == 1:
            decisions = [self._cluster.decide(wanting[0], wait_for_labels=not over)]
        else:
            decisions = self._cluster.decide_many(wanting, wait_over=over)
        for name in set(names).difference(node.name for node in wanting):
            self.queue.done(name)
        for node, decision in zip(wanting, map(self._revived, wanting, decisions), strict=True):
            if decision.outcome is Outcome.ASSIGNED:
                self.waiting.pop(node.name, None)
                self._cloud_wait.end(node.name)
                intent = self._intents.add(node, decision, again=node.name in self.refused)
                decided.append((node, decision, intent))
            else:
                self.queue.done(node.name)
                self._let_wait(node, decision)
        return decided

    def _revived(self, node: Node, decision: Decision) -> Decision:
        """What was decided; or, for a node that would wait, what may land on it and can be given to it after all."""
        if decision.reason is not Reason.NOT_AVAILABLE or not self._intents.revive(node):
            return decision
        return self._cluster.decide(node)

    def _lacks_blocks(self, node: Node) -> bool:
        """Whether a node has none, and none were written that the watch has yet to tell of."""
        return not node.pod_cidrs and self._written.get(node.name) != node.uid

    def _let_wait(self, node: Node, decision: Decision) -> None:
        """One that is being deleted is tried when it changes (N8), one that waits for labels also after its time (N10).

        Others are tried again and again.
        """
        if decision.reason is Reason.UNINITIALIZED:
            self.waiting.pop(node.name, None)
            self.queue.add_after(node.name, self._cloud_wait.begin(node))
            return
        self._cloud_wait.end(node.name)
        if decision.reason is Reason.NOT_AVAILABLE:
            self.waiting[node.name] = decision.tried
            self._findings.not_available(node, decision.message)
            self.queue.retry(node.name)

    def _send(self, node: Node, decision: Decision, attempt: Attempt) -> None:
        loop = asyncio.get_running_loop()
        write = loop.create_task(self._write(node, decision))
        self._writes[node.name] = write
        flight = _Flight(attempt, self._limit.began())
        if attempt is Attempt.FIRST:
            flight.timer = loop.call_later(OVERDUE, self._excuse, flight)
        # Not by the task itself, which does not even begin if it is cancelled at once.
        write.add_done_callback(partial(self._write_ended, node, flight))

    def _excuse(self, flight: _Flight) -> None:
        """A first attempt hangs: if others are answered, it does not keep them waiting."""
        if self._limit.excuse():
            flight.excused = True
            self._outbox.ended(flight.attempt)
            self._sendable.set()

    def _write_ended(self, node: Node, flight: _Flight, write: asyncio.Task[KubeError | None]) -> None:
        """A write has ended, one way or another: the name is out of hand."""
        del self._writes[node.name]
        if flight.timer is not None:
            flight.timer.cancel()
        if flight.excused:
            self._limit.readmit()
        else:
            self._outbox.ended(flight.attempt)
        self._sendable.set()
        failure: KubeError | None = None
        if write.cancelled():
            self._doubt(node)
            self._limit.abandoned()
        else:
            if (error := write.exception()) is not None:
                self._fail(error)
            else:
                failure = write.result()
            self._limit.ended(flight.began, failure, first=flight.attempt is Attempt.FIRST)
        self.queue.done(node.name)

    async def _write(self, node: Node, decision: Decision) -> KubeError | None:
        """Write and settle what became of it; what went wrong, if anything."""
        if not self._duty.on:
            # What is recorded another may send by now.
            if not self._intents.records:
                self._release(node)
            return None
        try:
            await self._patch(node, decision)
        except KubeError as error:
            await self._settle(node, error)
            return error
        return None

    async def _patch(self, node: Node, decision: Decision) -> None:
        blocks = [str(block) for block in decision.blocks]
        metadata: dict[str, object] = {"uid": node.uid}
        if self._annotate:
            metadata["annotations"] = {POOL_ANNOTATION: decision.pool_name}
        body = {"metadata": metadata, "spec": {"podCIDR": blocks[0], "podCIDRs": blocks}}
        # Of the ways to say this, the one that costs the API server least: in its own notation of a patch, and without
        # looking for fields that it does not know. The reply is read, for a success that the API server knows nothing
        # of would leave the node waiting for ever.
        path = f"{NODES_PATH}/{node.name}?fieldValidation=Ignore"
        await self._client.patch(path, body, Receipt, content_type=STRATEGIC_PATCH, accept=METADATA_ONLY)
        if self._cluster.is_reserved(node.name, node.uid):
            self._written[node.name] = node.uid
            self._intents.drop(node.name)
        self.refused.discard(node.name)
        self._failures.pop(node.name, None)
        self.queue.forget(node.name)
        since = self.pending.get(node.name)
        now = self._clock()
        self._metrics.allocated(decision, now - since if since is not None else 0.0)
        _log.info("gave a node its blocks", node=node.name, blocks=blocks, pool=decision.pool_name)

    async def _settle(self, node: Node, error: KubeError) -> None:
        """What to make of a PATCH that failed (N3, N9)."""
        if node.name in self.pending:
            self._failures[node.name] += 1
        if error.unsettled:
            self._doubt(node)
            self._tell_unknown(node, error)
        elif isinstance(error, ApiError) and error.code in _LOOK_AT_NODE:
            await self._look(node, error)
        elif isinstance(error, ApiError):
            self._refused(node, error)
        else:
            _log.warning("PATCH was not sent", node=node.name, error=str(error))
            self._release(node)
        if self.pending.get(node.name) is not None:
            asked = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
            self.queue.retry(node.name, at_least=min(asked, _RETRY_AFTER_MAX))

    async def _look(self, node: Node, refusal: ApiError) -> None:
        """A 404 or a 422 says that the node is gone, that it has podCIDRs, or something else: the node tells which."""
        try:
            found = read_node(await self._client.request("GET", f"{NODES_PATH}/{node.name}"))
        except (KubeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            if not (isinstance(error, ApiError) and error.code == HTTPStatus.NOT_FOUND):
                _log.warning("node cannot be read after a refusal", node=node.name, error=str(error))
                self._refused(node, refusal)
            return  # where it is gone, the watch is about to tell
        if found.uid != node.uid:
            return  # the watch is about to tell: one is gone, another came
        if found.pod_cidrs:
            _log.info("a node has other blocks than were reserved for it", node=node.name, has=list(found.pod_cidrs))
            self._cluster.observe(found)
            self._forget(node.name)
            self._findings.examine([node.name])
            self._books_changed()
        else:
            self._refused(node, refusal)

    def _doubt(self, node: Node) -> None:
        """A PATCH of what is reserved for a node may still land."""
        if self._cluster.is_reserved(node.name, node.uid):
            self._intents.mark_unknown(node.name)

    def _tell_unknown(self, node: Node, error: KubeError) -> None:
        failures = self._failures[node.name]
        _log.warning("outcome of a PATCH is unknown", node=node.name, failures=failures, error=str(error))
        if failures >= _TELL_FAILURES:
            self._findings.assignment_failed(node, f"the outcome of {failures} attempts is unknown: {error}")

    def _refused(self, node: Node, error: ApiError) -> None:
        """The API server definitely refused a PATCH."""
        _log.warning("API server refused a PATCH", node=node.name, error=str(error))
        if node.name in self.pending:
            self.refused.add(node.name)
            self._findings.assignment_failed(node, f"the API server refused it: {error}")
        self._release(node)

    def _release(self, node: Node) -> None:
        """What was reserved is free again, unless a PATCH with it may still land."""
        if not self._intents.may_land(node.name) and self._cluster.is_reserved(node.name, node.uid):
            self._cluster.cancel(node.name)
            self._intents.drop(node.name)
            self._books_changed()
