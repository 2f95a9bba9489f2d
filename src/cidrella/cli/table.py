"""Columns as kubectl writes them: plain text, as wide as what is in them, fast for a hundred thousand rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "   "


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under their header, one line each, the last column left ragged.

    >>> print(table(("NAME", "BLOCK"), [("a", "10.0.0.0/24"), ("bcdefg", "")]), end="")
    NAME     BLOCK
    a        10.0.0.0/24
    bcdefg
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    line = _GAP.join(f"{{:<{width}}}" for width in widths)
    return "".join(line.format(*row).rstrip() + "\n" for row in (header, *rows))
