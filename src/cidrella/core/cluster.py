"""The books of one cluster: its pools, its service ranges, and what every node holds.

Rules:

- Facts come from outside (`observe`, `forget`, `add_pool`, …), decisions from here (`decide_many`). Nothing here
  guesses what the API did: a reservation is held until somebody says that it happened (`observe`), that it did not
  (`cancel`), or that the node is gone (`forget`) (N9).
- What others decided and may have sent is taken in as if it had been decided here (`adopt`), or, where it could not be
  given any more, kept from everybody else as long as it may land (`hold`).
- What a node holds is what its podCIDRs say (N2). Labels play no part in it, and neither do pools: blocks found on a
  node are held whether or not a pool contains them, and stay held when a pool goes.
- Which pool a block counts towards is a function of the facts alone (P3), and is worked out anew when pools come or go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from cidrella.core.atlas import Atlas
from cidrella.core.decision import Decision, Finding, Outcome, Reason, ServiceRange
from cidrella.core.index import PoolIndex
from cidrella.core.planner import Planner
from cidrella.core.pool import Pool
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.core.space import AddressSpace, NotHeldError
from cidrella.core.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence

    from cidrella.core.decision import Node
    from cidrella.core.pool import PoolSpec
    from cidrella.core.space import Holding

_NOTHING_FOUND = Finding(Reason.NONE, "")

_NAMED = 5
"""Others that a message names; that there are more is said, not how many: there may be thousands."""


@dataclass(slots=True)
class _Account:
    """What the books say of a node that holds something."""

    uid: str
    annotation: str
    blocks: tuple[Prefix, ...]
    unreadable: tuple[str, ...] = ()
    givers: tuple[Pool | None, ...] = ()
    """Of a reservation, decided here and not yet seen on the node: for each block, the pool that gave it."""
    pools: tuple[Pool | None, ...] = ()
    """For each block, the pool that it counts towards."""


class Hold(str):
    """The holder of blocks that a write may yet give to a node, beside what the node holds: for people to read.

    It has an account like a node, and no name that a node can have.
    """

    __slots__ = ()


class Cluster:
    """Pools, service ranges and nodes over one address space per family (A1).

    >>> from cidrella.core.decision import Node
    >>> from cidrella.core.pool import PoolRange, PoolSpec
    >>> cluster = Cluster()
    >>> _ = cluster.add_pool(PoolSpec("all", (PoolRange(Prefix.parse("10.0.0.0/16"), 24),)))
    >>> first, second = cluster.decide_many([Node("a", pod_cidrs=("10.0.0.0/24",)), Node("b")])
    >>> first.outcome.value, second.outcome.value, str(second.blocks[0])
    ('Kept', 'Assigned', '10.0.1.0/24')
    """

    def __init__(self) -> None:
        self.spaces = {family: AddressSpace(family) for family in Family}
        self._pools: dict[str, Pool] = {}
        self._usage: dict[str, Usage] = {}
        self._index = PoolIndex()
        self._atlas = Atlas()
        self._planner = Planner(self._index, tuple(self.spaces.values()))
        self._accounts: dict[str, _Account] = {}
        self._holds: dict[str, list[Hold]] = {}
        """What may yet land on nodes, by the node's name; all of one uid."""
        self._changes = 0
        """Of the pools that give: those after which a node that waits may be served."""

    @property
    def openings(self) -> int:
        """Grows whenever a node that no pool could serve may be served now (N4).

        A full range got room, a pool came or selects other nodes (K2), or one went that kept a node from being given
        what else there is (K3).
        """
        return self._changes + sum(space.reopened for space in self.spaces.values())

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The pools by name, terminating and invalid ones included."""
        return self._pools

    def usage(self, pool: Pool) -> Usage:
        """Who uses a pool."""
        return self._usage[pool.name]

    def add_pool(self, spec: PoolSpec) -> Pool:
        """Take a pool in; it knows at once what is held in its ranges (A7, N2, P6).

        O(log of the pools); O(held) if something in its ranges is held, or its block size is a new one.
        """
        assert spec.name not in self._pools, f"there is a pool {spec.name} already"
        pool = Pool(spec, tuple(self.spaces[each.cidr.family].view(each.cidr, each.length) for each in spec.ranges))
        self._pools[spec.name] = pool
        self._usage[spec.name] = Usage({each.cidr.family: each.length for each in spec.ranges})
        self._offer(pool)
        if not spec.problem:
            self._atlas.add(pool)
            held = [view.block_range for view in pool.views if view.free < view.capacity]
            self._recount(each.holder for cidr in held for each in self.spaces[cidr.family].holdings(cidr))
        return pool

    def change_pool(self, spec: PoolSpec) -> None:
        """Take in what became of a pool. What nodes hold of it they keep.

        O(requirements + log of the pools) where it only came to give, gives no more (P1, S6), or selects other nodes
        (K2). Anything else that changed counts as if it had been removed and added again.
        """
        pool = self._pools[spec.name]
        if replace(pool.spec, terminating=spec.terminating, guarded=spec.guarded, selector=spec.selector) != spec:
            self.remove_pool(spec.name)
            self.add_pool(spec)
            return
        self._withdraw(pool)
        pool.rewrite(spec)
        self._offer(pool)

    def remove_pool(self, name: str) -> None:
        """Let a pool go. Its nodes keep and occupy their blocks (P7). O(nodes that use it)."""
        pool = self._pools.pop(name)
        self._withdraw(pool)
        if not pool.spec.problem:
            self._atlas.remove(pool)
        self._recount(list(self._usage[name].nodes))
        del self._usage[name]
        for view in pool.views:
            view.close()

    def _offer(self, pool: Pool) -> None:
        """Let a pool give, if it does."""
        if pool.spec.gives:
            self._index.add(pool)
            self._changes += 1

    def _withdraw(self, pool: Pool) -> None:
        """Undo `_offer`."""
        if pool.spec.gives:
            self._index.remove(pool)
            # Nodes may have been waiting for its family alone, and get what they can get without it (K3).
            self._changes += pool.spec.composed

    def add_service_range(self, cidr: Prefix, name: str) -> list[Holding]:
        """Hand a range out no more. What nodes hold of it comes back, and is revoked from nobody (A7)."""
        space = self.spaces[cidr.family]
        space.occupy(cidr, ServiceRange(name))
        return [each for each in space.holdings(cidr) if not isinstance(each.holder, ServiceRange)]

    def remove_service_range(self, cidr: Prefix, name: str) -> None:
        """Undo `add_service_range`."""
        self.spaces[cidr.family].release(cidr, ServiceRange(name))

    def observe(self, node: Node) -> None:
        """Take in what a node has. One that shows nothing keeps what is reserved for it (N9).

        Another uid under the same name is another node (N8). Other podCIDRs than were reserved replace the
        reservation (N3).
        """
        self._take_in(node, *_read(node.pod_cidrs))

    def observe_many(self, nodes: Iterable[Node]) -> list[str]:
        """`observe` for many, in whatever order is fastest. Returns those that show other blocks than were reserved.

        Only of these there may be `findings`: what was reserved overlapped nothing, and whatever came since was looked
        at when it did.
        """
        read = [(node, *_read(node.pod_cidrs)) for node in nodes if not self._confirm(node)]
        # From the largest block to the smallest: to find what is around a block is cheap, what is inside it is not.
        read.sort(key=lambda each: min((block.length for block in each[1]), default=0))
        for each in read:
            self._take_in(*each)
        return [node.name for node, _, _ in read if node.pod_cidrs]

    def _confirm(self, node: Node) -> bool:
        """Whether a node shows exactly what was reserved for it, which becomes what it holds. O(blocks)."""
        account = self._accounts.get(node.name)
        if account is None or not account.givers or account.uid != node.uid or account.annotation != node.pool:
            return False
        if node.pod_cidrs != tuple(map(str, account.blocks)):
            return False
        account.givers = ()
        self._drop_holds(node.name)
        return True

    def _take_in(self, node: Node, blocks: tuple[Prefix, ...], unreadable: tuple[str, ...]) -> None:
        if self._known_uid(node.name) not in {None, node.uid}:
            self.forget(node.name)
        account = self._accounts.get(node.name)
        if node.pod_cidrs:
            for block in blocks:
                self.spaces[block.family].occupy(block, node.name)
            if account is not None:
                self._uncount(node.name, account)
                for block in set(account.blocks).difference(blocks):
                    self.spaces[block.family].release(block, node.name)
            account = self._accounts[node.name] = _Account(node.uid, node.pool, blocks, unreadable)
            self._count(node.name, account)
            self._drop_holds(node.name)

    def _known_uid(self, name: str) -> str | None:
        """Which node of a name the books are about; None where they have nothing of any."""
        account = self._accounts.get(name)
        if account is None and name in self._holds:
            account = self._accounts[self._holds[name][0]]
        return None if account is None else account.uid

    def _drop_holds(self, name: str) -> None:
        """Nothing can land on a node any more: it has podCIDRs, which nobody can change, or is gone."""
        for hold in self._holds.pop(name, ()):
            self.forget(hold)

    def forget(self, name: str) -> None:
        """A node is gone from the API: its blocks are free (N8). No error for one that holds nothing."""
        self._drop_holds(name)
        account = self._accounts.pop(name, None)
        if account is not None:
            self._uncount(name, account)
            for block in set(account.blocks):
                self.spaces[block.family].release(block, name)

    def cancel(self, name: str) -> None:
        """A reservation was refused for good: its blocks are free (N9), and count as never given (A5).

        Raises `NotHeldError` for a node that has none.
        """
        account = self._accounts.get(name)
        if account is None or not account.givers:
            raise NotHeldError(f"nothing is reserved for {name}")
        del self._accounts[name]
        self._uncount(name, account)
        for block, giver in zip(account.blocks, account.givers, strict=True):
            assert giver is not None
            giver.view(block.family).take_back(block, name)

    def adopt(self, node: Node, pool_name: str, blocks: Sequence[Prefix]) -> bool:
        """Reserve for a node without podCIDRs what somebody else decided to give it, as `pool_name` and blocks say.

        Only if it could be given now: nobody holds it, and the pools that are named give, and would give just that.
        That it is held for this node is no obstacle. False where it could not be given, or where the node has
        something: then it is for `hold`.
        """
        pools = [self._pools.get(name) for name in pool_name.split(",")]
        giving = {view.family: pool for pool in pools if pool is not None and pool.spec.gives for view in pool.views}
        givers = tuple(giving.get(block.family) for block in blocks)
        fits = len(giving) == len(blocks) == len({block.family for block in blocks}) and all(
            pool is not None and _would_give(pool, block) for pool, block in zip(givers, blocks, strict=True)
        )
        if not fits or None in pools or node.name in self._accounts:
            return False
        hold = _hold(node, blocks)
        if any(each.holder != hold for block in blocks for each in self.spaces[block.family].holdings(block)):
            return False
        for block in blocks:
            self.spaces[block.family].occupy(block, node.name)
        account = self._accounts[node.name] = _Account(node.uid, pool_name, tuple(blocks), givers=givers)
        self._count(node.name, account)
        self._end_hold(node.name, hold)
        return True

    def _end_hold(self, name: str, hold: Hold) -> None:
        """Hold something no more, if it was."""
        if hold in self._accounts:
            self.forget(hold)
            self._holds[name].remove(hold)
            if not self._holds[name]:
                del self._holds[name]

    def hold(self, node: Node, pool_name: str, blocks: Sequence[Prefix]) -> None:
        """Give nobody else what may yet land on a node without podCIDRs, until it has some or is gone.

        That is kept beside whatever else the node holds or others hold, and counts as use of its pool: whichever lands
        first, no other can.
        """
        distinct = tuple(dict.fromkeys(blocks))
        hold = _hold(node, distinct)
        if hold in self._accounts:
            return
        for block in distinct:
            self.spaces[block.family].occupy(block, hold)
        account = self._accounts[hold] = _Account(node.uid, pool_name, distinct)
        self._count(hold, account)
        self._holds.setdefault(node.name, []).append(hold)

    def end_holds(self) -> None:
        """Undo every `hold` that is not over."""
        for name in list(self._holds):
            self._drop_holds(name)

    @property
    def holds_count(self) -> int:
        """How many of them there are. O(nodes that something is held for)."""
        return sum(map(len, self._holds.values()))

    def holds_kept(self, name: str = "") -> list[tuple[str, str, tuple[Prefix, ...]]]:
        """What `hold` was told and is not over, of all nodes or of one: the uid, the pools' names and the blocks."""
        kept = chain.from_iterable(self._holds.values()) if not name else self._holds.get(name, ())
        accounts = [self._accounts[hold] for hold in kept]
        return [(account.uid, account.annotation, account.blocks) for account in accounts]

    def held_for(self) -> set[str]:
        """The nodes that something is held for."""
        return set(self._holds)

    def decide(self, node: Node, *, wait_for_labels: bool = True) -> Decision:
        """`decide_many` for one node."""
        self.observe(node)
        return self._decide(node, wait_for_labels)

    def _decide(self, node: Node, wait_for_labels: bool) -> Decision:
        return self._unserved(node, wait_for_labels) or self._reserve(node, self._planner.decide(node))

    def decide_many(
        self, nodes: Sequence[Node], *, wait_for_labels: bool = True, wait_over: Container[str] = ()
    ) -> list[Decision]:
        """How each node stands, in order; those without a block are given one, reserved for them from now on.

        What they hold is taken in before anything is given (F3). A reservation asked for again is the same one (N9).
        `wait_for_labels` keeps nodes waiting that their cloud provider has not initialised, where labels could change
        which pool serves them (N10); not those named in `wait_over`. Raises `ValueError` where two have the same name.
        """
        if len({node.name for node in nodes}) < len(nodes):
            raise ValueError("two nodes have the same name")
        self.observe_many(nodes)
        takers = [each for each in nodes if each.name not in self._accounts and not each.terminating]
        fresh: dict[str, Decision] = {}
        # Whether a node waits depends on the room that those before it leave. Others are served together.
        for may_wait, run in groupby(
            takers, key=lambda each: wait_for_labels and each.uninitialized and each.name not in wait_over
        ):
            if may_wait:
                fresh.update((node.name, self._decide(node, wait_for_labels)) for node in run)
            else:
                alike = list(run)
                given = self._planner.decide_many(alike)
                fresh.update((node.name, self._reserve(node, each)) for node, each in zip(alike, given, strict=True))
        return [fresh.get(node.name) or self._standing(node) for node in nodes]

    def standing(self, node: Node, *, wait_for_labels: bool = True) -> Decision:
        """How a node stands by the books. Nothing is taken in of it, and nothing is given: that is for who decides.

        A node that waits although there is room for it waits without a reason. O(labels + what it shares).
        """
        return self._unserved(node, wait_for_labels) or self._planner.look(node)

    def awaited_pool(self, node: Node) -> Pool | None:
        """The pool for which a node waits: labels that its cloud provider has yet to set could make it match (N10).

        None for a node that its cloud provider has initialised, and where no such pool could give. O(labels) nearly
        always.
        """
        return self._planner.awaited_pool(node) if node.uninitialized else None

    def _unserved(self, node: Node, wait_for_labels: bool) -> Decision | None:
        """How a node stands that is given nothing now; None for one that is to be served."""
        if node.name in self._accounts or node.terminating:
            return self._standing(node)
        pool = self.awaited_pool(node) if wait_for_labels else None
        if pool is None:
            return None
        message = f"{_WAITS_FOR_LABELS}: the selector of {pool.name} may match once labels are set (N10)"
        return Decision(node.name, Outcome.WAITING, (), (), Reason.UNINITIALIZED, message)

    def _reserve(self, node: Node, decision: Decision) -> Decision:
        """Note what was decided; a node that has to wait has nothing to note."""
        if decision.blocks:
            given = decision.pools
            account = _Account(node.uid, decision.pool_name, decision.blocks, givers=given, pools=given)
            self._accounts[node.name] = account
            self._charge(node.name, account)
        return decision

    def holds(self, name: str) -> bool:
        """Whether a node holds anything, seen on it or reserved for it."""
        return name in self._accounts

    def is_reserved(self, name: str, uid: str) -> bool:
        """Whether something is reserved for a node, this very one, that was not seen on it yet."""
        account = self._accounts.get(name)
        return account is not None and account.uid == uid and bool(account.givers)

    def still_gives(self, name: str) -> bool:
        """Whether the pools that gave what is reserved for a node still give, and are the same. O(blocks)."""
        account = self._accounts.get(name)
        if account is None or not account.givers:
            return False
        return all(
            giver is not None and giver.spec.gives and self._pools.get(giver.name) is giver for giver in account.givers
        )

    def is_contested(self, name: str) -> bool:
        """Whether others hold any of what is reserved for a node, or held by it."""
        return name in self._accounts and next(self.conflicts(name), None) is not None

    def stands(self, name: str) -> bool:
        """Whether what is reserved for a node could be given now: its pools give, and nobody else has any of it."""
        return self.still_gives(name) and not self.is_contested(name)

    def reserved(self) -> list[str]:
        """The nodes for which something is reserved that was not seen on them yet. O(nodes)."""
        return [name for name, account in self._accounts.items() if account.givers]

    def uses(self, name: str) -> list[tuple[Prefix, Pool]]:
        """The blocks of a node that count towards a pool, each with that pool (P3); none where it holds nothing."""
        account = self._accounts.get(name)
        if account is None:
            return []
        return [(block, pool) for block, pool in zip(account.blocks, account.pools, strict=True) if pool is not None]

    def counts_towards(self, block: Prefix, annotation: str) -> Pool | None:
        """The pool that a block counts towards on a node whose annotation says this (P3), if it is in any."""
        return self._atlas.counts_towards(block, annotation)

    def conflicts(self, name: str) -> Iterator[Holding]:
        """What others hold of a node's addresses (N6, A7), as it is found: there may be many.

        What only may land somewhere is no conflict yet.
        """
        found: set[Holding] = set()
        for block in self._accounts[name].blocks:
            for holding in self.spaces[block.family].holdings(block):
                if holding.holder != name and holding not in found and not isinstance(holding.holder, Hold):
                    found.add(holding)
                    yield holding

    def check(self) -> None:
        """Assert every invariant; O(everything)."""
        for space in self.spaces.values():
            space.check()
        held = {(block, name) for name, account in self._accounts.items() for block in account.blocks}
        assert held == {
            each for space in self.spaces.values() for each in space if not isinstance(each.holder, ServiceRange)
        }, "the space and the books differ"
        for name, account in self._accounts.items():
            assert account.pools == self._pools_of(account), f"{name} counts towards the wrong pool"
        assert {hold for holds in self._holds.values() for hold in holds} == {
            name for name in self._accounts if isinstance(name, Hold)
        }
        for pool in self._pools.values():
            users = {name for name, account in self._accounts.items() if pool in account.pools}
            assert set(self._usage[pool.name].nodes) == users

    def _count(self, name: str, account: _Account) -> None:
        account.pools = self._pools_of(account)
        self._charge(name, account)

    def _charge(self, name: str, account: _Account) -> None:
        for block, pool in zip(account.blocks, account.pools, strict=True):
            if pool is not None:
                self._usage[pool.name].add(block, name)

    def _uncount(self, name: str, account: _Account) -> None:
        for block, pool in zip(account.blocks, account.pools, strict=True):
            if pool is not None:
                self._usage[pool.name].remove(block, name)

    def _pools_of(self, account: _Account) -> tuple[Pool | None, ...]:
        return tuple(self.counts_towards(block, account.annotation) for block in account.blocks)

    def _recount(self, holders: Iterable[Hashable]) -> None:
        for name in {holder for holder in holders if isinstance(holder, str)}:
            account = self._accounts[name]
            self._uncount(name, account)
            self._count(name, account)

    def _standing(self, node: Node) -> Decision:
        """How a node stands that is not given anything now."""
        account = self._accounts.get(node.name)
        if account is None:
            return Decision(node.name, Outcome.WAITING, (), (), Reason.TERMINATING, _BEING_DELETED)
        if account.givers:
            outcome, worst = Outcome.ASSIGNED, _NOTHING_FOUND
        else:
            worst = next(self.findings(node.name), _NOTHING_FOUND)
            outcome = _OUTCOMES[worst.reason]
        return Decision(node.name, outcome, account.blocks, account.pools, *worst)

    def findings(self, name: str) -> Iterator[Finding]:
        """What is not as it should be with what a node has, the worst first (N5, N6, N7, A7)."""
        account = self._accounts[name]
        if account.unreadable:
            yield Finding(Reason.INVALID, f"cannot be read: {', '.join(account.unreadable)}")
        conflicts = list(islice(self.conflicts(name), _NAMED + 1))
        if conflicts:
            yield Finding(Reason.CONFLICT, f"also held by {_listed(conflicts)}")
        outside = [str(block) for block, pool in zip(account.blocks, account.pools, strict=True) if pool is None]
        if outside:
            yield Finding(Reason.UNTRACKED, f"in no pool: {', '.join(outside)}")


