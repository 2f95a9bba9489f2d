"""A cluster on a random walk, beside plain books that are added up anew for every question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cidrella.core.cluster import Cluster
from cidrella.core.decision import Node, Outcome, Reason
from cidrella.core.prefix import Family, Prefix
from tests.core.build import prefix, selector, spec, texts
from tests.core.oracle_order import awaited, choice

if TYPE_CHECKING:
    from cidrella.core.decision import Decision
    from cidrella.core.pool import PoolSpec

RANGES = [
    ("10.0.0.0/27 /29",),
    ("10.0.0.0/28 /30",),
    ("10.0.0.0/26 /28",),
    ("10.0.0.32/28 /29",),
    ("fd00::/124 /126",),
    ("10.0.0.0/28 /29", "fd00::/124 /127"),
    ("fd00::/125 /128", "10.0.0.16/28 /30"),
]
SINGLE = [ranges for ranges in RANGES if len(ranges) == 1] + [("fd00::/126 /127",), ("10.0.0.0/27 /30",)]
"""What pools may have that give one family."""
SELECTORS = [None, None, "a", "a=1", "b and a=1", "!a", "@metadata.name=n3"]
LABELS = [{}, {"a": "1"}, {"a": "2"}, {"a": "1", "b": "1"}]
FOUND = ["10.0.0.0/30", "10.0.0.8/29", "10.0.0.0/28", "10.0.0.37/32", "10.0.0.0/25", "fd00::/126", "fd00::9/128", "x"]
SERVICES = ["10.0.0.8/30", "10.0.0.0/27", "10.0.0.48/28", "fd00::8/125"]

names = st.sampled_from(["n1", "n2", "n3", "n4", "n5"])
uids = st.sampled_from(["1", "1", "1", "2"])
labels = st.sampled_from(LABELS)
pool_names = st.sampled_from(["p1", "p2", "p3", "p4", "p5"])
written_pools = st.tuples(st.sampled_from(RANGES), st.just(False)) | st.tuples(st.sampled_from(SINGLE), st.just(True))
found_cidrs = st.lists(st.sampled_from(FOUND), max_size=2)


@dataclass
class Held:
    """What the plain books say of a node."""

    uid: str
    annotation: str
    blocks: list[Prefix]
    reserved: bool


def overlap(one: Prefix, two: Prefix) -> bool:
    return one.family is two.family and one.network <= two.last and two.network <= one.last


def blocks_of(cidr: Prefix, length: int) -> list[Prefix]:
    size = 1 << (cidr.family.bits - length)
    return [Prefix(cidr.family, address, length) for address in range(cidr.network, cidr.last + 1, size)]


class Books:
    """Who holds what, as a dict and a list. Every number is worked out by looking at every block and every holder."""

    def __init__(self) -> None:
        self.pools: dict[str, PoolSpec] = {}
        self.nodes: dict[str, Held] = {}
        self.services: list[tuple[Prefix, str]] = []

    def held(self) -> list[Prefix]:
        return [block for each in self.nodes.values() for block in each.blocks] + [cidr for cidr, _ in self.services]

    def free(self, cidr: Prefix, length: int) -> list[Prefix]:
        held = self.held()
        return [block for block in blocks_of(cidr, length) if not any(overlap(block, each) for each in held)]

    def counts_towards(self, block: Prefix, annotation: str) -> str | None:
        """P3 as it is written."""
        around = [
            (length != block.length, each.created, name)
            for name, each in self.pools.items()
            for cidr, length in each.ranges
            if not each.problem and overlap(cidr, block) and cidr.length <= block.length
        ]
        for named in annotation.split(","):
            if named in [name for _, _, name in around]:
                return named
        return min(around)[2] if around else None

    def users(self, pool: str) -> list[tuple[str, Prefix]]:
        return [
            (name, block)
            for name, each in self.nodes.items()
            for block in each.blocks
            if self.counts_towards(block, each.annotation) == pool
        ]

    def allocated(self, pool: str, cidr: Prefix, length: int) -> int:
        used = [block for _, block in self.users(pool)]
        return sum(any(overlap(block, each) for each in used) for block in blocks_of(cidr, length))

    def choice(self, node: Node) -> list[str] | None:
        """S3, S4, K3 and K4 as they are written, of pools that have a free block in each of their families or not."""
        return choice(self.giving(), node.name, dict(node.labels), self.has_room)

    def awaited(self, node: Node) -> set[str]:
        """The pools for which a node waits that has the taint (N10)."""
        return awaited(self.giving(), node.name, dict(node.labels), self.has_room)

    def giving(self) -> list[PoolSpec]:
        return [each for each in self.pools.values() if not each.terminating and not each.problem]

    def has_room(self, pool: PoolSpec) -> bool:
        return all(self.free(cidr, length) for cidr, length in pool.ranges)


class Walk(RuleBasedStateMachine):
    """A1, A2, A7, A8, N1, N2, N3, N4, N6, N8, N9, N10, P3, S4, S6, K2, K3, K4: at each step all is as in plain books.

    Pools that give all of a node's blocks and pools that give one family come, go and change, over ranges that overlap.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.books = Books()
        self.waiting: dict[str, tuple[Node, int]] = {}
        """Nodes that had to wait when they asked last, with the openings that there had been by then."""

    @rule(name=pool_names, pool=written_pools, where=st.sampled_from(SELECTORS), state=st.integers(0, 9))
    def add_pool(self, name: str, pool: tuple[tuple[str, ...], bool], where: str | None, state: int) -> None:
        ranges, composed = pool
        if name in self.books.pools:
            self.cluster.remove_pool(name)
        written = spec(
            name,
            *ranges,
            where=None if where is None else selector(where),
            created=str(state % 3),
            terminating=state == 8,
            problem="odd" if state == 9 else "",
            composed=composed,
        )
        self.books.pools[name] = written
        assert self.cluster.add_pool(written).spec is written

    @precondition(lambda self: self.books.pools)
    @rule(name=pool_names)
    def remove_pool(self, name: str) -> None:
        if name in self.books.pools:
            del self.books.pools[name]
            self.cluster.remove_pool(name)

    @precondition(lambda self: self.books.pools)
    @rule(name=pool_names, where=st.sampled_from(SELECTORS), state=st.integers(0, 9))
    def change_pool(self, name: str, where: str | None, state: int) -> None:
        """Another selector; at times it also is being deleted from now on, or gives nothing for the moment."""
        if name in self.books.pools:
            before = self.cluster.pools[name]
            chosen = None if where is None else selector(where)
            written = replace(self.books.pools[name], selector=chosen, terminating=state > 7)
            self.books.pools[name] = written
            self.cluster.change_pool(written)
            assert self.cluster.pools[name] is before
            assert self.cluster.pools[name].spec is written

    @rule(text=st.sampled_from(SERVICES), name=st.sampled_from(["flag", "object"]))
    def service_range(self, text: str, name: str) -> None:
        cidr = prefix(text)
        if (cidr, name) in self.books.services:
            self.books.services.remove((cidr, name))
            self.cluster.remove_service_range(cidr, name)
            return
        found = self.cluster.add_service_range(cidr, name)
        held = [(block, holder) for holder, each in self.books.nodes.items() for block in each.blocks]
        expected = {pair for pair in held if overlap(pair[0], cidr)}
        assert {(block, holder) for block, holder in found if isinstance(holder, str)} == expected
        self.books.services.append((cidr, name))

    @rule(name=names, uid=uids, has=found_cidrs, pool=st.sampled_from(["", "p1", "p2"]))
    def observe(self, name: str, uid: str, has: list[str], pool: str) -> None:
        self.cluster.observe(Node(name, {}, uid, tuple(has), pool))
        self.note(name, uid, has, pool)

    def note(self, name: str, uid: str, has: list[str], pool: str) -> None:
        """Take a node in, as N3, N8 and N9 say."""
        if name in self.books.nodes and self.books.nodes[name].uid != uid:
            del self.books.nodes[name]
        if has:
            readable = [prefix(text) for text in dict.fromkeys(has) if text != "x"]
            self.books.nodes[name] = Held(uid, pool, readable, reserved=False)

    @rule(name=names)
    def land(self, name: str) -> None:
        """A reservation is seen on its node."""
        held = self.books.nodes.get(name)
        if held is not None and held.reserved:
            has = [str(block) for block in held.blocks]
            self.cluster.observe(Node(name, {}, held.uid, tuple(has), held.annotation))
            self.note(name, held.uid, has, held.annotation)

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.cluster.forget(name)
        self.books.nodes.pop(name, None)

    @rule(name=names)
    def cancel(self, name: str) -> None:
        held = self.books.nodes.get(name)
        if held is not None and held.reserved:
            self.cluster.cancel(name)
            del self.books.nodes[name]

    @rule(name=names, uid=uids, has=labels, terminating=st.booleans(), uninitialized=st.booleans())
    def decide(self, name: str, uid: str, has: dict[str, str], terminating: bool, uninitialized: bool) -> None:
        node = Node(name, has, uid, (), "", terminating and uninitialized, uninitialized)
        self.note(name, uid, [], "")
        self.judge(node, self.cluster.decide(node))

    @rule(fleet=st.lists(st.tuples(names, labels), max_size=5, unique_by=lambda each: each[0]))
    def decide_many(self, fleet: list[tuple[str, dict[str, str]]]) -> None:
        nodes = [Node(name, has, "1") for name, has in fleet]
        for each in nodes:
            self.note(each.name, "1", [], "")
        for each, decision in zip(nodes, self.cluster.decide_many(nodes), strict=True):
            self.judge(each, decision)

    def judge(self, node: Node, decision: Decision) -> None:
        """Compare a decision with the books, and note what was given."""
        assert decision.node == node.name
        held = self.books.nodes.get(node.name)
        if held is not None:
            assert list(decision.blocks) == held.blocks
            assert (decision.outcome is Outcome.ASSIGNED) == held.reserved
        elif node.terminating:
            assert (decision.outcome, decision.blocks) == (Outcome.WAITING, ())
        elif node.uninitialized and (pools := self.books.awaited(node)):
            assert (decision.outcome, decision.blocks, decision.reason) == (
                Outcome.WAITING,
                (),
                Reason.UNINITIALIZED,
            )
            pool = self.cluster.awaited_pool(node)
            assert pool is not None
            assert pool.name in pools
        else:
            self.judge_given(node, decision)

    def judge_given(self, node: Node, decision: Decision) -> None:
        givers = self.books.choice(node)
        if givers is None:
            assert (decision.outcome, decision.blocks) == (Outcome.WAITING, ())
            self.waiting[node.name] = node, self.cluster.openings
            return
        assert (decision.outcome, list(decision.pool_names)) == (Outcome.ASSIGNED, givers)
        ranges = [(name, *each) for name in givers for each in self.books.pools[name].ranges]
        for block, giver, (name, cidr, length) in zip(decision.blocks, decision.pools, ranges, strict=True):
            assert block in self.books.free(cidr, length), f"{block} is not free"
            assert giver is self.cluster.pools[name]
        self.books.nodes[node.name] = Held(node.uid, ",".join(givers), list(decision.blocks), reserved=True)

    @invariant()
    def no_opening_is_missed(self) -> None:
        """As long as the openings stand still, who had to wait has to wait."""
        for node, openings in self.waiting.values():
            if openings == self.cluster.openings:
                assert self.books.choice(node) is None

    @invariant()
    def sound(self) -> None:
        self.cluster.check()

    @invariant()
    def same_counts(self) -> None:
        assert set(self.cluster.pools) == set(self.books.pools)
        for name, pool in self.cluster.pools.items():
            usage = self.cluster.usage(pool)
            users = self.books.users(name)
            assert set(usage.nodes) == {user for user, _ in users}
            assert sum(usage.nodes.values()) == len(users)
            for cidr, length in pool.spec.ranges:
                view = pool.view(cidr.family)
                assert view.free == len(self.books.free(cidr, length))
                assert usage.allocated(cidr.family) == self.books.allocated(name, cidr, length)

    @invariant()
    def same_conflicts(self) -> None:
        for name, held in self.books.nodes.items():
            others = [
                (block, other) for other, each in self.books.nodes.items() if other != name for block in each.blocks
            ]
            services = [(cidr, service) for cidr, service in self.books.services]
            expected = {
                (found, holder)
                for found, holder in others + services
                if any(overlap(found, block) for block in held.blocks)
            }
            found_by_cluster = self.cluster.conflicts(name)
            assert {
                (found, holder if isinstance(holder, str) else holder.name)  # type: ignore[attr-defined]
                for found, holder in found_by_cluster
            } == expected


