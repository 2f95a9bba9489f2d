"""How full something is, drawn in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.app.mapping import Kind

if TYPE_CHECKING:
    from cidrella.cli.terminal import Marks

_CELLS = 10


def drawn(taken: int, capacity: int, marks: Marks) -> str:
    """A bar and a number. Rounded so that only what is full looks full, and only what is empty empty."""
    cells, percent = (_rounded(taken, capacity, parts) for parts in (_CELLS, 100))
    return f"{marks.kinds[Kind.NODE] * cells}{marks.kinds[Kind.FREE] * (_CELLS - cells)} {percent:3} %"


def _rounded(taken: int, capacity: int, parts: int) -> int:
    share = (2 * taken * parts + capacity) // (2 * capacity)
    return share if taken in (0, capacity) else min(parts - 1, max(1, share))
