"""Acts a schedule out on a world: by the clock, whatever state the world is in. What cannot be done is counted."""

from __future__ import annotations

import queue
import threading
import time
import zlib
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.chaos import schedule as plan
from tests.chaos.manifests import HELD_BACK, collection_of, node_manifest, pod_cidrs, pool_manifest, pool_path
from tests.chaos.schedule import Kind, Reply, Target, Trouble
from tests.real.behind import NODE_PATCH
from tests.testenv.faults import (
    answer_then_forward,
    cut,
    delay,
    delay_reply,
    gone,
    gone_event,
    html,
    plain_text,
    reset,
    server_error,
    stall_watch,
    swallow,
    too_many_requests,
    too_many_requests_status,
)
from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.chaos.member import Member
    from tests.chaos.recorder import Recorder
    from tests.chaos.schedule import Schedule, Step
    from tests.chaos.world import World
    from tests.testenv import faults
    from tests.testenv.fault_script import Rule
    from tests.testenv.proxy import FaultProxy

HELD: Final = "writes-held"
"""The fault of PATCHes that are on the wire for long, which comes with a pause or a kill."""
FLAGS: Final = "flags-changed"
_LANES: Final = 6
_FIND_SECONDS: Final = 6.0
"""How long a fault waits for somebody whom it can hit."""
_PAUSE_SECONDS: Final = 45.0
"""How long a pause waits, which is what all of this is about."""
_WIRE_SECONDS: Final = 10.0
"""How long a fault waits until something is on the wire."""
_GATHER_SECONDS: Final = 0.3
_SLOW_SECONDS: Final = 1.0
_OTHERS_SECONDS: Final = 2.0
"""How long a leader's writes that are no PATCHes of nodes are answered early."""
_ROLL_SECONDS: Final = 15.0
"""How long the next replica waits until the one before it is ready again."""
_POLL: Final = 0.02
_WATCH: Final = r"[?&]watch="
_WRITES: Final = "PATCH|POST|PUT"
_NO_NODE: Final = rf"^(?!{NODES}/)"


