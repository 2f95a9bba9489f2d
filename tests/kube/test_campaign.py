"""Who leads, decided without I/O: never two at once, whatever happens to requests, replies and processes (F5)."""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.kube.campaign import Ask, Campaign, ElectionSettings, Verb
from cidrella.kube.errors import ApiError
from cidrella.model.lease import Lease, LeaseSpec, micro_time
from cidrella.model.objects import ObjectMeta
from tests.kube.lease_store import LeaseStore

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = ElectionSettings()


NOTE = "example.com/note"


def campaign(identity: str = "a", settings: ElectionSettings = SETTINGS) -> Campaign:
    """A candidate whose pauses are the shortest."""
    return Campaign(identity, settings, lambda: 0.0, NOTE)


def turn(candidate: Campaign, store: LeaseStore, now: float, note: str | None = None) -> Ask:
    """One request that arrives, and whose reply does, in no time."""
    ask = candidate.ask(now, now, note)
    try:
        candidate.answered(ask, store.do(ask), now)
    except ApiError as error:
        if error.code == 404 and ask.verb is not Verb.CREATE:
            candidate.absent(now)
        else:
            candidate.failed()
    return ask


def turns(candidate: Campaign, store: LeaseStore, now: float) -> list[Verb]:
    """What it asks until it has nothing to do but wait."""
    asked = [turn(candidate, store, now).verb]
    while candidate.pause(now) == 0:
        asked.append(turn(candidate, store, now).verb)
    return asked


def held(seconds: int | None = 15, **others: object) -> LeaseStore:
    """A Lease that somebody holds."""
    store = LeaseStore()
    store.put({"metadata": {"name": "cidrella"}, "spec": {"holderIdentity": "z", "leaseDurationSeconds": seconds}})
    store.edit(**others)
    return store


def test_the_first_creates_the_lease() -> None:
    """F5: where there is no Lease, the first candidate makes it, and leads until the deadline after it asked."""
    store, first = LeaseStore(), campaign()
    assert turns(first, store, 100.0) == [Verb.READ, Verb.CREATE]
    assert first.leads(109.99)
    assert not first.leads(110.0)
    spec = store.lease.terms
    assert spec == LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time=micro_time(100.0),
        renew_time=micro_time(100.0),
        lease_transitions=0,
    )


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    """Pitfall 24: however late the reply, a renewal is good for the deadline after it was sent, and not longer."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    ask = leader.ask(102.0, 102.0)
    assert ask.verb is Verb.WRITE
    leader.answered(ask, store.do(ask), 111.9)
    assert leader.leads(111.9)
    assert not leader.leads(112.0)


def test_an_attempt_leaves_time_for_another() -> None:
    """F5: an attempt to renew may take half of the time that is left, and never more than all of it."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    timeouts = []
    now = 102.0
    while leader.leads(now):
        ask = leader.ask(now, now)
        timeouts.append(ask.timeout)
        now += ask.timeout
        ended = now
        leader.failed()
        now += leader.pause(now)
    assert timeouts == [4.0, 2.0, 1.5]
    assert ended == 110.0


