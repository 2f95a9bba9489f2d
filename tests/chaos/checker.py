"""Whether what happened may happen: the invariants, each by its name, on a recorded history.

Nothing here comes from the code under test. Addresses are `ipaddress`'s, names of annotations are written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.chaos.history import History


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that did not hold: where in the history, and what was found."""

    invariant: str
    revision: int | None
    text: str

    def __str__(self) -> str:
        where = "at rest" if self.revision is None else f"at revision {self.revision}"
        return f"{self.invariant} {where}: {self.text}"


def check(history: History) -> list[Broken]:
    """Everything that is broken, in no particular order; empty where all is well."""
    return [Broken("gap", None, text) for text in history.gaps]
