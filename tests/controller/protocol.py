"""The protocol of lease, intents and writes as a state machine, small enough to be looked at in every state.

Two replicas, three nodes, one pool of two blocks. There is no clock: any replica may take the lease at any time, and
one that lost it goes on and sends, until it happens to notice. So whatever holds here holds for every pause and every
jump of a clock, and does not rest on the times of the lease at all.

What can happen, in any order and at any time:

- to nodes: created, deleted, created anew under the same name (another uid);
- to a replica: takes the lease and reads the note; lists, while the pool gives, or does not for the time being;
  decides, or gives a node what was held for it; records, of which it may not hear; sends what is recorded, and again;
  is refused; is told by the watch how a node stands, late; notices that it leads no more; dies, and starts again with
  no memory;
- to a PATCH: it arrives, whenever that is, and whatever has become of its sender; or never.

What is decided, the controller decides: `Cluster` gives blocks, `take_over` takes in what was inherited, through
`encode` and `decode`. The rest are the rules of `Allocation` and `Campaign`, written down once more.

Steps that could be told apart, and need not be:

- A record that arrives late arrives before anybody else writes to the Lease, or fails: it is a compare and swap. Nobody
  reads the Lease in between without writing. So it is as if it had arrived at once and nobody had heard of it.
- A PATCH that is refused might as well not have been sent. One that succeeded leaves a node with podCIDRs, and of these
  it is of no account what the Lease says, or whether the sender has heard.
- A replica whose lease another took can send what it has recorded, and no more: it cannot record. What it decides, and
  what it is told, makes no difference then.
- States that differ only in which node, replica or block is which are one state; so are those that differ in what
  cannot matter any more: a PATCH for a uid that is gone, or for a node that has podCIDRs.

There are many states, and few ways for one node to stand (`Record`): these have numbers, and what can happen to one of
them is worked out once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.controller.intents import Intent, Intents, decode, encode, take_over
from cidrella.core.cluster import Cluster
from cidrella.core.decision import Node
from cidrella.core.prefix import Prefix
from tests.core.build import spec

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCKS: Final = ("10.0.0.0/24", "10.0.1.0/24")
POOL: Final = spec("p", "10.0.0.0/23 /24")
BARE: Final = -1
"""A node without podCIDRs; else it has the block of that number, or is not there."""
GONE: Final = -2
FORMER: Final = -3
"""What a replica sees of a node that is gone, or was made anew, which the watch has yet to tell: it was bare."""
NOBODY: Final = -1

# What a replica does: it waits; has taken the lease, and lists; is on duty; thinks that it is, while another took over.
OUT, LISTING, ON, STALE = range(4)
# How far a reservation has come.
NONE, DECIDED, RECORDED, SENT = range(4)


class Part(NamedTuple):
    """What one replica knows of one node."""

    view: int = GONE
    """As the watch told last; of no use to one that is not on duty, or stale."""
    stage: int = NONE
    block: int = 0
    """Of the reservation, if there is one."""
    holds: int = 0
    """The blocks, as bits, that are held for the node; of one that waits, what it remembers to have held."""
    inherited: int = 0
    """What the note said of the node when the lease was taken, as bits."""


class Record(NamedTuple):
    """Everything about one node."""

    has: int
    note: int
    """What the Lease says of it, as bits."""
    wire: int
    """The blocks, as bits, that a PATCH may yet bring, from whomever."""
    parts: tuple[Part, Part]


class _Numbers:
    """Records by number, and numbers by record."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._numbers: dict[Record, int] = {}

    def of(self, record: Record) -> int:
        number = self._numbers.get(record)
        if number is None:
            number = self._numbers[record] = len(self.records)
            self.records.append(record)
        return number


NUMBERS: Final = _Numbers()

State = tuple[int, int, int, int, int, int]
"""Who wrote to the Lease last, what the replicas do, and the numbers of the records of three nodes."""
Books = tuple[tuple[int, int, int], ...]
"""Of each node: what is seen of it, the block reserved for it (or -1), and those held for it."""

_FIRST: Final = NUMBERS.of(Record(BARE, 0, 0, (Part(), Part())))
START: Final[State] = (NOBODY, OUT, OUT, _FIRST, _FIRST, _FIRST)


def explore(*, records: bool) -> tuple[int, list[str]]:
    """Every state that can be reached, breadth first. How many there are, and what leads to the first bad one, if any.

    Without `records` a replica sends what it has decided on, recorded or not.
    """
    _taken_over.cache_clear()  # what it calls may be another's in this test than in the last
    came_from: dict[State, State | None] = {_canonical(START): None}
    frontier = list(came_from)
    while frontier:
        following = []
        for state in frontier:
            for _, after in _steps(state, records):
                found = _canonical(after)
                if found not in came_from:
                    came_from[found] = state
                    if _is_bad(found):
                        return len(came_from), _story(came_from, found, records)
                    following.append(found)
        frontier = following
    return len(came_from), []


