"""Who leads, decided without I/O: what to ask of the Lease next, and what the answers mean (F5).

Rules:

- Leading ends at a moment that is known beforehand: `renew_deadline` after the last successful renewal was *sent*.
  Others wait longer than that, `lease_duration` after they *saw* it. So two never lead at once, however long
  requests and replies take, as long as the clocks of all run equally fast.
- Every write names the version of the Lease that it is based on, and fails if there is a newer one.
- An attempt ends before the deadline does, and leaves time for another.
- Whether another's Lease has expired is judged by how long, on our own clock, it has not changed; never by comparing
  its times with ours.
- A write whose outcome is unknown is followed by a read. The Lease is ours if it says our name and a renewal time that
  we wrote. Our name with any other time is somebody else of that name, who is waited for like anybody.
- A Lease that was deleted may still have its leader, who makes it again and leads on. Anybody else who makes it again
  is on probation: holds it for `lease_duration`, in which the other's deadline passes, and leads only then.
  Who never saw a Lease cannot tell a deleted one from one that never was, and leads at once: do not delete a Lease
  while candidates are being started.
- A leader may keep a *note* in the Lease, a text in an annotation. Only a write that is also a renewal changes it, so
  that whoever is not the leader any more cannot; the write that takes a Lease leaves the note alone, and the reply to
  it tells what it says. Whoever makes a Lease again makes it with the note last seen.

What this does not do: a request that a leader sent for another purpose may still arrive when the leader is none any
more. To bear that is up to those who send such requests, and what the note is for.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from cidrella.model.lease import API_VERSION, KIND, Lease, LeaseSpec, annotation_patch, micro_time
from cidrella.model.objects import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE_DURATION_MAX: Final = 3600.0
"""Seconds. A Lease that says more was not written by a controller; it is believed no longer than this."""
JITTER: Final = 1.2
"""A pause is up to this many times as long as it is meant to be, so that candidates do not ask in step."""
_CLAIMS_KEPT: Final = 16
"""Writes of unknown outcome that are known again if they turn up; an older one would count as another's, and wait."""
_SOON: Final = 0.125
"""The part of the retry period after which a leader tries again what failed, or up to twice that."""
_TICK: Final = 0.001
"""What is waited beyond a deadline, for timers may be a little early."""
_COUNT_MAX: Final = (1 << 31) - 1
"""The most that the API takes for a number of transitions."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The Lease and its times, in seconds. Raises ValueError for times that do not go together.

    The defaults are those of Kubernetes' own controllers.
    """

    namespace: str = "kube-system"
    name: str = "cidrella"
    lease_duration: float = 15.0
    """How long others wait after they last saw a change."""
    renew_deadline: float = 10.0
    """How long a leader goes on after it last sent a renewal that succeeded."""
    retry_period: float = 2.0
    """How often the leader renews, and the others look."""
    look_period: float = math.inf
    """How often the others look, where that is to be more often: who looks sees sooner that a Lease was released."""

    @property
    def heartbeat(self) -> ElectionSettings:
        """The heartbeat Lease that belongs to this one: of a controller that holds no election (see `heartbeat`).

        >>> ElectionSettings().heartbeat.name
        'cidrella-alone'
        """
        return dataclasses.replace(self, name=f"{self.name}-alone")

    def __post_init__(self) -> None:
        if not self.retry_period > 0:
            raise ValueError(f"the retry period must be more than 0 s, not {self.retry_period:g} s")
        if not self.renew_deadline > self.retry_period * JITTER:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline:g} s) must be more than {JITTER:g} times "
                f"the retry period ({self.retry_period:g} s)"
            )
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"the lease duration ({self.lease_duration:g} s) must be more than "
                f"the renew deadline ({self.renew_deadline:g} s)"
            )
        if not 1 <= self.lease_duration <= LEASE_DURATION_MAX:
            raise ValueError(
                f"the lease duration ({self.lease_duration:g} s) must be from 1 s to {LEASE_DURATION_MAX:g} s"
            )


