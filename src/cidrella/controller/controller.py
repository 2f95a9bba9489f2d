"""The controller: what the API holds goes into the books, what the books decide goes to the API.

Theory of operation:

- Reflectors (nodes, service ranges, each kind of pools) tell of changes. Each batch is entered into the books at once,
  on the event loop; then those are told whose work may follow from it. Nothing here waits.
- All of that happens in every replica, so that a standby is warm. Only the one on duty writes. It takes up duty when it
  leads and has listed everything since it began to: its predecessor may have given blocks that no watch has told of
  yet (F3, F5). What its predecessor may have sent, and what did not arrive by then, stands in the Lease (`intents`).
- Losing the lease lays duty down first. What was recorded there stays reserved: what was sent may land.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from cidrella.controller.allocation import Allocation
from cidrella.controller.finalizers import Finalizers
from cidrella.controller.findings import Findings
from cidrella.controller.flagspool import ensure_flags_pool
from cidrella.controller.insight import Insight
from cidrella.controller.installed import look_at_crd
from cidrella.controller.intents import ANNOTATION, Intents, decode
from cidrella.controller.no_cidr_reason import NoCidrReason
from cidrella.controller.pools import Pools
from cidrella.controller.status import StatusWriter
from cidrella.controller.together import Together
from cidrella.core.cluster import Cluster
from cidrella.core.pool import PoolSpec
from cidrella.kube.duty import Duty
from cidrella.kube.election import Elector, Note
from cidrella.kube.events import Recorder, Reference
from cidrella.kube.heartbeat import Heartbeat
from cidrella.kube.limiter import AdaptiveLimit
from cidrella.kube.parts import run_parts
from cidrella.kube.readiness import not_followed, not_led
from cidrella.kube.reflector import Reflector
from cidrella.kube.reflector_settings import Absence, ReflectorSettings
from cidrella.model.flags import AllocatorType
from cidrella.model.objects import NODES_PATH, SERVICE_CIDRS_PATH
from cidrella.model.reading import read_node
from cidrella.model.serviceip import read_service_cidr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.controller.installed import Installed
    from cidrella.controller.intents import Intent
    from cidrella.controller.metrics import Metrics
    from cidrella.core.decision import Node
    from cidrella.core.prefix import Prefix
    from cidrella.kube.client import Client
    from cidrella.kube.election import ElectionSettings
    from cidrella.kube.reflector import Change
    from cidrella.model.flags import IpamFlags
    from cidrella.model.kinds import PoolKind
    from cidrella.model.reading import SeenPool
    from cidrella.model.serviceip import SeenServiceCIDR

_log = structlog.get_logger()

CLUSTER_CIDR_FLAG = "--cluster-cidr"
SERVICE_RANGE_FLAG = "--service-cluster-ip-range"
_SHARING = 100
"""Nodes of one batch whose neighbours are told, too: where thousands share addresses, each tells for itself."""
_PROMPT = 0.3
"""Seconds that writes under way have to come home before the lease is released, when the process is told to end.

Most do, and leave nothing for the successor to mind. For the others it knows better than to wait: they are recorded.
"""
_FINISH = 1.2
"""Seconds that they have after that."""
_LOOK_AT_LEASE = 0.25
"""Seconds between two looks of a standby at the Lease: one that is released is taken well within a second.

A watch would tell sooner, and take another right and another connection that can stall unnoticed.
"""
_RETRY = 5.0
"""Seconds between two attempts at what the API refused at start-up."""
_LOOK = 0.5
"""Seconds between two looks at which kinds are served, as the reflectors know it: nobody is asked for that."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the flags say."""

    flags: IpamFlags
    identity: str
    election: ElectionSettings | None
    """None: there is no other, and no lease (`--leader-elect=false`)."""
    heartbeat: ElectionSettings | None = None
    """The Lease by which others find this controller where there is no election; None for no such Lease."""
    records: bool = True
    """Whether what is sent to nodes is recorded in the lease before. False is for tests that show what it is for."""