def test_who_waits_judges_by_changes_alone() -> None:
    """F5: another's Lease has run out when it did not change for as long as it says, whatever its times say."""
    for renewed in (None, "1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "garbage"):
        store, candidate = held(renewTime=renewed), campaign()
        assert turns(candidate, store, 100.0) == [Verb.READ]
        assert candidate.holder == "z"
        assert turns(candidate, store, 114.9) == [Verb.READ]
        assert candidate.pause(114.9) == pytest.approx(0.1)
        assert turns(candidate, store, 115.0) == [Verb.WRITE]
        assert candidate.leads(115.0)


def test_any_change_starts_the_wait_anew() -> None:
    """F5: a Lease that was renewed while nobody looked is waited for from when that was seen."""
    store, candidate = held(), campaign()
    turns(candidate, store, 100.0)
    store.edit(renewTime="anything")
    assert turns(candidate, store, 150.0) == [Verb.WRITE]
    assert store.lease.holder == "z"
    assert turns(candidate, store, 152.0) == [Verb.READ]
    assert turns(candidate, store, 166.9) == [Verb.READ]
    assert turns(candidate, store, 167.0) == [Verb.WRITE]
    assert store.lease.holder == "a"


def test_annotations_of_others_are_no_renewal() -> None:
    """F5: what somebody writes beside the record does not keep a dead holder alive, and is not lost either."""
    store, candidate = held(), campaign()
    turns(candidate, store, 100.0)
    assert store.data is not None
    store.put(store.data | {"metadata": {"name": "cidrella", "annotations": {"a": "b"}}})
    turns(candidate, store, 114.0)
    assert turns(candidate, store, 115.0) == [Verb.WRITE]
    assert store.lease.metadata.annotations == {"a": "b"}


@pytest.mark.parametrize(
    ("seconds", "wait"), [(None, 15), (0, 15), (-7, 15), (1, 1), (60, 60), (2**31 - 1, 3600), (10**30, 3600)]
)
def test_odd_durations(seconds: int | None, wait: float) -> None:
    """F5: a Lease is waited for as long as it says; nonsense is taken for our own duration, or for an hour."""
    candidate = campaign()
    lease = Lease(
        metadata=ObjectMeta(resource_version="7"), spec=LeaseSpec(holder_identity="z", lease_duration_seconds=seconds)
    )
    for now, pause in ((100.0, min(2.0, wait)), (100.0 + wait - 0.5, 0.5)):
        candidate.answered(candidate.ask(now, now), lease, now)
        assert candidate.pause(now) == pause
    assert candidate.ask(100.0 + wait, 0).verb is Verb.WRITE


def test_an_empty_lease_is_free() -> None:
    """F5: a Lease without a spec, or with an empty holder, is taken at once; transitions are counted."""
    for spec in (None, {}, {"holderIdentity": "", "leaseTransitions": 4}, {"leaseTransitions": -4}):
        store, candidate = LeaseStore(), campaign()
        store.put({"metadata": {"name": "cidrella"}, "spec": spec})
        assert turns(candidate, store, 100.0) == [Verb.READ, Verb.WRITE]
        assert candidate.leads(100.0)
        before = (spec or {}).get("leaseTransitions", 0)
        assert store.lease.terms.lease_transitions == max(0, int(str(before)) + 1)


def test_transitions_stop_at_what_the_api_takes() -> None:
    """F5: a count that is as large as it can be is no reason never to lead."""
    store = held(leaseTransitions=2**31 - 1, holderIdentity="")
    turns(candidate := campaign(), store, 100.0)
    assert candidate.leads(100.0)
    assert store.lease.terms.lease_transitions == 2**31 - 1


def test_a_renewal_of_which_nothing_was_heard() -> None:
    """F5: after a write without a reply the Lease is read; it is ours if it says so in our own words."""
    for arrived in (False, True):
        store, leader = LeaseStore(), campaign()
        turns(leader, store, 100.0)
        lost = leader.ask(102.0, 102.0)
        if arrived:
            store.do(lost)
        leader.failed()
        assert turns(leader, store, 105.0) == [Verb.READ, Verb.WRITE]
        assert leader.leads(114.9)
        assert store.lease.terms.lease_transitions == 0
        assert store.lease.terms.acquire_time == micro_time(100.0)


def test_a_renewal_that_arrives_late() -> None:
    """F5: a renewal that lands after a read has shown the Lease without it is known again, and nobody has to wait."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    late = leader.ask(102.0, 102.0)
    leader.failed()  # nothing was heard of it
    assert turn(leader, store, 104.0).verb is Verb.READ
    store.do(late)
    assert turn(leader, store, 104.5).verb is Verb.WRITE  # refused, for the late one was faster
    assert turns(leader, store, 105.0) == [Verb.READ, Verb.WRITE]
    assert leader.leads(114.9)


def test_a_takeover_of_which_nothing_was_heard() -> None:
    """F5: a candidate that took the Lease and did not hear so leads when it has read and renewed it."""
    store, candidate = held(holderIdentity=""), campaign()
    turn(candidate, store, 100.0)
    store.do(candidate.ask(100.0, 100.0))
    candidate.failed()
    assert not candidate.leads(100.0)
    assert turns(candidate, store, 103.0) == [Verb.READ, Verb.WRITE]
    assert candidate.leads(112.9)


def test_our_name_in_other_hands() -> None:
    """F5: a Lease that says our name but was not written by us is waited for, and ends leading."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    store.edit(renewTime=micro_time(101.0))
    turn(leader, store, 102.0)
    turn(leader, store, 102.5)
    assert not leader.leads(102.5)
    started = campaign()
    assert turns(started, store, 103.0) == [Verb.READ]
    assert turns(started, store, 117.9) == [Verb.READ]
    assert turns(started, store, 118.0) == [Verb.WRITE]


def test_a_leader_that_sees_another_holder() -> None:
    """Pitfall 24: whoever sees that another holds the Lease leads no more, although its deadline has not come."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    store.edit(holderIdentity="z")
    turn(leader, store, 102.0)
    turn(leader, store, 102.1)
    assert not leader.leads(102.1)
    assert leader.holder == "z"


def test_a_deleted_lease_is_made_again() -> None:
    """F5: the leader makes a Lease that was deleted again, and leads on without a gap."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    store.delete()
    assert turns(leader, store, 102.0) == [Verb.WRITE, Verb.CREATE]
    assert leader.leads(111.9)
    assert store.lease.holder == "a"


def test_a_deleted_lease_in_other_hands() -> None:
    """F5: who makes a Lease again that another may still lead by holds it without leading until that is over."""
    store, looker = held(), campaign()
    turns(looker, store, 100.0)
    store.delete()
    assert turns(looker, store, 101.0) == [Verb.READ, Verb.CREATE]
    assert looker.holder == "a"
    for now in (103.0, 105.0, 115.9):
        assert turns(looker, store, now) == [Verb.WRITE]
        assert not looker.leads(now)
        assert looker.release(now, now) is None
    assert turns(looker, store, 116.0) == [Verb.WRITE]
    assert looker.leads(116.0)


def test_a_deleted_lease_and_a_lost_reply() -> None:
    """F5: the wait for whoever may still lead is not forgotten when the reply is lost, or the Lease deleted again."""
    store, looker = held(), campaign()
    turns(looker, store, 100.0)
    store.delete()
    turn(looker, store, 101.0)
    store.do(looker.ask(101.0, 101.0))
    looker.failed()
    assert turns(looker, store, 103.0) == [Verb.READ, Verb.WRITE]
    assert not looker.leads(103.0)
    store.delete()
    assert turns(looker, store, 110.0) == [Verb.WRITE, Verb.CREATE]
    assert turns(looker, store, 124.9) == [Verb.WRITE]
    assert not looker.leads(124.9)
    turns(looker, store, 125.0)
    assert looker.leads(125.0)


def test_release() -> None:
    """F5: what is given back is free at once; where the last write is in doubt, it is read first."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    leader.resign()
    assert not leader.leads(100.0)
    ask = leader.release(101.0, 101.0)
    assert ask is not None
    leader.answered(ask, store.do(ask), 101.0)
    assert (store.lease.terms.holder_identity, store.lease.terms.lease_duration_seconds) == ("", 1)
    assert leader.release(101.0, 101.0) is None
    assert turns(campaign("b"), store, 101.0) == [Verb.READ, Verb.WRITE]
    assert store.lease.terms.lease_transitions == 1


def test_release_with_a_renewal_under_way() -> None:
    """F5: a renewal that nobody heard of is looked for before the Lease is given back; another's is left alone."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    store.do(leader.ask(102.0, 102.0))
    for verb in (Verb.READ, Verb.WRITE):
        ask = leader.release(102.1, 102.1)
        assert ask is not None
        assert ask.verb is verb
        leader.answered(ask, store.do(ask), 102.1)
    assert not store.lease.holder
    assert campaign().release(100.0, 100.0) is None


def noted(store: LeaseStore) -> str | None:
    """What the note in the Lease says; None where there is none."""
    return store.lease.metadata.annotations.get(NOTE)


def test_a_note_goes_with_a_renewal() -> None:
    """Pitfall 27: a leader's note is written where it changed, and taken away where it is empty, each by a renewal."""
    store, leader = LeaseStore(), campaign()
    turns(leader, store, 100.0)
    for now, note, carried in ((101.0, "x", True), (102.0, "x", False), (103.0, None, False), (104.0, "", True)):
        ask = turn(leader, store, now, note)
        assert ask.verb is Verb.WRITE
        assert bool(ask.body.metadata.annotations) == carried
        assert store.lease.terms.renew_time == micro_time(now)
        assert noted(store) == (None if note == "" else "x")
        assert leader.note == (noted(store) or "")


def test_a_successor_reads_the_note() -> None:
    """Pitfall 27: who takes a Lease leaves the note alone, and reads in the reply what it said when it was taken."""
    store, leader, looker = LeaseStore(), campaign(), campaign("b")
    turns(leader, store, 100.0)
    turns(looker, store, 100.0)
    turn(leader, store, 101.0, "early")
    turns(looker, store, 102.0)
    late = leader.ask(103.0, 103.0, "late")
    assert turn(looker, store, 117.0).verb is Verb.WRITE
    assert looker.leads(117.0)
    assert (looker.note, noted(store)) == ("early", "early")
    with pytest.raises(ApiError, match="newer"):
        store.do(late)
    assert noted(store) == "early"


def test_a_note_in_a_lease_that_was_deleted() -> None:
    """Pitfall 27: a Lease is made again with its note: by the leader with what it is to say, else with what it said."""
    store, leader, looker = LeaseStore(), campaign(), campaign("b")
    turns(leader, store, 100.0)
    turn(leader, store, 101.0, "x")
    turns(looker, store, 101.0)
    store.delete()
    turn(leader, store, 102.0, "y")
    turn(leader, store, 102.0, "y")
    assert noted(store) == "y"
    store.delete()
    turns(looker, store, 103.0)
    assert (store.lease.holder, noted(store)) == ("b", "x")


def test_a_note_is_left_behind() -> None:
    """Pitfall 27: a Lease that is given back keeps its note, as it last was, for whoever takes it."""
    for note in ("y", None, ""):
        store, leader = LeaseStore(), campaign()
        turns(leader, store, 100.0)
        turn(leader, store, 101.0, "x")
        leader.resign()
        ask = leader.release(102.0, 102.0, note)
        assert ask is not None
        leader.answered(ask, store.do(ask), 102.0)
        assert not store.lease.holder
        assert noted(store) == {"y": "y", None: "x", "": None}[note]


def test_who_waits_may_look_more_often() -> None:
    """F5: a candidate looks as often as it is told to; after a failure, and while it leads, as anybody does."""
    eager = replace(SETTINGS, look_period=0.25)
    store, looker = held(), campaign(settings=eager)
    turns(looker, store, 100.0)
    assert looker.pause(100.0) == 0.25
    assert looker.pause(114.9) == pytest.approx(0.1)
    looker.ask(100.25, 100.25)
    looker.failed()
    assert looker.pause(100.25) == 2.0
    store, leader = LeaseStore(), campaign(settings=eager)
    turns(leader, store, 100.0)
    assert leader.pause(100.0) == 2.0


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((15, 15, 2), "more than the renew deadline"),
        ((15, 2.4, 2), "1.2 times the retry period"),
        ((15, 10, 0), "more than 0 s"),
        ((15, 10, float("nan")), "more than 0 s"),
        ((0.9, 0.5, 0.1), "from 1 s"),
        ((4000, 10, 2), "to 3600 s"),
    ],
)
def test_times_that_do_not_go_together(times: tuple[float, float, float], words: str) -> None:
    """F5: times with which two could lead, or nobody could, are refused in words."""
    with pytest.raises(ValueError, match=words):
        ElectionSettings("kube-system", "cidrella", *times)


