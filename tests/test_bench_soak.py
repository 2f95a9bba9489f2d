"""The parts of `make soak` that compute something: what grew has to be found, and what did not must not be."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.cluster_usage import Memory, descriptors, memory, parse_memory
from bench.soak import progress, read_options, rest_after, show
from bench.soak_samples import (
    LeaseWatch,
    ReplicaSample,
    Rest,
    Sample,
    Spread,
    lease_sizes,
    read_series,
    recorded,
    spread,
    written,
)
from bench.soak_verdict import Figures, Plan, judge, rate

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = Plan(1200.0, 10.0)
OWN = ReplicaSample(
    leads=True,
    memory=Memory(50.0, 40.0, 30.0),
    threads=3,
    descriptors=Spread(20, 21, 22),
    sockets=Spread(10, 11, 12),
    queue=1.0,
    waiting=7.0,
    in_flight=1.0,
    failed_lists={"cut": 20, "stalled": 20},
)
BEFORE = Rest(created=0, served=0, intents_bytes=0, sockets={"one": 8})
AFTER = Rest(created=12_000, served=12_000, intents_bytes=0, sockets={"one": 8})


def sample(at: float) -> Sample:
    """One of a soak in which nothing grows."""
    return Sample(
        at=at,
        nodes=157,
        created=int(10 * at),
        served=int(10 * at),
        events=60,
        events_written=int(at),
        lease_writes=int(10 * at),
        lease=Spread(790, 792, 794),
        intents=Spread(90, 92, 190),
        oldest=3.0,
        objects={"nodes": 157},
        replicas={"one": OWN},
    )


def soak(change: Callable[[Sample, float], Sample] = lambda each, _: each, plan: Plan = PLAN) -> list[Sample]:
    """All samples of a soak; `change` says what is different, by how far it has come."""
    count = round(plan.seconds / plan.period)
    made = [sample((number + 1) * plan.period) for number in range(count)]
    return [change(each, each.at / plan.seconds) for each in made]


def own(each: Sample, **changed: object) -> Sample:
    """The same with another replica in it."""
    return replace(each, replicas={"one": replace(OWN, **changed)})  # type: ignore[arg-type]


def up_to(least: float) -> Spread:
    """So many at least, and some more."""
    return Spread(least, least + 1, least + 5)


def broken(samples: list[Sample], before: Rest = BEFORE, after: Rest = AFTER, plan: Plan = PLAN) -> list[str]:
    """What is found to be broken."""
    return [each.name for each in judge(plan, samples, before, after) if not each.kept]


class TestPlan:
    """Which samples are compared."""

    def test_twenty_minutes(self) -> None:
        """Minutes 5 to 8 with the last three, twelve samples each."""
        first, last, warm = PLAN.parts(soak())
        assert [each.at for each in first] == [300 + 15 * number for number in range(1, 13)]
        assert [each.at for each in last] == [1020 + 15 * number for number in range(1, 13)]
        assert len(warm) == 60

    def test_longer(self) -> None:
        """A longer soak has no longer windows."""
        plan = Plan(3600.0, 10.0)
        assert (plan.warm_up, plan.window, plan.period) == (300, 180, 15)

    def test_shorter(self) -> None:
        """A shorter one has shorter windows, apart from each other, with as many samples in each."""
        plan = Plan(400.0, 10.0)
        assert (plan.warm_up, plan.window, plan.period) == pytest.approx((100, 60, 5))
        first, last, _ = plan.parts(soak(plan=plan))
        assert first[-1].at < last[0].at
        assert min(len(first), len(last)) >= 11


class TestVerdicts:
    """What grows is found, by its name; what does not is not."""

    def test_nothing_grew(self) -> None:
        """Everything is looked at, and kept."""
        assert broken(soak()) == []
        assert [each.name for each in judge(PLAN, soak(), BEFORE, AFTER)] == [
            "one: memory, least, MB",
            "one: names in its queue",
            "one: open connections, least against most",
            "one: open files, least against most",
            "bytes of the Lease without intents",
            "oldest entry of the Lease, seconds",
            "events there are",
            "events written a second",
            "at rest: bytes of intents in the Lease",
            "at rest: one: open connections",
            "nodes created a second",
            "one: lists that failed, cut",
            "one: lists that failed, stalled",
            "of the nodes that came, got a block",
        ]

    @pytest.mark.parametrize(("megabytes", "found"), [(5.0, ["one: memory, least, MB"]), (2.5, [])])
    def test_memory(self, megabytes: float, found: list[str]) -> None:
        """A steady growth of a tenth over the whole time is more than 5 % from one window to the other."""
        samples = soak(lambda each, share: own(each, memory=Memory(50 + megabytes * share, 0, 0)))
        assert broken(samples) == found

    def test_memory_of_the_warm_up(self) -> None:
        """What grows before the first window, and then no more, is what a warm-up is for."""
        samples = soak(lambda each, share: own(each, memory=Memory(50 if share > 0.25 else 200 * share, 0, 0)))
        assert broken(samples) == []

    def test_memory_of_lists_under_way(self) -> None:
        """What comes and goes again with lists that fail is no growth; what stays of each is."""
        lists = soak(lambda each, share: own(each, memory=Memory(62 if share > 0.5 and each.at % 45 else 50, 0, 0)))
        assert broken(lists) == []
        kept = soak(lambda each, share: own(each, memory=Memory(50 + 12 * round(20 * share), 0, 0)))
        assert broken(kept) == ["one: memory, least, MB"]

    def test_too_few_lists_that_failed(self) -> None:
        """A soak in which lists did not fail, or not in every way, shows nothing, and says so."""
        samples = soak(lambda each, _: own(each, failed_lists={"cut": 20, "stalled": 9}))
        assert broken(samples) == ["one: lists that failed, stalled"]

    def test_a_peak_is_shown(self) -> None:
        """One sample that stands out breaks nothing, and is told."""
        samples = soak(lambda each, _: own(each, memory=Memory(80 if each.at == 600 else 50, 0, 0)))
        (verdict,) = [each for each in judge(PLAN, samples, BEFORE, AFTER) if "memory" in each.name]
        assert verdict.found == Figures(50, 50, 80)
        assert verdict.kept
        assert verdict.held_to == "at most 52.5"

    def test_queue(self) -> None:
        """Names of nodes that are gone are in nobody's way, and would be there for ever."""
        assert broken(soak(lambda each, _: own(each, queue=float(each.created)))) == ["one: names in its queue"]
        assert broken(soak(lambda each, share: own(each, queue=150 * share))) == []

    def test_connections(self) -> None:
        """One that is left open every minute is found, files alike; many that come and go are no leak."""
        samples = soak(lambda each, share: own(each, sockets=up_to(10 + int(20 * share))))
        assert broken(samples) == ["one: open connections, least against most"]
        samples = soak(lambda each, share: own(each, descriptors=up_to(10 + int(20 * share))))
        assert broken(samples) == ["one: open files, least against most"]
        assert broken(soak(lambda each, share: own(each, sockets=Spread(10, 10 + 9 * share, 10 + 50 * share)))) == []

    def test_lease(self) -> None:
        """It grows, or has an entry that stays, also one that went before the end; many that come and go are none."""
        grown = soak(lambda each, share: replace(each, lease=Spread(790, 800, 800 + 100 * share)))
        assert broken(grown) == ["bytes of the Lease without intents"]
        stays = soak(lambda each, _: replace(each, oldest=31 if each.at == 600 else 3))
        assert broken(stays) == ["oldest entry of the Lease, seconds"]
        assert broken(soak(lambda each, share: replace(each, intents=Spread(90, 92 + 500 * share, 9e3 * share)))) == []

    def test_events(self) -> None:
        """More of them, and more of them a second."""
        assert broken(soak(lambda each, share: replace(each, events=60 + int(20 * share)))) == ["events there are"]
        faster = soak(lambda each, share: replace(each, events_written=int(each.at * (1 + share))))
        assert broken(faster) == ["events written a second"]

    def test_events_of_more_nodes(self) -> None:
        """Where more nodes came, as after a moment in which the machine was too slow, there are more events."""
        samples = soak(lambda each, share: replace(each, created=int(each.at * (10 + 5 * share))))
        busy = [
            replace(each, events=60 + int(45 * each.at / 1200), events_written=each.created // 10) for each in samples
        ]
        assert broken(busy) == []

    def test_at_rest(self) -> None:
        """An entry that is left in the Lease, and connections that nobody closes."""
        left = replace(AFTER, intents_bytes=70, sockets={"one": 11})
        assert broken(soak(), after=left) == [
            "at rest: bytes of intents in the Lease",
            "at rest: one: open connections",
        ]

    def test_another_load_than_was_meant(self) -> None:
        """A soak with fewer nodes, or with nodes that nobody serves, shows nothing, and says so."""
        slow = soak(lambda each, _: replace(each, created=int(8 * each.at)))
        assert broken(slow) == ["nodes created a second"]
        assert broken(soak(), after=replace(AFTER, served=11_000)) == ["of the nodes that came, got a block"]


def test_rate() -> None:
    """By the time between samples, not by their number."""
    one, other = replace(sample(10), created=100), replace(sample(40), created=400)
    assert rate([one, sample(20), other], lambda each: each.created) == 10


def test_what_is_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes by itself a little later is not held against anybody; what does not go is told in the end."""
    monkeypatch.setattr("bench.soak.LOOK_EVERY", 0)
    left = replace(AFTER, sockets={"one": 9})
    asked = iter([left, replace(AFTER, intents_bytes=9), AFTER])
    assert rest_after(lambda: next(asked), BEFORE) == AFTER
    monkeypatch.setattr("bench.soak.PATIENCE", 0)
    assert rest_after(lambda: left, BEFORE) == left


def test_lease_sizes() -> None:
    """The object without the annotation, and the annotation alone."""
    lease = {"metadata": {"annotations": {"cidrella.dev/intents": '[["u1","p","10.0.0.0/24"],["u2","p"]]'}}}
    assert lease_sizes({"metadata": {}}) == (len('{"metadata":{"annotations":{}}}'), 0)
    assert lease_sizes(lease) == (len('{"metadata":{"annotations":{}}}'), 37)
    assert recorded(lease) == {"u1", "u2"}
    assert recorded({"metadata": {}}) == set()


def test_the_age_of_entries() -> None:
    """How long an entry has been seen, the oldest of all; one that was gone in between begins anew."""

    class Admin:
        def __init__(self) -> None:
            self.uids: list[str] = []

        def get(self, _: str) -> object:
            return {"metadata": {"annotations": {"cidrella.dev/intents": json.dumps([[uid] for uid in self.uids])}}}

    now = [0.0]
    admin = Admin()
    looking = LeaseWatch(admin, lambda: now[0])  # type: ignore[arg-type]
    for now[0], admin.uids in [(0.0, ["a"]), (5.0, ["a", "b"]), (8.0, ["b"]), (9.0, ["a", "b"]), (11.0, ["a"])]:
        looking.look()
    assert [each.oldest for each in looking.take()] == [0, 5, 3, 4, 2]
    looking.look()
    assert len(looking.take()) == 1


def test_series_of_the_api_server() -> None:
    """Writes that were granted, of one kind, by verb; neither refusals nor what looks alike."""
    text = "\n".join(
        [
            "# TYPE apiserver_request_total counter",
            'apiserver_request_total{code="201",resource="events",verb="POST"} 5',
            'apiserver_request_total{code="200",resource="events",verb="PATCH"} 1.2e+01',
            'apiserver_request_total{code="409",resource="events",verb="POST"} 100',
            'apiserver_request_total{code="200",resource="leases",verb="PATCH"} 1000',
            'apiserver_request_total{code="200",resource="events",verb="LIST"} 10000',
            'another_request_total{code="200",resource="events",verb="POST"} 100000',
        ]
    )
    series = read_series(text)
    assert written(series, "events", {"POST", "PATCH"}) == 17
    assert written(series, "leases", {"PATCH"}) == 1000


def test_spread() -> None:
    """The least, the median, the most."""
    assert spread([3, 1, 9, 2, 4]) == (1, 3, 9)


def test_memory_in_megabytes() -> None:
    """RSS, PSS, and what is private, out of what the kernel gives in KiB."""
    lines = ["5-6 ---p 0 0 0 [rollup]", "Rss: 1000 kB", "Pss: 500 kB", "Pss_Dirty: 7 kB"]
    lines += ["Private_Clean: 100 kB", "Private_Dirty: 150 kB"]
    assert parse_memory("\n".join(lines)) == (1.024, 0.512, 0.256)


def test_this_process() -> None:
    """The kernel's files have the form that is expected, and a connection is told from a file."""
    assert 5 < memory(os.getpid()).resident < 1e5
    before = descriptors(os.getpid())
    with socket.socket(), Path(os.devnull).open():
        after = descriptors(os.getpid())
    assert (after.all - before.all, after.sockets - before.sockets) == (2, 1)


def test_progress() -> None:
    """A line on how far it is, and what it looks like."""
    line = progress(PLAN, soak()[:2])
    assert line.startswith(
        "0:30 of 20:00 | 300 nodes came, 300 served, 157 there | one (leads) 50.0 MB, 11 connections, 40 lists failed"
    )
    assert "10.0 Lease writes a second" in line


def test_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each verdict, with its figures, and one that sums up."""
    samples = soak(lambda each, share: own(each, memory=Memory(50 + 5 * share, 0, 0)))
    show(PLAN, samples, judge(PLAN, samples, BEFORE, AFTER))
    said = capsys.readouterr().out
    assert "BROKEN  one: memory, least, MB: 51.31, 54.31, 55 (at most 53.88)\n" in said
    assert "kept    events there are: 60, 60, 60 (at most 69)\n" in said
    assert said.endswith("1 of 14 BROKEN\n")
    show(PLAN, soak(), judge(PLAN, soak(), BEFORE, AFTER))
    assert capsys.readouterr().out.endswith("all kept: nothing grew\n")


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty minutes at ten a second unless told otherwise; what makes no sense is refused, with the reason."""
    options = read_options([])
    assert (options.minutes, options.rate) == (20, 10)
    for wrong in (["--minutes", "4"], ["--minutes", "inf"], ["--rate", "0"], ["--rate", "1000"], ["--minutes", "nan"]):
        with pytest.raises(SystemExit, match="2"):
            read_options(wrong)
        assert wrong[0] in capsys.readouterr().err
