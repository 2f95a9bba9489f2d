"""What a soak is held to: nothing grows once it has warmed up, although lists fail again and again.

Two windows of the same length are compared, the first after the warm-up and the last one, by their medians. A figure
may grow by a share of itself; events, of which there are few, by some more, and as far as more nodes came. Of memory
the least of each window counts: a list that is about to fail has its beginning in memory, which is no growth.

What is in use at a time is the more, the busier the machine is with something else, and that is no growth. So
connections are held to the most of the first window by the least of the last one, and to what there was before when all
is at rest again, where one that nobody closed is seen; entries of the Lease are held to an age, which the last write to
a node that is gone bounds; and a queue of nodes to the number of nodes.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bench.soak_load import LIFE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.soak_samples import ReplicaSample, Rest, Sample, Spread

T = TypeVar("T")

WARM_UP, WARM_UP_SHARE = 300.0, 1 / 4
WINDOW, WINDOW_SHARE = 180.0, 3 / 20
PERIOD, PERIOD_SHARE = 15.0, 1 / 12
"""Seconds between samples, and the part of a window that they may be at most."""
MEMORY_SHARE = 0.05
LEASE_SHARE = 0.05
ENTRY_SECONDS = 2 * LIFE
"""An entry goes with its node, at the next renewal: a few seconds after the node's life at most."""
EVENTS_SHARE, EVENTS_MORE = 0.1, 3.0
EVENT_RATE_SHARE, EVENT_RATE_MORE = 0.1, 0.1
CONNECTIONS_MORE = 2.0
FAILED_LIST_SECONDS = 120.0
"""In which one list fails at least, of each replica and in each way. About four do where nothing slows them down."""
RATE_LEAST = 0.9
"""Of the nodes that were to come: a soak with fewer shows something else."""
SERVED_LEAST = 0.99
"""Of the nodes that came: some go while they wait for their turn, on a machine that is busy with something else."""


@dataclass(frozen=True)
class Plan:
    """How long, in seconds: five minutes to warm up and windows of three, less in a soak of less than twenty."""

    seconds: float
    rate: float

    @property
    def warm_up(self) -> float:
        """What comes before the first window."""
        return min(WARM_UP, self.seconds * WARM_UP_SHARE)

    @property
    def window(self) -> float:
        """The length of a window."""
        return min(WINDOW, self.seconds * WINDOW_SHARE)

    @property
    def period(self) -> float:
        """The time from one sample to the next."""
        return min(PERIOD, self.window * PERIOD_SHARE)

    def parts(self, samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample], list[Sample]]:
        """Those of the first window, those of the last, and all after the warm-up."""
        first_ends, last_begins = self.warm_up + self.window, self.seconds - self.window
        warm = [each for each in samples if each.at > self.warm_up]
        return [each for each in warm if each.at <= first_ends], [each for each in warm if each.at > last_begins], warm


class Figures(NamedTuple):
    """One thing in both windows, and the most that it was after the warm-up."""

    first: float
    last: float
    most: float


@dataclass(frozen=True)
class Verdict:
    """What was found, and what the last window is held to."""

    name: str
    found: Figures
    at_most: float = 0
    at_least: float = 0

    @property
    def kept(self) -> bool:
        """Whether it is as it should be."""
        return self.found.last >= self.at_least if self.at_least else self.found.last <= self.at_most

    @property
    def held_to(self) -> str:
        """In words."""
        return f"at least {self.at_least:,.4g}" if self.at_least else f"at most {self.at_most:,.4g}"


def judge(plan: Plan, samples: Sequence[Sample], before: Rest, after: Rest) -> list[Verdict]:
    """Hold all of it to its limits. `before` and `after` are without load."""
    return [*_replicas(plan, samples), *_shared(plan, samples), *_at_rest(before, after), *_load(plan, samples, after)]


def _replicas(plan: Plan, samples: Sequence[Sample]) -> Iterator[Verdict]:
    for name in samples[0].replicas:
        parts = [[each.replicas[name] for each in part] for part in plan.parts(samples)]
        yield _grown(f"{name}: memory, least, MB", _least_memory(parts), MEMORY_SHARE)
        there = max(each.nodes for each in plan.parts(samples)[1])
        yield Verdict(f"{name}: names in its queue", _medians(parts, lambda each: each.queue), at_most=there)
        yield _in_use(f"{name}: open connections, least against most", parts, lambda each: each.sockets)
        yield _in_use(f"{name}: open files, least against most", parts, lambda each: each.descriptors)