def _is_bad(state: State) -> bool:
    """Whether two living nodes have the same block."""
    given = [has for number in state[3:] if (has := NUMBERS.records[number].has) >= 0]
    return len(set(given)) < len(given)


def _story(came_from: dict[State, State | None], state: State, records: bool) -> list[str]:
    """What happened on the way to a state. The names are those that each state before has for what there is."""
    steps = []
    while (before := came_from[state]) is not None:
        steps.append(next(step for step, after in _steps(before, records) if _canonical(after) == state))
        state = before
    return steps[::-1]


def _steps(state: State, records: bool) -> Iterator[tuple[str, State]]:
    """Everything that can happen next."""
    for place, number in enumerate(state[3:]):
        for step, after in _of_node(number):
            yield step, _with_node(state, place, after)
    for who in range(2):
        yield from _of_replica(state, who, records)
        yield from _of_replica_and_nodes(state, who, records)


def _of_replica_and_nodes(state: State, who: int, records: bool) -> Iterator[tuple[str, State]]:
    """What a replica does about one node."""
    mode, nodes = state[1 + who], state[3:]
    if mode in {OUT, LISTING}:
        return
    books = tuple([_book(number, who) for number in nodes]) if mode == ON else ()
    for place, number in enumerate(nodes):
        for step, after in _served(number, who, records) if mode == ON else _sent(number, who):
            yield step, _with_node(state, place, after)
        for after in _decided_for(books, place, number, who) if mode == ON else ():
            yield _DECIDES[who], _with_node(state, place, after)
        for after in _revived_for(books, place, number, who) if mode == ON else ():
            yield _REVIVES[who], _with_node(state, place, after)


_DECIDES: Final = ("0: decides on a node", "1: decides on a node")
_REVIVES: Final = ("0: gives a node what was held for it", "1: gives a node what was held for it")


def _of_replica(state: State, who: int, records: bool) -> Iterator[tuple[str, State]]:
    """What concerns all nodes at once."""
    mode, nodes = state[1 + who], state[3:]
    if mode == OUT:
        yield f"{who}: takes the lease", _taken(state, who, records)
    else:
        stopped = [_stopped(each, who) for each in nodes]
        yield f"{who}: notices that it leads no more", _with(state, who, OUT, stopped)
    dead = [_dead(each, who) for each in nodes]
    if mode != OUT or dead != list(nodes):
        yield f"{who}: dies", _with(state, who, OUT, dead)
    for gives in (True, False) if mode == LISTING else ():
        listed = _listed(nodes, who, gives)
        if records and state[0] != who:
            after = _with(state, who, STALE, [_overtaken(each, who) for each in listed])
        else:
            after = _with(state, who, ON, listed)
        yield f"{who}: lists, and takes over, while the pool {'gives' if gives else 'is going'}", after
    if mode == ON and state[0] == who:
        yield f"{who}: records", _with(state, who, ON, [_recorded(each, who, True) for each in nodes])
        unheard = [_recorded(each, who, False) for each in nodes]
        yield f"{who}: records, and does not hear of it", _with(state, who, ON, unheard)


def _taken(state: State, who: int, records: bool) -> State:
    """A compare and swap of the Lease, in which the note stays as it is. The reply tells what it says."""
    nodes = [_inheriting(each, who) for each in state[3:]]
    modes = [state[1], state[2]]
    modes[who] = LISTING
    if records and modes[1 - who] == ON:
        modes[1 - who] = STALE
        nodes = [_overtaken(each, 1 - who) for each in nodes]
    return who, modes[0], modes[1], nodes[0], nodes[1], nodes[2]


# To nodes


@cache
def _of_node(number: int) -> list[tuple[str, int]]:
    node = NUMBERS.records[number]
    if node.has == GONE:
        return [("a node is made", NUMBERS.of(node._replace(has=BARE)))]
    steps = [("a node is deleted", NUMBERS.of(_settled(node, GONE)))]
    return steps + [("a PATCH arrives", NUMBERS.of(_settled(node, block))) for block in _bits(node.wire)]


def _settled(node: Record, has: int) -> Record:
    """A node on which nothing can land any more: what was on its way, and what the Lease says, is of no account."""
    one, two = (_settled_part(part, has) for part in node.parts)
    return Record(has, 0, 0, (one, two))


def _settled_part(part: Part, has: int) -> Part:
    if part.view == GONE:
        return Part()  # not on duty, or never told: what it remembers, a list does away with
    return part._replace(view=FORMER if part.view == BARE and has == GONE else part.view, inherited=0)


# To a replica