class Actor:
    """Of one run. `run` returns when all has been done, or could not be."""

    def __init__(self, world: World, schedule: Schedule, recorder: Recorder) -> None:
        self._world = world
        self._schedule = schedule
        self._recorder = recorder
        self._lock = threading.Lock()
        self._lanes: list[queue.SimpleQueue[Step | None]] = [queue.SimpleQueue() for _ in range(_LANES)]
        self._threads: list[threading.Thread] = []
        self._held_until = 0.0
        self._errors: list[Exception] = []
        self.done: Counter[str] = Counter()
        """Of the workload, by the name of the step."""
        self.skipped: Counter[str] = Counter()
        """Of everything, likewise; of faults by their kind."""
        self.faults: Counter[str] = Counter()
        """By kind."""
        self.held_writes = 0
        """PATCHes of contested blocks that were on the wire when their sender was paused or killed."""

    @property
    def pauses(self) -> int:
        """How often a leader was paused."""
        return sum(self.faults[kind] for kind in plan.PAUSES)

    def run(self) -> None:
        """Do every step at its time; then wait until all that was begun has ended."""
        began = time.monotonic()
        lanes = [self._thread(self._follow, lane) for lane in self._lanes]
        for step in self._schedule.steps:
            time.sleep(max(0.0, began + step.at - time.monotonic()))
            if self._errors:
                break
            if (lane := self._lane(step)) is not None:
                lane.put(step)
            else:
                self._threads.append(self._thread(self._act, step))
        if not self._errors:
            time.sleep(max(0.0, began + self._schedule.seconds - time.monotonic()))
            for thread in self._threads:
                thread.join()
            for lane in self._lanes:
                lane.put(None)
            for thread in lanes:
                thread.join()
        if self._errors:
            raise ExceptionGroup("a schedule could not be acted out", self._errors)
        time.sleep(max(0.0, self._held_until - time.time()))

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        return thread

    def _lane(self, step: Step) -> queue.SimpleQueue[Step | None] | None:
        """What happens to an object happens in order, hence in one lane. None for faults, which have no order."""
        match step:
            case plan.CreateNode(node=node) | plan.RecreateNode(node=node):
                name = node.name
            case plan.DeleteNode(name=name) | plan.RelabelNode(name=name):
                pass
            case plan.CreatePool(pool=pool) | plan.DeletePool(pool=pool):
                name = pool.name
            case _:
                return None
        return self._lanes[zlib.crc32(name.encode()) % _LANES]

    def _follow(self, lane: queue.SimpleQueue[Step | None]) -> None:
        while (step := lane.get()) is not None:
            try:
                self._count(type(step).__name__, done=self._work(step))
            except Exception as error:  # raised by `run`
                self._errors.append(error)

    def _act(self, step: Step) -> None:
        try:
            if isinstance(step, plan.ChangeFlags):
                self._change_flags(step)
            else:
                assert isinstance(step, plan.FAULTS)
                self._break(step)
        except Exception as error:  # raised by `run`
            self._errors.append(error)

    def _count(self, name: str, *, done: bool) -> None:
        with self._lock:
            (self.done if done else self.skipped)[name] += 1

    # What happens in every cluster.

    def _work(self, step: Step) -> bool:
        """Do a step of the workload. Whether it could be done."""
        admin = self._world.admin
        match step:
            case plan.CreateNode(node=node):
                return admin.create(NODES, node_manifest(node))
            case plan.RecreateNode(node=node):
                return admin.delete(f"{NODES}/{node.name}") and admin.create(NODES, node_manifest(node))
            case plan.DeleteNode(name=name):
                return admin.delete(f"{NODES}/{name}")
            case plan.RelabelNode(name=name, labels=labels):
                return admin.patch(f"{NODES}/{name}", {"metadata": {"labels": dict(labels)}})
            case plan.CreatePool(pool=pool):
                return admin.create(collection_of(pool), pool_manifest(pool))
            case plan.DeletePool(pool=pool):
                return admin.delete(pool_path(pool))
            case _:
                raise TypeError(f"no step of the workload: {step}")

    def _create(self, nodes: Sequence[plan.NewNode]) -> None:
        for node in nodes:
            self._count("CreateNode", done=self._work(plan.CreateNode(0, node)))

    def _overtake(self, contest: plan.Contest) -> None:
        """While what it sent is on the wire: others come for the blocks of those that are turned away."""
        for name in contest.turned_away:
            done = self._world.admin.patch(f"{NODES}/{name}", {"spec": {"taints": HELD_BACK}})
            self._count("TurnAway", done=done)
        self._create(contest.rivals)

    def _change_flags(self, step: plan.ChangeFlags) -> None:
        """A rolling update: one after the other, each when the one before is ready, or was given up."""
        for member in self._world.members:
            member.flags = step.flags
            begin = time.time()
            with member.busy:
                member.terminate()
                member.start()
            deadline = time.monotonic() + _ROLL_SECONDS
            while not member.is_ready() and time.monotonic() < deadline:
                time.sleep(10 * _POLL)
            self._recorder.fault(FLAGS, begin, time.time(), member.name)
        self._count(FLAGS, done=True)

    # Faults.

    def _break(self, fault: plan.Fault) -> None:
        """Do a fault, and count it by what it came to be: None where there was nobody to hit."""
        match fault:
            case plan.PauseLeader():
                kind = self._pause(fault)
            case plan.Kill():
                kind = self._kill(fault)
            case plan.AnswerEarly():
                kind = self._answer_early(fault)
            case plan.Terminate():
                kind = self._terminate(fault)
            case plan.RestartServer() | plan.RestartEtcd():
                kind = self._rebuild(fault)
            case plan.Disturb():
                kind = self._disturb(fault)
            case plan.Surge():
                kind = self._surge(fault)
            case plan.ThirdParty():
                kind = self._meddle(fault)
        with self._lock:
            if kind is None:
                self.skipped[plan.kind_of(fault)] += 1
            else:
                self.faults[kind] += 1

    def _pause(self, fault: plan.PauseLeader) -> Kind | None:
        """Pause a leader; if that one leads no more when it comes to it, the next, without another contest."""
        deadline = time.monotonic() + _PAUSE_SECONDS
        kind = self._try_to_pause(fault)
        while kind is None and time.monotonic() < deadline:
            kind = self._try_to_pause(plan.PauseLeader(fault.at, fault.seconds))
        return kind

    def _try_to_pause(self, fault: plan.PauseLeader) -> Kind | None:
        with self._seized(Target.LEADER) as leader:
            if leader is None:
                return None
            with self._holding(leader, fault) as rule:
                # Whoever led when it was seized may lead no more, of its own accord.
                if not leader.leads():
                    return None
                begin = time.time()
                leader.freeze()
                on_the_wire = self._on_the_wire(rule)
                awake = time.monotonic() + fault.seconds
                self._overtake(fault.contest)
                time.sleep(max(0.0, awake - time.monotonic()))
                leader.wake()
                kind = Kind.PAUSE_ON_THE_WIRE if on_the_wire else Kind.PAUSE
                self._recorder.fault(kind, begin, time.time(), leader.name)
                # What it still sends as one that has not looked at the clock is late, too.
                time.sleep(25 * _POLL)
            return kind

    def _kill(self, fault: plan.Kill) -> Kind | None:
        with self._seized(fault.target) as member:
            if member is None:
                return None
            with self._holding(member, fault) as rule:
                begin = time.time()
                member.kill()
                on_the_wire = self._on_the_wire(rule)
            self._overtake(fault.contest)
            time.sleep(fault.down)
            member.start()
            kind = Kind.KILL_ON_THE_WIRE if on_the_wire else Kind.KILL
            self._recorder.fault(kind, begin, time.time(), member.name)
            return kind

    def _answer_early(self, fault: plan.AnswerEarly) -> Kind | None:
        """Others come for the blocks of nodes whose PATCHes were answered, and arrive later; then other writes are."""
        with self._seized(Target.LEADER) as leader:
            if leader is None:
                return None
            begin = time.time()
            with self._holding(leader, fault) as contested:
                answered = contested is not None and contested.hits > 0
            self._overtake(fault.contest)
            others = leader.proxy.add(_late(fault), method=_WRITES, path=_NO_NODE, probability=fault.probability)
            time.sleep(_OTHERS_SECONDS)
            leader.proxy.remove(others)
            end = time.time() + fault.held
            self._recorder.fault(Kind.ANSWERED, begin, end, leader.name)
            with self._lock:
                self._held_until = max(self._held_until, end)
            return Kind.ANSWERED if answered else None

    def _terminate(self, fault: plan.Terminate) -> Kind | None:
        with self._seized(fault.target) as member:
            if member is None:
                return None
            begin = time.time()
            member.terminate()
            member.start()
            self._recorder.fault(Kind.TERMINATE, begin, time.time(), member.name)
            return Kind.TERMINATE

    def _rebuild(self, fault: plan.RestartServer | plan.RestartEtcd) -> Kind:
        kind = plan.kind_of(fault)
        cluster = self._world.cluster
        begin = time.time()
        process = cluster.apiserver if kind is Kind.SERVER else cluster.etcd
        gracefully = isinstance(fault, plan.RestartEtcd) and fault.gracefully
        self._world.rebuild(process, fault.down, gracefully=gracefully)
        self._recorder.fault(kind, begin, time.time())
        return kind

    def _surge(self, fault: plan.Surge) -> Kind:
        self._create(fault.nodes)
        time.sleep(fault.seconds)
        for node in fault.nodes:
            self._count("DeleteNode", done=self._work(plan.DeleteNode(0, node.name)))
        return Kind.FULL

    def _meddle(self, fault: plan.ThirdParty) -> Kind:
        """Who does so races with the controllers where the node is not held back, and may come too late."""
        third_party = self._world.third_party
        for each in fault.meddlings:
            if each.creates:
                done = third_party.create(NODES, node_manifest(each.node, each.blocks))
            else:
                self._create([each.node])
                done = third_party.patch(f"{NODES}/{each.node.name}", {"spec": pod_cidrs(each.blocks)})
            self._count("Meddling", done=done)
        return Kind.THIRD_PARTY

    def _disturb(self, fault: plan.Disturb) -> Kind | None:
        members = self._hit_by(fault.target)
        begin = time.time()
        rules = [(member, rule) for member in members for rule in _rules(member.proxy, fault)]
        if fault.trouble in _OF_NEW_CONNECTIONS:
            for member in members:
                member.proxy.lose_connections()
        time.sleep(fault.seconds)
        for member, rule in rules:
            member.proxy.remove(rule)
        if fault.trouble is Trouble.STALL:
            for member in members:
                member.proxy.lose_connections()
        for member in members:
            self._recorder.fault(fault.trouble, begin, time.time() + _SLOW_SECONDS, member.name)
        return Kind(fault.trouble.value) if members else None

    def _hit_by(self, target: Target) -> list[Member]:
        """Whom a disturbance hits; nobody has to hold still for it."""
        if target is Target.ALL:
            return self._world.members
        leader = self._world.leader(_FIND_SECONDS)
        if target is Target.LEADER:
            return [leader] if leader else []
        return [member for member in self._world.members if member is not leader][:1]

    @contextmanager
    def _seized(self, target: Target) -> Iterator[Member | None]:
        """A replica that nobody else starts or ends meanwhile; None if there is none for long."""
        member = self._seize(target)
        try:
            yield member
        finally:
            if member is not None:
                member.busy.release()

    def _seize(self, target: Target) -> Member | None:
        deadline = time.monotonic() + _FIND_SECONDS
        while time.monotonic() < deadline:
            leader = self._world.leader()
            others = [member for member in self._world.members if member is not leader]
            for member in [leader] if target is Target.LEADER else others:
                if member is not None and member.busy.acquire(blocking=False):
                    if target is not Target.LEADER or member.leads():
                        return member
                    member.busy.release()
            time.sleep(5 * _POLL)
        return None

    @contextmanager
    def _holding(self, member: Member, fault: plan.PauseLeader | plan.Kill | plan.AnswerEarly) -> Iterator[Rule | None]:
        """Let a replica's PATCHes of nodes be late, have it send some, and go on when some are on the wire."""
        if not fault.held:
            yield None
            return
        begin = time.time()
        late = _late(fault)
        names = [node.name for node in fault.contest.wanting]
        contested = member.proxy.add(late, method="PATCH", path=rf"{NODE_PATCH}({'|'.join(names)})\b")
        rules = [contested]
        try:
            self._create(fault.contest.wanting)
            deadline = time.monotonic() + _WIRE_SECONDS
            while contested.hits < len(names) and time.monotonic() < deadline:
                time.sleep(_POLL)
            # Whatever else it sends only now: it has no more than so many writes under way.
            rules.append(member.proxy.add(late, method="PATCH", path=NODE_PATCH))
            time.sleep(_GATHER_SECONDS)
            yield contested
        finally:
            for rule in rules:
                member.proxy.remove(rule)
            end = time.time() + fault.held
            self._recorder.fault(HELD, begin, end, member.name)
            with self._lock:
                self._held_until = max(self._held_until, end)

    def _on_the_wire(self, rule: Rule | None) -> bool:
        """Whether what is contested was on its way when its sender was paused or killed."""
        hits = rule.hits if rule else 0
        with self._lock:
            self.held_writes += hits
        return hits > 0


