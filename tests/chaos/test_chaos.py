"""A minute of chaos on a real cluster; `make chaos` does more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.__main__ import KEPT
from tests.chaos.running import run

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 2026
SECONDS = 60.0


def test_a_minute_of_chaos(record_property: Callable[[str, object], None]) -> None:
    """Pitfall 27, A1, N1, S6, P2, F5: whatever fails, no block is given to two nodes, and at rest all is as it should.

    Leaders are paused with writes on the wire; the API server's whole history is checked, at every moment of it.
    """
    outcome = run(SEED, SECONDS, KEPT / f"seed-{SEED}")
    for name in ("allocations", "pauses", "held_writes", "takeovers"):
        record_property(name, getattr(outcome, name))
    for kind, count in outcome.faults.items():
        record_property(str(kind), count)
    assert not outcome.broken, f"seed {SEED}, kept in {outcome.kept}:\n" + "\n".join(map(str, outcome.broken))
    assert outcome.allocations > 0
    assert outcome.pauses >= 2
