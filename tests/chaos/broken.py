"""What the checker has to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that did not hold: where in the history, None for its end, and what was found."""

    invariant: str
    revision: int | None
    text: str

    def __str__(self) -> str:
        where = "at the end" if self.revision is None else f"at revision {self.revision}"
        return f"{self.invariant} {where}: {self.text}"