class Verb(Enum):
    """What can be asked of the API."""

    READ = "read"
    CREATE = "create"
    WRITE = "write"


class Ask(NamedTuple):
    """One request: `body` is the Lease to create or the merge patch, `timeout` the seconds that it may take."""

    verb: Verb
    body: Lease
    timeout: float
    sent: float


class Campaign:
    """One candidate. `now` is always the time on its clock; `wall` is the time for people, since 1970.

    `ask`, then exactly one of `answered`, `absent` and `failed`, then wait `pause` seconds, and so on; `release` in
    place of `ask` to end it. A request of which nothing was heard counts as failed. `leads` may be called at any time.
    """

    def __init__(
        self,
        identity: str,
        settings: ElectionSettings,
        jitter: Callable[[], float] = random.random,
        note_key: str = "",
    ) -> None:
        self._identity = identity
        self._settings = settings
        self._jitter = jitter
        self._note_key = note_key  # the annotation that is the note; "" for none
        self._note = ""  # what it says in the Lease, as last seen
        self._until = -math.inf  # leads until then
        self._lease: Lease | None = None  # as last seen; None for not there
        self._since = -math.inf  # when it was first seen to be so
        self._probation = False  # whether it was made again where another may lead
        self._leads_from = -math.inf  # when the probation ends
        self._known = False  # whether a write can be based on what was last seen
        self._just_read = False
        self._failed = False
        self._renewed: str | None = None  # the time that the Lease says while it is ours
        self._claims: deque[str] = deque(maxlen=_CLAIMS_KEPT)  # the times that we wrote since

    def leads(self, now: float) -> bool:
        """Whether this is the leader, now."""
        return now < self._until

    @property
    def holder(self) -> str:
        """Who holds the Lease, as last seen; "" for nobody."""
        return self._lease.holder if self._lease else ""

    @property
    def note(self) -> str:
        """What the note in the Lease says, as last seen; "" where there is none."""
        return self._note

    def wants(self, now: float) -> bool:
        """Whether what was just read calls for a write, without delay."""
        return self._just_read and self._free_at() <= now

    def at_rest(self, now: float) -> bool:
        """Whether the last request succeeded and left nothing to do but wait."""
        return self._known and not self.wants(now)

    def ask(self, now: float, wall: float, note: str | None = None) -> Ask:
        """What to ask now. A leader says what the note is to say from now on; None leaves it as it is."""
        writes = self._known and (self.wants(now) or self._is_ours())
        self._known = self._just_read = False
        timeout = self._timeout(now)
        if not writes:
            return Ask(Verb.READ, Lease(), timeout, now)
        if self._lease is None:
            self._probation |= self._since > -math.inf and not self.leads(now)
            return Ask(Verb.CREATE, self._new_lease(wall, note), timeout, now)
        return Ask(Verb.WRITE, self._patch(self._claim(wall), note), timeout, now)

    def answered(self, ask: Ask, lease: Lease, now: float) -> None:
        """The reply to a request that succeeded."""
        self._known, self._failed = True, False
        self._just_read = ask.verb is Verb.READ
        before = self._lease
        if before is None or before.terms != lease.terms:
            self._since = now
        self._lease = lease
        self._note = lease.metadata.annotations.get(self._note_key, "")
        ours = self._is_ours()
        if before is None or before.version != lease.version:
            # What was written on top of an older Lease cannot arrive any more. On top of this one it may yet.
            self._claims.clear()
        self._renewed = lease.terms.renew_time if ours else None
        if not ours:
            self._until = self._leads_from = -math.inf
            self._probation = False
            return
        if self._probation:
            self._probation, self._leads_from = False, now + self._settings.lease_duration
        if ask.verb is not Verb.READ and now >= self._leads_from:
            self._until = ask.sent + self._settings.renew_deadline

    def absent(self, now: float) -> None:
        """The reply that there is no such Lease, to a read or to a write that expected one."""
        self._known, self._failed = True, False
        self._just_read = True
        if self._lease is not None:
            self._lease, self._since = None, now

    def failed(self) -> None:
        """There was no reply, or a refusal."""
        self._failed = True

    def pause(self, now: float) -> float:
        """How long to wait before asking again, in seconds."""
        if self.wants(now):
            return 0.0
        usual = self._settings.retry_period * (1 + (JITTER - 1) * self._jitter())
        if self.leads(now):
            shortest = self._settings.retry_period * _SOON
            pause = shortest * (1 + self._jitter()) if self._failed else usual
            left = self._until - now
            return pause if pause + shortest < left else left + _TICK  # a request needs some time, too
        if not self._just_read:
            return usual
        return min(usual, self._settings.look_period * (1 + (JITTER - 1) * self._jitter()), self._free_at() - now)

    def resign(self) -> None:
        """Stop leading."""
        self._until = -math.inf

    def release(self, now: float, wall: float, note: str | None = None) -> Ask | None:
        """What to ask to give the Lease back: a read if that is needed first, None if there is nothing to give.

        The note stays in it, and says what whoever led has to leave behind; None leaves it as it is.
        """
        if not (self._renewed or self._claims) or (self._known and not self._is_ours()):
            return None
        if self._probation or now < self._leads_from:
            return None  # others are to wait as we do
        known, self._known = self._known, False
        if not known:
            return Ask(Verb.READ, Lease(), self._settings.renew_deadline, now)
        nobody = LeaseSpec(holder_identity="", lease_duration_seconds=1, renew_time=micro_time(wall))
        return Ask(Verb.WRITE, self._patch(nobody, note), self._settings.renew_deadline, now)

    def _is_ours(self) -> bool:
        """Whether the Lease was last seen as we wrote it."""
        if self._lease is None or self._lease.holder != self._identity:
            return False
        renewed = self._lease.terms.renew_time
        return renewed is not None and (renewed == self._renewed or renewed in self._claims)

    def _free_at(self) -> float:
        """When the Lease may be taken, or renewed, if nothing changes."""
        if self._lease is None or not self._lease.holder or self._is_ours():
            return -math.inf
        return self._since + self._duration(self._lease)

    def _duration(self, lease: Lease) -> float:
        """How long to wait for the holder of a Lease: what it says, if that makes sense, and ours if not."""
        seconds = lease.terms.lease_duration_seconds or 0
        return min(seconds, LEASE_DURATION_MAX) if seconds > 0 else self._settings.lease_duration

    def _timeout(self, now: float) -> float:
        """Half of the time that is left, so that there can be another attempt, but not much less than is sensible."""
        left = self._until - now if self.leads(now) else self._settings.renew_deadline
        return min(left, max(self._settings.retry_period, left / 2))

    def _claim(self, wall: float) -> LeaseSpec:
        """What to write into the Lease: that it is ours from now on, or still."""
        renewed = micro_time(wall)
        claim = LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=math.ceil(self._settings.lease_duration),
            renew_time=renewed,
        )
        if not self._is_ours():
            transitions = self._lease.terms.lease_transitions or 0 if self._lease else -1
            claim = replace(claim, acquire_time=renewed, lease_transitions=max(0, min(transitions + 1, _COUNT_MAX)))
        self._claims.append(renewed)
        return claim

    def _patch(self, spec: LeaseSpec, note: str | None) -> Lease:
        """A merge patch that fails if the Lease has changed."""
        assert self._lease is not None
        annotations = {} if note is None or note == self._note else annotation_patch(self._note_key, note)
        return Lease(metadata=ObjectMeta(resource_version=self._lease.version, annotations=annotations), spec=spec)

    def _new_lease(self, wall: float, note: str | None) -> Lease:
        text = self._note if note is None else note
        annotations = {self._note_key: text} if text else {}
        metadata = ObjectMeta(name=self._settings.name, annotations=annotations)
        return Lease(api_version=API_VERSION, kind=KIND, metadata=metadata, spec=self._claim(wall))