_OUTCOMES = {
    Reason.INVALID: Outcome.INVALID,
    Reason.CONFLICT: Outcome.CONFLICT,
    Reason.UNTRACKED: Outcome.UNTRACKED,
    Reason.NONE: Outcome.KEPT,
}
"""How a node stands by the worst that is found of it."""

_BEING_DELETED = "it is being deleted and gets no Pod CIDR"
_WAITS_FOR_LABELS = "it waits for its cloud provider, for a limited time"


def _hold(node: Node, blocks: Sequence[Prefix]) -> Hold:
    """Who holds what may yet be written to a node."""
    return Hold(f"{node.name} ({', '.join(map(str, blocks))} may yet be written)")


def _would_give(pool: Pool, block: Prefix) -> bool:
    """Whether a block is one of those that a pool hands out."""
    view = pool.view(block.family)
    return view.length == block.length and view.block_range.contains(block)


def _read(pod_cidrs: tuple[str, ...]) -> tuple[tuple[Prefix, ...], tuple[str, ...]]:
    """What can be read of a node's podCIDRs, and what is wrong with the rest (N7)."""
    blocks: list[Prefix] = []
    unreadable: list[str] = []
    for text in pod_cidrs:
        try:
            blocks.append(Prefix.parse_lenient(text))
        except PrefixError as error:
            unreadable.append(f"{text!r} {error}")
    return tuple(dict.fromkeys(blocks)), tuple(unreadable)


def _listed(holdings: list[Holding]) -> str:
    named = ", ".join(f"{each.holder} ({each.prefix})" for each in holdings[:_NAMED])
    return named + (" and more" if len(holdings) > _NAMED else "")
