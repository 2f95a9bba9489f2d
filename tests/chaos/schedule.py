"""What is to happen in a run, and when: nodes and pools that come and go, flags that change, faults. Drawn from a seed.

Pure: the same seed and length give the same schedule. It says "the leader", never which replica that is: who leads is
found out at the moment of the fault.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Labels: TypeAlias = tuple[tuple[str, str], ...]

NODES_A_SECOND: Final = 9.0
LIFE: Final = 20.0
"""Seconds that a node lives, on average: with the rate above some 180 live at a time."""
ZONES: Final = ("a", "b", "c", "d")
TIERS: Final = ("small", "big")
CALM: Final = 7.0
"""Seconds before the first fault: there is a leader by then, and nodes that have blocks."""
AFTERMATH: Final = 11.0
"""Seconds after the last fault begins, in which it ends."""
PAUSE_PERIOD: Final = 30.0
FAULT_PERIOD: Final = 9.0
"""Seconds between faults that are no pauses, on average."""
LONGEST_LEASE: Final = 3.0


class Target(StrEnum):
    """Whom a fault hits."""

    LEADER = "leader"
    STANDBY = "standby"
    ALL = "all"


class Trouble(StrEnum):
    """What happens to the requests of a replica."""

    CUT = "connections-cut"
    LOST = "replies-lost"
    TOO_MANY = "429-storm"
    ERRORS = "500-storm"
    SLOW = "slow-replies"
    STALL = "watches-stalled"
    GONE = "410"
    GONE_EVENT = "410-event"


class Reply(StrEnum):
    """What an intermediary answers to a write that it forwards later."""

    TIMEOUT = "408-html"
    NOT_FOUND = "404-html"
    CONFLICT = "409-html"
    UNAUTHORIZED = "401-html"
    BAD_GATEWAY = "502-html"
    GATEWAY_TIMEOUT = "504-text"
    TOO_MANY = "429-text"


@dataclass(frozen=True, slots=True)
class Pool:
    """A ClusterCIDR, or with `config` a ClusterCIDRConfig, which has one of both ranges. `bits` are those of hosts."""

    name: str
    ipv4: str = ""
    ipv6: str = ""
    bits: int = 4
    bits_v6: int = 64
    labels: Labels = ()
    unless: str = ""
    """A label that no node has which it is for. A ClusterCIDR's alone."""
    config: bool = False


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that is to come. One that is `held_back` has a taint with which it waits for labels (N10)."""

    name: str
    labels: Labels = ()
    held_back: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is to be done so many seconds after the beginning."""

    at: float


@dataclass(frozen=True, slots=True)
class CreateNode(Step):
    """A node comes."""

    node: NewNode


@dataclass(frozen=True, slots=True)
class DeleteNode(Step):
    """A node goes."""

    name: str


@dataclass(frozen=True, slots=True)
class RecreateNode(Step):
    """A node goes, and one of the same name comes at once."""

    node: NewNode


@dataclass(frozen=True, slots=True)
class RelabelNode(Step):
    """A node gets other labels."""

    name: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class CreatePool(Step):
    """A pool comes."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class DeletePool(Step):
    """A pool is deleted, whoever uses it."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class ChangeFlags(Step):
    """All replicas are restarted with other flags, one after the other."""

    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """Nodes that want the same blocks: a successor that does not know what is on the wire gives them twice.

    `wanting` come so that there are PATCHes on the wire. When their sender is out of action, some are `turned_away`,
    with a taint, so that its successor does not serve them as well, and `rivals` come.
    """

    wanting: tuple[NewNode, ...]
    turned_away: tuple[str, ...]
    rivals: tuple[NewNode, ...]


NO_CONTEST: Final = Contest((), (), ())


@dataclass(frozen=True, slots=True)
class PauseLeader(Step):
    """The leader freezes for longer than its lease.

    With `held`, its PATCHes of nodes take so many seconds, from before it freezes, and are contested.
    """

    seconds: float
    held: float = 0.0
    contest: Contest = NO_CONTEST


