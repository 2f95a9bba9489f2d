"""What must hold of all that is given: `overlap`, `rewritten`, `outside`, `unguarded`, `terminating`, `half`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.blocks import block, meet
from tests.chaos.broken import Broken
from tests.chaos.history import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.blocks import Block
    from tests.chaos.history import Write
    from tests.chaos.past import Grant, NodeLife, Past, PoolLife


def overlaps(past: Past) -> Iterator[Broken]:
    """A1: no two nodes overlap, unless somebody else than the controllers gave one of them its blocks.

    What a controller gives on top of somebody else's is broken, too, if it had the time to learn of it.
    """
    granted = sorted(
        ((life.grant.revision, life, life.grant) for life in past.nodes.values() if life.grant is not None),
        key=lambda each: each[0],
    )
    living: list[tuple[NodeLife, Grant]] = []
    for revision, life, grant in granted:
        living = [each for each in living if each[0].lives_at(revision)]
        for other, earlier in living:
            if meet(grant.blocks, earlier.blocks) and not _may_overlap(past, life, earlier):
                whose = "our own" if earlier.ours else "somebody else's"
                text = f"{life.name} got {_texts(grant.blocks)}, on top of {whose} {_texts(earlier.blocks)}"
                yield Broken("overlap", revision, f"{text}, that {other.name} has since {earlier.revision}")
        living.append((life, grant))


def _may_overlap(past: Past, life: NodeLife, earlier: Grant) -> bool:
    assert life.grant is not None
    if not life.grant.ours:
        return True
    if earlier.ours:
        return False
    _, at, replica = past.decided(life, life.grant)
    return past.clock.excuses(replica, past.clock.latest(earlier.revision), at)


def rewritten(past: Past) -> Iterator[Broken]:
    """N1, N3: podCIDRs that are set stay, and no controller asks for others if it had the time to learn of them."""
    for each in past.rewrites:
        text = f"{each.name} had {_texts(each.before)}, and then {_texts(each.after) or 'none'}"
        yield Broken("rewritten", each.revision, text)
    replicas = {user: replica for replica, user in past.history.meta.controllers.items()}
    for write in past.history.writes:
        spec = write.body.get("spec") if isinstance(write.body, dict) else None
        if write.user in replicas and write.resource == NODES and spec and "podCIDRs" in spec:
            yield from _asked(past, write, replicas[write.user])


def _asked(past: Past, write: Write, replica: str) -> Iterator[Broken]:
    asked = tuple(block(text) for text in write.body["spec"]["podCIDRs"])
    life = past.nodes.get(write.body.get("metadata", {}).get("uid", ""))
    if life is None:
        yield Broken(
            "rewritten", write.revision, f"{replica} asked for {_texts(asked)} for {write.name}, naming no uid"
        )
    elif life.grant is not None and life.grant.blocks != asked:
        known = past.clock.latest(life.grant.revision)
        if not past.clock.excuses(replica, known, write.received):
            text = f"{replica} asked for {_texts(asked)} for {life.name}, which has {_texts(life.grant.blocks)} since"
            late = write.received - known
            yield Broken("rewritten", life.grant.revision, f"{text} {life.grant.revision}, {late:.1f} s before")


def pools_rules(past: Past) -> Iterator[Broken]:
    """A2, A7, S1, S4, S6, P1: what a controller gives is its pools' to give, and to this node.

    - `outside`: the annotation names pools of which each family gives one block, of its own and of its size, that is
      in no service range. Each was for the node as that was at some time. Each is there: one that was deleted stays
      until what was given in time has arrived (P2, P3).
    - `unguarded`: its finalizer was stored before.
    - `terminating`: it was not deleted, unless no replica could know.
    """
    reserved = [block(text) for text in past.history.meta.service_ranges]
    for life in past.nodes.values():
        if life.grant is None or not life.grant.ours:
            continue
        if meet(life.grant.blocks, reserved):
            text = f"{life.name} got {_texts(life.grant.blocks)}, of a service range"
            yield Broken("outside", life.grant.revision, text)
        yield from _pools_of(past, life, life.grant)


def _pools_of(past: Past, life: NodeLife, grant: Grant) -> Iterator[Broken]:
    got = f"{life.name} got {_texts(grant.blocks)} of {' and '.join(grant.pools) or 'no pool'}"
    left = list(grant.blocks)
    for name in grant.pools:
        fitting = [each for each in past.pools.get(name, []) if _fits(each, life, grant)]
        if not fitting:
            yield Broken("outside", grant.revision, f"{got}: {name} never had that to give to it")
            return
        pool = next((each for each in fitting if each.lives_at(grant.revision)), fitting[-1])
        left = [each for each in left if not any(given.gives(each) for given in pool.ranges)]
        yield from _in_time(past, life, grant, pool, got)
    if left:
        yield Broken("outside", grant.revision, f"{got}: {_texts(tuple(left))} is of none of them")


def _fits(pool: PoolLife, life: NodeLife, grant: Grant) -> bool:
    """Whether a pool gives one block of each of its families, and at some time gave to such a node."""
    whole = all(sum(each.gives(given) for given in grant.blocks) == 1 for each in pool.ranges)
    so_far = [each for revision, each in pool.versions if revision < grant.revision]
    return whole and any(each.selects(life.name, labels) for each in so_far for _, labels in life.labels)


def half(past: Past) -> Iterator[Broken]:
    """K3: from configs a node gets one block of each family for which one applies, if that was known at the time."""
    configs = [each for lives in past.pools.values() for each in lives if each.versions[0][1].one_family]
    for life in past.nodes.values():
        if life.grant is None or not life.grant.ours or not all(name.startswith("ccc/") for name in life.grant.pools):
            continue
        revision, at, replica = past.decided(life, life.grant)
        families = {each.version for each in life.grant.blocks}
        for config in configs:
            since = _applied_since(config, life, revision)
            missing = config.ranges[0].around.version not in families
            if missing and since is not None and not past.clock.excuses(replica, past.clock.latest(since), at):
                text = f"{life.name} got {_texts(life.grant.blocks)} alone, though {config.versions[0][1].name} applied"
                yield Broken("half", life.grant.revision, f"{text} since {since}")


def _applied_since(pool: PoolLife, life: NodeLife, revision: int) -> int | None:
    """Since when a pool had been for a node, and gave, at a revision; None if that was not so."""
    if pool.guarded is None or pool.guarded >= revision or (pool.terminating or revision) < revision:
        return None
    changed, version = [each for each in pool.versions if each[0] < revision][-1]
    labelled, labels = [each for each in life.labels if each[0] < revision][-1]
    return max(pool.guarded, changed, labelled) if version.selects(life.name, labels) else None


def _in_time(past: Past, life: NodeLife, grant: Grant, pool: PoolLife, got: str) -> Iterator[Broken]:
    revision, at, replica = past.decided(life, grant)
    if pool.guarded is None or pool.guarded >= revision:
        yield Broken("unguarded", grant.revision, f"{got}: decided at {revision}, without a finalizer")
    if pool.terminating is not None and pool.terminating < revision:
        known = past.clock.latest(pool.terminating)
        if not past.clock.excuses(replica, known, at):
            text = f"{got}: decided at {revision}, deleted at {pool.terminating}, {at - known:.1f} s before"
            yield Broken("terminating", grant.revision, text)
    elif not pool.lives_at(grant.revision):
        yield Broken("outside", grant.revision, f"{got}: decided at {revision}, in time, but it is gone")


def _texts(blocks: tuple[Block, ...]) -> str:
    return " and ".join(map(str, blocks))