class World:
    """Candidates, a Lease, and a network that delays and loses; processes stop and go on. Time is simulated.

    Requests may arrive long after their sender gave up on them, and replies while it is stopped.
    """

    def __init__(self, seed: int, candidates: int = 3, *, noting: bool = False) -> None:
        self.noting = noting
        self.promises: dict[Campaign, set[str]] = {}
        """What each leader wants the note to say: what it found there, and what it has added since."""
        self.recorded: set[str] = set()
        """What some leader knows to be in the note."""
        self.random = random.Random(seed)
        self.store = LeaseStore()
        self.now = 1000.0
        self.faulty = True
        self._serial = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.led = 0
        self.candidates = [
            Campaign(f"c{number}", SETTINGS, self.random.random, NOTE if noting else "") for number in range(candidates)
        ]
        self._stopped_until = dict.fromkeys(self.candidates, 0.0)
        for each in self.candidates:
            self.after(self.random.uniform(0, 3), lambda each=each: self._ask(each))  # type: ignore[misc]
        self.after(5.0, self._meddle)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + seconds, next(self._serial), action))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._agenda and self._agenda[0][0] <= end:
            self.now, _, action = heapq.heappop(self._agenda)
            self._check()
            action()
            self._check()
        self.now = end

    def _check(self) -> None:
        leaders = [each for each in self.candidates if each.leads(self.now)]
        assert len(leaders) <= 1, f"{len(leaders)} lead at {self.now}"
        assert self.recorded <= set((noted(self.store) or "").split()) if self.recorded else True, "a note was lost"
        self.led += len(leaders)

    def _meddle(self) -> None:
        """Stop a process for a while, or do to the Lease what people do."""
        if self.faulty:
            choice = self.random.random()
            if choice < 0.5:
                self._stopped_until[self.random.choice(self.candidates)] = self.now + self.random.choice([1, 9, 11, 40])
            elif choice < 0.6 and not self.noting and all(each.holder for each in self.candidates):
                self.store.delete()
            elif choice < 0.7 and self.store.data:
                self.store.put(self.store.data | {"kind": "Lease"})
        self.after(self.random.uniform(1, 20), self._meddle)

    def _when_awake(self, who: Campaign, action: Callable[[], None]) -> None:
        delay = self._stopped_until[who] - self.now
        if delay > 0:
            self.after(delay, lambda: self._when_awake(who, action))
        else:
            action()

    def _note(self, who: Campaign) -> str | None:
        """What a leader wants the note to say, which is more each time; None for whoever does not lead."""
        if not self.noting or not who.leads(self.now):
            self.promises.pop(who, None)
            return None
        self.promises.setdefault(who, set(who.note.split())).add(str(next(self._serial)))
        return " ".join(sorted(self.promises[who]))

    def _ask(self, who: Campaign) -> None:
        note = self._note(who)
        ask = who.ask(self.now, self.now, note)
        answered = False

        def outcome(action: Callable[[], None]) -> None:
            def happen() -> None:
                nonlocal answered
                if not answered:
                    answered = True
                    action()
                    self.after(who.pause(self.now), lambda: self._when_awake(who, lambda: self._ask(who)))

            self._when_awake(who, happen)

        def arrive() -> None:
            reply = self._carry_out(who, ask, note)
            if not (self.faulty and self.random.random() < 0.15):
                self.after(self._travel(), lambda: outcome(reply))

        if not (self.faulty and self.random.random() < 0.1):
            self.after(self._travel(), arrive)
        self.after(ask.timeout, lambda: outcome(who.failed))

    def _carry_out(self, who: Campaign, ask: Ask, note: str | None) -> Callable[[], None]:
        try:
            lease = self.store.do(ask)
        except ApiError as error:
            if error.code == 404 and ask.verb is not Verb.CREATE:
                return lambda: who.absent(self.now)
            return who.failed

        def answer() -> None:
            who.answered(ask, lease, self.now)
            if ask.verb is not Verb.READ:
                self.recorded.update((note or "").split())

        return answer

    def _travel(self) -> float:
        return self.random.choice([0.001, 0.01, 0.5, 3.0, 12.0, 30.0] if self.faulty else [0.001, 0.01])


@pytest.mark.parametrize("seed", range(60))
def test_never_two(seed: int) -> None:
    """F5, pitfall 24: at no moment do two lead, whatever is lost, late, stopped or deleted; and then one does."""
    world = World(seed)
    world.run(1500)
    assert world.led
    world.faulty = False
    world.run(100)
    assert sum(each.leads(world.now) for each in world.candidates) == 1


@pytest.mark.parametrize("seed", range(30))
def test_no_note_is_lost(seed: int) -> None:
    """Pitfall 27: what a leader knows to be in the note stays there, whoever leads after it, until a leader drops it.

    The leaders here drop nothing. Their writes arrive late, or after others', or nobody hears that they did.
    """
    world = World(seed, noting=True)
    world.run(1500)
    assert world.recorded
    assert world.store.lease.terms.lease_transitions