class Controller:
    """One replica."""

    def __init__(self, client: Client, settings: ControllerSettings, metrics: Metrics) -> None:
        self._client = client
        self._flags = settings.flags
        self._metrics = metrics
        self._cluster = Cluster()
        self._multi = settings.flags.allocator is AllocatorType.MULTI
        self._elector = self._make_elector(settings) if settings.election else None
        self._heartbeat = Heartbeat(client, settings.identity, settings.heartbeat) if settings.heartbeat else None
        recording = self._elector.record if self._elector and settings.records else None
        self._intents = Intents(self._cluster, recording)
        self._duty = Duty(lambda: self._elector is None or self._elector.leading)
        self._start: asyncio.Task[None] | None = None
        self._lead: asyncio.Future[None] | None = None
        self._finishing = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._installed: dict[PoolKind, Installed] = {}
        """The CRDs as last looked at."""
        self._unreadable = ""
        """Why it is not known what predecessors may have sent."""
        self._flags_fault = ""
        """Why the flags' pool is not there, as last told."""
        self.on_nodes: Callable[[list[Change[Node]]], None] | None = None
        """Told of changes to nodes, once they are in the books."""

        always = ReflectorSettings(absence=Absence.NEVER)
        unseen = ReflectorSettings(absence=Absence.UNSEEN)  # a range that was seen is not given up for a stray 404
        self._nodes = Reflector(client, NODES_PATH, read_node, self._nodes_changed, settings=always)
        self._services = Reflector(
            client, SERVICE_CIDRS_PATH, read_service_cidr, self._services_changed, settings=unseen
        )
        self._reflectors: dict[str, Reflector[Any]] = {"nodes": self._nodes, "service ranges": self._services}
        self._pools = Pools(client, self._pools_changed)
        if self._multi:
            self._reflectors |= {f"{kind}s": each for kind, each in self._pools.reflectors.items()}

        self._recorder = Recorder(client, instance=settings.identity)
        self._limit = AdaptiveLimit()
        self._findings = Findings(self._cluster, self._nodes.objects, self._duty, self._recorder)
        self._finalizers = Finalizers(client, self._cluster, self._pools.objects, self._duty)
        self._together = Together(self._finalizers.wait_guarded)
        self._status = StatusWriter(client, self._cluster, self._pools.objects, self._duty, _now)
        self._allocation = Allocation(
            client,
            self._cluster,
            self._nodes.objects,
            self._duty,
            self._findings,
            metrics,
            self._limit,
            self._intents,
            pools_settled=self._together.wait_settled,
            fail=self._fail,
            books_changed=self._books_changed,
            cloud_provider_wait=settings.flags.cloud_provider_wait,
            annotate=self._multi,
            serves=settings.flags.allocate,
            clock=asyncio.get_running_loop().time,
        )
        self._enter_flags()
        self.insight = Insight(
            self._cluster,
            self._nodes.objects,
            self._pools.objects,
            self._services.objects,
            settings.flags,
            settings.identity,
            leads=lambda: self._duty.on,
            listed=self._listed,
            missing=self.readiness,
            may_wait=self._allocation.may_wait_for_cloud,
        )
        metrics.attach(self._cluster, self._gauges(), self._without_cidr)

    def _make_elector(self, settings: ControllerSettings) -> Elector:
        assert settings.election is not None
        return Elector(
            self._client,
            settings.identity,
            replace(settings.election, look_period=_LOOK_AT_LEASE),
            on_started=self._began_to_lead,
            on_stopped=self._stopped_leading,
            note=Note(ANNOTATION, lambda: self._intents.text()),  # noqa: PLW0108 -- made after this
        )

    def _enter_flags(self) -> None:
        """What the flags alone say of the address space (A7, F4)."""
        for cidr in self._flags.service_ranges:
            self._cluster.add_service_range(cidr, SERVICE_RANGE_FLAG)
        if not self._multi:
            self._cluster.add_pool(PoolSpec(CLUSTER_CIDR_FLAG, self._flags.ranges))

    def _gauges(self) -> dict[str, Any]:
        allocation, limit = self._allocation, self._limit
        return {
            "cidrella_nodes_waiting": lambda: len(allocation.waiting if self._flags.allocate else allocation.pending),
            "cidrella_conflicts": lambda: len(self._findings.conflicting) if self._duty.on else 0,
            "cidrella_leader": lambda: int(self._duty.on),
            "cidrella_queue_depth": lambda: len(allocation.queue),
            "cidrella_api_reachable": lambda: int(not self._api_troubled()),
            "cidrella_writes_in_flight": lambda: limit.in_flight,
            "cidrella_writes_limit": lambda: limit.limit,
            "cidrella_events_dropped": lambda: self._recorder.dropped,
            "cidrella_lease_record_bytes": lambda: self._intents.written,
        }

    def _without_cidr(self) -> dict[NoCidrReason, tuple[int, int]]:
        """The leader tells. Where the API server cannot be reached, no replica may lead, and every replica tells."""
        counts = self._allocation.without_cidr()
        if not self._flags.allocate:
            return dict.fromkeys(counts, (0, 0))
        if self._nodes.trouble or (self._elector and self._elector.trouble):
            every = sum(some for some, _ in counts.values()), sum(long for _, long in counts.values())
            return {reason: every if reason is NoCidrReason.API_UNREACHABLE else (0, 0) for reason in counts}
        return counts if self._duty.leads else dict.fromkeys(counts, (0, 0))

    def _api_troubled(self) -> bool:
        """A server that has frozen is noticed by the election first: a watch that is silent looks like any other."""
        return any(each.trouble for each in self._reflectors.values()) or bool(self._elector and self._elector.trouble)

    def readiness(self) -> list[str]:
        """What keeps this replica from serving, or from taking over (O2, O6); nothing where it is ready."""
        missing = not_followed(self._reflectors)
        missing += [f"the {kind} CRD is not installed" for kind in self._pools.missing]
        missing += [self._unreadable] if self._unreadable else []
        return missing + not_led(self._elector)

    async def run(self) -> None:
        """Work until cancelled; then finish what is under way, release the lease and return. Raises what it died of."""
        writing = [self._finalizers.run(), self._status.run()]
        if self._flags.allocate:
            writing.append(self._allocation.run())
        following = [each.run() for each in self._reflectors.values()]
        self._lead = asyncio.ensure_future(self._elector.run() if self._elector else self._lead_alone())
        beating = [self._heartbeat.run()] if self._heartbeat else []
        parts = [self._lead, *writing, *following, self._recorder.run(), *beating]
        await run_parts(parts, self._failed, self._finish, "the controller")

    async def _lead_alone(self) -> None:
        if self._heartbeat is not None:
            await self._heartbeat.attempted.wait()
        self._began_to_lead()
        await asyncio.Event().wait()

    async def _finish(self) -> None:
        self._finishing = True
        self._duty.lay_down()
        if self._start is not None:
            self._start.cancel()
        if not await self._allocation.finish(_PROMPT) and self._lead is not None:
            _log.info("blocks may yet be written: whoever leads next finds in the lease which, and to whom")
            self._lead.cancel()  # which releases the lease
            await asyncio.gather(asyncio.wait([self._lead]), self._allocation.finish(_FINISH))

    # Leading

    def _began_to_lead(self) -> None:
        _log.info("this replica leads")
        self._start = asyncio.ensure_future(self._take_up_duty())
        self._start.add_done_callback(self._end_with)

    def _end_with(self, start: asyncio.Task[None]) -> None:
        """What goes wrong at start-up for a reason that is no refusal of the API ends the controller."""
        if not start.cancelled() and (error := start.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    def _stopped_leading(self) -> None:
        _log.warning("this replica no longer leads")
        self._unreadable = ""
        self._duty.lay_down()
        if self._start is not None:
            self._start.cancel()
        self._allocation.suspend(cut=not self._finishing)

    async def _take_up_duty(self) -> None:
        """See everything as it is since this replica began to lead, have the flags' pool, then begin (F1, F3).

        What was inherited stands in the Lease for as long as that takes, whatever becomes of this replica.
        """
        inherited = await self._read_intents()
        await self._await_lists()
        settled = not self._multi or await self._settle_flags()
        self._allocation.resume(inherited)
        self._duty.take_up()
        _log.info("on duty", nodes=len(self._nodes.objects), pools=len(self._cluster.pools))
        self._findings.examine(list(self._nodes.objects))
        for pool in list(self._pools.objects.values()):
            self._tell_if_invalid(pool)
            self._finalizers.pool_seen(pool)
        self._status.resume()
        if self._multi:
            await asyncio.gather(self._retry_flags(settled), self._follow_crds())

    async def _read_intents(self) -> list[Intent]:
        """What predecessors may have sent. Waits while the Lease says something that cannot be read."""
        if self._elector is None or not self._intents.records:
            return []
        while True:
            try:
                inherited = decode(self._elector.noted)
            except ValueError as error:
                if not self._unreadable:
                    self._unreadable = f"the lease's annotation {ANNOTATION} cannot be read: {error}"
                    _log.error(
                        "nodes are given nothing",
                        because=self._unreadable,
                        text=self._elector.noted[:1000],
                        how="see that no other replica or version runs, and take the annotation away",
                    )
                await asyncio.sleep(_LOOK)
            else:
                self._unreadable = ""
                return inherited

    async def _retry_flags(self, settled: bool) -> None:
        while not settled:
            await asyncio.sleep(_RETRY)
            settled = await self._settle_flags()

    async def _follow_crds(self) -> None:
        """Look at the CRDs that are installed later (K6), which the reflectors find out."""
        known = frozenset(self._installed)
        while True:
            await asyncio.sleep(_LOOK)
            served = self._pools.served
            await self._look_at_crds(served - known)
            known = served

    async def _look_at_crds(self, kinds: Iterable[PoolKind]) -> None:
        """See what can be relied on, of those that are installed (C4)."""
        for kind in kinds:
            self._installed[kind] = await look_at_crd(self._client, kind, self._installed.get(kind))
        self._status.leave_out(frozenset(kind for kind, found in self._installed.items() if not found.status))

    async def _settle_flags(self) -> bool:
        """Have the pool that the flags ask for, and know it. Whether that worked: a start is not held up by it (F1)."""
        await self._look_at_crds(self._pools.served)
        fault = await ensure_flags_pool(self._client, self._pools.objects, self._flags.ranges)
        if fault and fault != self._flags_fault:
            _log.error("the pool of --cluster-cidr cannot be made as the flags say", error=fault)
        self._flags_fault = fault
        if self._flags.ranges and not fault:
            await self._pools.relist()
        return not fault

    async def _await_lists(self) -> None:
        for each in self._reflectors.values():
            await each.wait_synced()
        said: set[PoolKind] = set()
        while missing := self._pools.missing:
            for kind in set(missing) - said:
                _log.error(f"the {kind} CRD is not installed; waiting for it", how="kubectl apply -k deploy/")
            said.update(missing)
            await asyncio.sleep(_LOOK)
        if self._elector is not None:
            await asyncio.gather(*(each.relist() for each in self._reflectors.values()))

    # What the API tells

    def _nodes_changed(self, changes: list[Change[Node]]) -> None:
        touched: list[str] = []
        seen: dict[str, Node] = {}
        for old, new in changes:
            if new is not None:
                if old is not None and old.pod_cidrs and not new.pod_cidrs:
                    # The API lets nobody take them away; an older backup of the cluster may.
                    self._cluster.forget(new.name)
                if old is None or old != new:
                    seen[new.name] = new
            elif old is not None:
                seen.pop(old.name, None)
                touched += self._node_gone(old)
        touched += self._cluster.observe_many(seen.values())
        for node in seen.values():
            self._allocation.node_seen(node)
        self._examine(touched)
        if self.on_nodes is not None:
            self.on_nodes(changes)
        self._books_changed()

    def _node_gone(self, node: Node) -> list[str]:
        """Free what a node had; those who shared its addresses come back, to be examined."""
        shared = self._findings.neighbours(node.name) if node.name in self._findings.conflicting else []
        if node.pod_cidrs:
            self._metrics.released(self._cluster.uses(node.name))
        self._cluster.forget(node.name)
        self._findings.gone(node)
        self._allocation.node_gone(node.name)
        return shared

    def _examine(self, names: list[str]) -> None:
        """Only once everything is listed: before, a node's blocks may seem to be in no pool."""
        if names and self._listed():
            self._findings.examine(names)
            sharing = [name for name in names if name in self._findings.conflicting][:_SHARING]
            others = {other for name in sharing for other in self._findings.neighbours(name)}
            self._findings.examine(sorted(others.difference(names)))

    def _listed(self) -> bool:
        return all(each.synced for each in self._reflectors.values())

    def _pools_changed(self, changes: list[Change[SeenPool]]) -> None:
        for old, new in changes:
            self._together.pool_changed(old and old.spec, new and new.spec)
            if new is None:
                assert old is not None
                self._pool_gone(old)
                self._cluster.remove_pool(old.name)
                continue
            if old is None:
                self._cluster.add_pool(new.spec)
            elif old.spec != new.spec:
                self._cluster.change_pool(new.spec)
            if old is None or old.spec.problem != new.spec.problem:
                self._tell_if_invalid(new)
            self._finalizers.pool_seen(new)
        self._books_changed()

    def _pool_gone(self, pool: SeenPool) -> None:
        self._metrics.pool_gone(self._cluster.pools[pool.name])
        self._finalizers.pool_gone(pool.name)
        self._status.pool_gone(pool.name)

    def _tell_if_invalid(self, pool: SeenPool) -> None:
        if pool.spec.problem and self._duty.on:
            about = Reference(pool.kind.api_version, pool.kind.kind, pool.object_name, pool.uid)
            self._recorder.record(about, "Invalid", f"this pool is not used: {pool.spec.problem}", action="Validate")

    def _services_changed(self, changes: list[Change[SeenServiceCIDR]]) -> None:
        touched: list[str] = []
        for old, new in changes:
            before = set(old.ranges) if old else set()
            after = set(new.ranges) if new else set()
            name = (new or old).name  # type: ignore[union-attr] # one of the two is there
            for cidr in before - after:
                touched += self._held_within(cidr)
                self._cluster.remove_service_range(cidr, name)
            for cidr in after - before:
                held = self._cluster.add_service_range(cidr, name)
                touched += [each.holder for each in held if isinstance(each.holder, str)]
            if new is not None and new.unreadable and (old is None or old.unreadable != new.unreadable):
                _log.warning("a ServiceCIDR cannot be read", name=name, problem="; ".join(new.unreadable))
        self._examine(touched)
        self._books_changed()

    def _held_within(self, cidr: Prefix) -> list[str]:
        holdings = self._cluster.spaces[cidr.family].holdings(cidr)
        return [each.holder for each in holdings if isinstance(each.holder, str)]

    def _books_changed(self) -> None:
        """Something may follow for those who wait, for pools that are going, and for what is told of pools."""
        self._allocation.wake()
        self._finalizers.look()
        self._status.touch()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
