"""Whether what happened may happen: the invariants, each by its name, on a recorded history.

Nothing here comes from the code under test: addresses are `ipaddress`'s, and names of annotations are written out.

| invariant | holds | where |
|---|---|---|
| `overlap`, `rewritten` | A1, N1, N3 | `giving` |
| `outside`, `unguarded`, `terminating`, `half` | A2, A7, S1, S4, S6, P1, P2, K3 | `giving` |
| `unrecorded`, `twice-recorded` | pitfall 27 | `lease` |
| `rest`, `unserved`, `leak`, `intent-left`, `undeletable` | N4, A8, P2 | `at_rest` |
| `gap` | what was recorded is all that happened | `reading` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.at_rest import at_rest
from tests.chaos.broken import Broken
from tests.chaos.giving import half, overlaps, pools_rules, rewritten
from tests.chaos.lease import twice_recorded, unrecorded
from tests.chaos.past import Past
from tests.chaos.reading import replay_gaps

if TYPE_CHECKING:
    from tests.chaos.history import History

__all__ = ["Broken", "check"]


def check(history: History) -> list[Broken]:
    """Everything that is broken, by revision; what is found at the end comes last. Empty where all is well."""
    past = Past(history)
    found = [*overlaps(past), *rewritten(past), *pools_rules(past), *half(past), *at_rest(history)]
    if history.meta.intents:
        found += [*unrecorded(past), *twice_recorded(past)]
    found += [Broken("gap", None, text) for text in (*history.gaps, *replay_gaps(history.changes, history.snapshots))]
    return sorted(found, key=lambda each: (each.revision is None, each.revision or 0))