def _shared(plan: Plan, samples: Sequence[Sample]) -> Iterator[Verdict]:
    parts = plan.parts(samples)
    yield _grown("bytes of the Lease without intents", _medians(parts, lambda each: each.lease.most), LEASE_SHARE)
    oldest = Figures(*(max(each.oldest for each in part) for part in parts))
    yield Verdict("oldest entry of the Lease, seconds", oldest._replace(last=oldest.most), at_most=ENTRY_SECONDS)
    first, last, _ = (rate(part, lambda each: each.created) for part in parts)
    times = last / first  # as many nodes came in the last window, each of which may have its events
    there = _medians(parts, lambda each: each.events)
    yield Verdict("events there are", there, at_most=there.first * times * (1 + EVENTS_SHARE) + EVENTS_MORE)
    told = Figures(*(rate(part, lambda each: each.events_written) for part in parts))
    at_most = told.first * times * (1 + EVENT_RATE_SHARE) + EVENT_RATE_MORE
    yield Verdict("events written a second", told, at_most)


def _at_rest(before: Rest, after: Rest) -> Iterator[Verdict]:
    """The first figure is what there was before there was any load."""
    yield _rest("at rest: bytes of intents in the Lease", before.intents_bytes, after.intents_bytes, 0)
    for name, was in before.sockets.items():
        yield _rest(f"at rest: {name}: open connections", was, after.sockets[name], was + CONNECTIONS_MORE)


def _load(plan: Plan, samples: Sequence[Sample], after: Rest) -> Iterator[Verdict]:
    """Whether it was the soak that was meant."""
    rates = Figures(*(rate(part, lambda each: each.created) for part in plan.parts(samples)))
    yield Verdict("nodes created a second", rates, at_least=RATE_LEAST * plan.rate)
    for name, kind, failed in _failed_lists(plan, samples):
        yield Verdict(f"{name}: lists that failed, {kind}", failed, at_least=plan.seconds // FAILED_LIST_SECONDS or 1)
    served = after.served / after.created
    yield Verdict("of the nodes that came, got a block", Figures(served, served, served), at_least=SERVED_LEAST)


def _failed_lists(plan: Plan, samples: Sequence[Sample]) -> Iterator[tuple[str, str, Figures]]:
    """How many lists had failed by the end of each window, of each replica and in each way."""
    ends = [part[-1] for part in plan.parts(samples)]
    for name, own in samples[0].replicas.items():
        for kind in own.failed_lists:
            yield name, kind, Figures(*(each.replicas[name].failed_lists[kind] for each in ends))


def rate(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """How much a figure that only grows did so in a second."""
    one, other = samples[0], samples[-1]
    return (of(other) - of(one)) / (other.at - one.at)


def _medians(parts: Sequence[Sequence[T]], of: Callable[[T], float]) -> Figures:
    first, last, warm = ([of(each) for each in part] for part in parts)
    return Figures(statistics.median(first), statistics.median(last), max(warm))


def _least_memory(parts: Sequence[Sequence[ReplicaSample]]) -> Figures:
    first, last, warm = ([each.memory.resident for each in part] for part in parts)
    return Figures(min(first), min(last), max(warm))


def _in_use(name: str, parts: Sequence[Sequence[T]], of: Callable[[T], Spread]) -> Verdict:
    first, last, warm = ([of(each) for each in part] for part in parts)
    before, most = max(each.most for each in first), max(each.most for each in warm)
    return Verdict(name, Figures(before, min(each.least for each in last), most), at_most=before + CONNECTIONS_MORE)


def _grown(name: str, found: Figures, share: float) -> Verdict:
    return Verdict(name, found, at_most=found.first * (1 + share))


def _rest(name: str, was: float, now: float, at_most: float) -> Verdict:
    return Verdict(name, Figures(was, now, max(was, now)), at_most)