def _late(fault: plan.PauseLeader | plan.Kill | plan.AnswerEarly) -> faults.Fault:
    """What makes a replica's writes arrive late."""
    if isinstance(fault, plan.AnswerEarly):
        return answer_then_forward(_REPLIES[fault.reply], fault.held)
    return delay(fault.held, even_if_gone=True)


def _rules(proxy: FaultProxy, fault: plan.Disturb) -> list[Rule]:
    """Add what a trouble is made of to a proxy."""
    part = fault.probability
    match fault.trouble:
        case Trouble.CUT:
            return [proxy.add(how, probability=part / 2) for how in (cut(), reset())]
        case Trouble.TOO_MANY:
            return [proxy.add(how, probability=part / 2) for how in (too_many_requests(), too_many_requests_status())]
        case Trouble.LOST:
            return [proxy.add(swallow(), method=_WRITES, probability=part)]
        case Trouble.STALL:
            return [proxy.add(stall_watch(), path=_WATCH)]
        case Trouble.GONE | Trouble.GONE_EVENT:
            return [proxy.add(_ANSWERS[fault.trouble], path=_WATCH, probability=part)]
        case _:
            return [proxy.add(_ANSWERS[fault.trouble], probability=part)]


_REPLIES: Final = {
    Reply.TIMEOUT: html(408),
    Reply.NOT_FOUND: html(404),
    Reply.CONFLICT: html(409),
    Reply.UNAUTHORIZED: html(401),
    Reply.BAD_GATEWAY: html(502),
    Reply.GATEWAY_TIMEOUT: plain_text(504),
    Reply.TOO_MANY: too_many_requests(),
}
_ANSWERS: Final = {
    Trouble.ERRORS: server_error(),
    Trouble.SLOW: delay_reply(_SLOW_SECONDS),
    Trouble.GONE: gone(),
    Trouble.GONE_EVENT: gone_event(),
}
_OF_NEW_CONNECTIONS: Final = frozenset({Trouble.CUT, Trouble.STALL, Trouble.GONE, Trouble.GONE_EVENT})
"""Troubles that meet a connection when it is made, or its first request."""
