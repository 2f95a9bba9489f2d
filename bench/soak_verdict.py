"""What a soak is held to: nothing grows once it has warmed up.

Two windows of the same length are compared, the first after the warm-up and the last one: memory and events by their
medians; connections and the Lease by the least that was seen. Both go up when the machine is busy with something else,
and come down again; what nobody closes or takes away would lift the least. Each figure may grow by a share of itself
and by some units, so that a figure near zero is not held to fractions of one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.soak_samples import Rest, Sample, Spread

T = TypeVar("T")

WARM_UP, WARM_UP_SHARE = 300.0, 1 / 4
WINDOW, WINDOW_SHARE = 180.0, 3 / 20
PERIOD, PERIOD_SHARE = 15.0, 1 / 12
"""Seconds between samples, and the part of a window that they may be at most."""
MEMORY_SHARE = 0.05
LEASE_SHARE = 0.05
EVENTS_SHARE, EVENTS_MORE = 0.1, 3.0
EVENT_RATE_SHARE, EVENT_RATE_MORE = 0.2, 0.2
CONNECTIONS_MORE = 2.0
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
        resident = _medians(parts, lambda each: each.memory.resident)
        yield _grown(f"{name}: memory, MB", resident, share=MEMORY_SHARE)
        sockets = _least(parts, lambda each: each.sockets)
        yield _grown(f"{name}: open connections, least", sockets, more=CONNECTIONS_MORE)
        opened = _least(parts, lambda each: each.descriptors)
        yield _grown(f"{name}: open files and connections, least", opened, more=CONNECTIONS_MORE)


def _shared(plan: Plan, samples: Sequence[Sample]) -> Iterator[Verdict]:
    parts = plan.parts(samples)
    yield _grown("bytes of the Lease, least", _least(parts, lambda each: each.lease), share=LEASE_SHARE)
    there = _medians(parts, lambda each: each.events)
    yield _grown("events there are", there, share=EVENTS_SHARE, more=EVENTS_MORE)
    rates = Figures(*(rate(part, lambda each: each.events_written) for part in parts))
    yield _grown("events written a second", rates, share=EVENT_RATE_SHARE, more=EVENT_RATE_MORE)


def _at_rest(before: Rest, after: Rest) -> Iterator[Verdict]:
    """The first figure is what there was before there was any load."""
    yield _rest("at rest: bytes of intents in the Lease", before.intents_bytes, after.intents_bytes, 0)
    for name, was in before.sockets.items():
        yield _rest(f"at rest: {name}: open connections", was, after.sockets[name], was + CONNECTIONS_MORE)


def _load(plan: Plan, samples: Sequence[Sample], after: Rest) -> Iterator[Verdict]:
    """Whether it was the soak that was meant."""
    rates = Figures(*(rate(part, lambda each: each.created) for part in plan.parts(samples)))
    yield Verdict("nodes created a second", rates, at_least=RATE_LEAST * plan.rate)
    served = after.served / after.created
    yield Verdict("of the nodes that came, got a block", Figures(served, served, served), at_least=SERVED_LEAST)


def rate(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """How much a figure that only grows did so in a second."""
    one, other = samples[0], samples[-1]
    return (of(other) - of(one)) / (other.at - one.at)


def _medians(parts: Sequence[Sequence[T]], of: Callable[[T], float]) -> Figures:
    first, last, warm = ([of(each) for each in part] for part in parts)
    return Figures(statistics.median(first), statistics.median(last), max(warm))


def _least(parts: Sequence[Sequence[T]], of: Callable[[T], Spread]) -> Figures:
    first, last, warm = ([of(each) for each in part] for part in parts)
    return Figures(min(each.least for each in first), min(each.least for each in last), max(each.most for each in warm))


def _grown(name: str, found: Figures, *, share: float = 0.0, more: float = 0.0) -> Verdict:
    return Verdict(name, found, at_most=found.first * (1 + share) + more)


def _rest(name: str, was: float, now: float, at_most: float) -> Verdict:
    return Verdict(name, Figures(was, now, max(was, now)), at_most)
