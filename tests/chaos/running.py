"""One run of chaos, from an empty cluster to the checked history."""

from __future__ import annotations

import platform
import shutil
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cidrella import __version__
from tests.chaos.acting import Actor
from tests.chaos.checker import Broken, check
from tests.chaos.history import LEASES, NODES, Meta
from tests.chaos.patient import GaveUpError
from tests.chaos.recorder import Recorder, recording_flags
from tests.chaos.schedule import make_schedule
from tests.chaos.world import THIRD_PARTY, RestlessError, World
from tests.testenv import nodes
from tests.testenv.api import SERVICE_RANGE
from tests.testenv.cluster import Cluster
from tests.testenv.without_intents import WITHOUT_INTENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.history import History
    from tests.chaos.schedule import Schedule

_LOOK_SECONDS: Final = 5.0
_SNAPSHOT_EVERY: Final = 2
"""Looks."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `given` are the nodes that were seen with a block, `living` those that are there."""

    left: float
    given: int
    living: int
    unserved: int
    faults: int
    pauses: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    seed: int
    broken: tuple[Broken, ...]
    allocations: int
    takeovers: int
    faults: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    pauses: int = 0
    held_writes: int = 0
    kept: Path | None = None
    """Where the history is, if it was kept."""


def run(
    seed: int,
    seconds: float,
    keep_in: Path,
    *,
    intents: bool = True,
    keep_good: bool = False,
    tell: Callable[[Progress], None] = lambda _: None,
) -> Outcome:
    """Act the schedule of a seed out, and check what happened. The history of a bad run is kept in a directory."""
    schedule = make_schedule(seed, seconds)
    with tempfile.TemporaryDirectory(prefix="cidrella-chaos-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        try:
            outcome = _Run(schedule, directory, intents=intents, tell=tell).outcome()
        except BaseException:
            _keep(directory, keep_in)
            raise
        if outcome.broken or keep_good:
            _keep(directory, keep_in)
            (keep_in / "broken.txt").write_text("".join(f"{each}\n" for each in outcome.broken))
            return replace(outcome, kept=keep_in)
        return outcome


class _Run:
    def __init__(self, schedule: Schedule, directory: Path, *, intents: bool, tell: Callable[[Progress], None]) -> None:
        self._schedule = schedule
        self._directory = directory
        self._intents = intents
        self._tell = tell
        self._ended = threading.Event()

    def outcome(self) -> Outcome:
        flags = recording_flags(self._directory)
        with (
            ThreadPoolExecutor(1, "starter") as starter,
            Cluster.temporary(keep_logs_in=self._directory, flags=flags) as cluster,
        ):
            program = "cidrella" if self._intents else WITHOUT_INTENTS
            members = (self._schedule.replicas, self._schedule.flags)
            world = World(cluster, self._directory, starter, *members, program=program)
            try:
                recorder = Recorder(cluster, self._directory, self._meta(world))
                recorder.begin()
                actor = Actor(world, self._schedule, recorder)
                broken = self._act(world, actor, recorder)
            finally:
                world.close()
            history = recorder.finish()
        broken += check(history)
        return Outcome(
            seed=self._schedule.seed,
            broken=tuple(broken),
            allocations=allocations(history),
            takeovers=takeovers(history),
            faults=actor.faults,
            skipped=actor.skipped,
            done=actor.done,
            pauses=actor.pauses,
            held_writes=actor.held_writes,
        )

    def _meta(self, world: World) -> Meta:
        return Meta(
            seed=self._schedule.seed,
            seconds=self._schedule.seconds,
            controllers={member.name: member.user for member in world.members},
            third_party=THIRD_PARTY,
            intents=self._intents,
            service_ranges=(SERVICE_RANGE,),
            flags=self._schedule.flags,
            versions={"cidrella": __version__, "python": platform.python_version()},
        )

    def _act(self, world: World, actor: Actor, recorder: Recorder) -> list[Broken]:
        """All of it, until the world is at rest."""
        looking = threading.Thread(target=self._look, args=(world, actor, recorder), daemon=True)
        world.start()
        looking.start()
        try:
            actor.run()
        finally:
            self._ended.set()
            looking.join()
        world.heal()
        broken = []
        try:
            leader, samples = world.rest()
            recorder.rest(samples, leader.name)
        except RestlessError as error:
            broken.append(Broken("rest", None, str(error)))
        return broken + [Broken("ended", None, text) for text in world.unexpected]

    def _look(self, world: World, actor: Actor, recorder: Recorder) -> None:
        """Look now and then at what there is: to tell how far the run is, and to have the history compared with it."""
        began = time.monotonic()
        given: set[str] = set()
        looks = 0
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                found = world.admin.get(nodes.NODES)["items"]
            except GaveUpError:
                continue
            served = {node["metadata"]["uid"] for node in found if node["spec"].get("podCIDRs")}
            given |= served
            left = max(0.0, self._schedule.seconds - (time.monotonic() - began))
            faults = actor.faults.total()
            self._tell(Progress(left, len(given), len(found), len(found) - len(served), faults, actor.pauses))
            looks += 1
            if looks % _SNAPSHOT_EVERY == 0:
                recorder.snapshot()


def allocations(history: History) -> int:
    """How many nodes were given blocks after they had been there without."""
    without: set[str] = set()
    given: set[str] = set()
    for change in history.changes:
        if change.collection == NODES:
            uid = change.object["metadata"]["uid"]
            if not change.object["spec"].get("podCIDRs"):
                without.add(uid)
            elif "cidrella.dev/pool" in change.object["metadata"].get("annotations", {}):
                given.add(uid)
    return len(given & without)


def takeovers(history: History) -> int:
    """How often another replica came to hold the Lease."""
    holders = [change.object["spec"].get("holderIdentity") for change in history.changes if change.collection == LEASES]
    known = [holder for holder in holders if holder]
    return sum(one != two for one, two in pairwise(known))


def _keep(directory: Path, keep_in: Path) -> None:
    """The history and the replicas' logs, in place of what was kept there before."""
    shutil.rmtree(keep_in, ignore_errors=True)
    keep_in.mkdir(parents=True)
    for pattern in ("history.jsonl", "meta.json", "*.log"):
        for path in directory.glob(pattern):
            shutil.copy(path, keep_in)