@cache
def _inheriting(number: int, who: int) -> int:
    """The lease is taken; the note stays as it is."""
    node = NUMBERS.records[number]
    return NUMBERS.of(_with_part(node, who, inherited=node.note))


@cache
def _recorded(number: int, who: int, heard: bool) -> int:
    """The note is as the replica wants it, which matters for nodes that it sees as they are, and are bare."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    note = 0
    if node.has == part.view == BARE:
        note = part.holds | (1 << part.block if part.stage else 0)
    after = node._replace(note=note)
    return NUMBERS.of(_with_part(after, who, stage=RECORDED) if heard and part.stage == DECIDED else after)


@cache
def _stopped(number: int, who: int) -> int:
    """What was not recorded is given up. The rest is remembered while it is not settled, as if it had been sent."""
    after = _overtaken(number, who)
    node = NUMBERS.records[after]
    return NUMBERS.of(_with_part(node, who, stage=SENT)) if node.parts[who].stage else after


@cache
def _overtaken(number: int, who: int) -> int:
    """What is recorded, and not settled, is all that still matters."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    kept = Part()
    if node.has == BARE and part.view in {BARE, GONE}:
        kept = kept._replace(holds=part.holds)
        if part.stage >= RECORDED:
            kept = kept._replace(stage=part.stage, block=part.block)
    return NUMBERS.of(_replaced(node, who, kept))


@cache
def _dead(number: int, who: int) -> int:
    return NUMBERS.of(_replaced(NUMBERS.records[number], who, Part()))


def _listed(numbers: tuple[int, ...], who: int, gives: bool) -> list[int]:
    """See all nodes as they are, then take in what was inherited."""
    nodes = [NUMBERS.records[number] for number in numbers]
    parts = [node.parts[who] for node in nodes]
    own = tuple((part.block if part.stage else -1, part.holds) for part in parts)
    result = _taken_over(tuple(node.has for node in nodes), own, tuple(part.inherited for part in parts), gives)
    return [
        NUMBERS.of(_replaced(node, who, Part(node.has, SENT if block >= 0 else NONE, max(block, 0), holds)))
        for node, (block, holds) in zip(nodes, result, strict=True)
    ]


@cache
def _served(number: int, who: int, records: bool) -> list[tuple[str, int]]:
    """What a replica on duty does about a node, and hears of it."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    # What it sends to another uid, or to a node that has podCIDRs, has no effect, and the watch tells.
    steps = _sent(number, who, records) if node.has == part.view == BARE else []
    if part.view != node.has:
        return [*steps, (f"{who}: is told of a node", NUMBERS.of(_replaced(node, who, Part(node.has))))]
    return steps


@cache
def _sent(number: int, who: int, records: bool = True) -> list[tuple[str, int]]:
    """A PATCH that goes out, and what may be heard of it at once."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    if part.stage < (RECORDED if records else DECIDED):
        return []
    out = _with_part(node, who, stage=SENT)._replace(wire=node.wire | 1 << part.block)
    steps = [(f"{who}: sends a PATCH", NUMBERS.of(out))]
    if part.stage == RECORDED:
        steps.append((f"{who}: is refused", NUMBERS.of(_with_part(node, who, stage=NONE, block=0))))
    return steps


@cache
def _book(number: int, who: int) -> tuple[int, int, int]:
    part = NUMBERS.records[number].parts[who]
    return part.view, part.block if part.stage else -1, part.holds


