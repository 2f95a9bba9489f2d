"""What must hold of the Lease, where what is to be sent is recorded: `unrecorded`, `twice-recorded` (pitfall 27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.blocks import meet
from tests.chaos.broken import Broken
from tests.chaos.past import Intent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.past import Past


def unrecorded(past: Past) -> Iterator[Broken]:
    """Whatever a controller gives a node stood in the Lease before, and still does when it arrives."""
    for life in past.nodes.values():
        grant = life.grant
        if grant is None or not grant.ours:
            continue
        records = past.records.get(Intent(life.uid, grant.pools, grant.blocks), [])
        if not any(each.begin < grant.revision and (each.end is None or grant.revision < each.end) for each in records):
            stood = ", ".join(f"from {each.begin} to {each.end}" for each in records) or "never"
            text = f"{life.name} got {' and '.join(map(str, grant.blocks))}, which stood in the Lease {stood}"
            yield Broken("unrecorded", grant.revision, text)


def twice_recorded(past: Past) -> Iterator[Broken]:
    """What may yet be written to one node may not be written to another.

    Of a node that is gone, or that has other blocks by now, nothing can be written any more.
    """
    before: set[Intent] = set()
    for revision, entries in past.leases:
        may_land = [each for each in entries if _may_land(past, revision, each)]
        for at, one in enumerate(may_land):
            if one in before:
                continue
            for other in may_land[:at] + [each for each in may_land[at:] if each in before]:
                if other.uid != one.uid and meet(one.blocks, other.blocks):
                    names = f"{past.nodes[one.uid].name} and {past.nodes[other.uid].name}"
                    yield Broken("twice-recorded", revision, f"{' and '.join(map(str, one.blocks))} may go to {names}")
        before = set(entries)


def _may_land(past: Past, revision: int, intent: Intent) -> bool:
    life = past.nodes.get(intent.uid)
    if life is None or not life.lives_at(revision):
        return False
    return life.grant is None or life.grant.revision > revision or life.grant.blocks == intent.blocks
