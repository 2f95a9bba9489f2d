"""Drawing a free offset of a band (B3).

At random, so that an address which was just released is not the next one given, while somewhere a connection to its
last holder still stands. From the random start the search goes forward and wraps inside the band: every free offset is
found, and only a band without any says none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from cidrella.core.bitmap import Bitmap


def draw(
    bitmap: Bitmap, bounds: tuple[int, int], below: Callable[[int], int], taken: Container[int] = frozenset()
) -> int | None:
    """A free offset within the bounds (first, end) that is not `taken` either; None if there is none.

    `below(n)` is a random number from 0 to n - 1. What is `taken` has no bit, but is not to be given: it costs a step
    for each that is met. Nothing is put into the bitmap.
    """
    first, end = bounds
    if first == end:
        return None
    start = first + below(end - first)
    for low, high in ((start, end), (first, start)):
        offset = bitmap.next_free(low, high)
        while offset is not None:
            if offset not in taken:
                return offset
            offset = bitmap.next_free(offset + 1, high)
    return None