@dataclass(frozen=True, slots=True)
class Kill(Step):
    """A replica is killed and comes back. With `held` its PATCHes of nodes are on the wire then, as above."""

    target: Target
    down: float
    held: float = 0.0
    contest: Contest = NO_CONTEST


@dataclass(frozen=True, slots=True)
class AnswerEarly(Step):
    """Something before the API server answers the leader's writes itself, and forwards them `held` seconds later.

    PATCHes of nodes meet it, and are contested as above; a part of the other writes meets it as well.
    """

    reply: Reply
    held: float
    probability: float
    contest: Contest


@dataclass(frozen=True, slots=True)
class Terminate(Step):
    """A replica is told to end, and comes back."""

    target: Target


@dataclass(frozen=True, slots=True)
class RestartServer(Step):
    """kube-apiserver is killed, and comes back."""

    down: float


@dataclass(frozen=True, slots=True)
class RestartEtcd(Step):
    """etcd is killed, or told to end, and comes back."""

    down: float
    gracefully: bool


@dataclass(frozen=True, slots=True)
class Disturb(Step):
    """For some seconds a part of a replica's requests meets trouble."""

    trouble: Trouble
    target: Target
    seconds: float
    probability: float


@dataclass(frozen=True, slots=True)
class Surge(Step):
    """More nodes than there are blocks for, and they go again: a pool is full."""

    nodes: tuple[NewNode, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Meddling:
    """Somebody else writes podCIDRs to a node that comes, or, with `creates`, creates it with them."""

    node: NewNode
    blocks: tuple[str, ...]
    creates: bool


@dataclass(frozen=True, slots=True)
class ThirdParty(Step):
    """Somebody else meddles with several nodes, one after the other."""

    meddlings: tuple[Meddling, ...]


Fault: TypeAlias = (
    PauseLeader | Kill | AnswerEarly | Terminate | RestartServer | RestartEtcd | Disturb | Surge | ThirdParty
)
FAULTS: Final = (PauseLeader, Kill, AnswerEarly, Terminate, RestartServer, RestartEtcd, Disturb, Surge, ThirdParty)


class Kind(StrEnum):
    """Kinds of faults, as they are counted."""

    PAUSE = "pause"
    PAUSE_ON_THE_WIRE = "pause-on-the-wire"
    KILL = "kill"
    KILL_ON_THE_WIRE = "kill-on-the-wire"
    ANSWERED = "answered-then-forwarded"
    TERMINATE = "terminate"
    SERVER = "apiserver-killed"
    ETCD = "etcd-restarted"
    CUT = Trouble.CUT.value
    LOST = Trouble.LOST.value
    TOO_MANY = Trouble.TOO_MANY.value
    ERRORS = Trouble.ERRORS.value
    SLOW = Trouble.SLOW.value
    STALL = Trouble.STALL.value
    GONE = Trouble.GONE.value
    GONE_EVENT = Trouble.GONE_EVENT.value
    FULL = "full-pool"
    THIRD_PARTY = "third-party"


PAUSES: Final = (Kind.PAUSE, Kind.PAUSE_ON_THE_WIRE)
PACK: Final = tuple(kind for kind in Kind if kind not in PAUSES)
"""Dealt like cards: all kinds come up before any comes up again."""

STANDING: Final = (
    Pool("wide", ipv4="10.0.0.0/21", ipv6="fd00:10::/56", unless="contest"),
    Pool("zone-a", ipv4="10.0.0.0/22", bits=5, labels=(("zone", "a"),)),
    Pool("zone-b", ipv4="10.1.0.0/22", ipv6="fd00:11::/58", bits=5, labels=(("zone", "b"),)),
    Pool("zone-c-v4", ipv4="10.2.0.0/23", labels=(("zone", "c"),), config=True),
    Pool("zone-c-v6", ipv6="fd00:12::/58", labels=(("zone", "c"),), config=True),
    Pool("big-b", ipv4="10.1.2.0/23", labels=(("zone", "b"), ("tier", "big")), config=True),
    Pool("big-d", ipv6="fd00:10::/56", bits=8, bits_v6=66, labels=(("zone", "d"), ("tier", "big"))),
)
"""Pools that are there from the beginning, of both kinds and families. Some overlap, and zones fill up at times."""

FLAGS: Final = (
    (),
    ("--cluster-cidr=10.5.0.0/24", "--node-cidr-mask-size=28"),
    ("--cluster-cidr=10.5.0.0/24", "--node-cidr-mask-size=27"),
    ("--cluster-cidr=10.5.0.0/23,fd00:15::/60", "--node-cidr-mask-size-ipv4=28", "--node-cidr-mask-size-ipv6=64"),
)
"""What replicas are run with, beside what all of them are."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that is to happen, in order."""

    seed: int
    seconds: float
    replicas: int
    flags: tuple[str, ...]
    """To begin with."""
    steps: tuple[Step, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The steps that are faults."""
        return tuple(step for step in self.steps if isinstance(step, FAULTS))


def kind_of(fault: Fault) -> Kind:
    """As what it is counted."""
    match fault:
        case PauseLeader(held=held):
            return Kind.PAUSE_ON_THE_WIRE if held else Kind.PAUSE
        case Kill(held=held):
            return Kind.KILL_ON_THE_WIRE if held else Kind.KILL
        case Disturb(trouble=trouble):
            return Kind(trouble.value)
        case _:
            return _KINDS[type(fault)]


_KINDS: Final[dict[type[Step], Kind]] = {
    AnswerEarly: Kind.ANSWERED,
    Terminate: Kind.TERMINATE,
    RestartServer: Kind.SERVER,
    RestartEtcd: Kind.ETCD,
    Surge: Kind.FULL,
    ThirdParty: Kind.THIRD_PARTY,
}


def make_schedule(seed: int, seconds: float) -> Schedule:
    """The schedule of a seed."""
    drawer = _Drawer(seed, seconds)
    steps = sorted(drawer.steps(), key=lambda step: step.at)
    return Schedule(seed, seconds, drawer.replicas, drawer.flags[0], tuple(steps))


class _Drawer:
    """Draws a schedule, part by part. Every part comes from a generator of its own, so that none depends on another."""

    def __init__(self, seed: int, seconds: float) -> None:
        self._seed = seed
        self._seconds = seconds
        draws = self._draws("settings")
        self.replicas = draws.choice((2, 3, 3))
        self.flags = draws.sample(FLAGS, len(FLAGS))

    def steps(self) -> Iterator[Step]:
        """All of them, in no order."""
        yield from (CreatePool(0.0, pool) for pool in STANDING)
        yield from self._nodes()
        yield from self._passing_pools()
        yield from self._changes_of_flags()
        yield from self._faults()

    def _draws(self, part: str) -> random.Random:
        return random.Random(f"{self._seed}/{part}")

    def _nodes(self) -> Iterator[Step]:
        draws = self._draws("nodes")
        at, number = 0.5, 0
        while (at := at + draws.expovariate(NODES_A_SECOND)) < self._seconds:
            node = NewNode(f"n{number:05}", _labels(draws))
            number += 1
            yield from self._life(draws, node, at, draws.expovariate(1 / LIFE))

    def _life(self, draws: random.Random, node: NewNode, at: float, life: float) -> Iterator[Step]:
        """A node comes; perhaps it changes; it goes, unless the run ends before."""
        yield CreateNode(at, node)
        between = at + draws.uniform(0.1, 0.9) * life
        change = draws.random()
        if between < self._seconds:
            if change < 0.12:
                yield RecreateNode(between, NewNode(node.name, _labels(draws)))
            elif change < 0.27:
                yield RelabelNode(between, node.name, _labels(draws))
        if at + life < self._seconds:
            yield DeleteNode(at + life, node.name)

    def _passing_pools(self) -> Iterator[Step]:
        """Pools that come and go, over ranges of which several overlap, also with one that is still being deleted."""
        draws = self._draws("pools")
        # In a short run as well several are to be deleted while they are in use and wanted.
        hurry = min(1.0, max(0.5, self._seconds / 240))
        at, number = 3.0, 0
        while (at := at + hurry * draws.uniform(6, 14)) < self._seconds - 5:
            name = f"passing-{number}"
            labels = draws.choice(((("zone", "d"),), (("zone", "d"), ("tier", "big")), (("tier", "small"),)))
            subnet = draws.randrange(4)
            pool = draws.choice(
                (
                    Pool(name, ipv4=f"10.3.{subnet}.0/24", labels=labels),
                    Pool(name, ipv4="10.3.0.0/22", bits=6, labels=labels),
                    Pool(name, ipv4=f"10.3.{subnet}.0/25", ipv6=f"fd00:13:0:{subnet}0::/60", labels=labels),
                    Pool(name, ipv4=f"10.3.{subnet}.128/25", labels=labels, config=True),
                    Pool(name, ipv6=f"fd00:13:0:{subnet}0::/60", labels=labels, config=True),
                )
            )
            number += 1
            yield CreatePool(at, pool)
            if (gone := at + hurry * draws.uniform(8, 25)) < self._seconds:
                yield DeletePool(gone, pool)

    def _changes_of_flags(self) -> Iterator[Step]:
        draws = self._draws("flags")
        rounds = max(1, round(self._seconds / 70))
        width = (self._seconds - CALM - AFTERMATH) / rounds
        for number, flags in zip(range(rounds), cycle(self.flags[1:] + self.flags[:1]), strict=False):
            yield ChangeFlags(CALM + (number + draws.uniform(0.2, 0.7)) * width, flags)

    def _faults(self) -> Iterator[Step]:
        """Pauses evenly between the others, which are dealt."""
        draws = self._draws("faults")
        pauses = 1 + max(1, round(self._seconds / PAUSE_PERIOD))
        kinds = [*islice(_dealt(draws), max(1, round(self._seconds / FAULT_PERIOD)))]
        for number in range(pauses):
            # One in four is at a moment like any other; of the first two none.
            kind = Kind.PAUSE if number % 4 == 2 else Kind.PAUSE_ON_THE_WIRE
            kinds.insert(round((number + 0.5) * (len(kinds) + pauses - number) / pauses), kind)
        width = (self._seconds - CALM - AFTERMATH) / len(kinds)
        for number, kind in enumerate(kinds):
            at = CALM + (number + draws.uniform(0.0, 0.6)) * width
            yield from self._fault(draws, kind, number, at)

    def _fault(self, draws: random.Random, kind: Kind, number: int, at: float) -> Iterator[Step]:
        match kind:
            case Kind.PAUSE:
                yield PauseLeader(at, draws.uniform(4.0, 7.0))
            case Kind.PAUSE_ON_THE_WIRE | Kind.KILL_ON_THE_WIRE | Kind.ANSWERED:
                yield from self._contested(draws, kind, number, at)
            case Kind.KILL:
                yield Kill(at, draws.choice((Target.LEADER, Target.STANDBY)), draws.uniform(0.2, 5.0))
            case Kind.TERMINATE:
                yield Terminate(at, draws.choice((Target.LEADER, Target.LEADER, Target.STANDBY)))
            case Kind.SERVER:
                yield RestartServer(at, draws.uniform(0.0, 2.0))
            case Kind.ETCD:
                yield RestartEtcd(at, draws.uniform(0.0, 2.0), draws.random() < 0.5)
            case Kind.FULL:
                labels = draws.choice(((("zone", "a"),), (("zone", "b"), ("tier", "big")), (("zone", "c"),)))
                names = [f"surge-{number:02}-{each:02}" for each in range(draws.randint(30, 50))]
                yield Surge(at, tuple(NewNode(name, labels) for name in names), draws.uniform(4, 8))
            case Kind.THIRD_PARTY:
                yield from self._third_party(draws, number, at)
            case _:
                trouble = Trouble(kind.value)
                yield Disturb(at, trouble, draws.choice(tuple(Target)), draws.uniform(3, 7), draws.uniform(0.3, 0.9))

    def _contested(self, draws: random.Random, kind: Kind, number: int, at: float) -> Iterator[Step]:
        """A fault with writes on the wire, and all that is around it."""
        contest, around = self._contest(draws, number, at)
        yield from around
        if kind is Kind.PAUSE_ON_THE_WIRE:
            seconds = draws.uniform(4.5, 7.0)
            yield PauseLeader(at, seconds, seconds + draws.uniform(0.5, 2.0), contest)
        elif kind is Kind.KILL_ON_THE_WIRE:
            yield Kill(at, Target.LEADER, draws.uniform(0.2, 5.0), draws.uniform(5.0, 8.0), contest)
        else:
            reply = draws.choice(tuple(Reply))
            yield AnswerEarly(at, reply, draws.uniform(4.0, 7.0), draws.uniform(0.1, 0.4), contest)

    def _contest(self, draws: random.Random, number: int, at: float) -> tuple[Contest, list[Step]]:
        """A small pool, nodes that want all of its blocks or nearly so, rivals, and the steps around them."""
        labels = (("contest", str(number)),)
        length = draws.choice((26, 26, 27))
        # Few ranges, so that one is contested again when all that had its blocks are gone.
        subnet = draws.randrange(3)
        ipv6 = f"fd00:14:0:{subnet}0::/60" if draws.random() < 0.3 else ""
        pool = Pool(f"contested-{number}", ipv4=f"10.4.{subnet}.0/{length}", ipv6=ipv6, labels=labels)
        blocks = 2 ** (28 - length)
        # Whose names come first differs, as may who is served first.
        names = [f"{draws.choice('bny')}contest-{number:02}-{each}" for each in range(2 * blocks + 1)]
        wanting = names[: draws.randint(max(1, blocks - 1), blocks)]
        rivals = names[blocks:]
        turned_away = draws.sample(wanting, draws.randint(1, len(wanting)))
        around: list[Step] = [CreatePool(max(0.1, at - draws.uniform(4, 6)), pool)]
        for name in wanting:
            if name not in turned_away and draws.random() < 0.4:
                when = at + draws.uniform(1.0, 3.0)
                nowhere = (("contest", "none"),)
                again, elsewhere = RecreateNode(when, NewNode(name, labels)), RelabelNode(when, name, nowhere)
                around.append(again if draws.random() < 0.5 else elsewhere)
        gone = [(name, at + draws.uniform(10, 22)) for name in names]
        around += [DeleteNode(when, name) for name, when in gone if when < self._seconds]
        if (end := at + draws.uniform(10, 22)) < self._seconds:
            around.append(DeletePool(end, pool))
        contest = Contest(
            tuple(NewNode(name, labels) for name in wanting),
            tuple(turned_away),
            tuple(NewNode(name, labels) for name in rivals),
        )
        return contest, around

    def _third_party(self, draws: random.Random, number: int, at: float) -> Iterator[Step]:
        """Several nodes, with what may be free, may be held, is more than a block, or is in no pool."""
        meddlings = []
        for each in range(5):
            block = f"10.0.{draws.randrange(8)}.{draws.randrange(16) * 16}/28"
            big = f"10.0.{draws.randrange(8)}.{draws.randrange(4) * 64}/26"
            blocks = draws.choice(
                ((block,), (block, f"fd00:10:0:{draws.randrange(256):x}::/64"), (big,), (f"10.200.{number}.0/24",))
            )
            node = NewNode(f"third-{number:02}-{each}", _labels(draws), held_back=draws.random() < 0.6)
            meddlings.append(Meddling(node, blocks, draws.random() < 0.3))
            if (gone := at + draws.uniform(8, 17)) < self._seconds:
                yield DeleteNode(gone, node.name)
        yield ThirdParty(at, tuple(meddlings))


def _labels(draws: random.Random) -> Labels:
    return (("zone", draws.choice(ZONES)), ("tier", draws.choice(TIERS)))


def _dealt(draws: random.Random) -> Iterator[Kind]:
    while True:
        yield from draws.sample(PACK, len(PACK))