TestWalk = Walk.TestCase


POOLS = st.lists(st.tuples(written_pools, st.sampled_from(SELECTORS)), min_size=1, max_size=6)


@given(
    POOLS,
    st.lists(st.sampled_from(FOUND[:-1]), max_size=3, unique=True),
    st.lists(st.tuples(labels, st.booleans()), max_size=24),
)
def test_deciding_on_many_is_deciding_on_each(
    pools: list[tuple[tuple[tuple[str, ...], bool], str | None]],
    found: list[str],
    fleet: list[tuple[dict[str, str], bool]],
) -> None:
    """A1, A9, N10, S4, K3: one call for all nodes and one call for each give the same blocks from the same pools."""
    together, single = Cluster(), Cluster()
    nodes = [Node(f"n{number}", has, "1", uninitialized=new) for number, (has, new) in enumerate(fleet)]
    for books in (together, single):
        for number, ((ranges, composed), where) in enumerate(pools):
            books.add_pool(spec(f"p{number}", *ranges, where=where, composed=composed))
        for number, text in enumerate(found):
            books.observe(Node(f"found{number}", {}, "1", (text,)))
    at_once = together.decide_many(nodes)
    one_by_one = [single.decide(node) for node in nodes]
    assert [(each.outcome, texts(each), each.pool_name, each.message, each.tried) for each in at_once] == [
        (each.outcome, texts(each), each.pool_name, each.message, each.tried) for each in one_by_one
    ]
    together.check()
    for family in Family:
        assert set(together.spaces[family]) == set(single.spaces[family])