@cache
def _decided_for(books: Books, place: int, number: int, who: int) -> list[int]:
    """What a node becomes that is decided on, if it is: for each block that it may be given."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    if part.stage != NONE or part.view not in {BARE, FORMER}:
        return []
    return [NUMBERS.of(_with_part(node, who, stage=DECIDED, block=block)) for block in _decided(books, place)]


@cache
def _revived_for(books: Books, place: int, number: int, who: int) -> list[int]:
    """What a node becomes that would wait, if what is held for it can be given to it: it counts as sent."""
    node = NUMBERS.records[number]
    part = node.parts[who]
    if part.stage != NONE or part.view not in {BARE, FORMER}:
        return []
    return [
        NUMBERS.of(_with_part(node, who, stage=SENT, block=block, holds=part.holds & ~(1 << block)))
        for block in _revived(books, place)
    ]


# What the controller decides


def _intent(place: int, block: int) -> Intent:
    return Intent(f"uid of n{place}", POOL.name, (Prefix.parse(BLOCKS[block]),))


def _node(place: int, has: int) -> Node:
    return Node(f"n{place}", uid=f"uid of n{place}", pod_cidrs=(BLOCKS[has],) if has >= 0 else (), pool=POOL.name)


def _cluster(books: Books) -> Cluster:
    cluster = Cluster()
    cluster.add_pool(POOL)
    for place, (_, block, _) in enumerate(books):
        if block >= 0:
            intent = _intent(place, block)
            assert cluster.adopt(_node(place, BARE), intent.pool, intent.blocks)
    for place, (view, _, holds) in enumerate(books):
        for held in _bits(holds):
            intent = _intent(place, held)
            cluster.hold(_node(place, BARE), intent.pool, intent.blocks)
        cluster.observe(_node(place, view))
    return cluster


@cache
def _decided(books: Books, place: int) -> tuple[int, ...]:
    """The blocks that the books may give to a node: where the cursor of the pool stands is left open."""
    found: set[int] = set()
    for moved in (False, True):
        cluster = _cluster(books)
        if moved and cluster.decide(Node("other")).blocks:
            cluster.forget("other")
        found.update(BLOCKS.index(str(block)) for block in cluster.decide(_node(place, BARE)).blocks)
    return tuple(sorted(found))


@cache
def _revived(books: Books, place: int) -> tuple[int, ...]:
    """The block that is held for a node which is given nothing else, and can be given."""
    cluster = _cluster(books)
    if cluster.decide(_node(place, BARE)).blocks:
        return ()
    intents = Intents(cluster, None)
    if not intents.revive(_node(place, BARE)):
        return ()
    intent = intents.get(f"n{place}")
    assert intent is not None
    return tuple(BLOCKS.index(str(block)) for block in intent.blocks)


@cache
def _taken_over(
    seen: tuple[int, ...], own: tuple[tuple[int, int], ...], inherited: tuple[int, ...], gives: bool
) -> tuple[tuple[int, int], ...]:
    """What is reserved for each node (or -1), and what is held for it."""
    cluster = _cluster(tuple((has, *kept) for has, kept in zip(seen, own, strict=True)))
    cluster.change_pool(replace(POOL, terminating=not gives))
    nodes = {f"n{place}": _node(place, has) for place, has in enumerate(seen) if has != GONE}
    remembered = {f"n{place}": _intent(place, block) for place, (block, _) in enumerate(own) if block >= 0}
    note = encode(_intent(place, block) for place, mask in enumerate(inherited) for block in _bits(mask))
    to_send = take_over(cluster, nodes, remembered, decode(note), adopts=True)
    holds = [0] * len(seen)
    for uid, _, blocks in cluster.holds_kept():
        holds[int(uid[-1])] |= 1 << BLOCKS.index(str(blocks[0]))
    reserved = [to_send.get(f"n{place}") for place in range(len(seen))]
    return tuple(
        (BLOCKS.index(str(intent.blocks[0])) if intent else -1, held)
        for intent, held in zip(reserved, holds, strict=True)
    )


# Making states


def _bits(mask: int) -> list[int]:
    return [block for block in range(2) if mask >> block & 1]


def _with_node(state: State, place: int, number: int) -> State:
    holder, one, two, *nodes = state
    nodes[place] = number
    return holder, one, two, nodes[0], nodes[1], nodes[2]


def _with(state: State, who: int, mode: int, nodes: list[int], holder: int | None = None) -> State:
    one, two = (mode, state[2]) if who == 0 else (state[1], mode)
    return state[0] if holder is None else holder, one, two, nodes[0], nodes[1], nodes[2]


def _replaced(node: Record, who: int, part: Part) -> Record:
    return node._replace(parts=(part, node.parts[1]) if who == 0 else (node.parts[0], part))


def _with_part(node: Record, who: int, **changes: int) -> Record:
    return _replaced(node, who, node.parts[who]._replace(**changes))


def _canonical(state: State) -> State:
    """The one that stands for all that are the same but for names."""
    holder, one, two, *nodes = state
    other = holder if holder == NOBODY else 1 - holder
    found: list[State] = []
    for blocks in (False, True):
        first, second, third = sorted([_renamed(number, False, blocks) for number in nodes])
        found.append((holder, one, two, first, second, third))
        first, second, third = sorted([_renamed(number, True, blocks) for number in nodes])
        found.append((other, two, one, first, second, third))
    return min(found)


@cache
def _renamed(number: int, replicas: bool, blocks: bool) -> int:
    """The same node where replicas, or blocks, have changed their names."""
    has, note, wire, parts = NUMBERS.records[number]
    if blocks:
        has, note = (1 - has if has >= 0 else has), _turned(note)
        wire = _turned(wire)
        parts = (_turned_part(parts[0]), _turned_part(parts[1]))
    if replicas:
        parts = (parts[1], parts[0])
    return NUMBERS.of(Record(has, note, wire, parts))


def _turned_part(part: Part) -> Part:
    return Part(
        1 - part.view if part.view >= 0 else part.view,
        part.stage,
        1 - part.block if part.stage else 0,
        _turned(part.holds),
        _turned(part.inherited),
    )


def _turned(mask: int) -> int:
    return mask >> 1 | (mask & 1) << 1
