"""Drawing: at random, forward, around inside the bounds, and past what is taken elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.bitmap import Bitmap
from cidrella.core.draw import draw

if TYPE_CHECKING:
    from collections.abc import Iterable


def filled(size: int, offsets: Iterable[int]) -> Bitmap:
    """A bitmap with these offsets in."""
    bitmap = Bitmap(size)
    for offset in offsets:
        bitmap.add(offset)
    return bitmap


class Random:
    """Says what it was told to say, and notes what it was asked."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.asked: list[int] = []

    def __call__(self, below: int) -> int:
        assert 0 <= self.answer < below
        self.asked.append(below)
        return self.answer


@pytest.mark.parametrize(
    ("held", "start", "drawn"),
    [
        ([], 0, 16),
        ([], 100, 116),
        ([], 237, 253),
        ([116], 100, 117),
        ([116, 117, 118], 100, 119),
        ([*range(116, 254)], 100, 16),
        ([16, *range(116, 254)], 100, 17),
        ([*range(16, 115), *range(116, 254)], 100, 115),
        ([*range(16, 253)], 0, 253),
        ([*range(16, 254)], 100, None),
        ([*range(254)], 0, None),
    ],
)
def test_random_start_then_forward_then_around(held: list[int], start: int, drawn: int | None) -> None:
    """B3: the search begins at a random offset of the band, goes forward, wraps inside it, and may find none."""
    random = Random(start)
    assert draw(filled(254, held), (16, 254), random) == drawn
    assert random.asked == [254 - 16]


@pytest.mark.parametrize(("bounds", "drawn"), [((0, 16), 3), ((16, 32), 19), ((29, 33), 32)])
def test_never_outside_the_bounds(bounds: tuple[int, int], drawn: int) -> None:
    """B3, B11: whatever the bounds are, the lower band, the upper one or another part, what is drawn lies in them."""
    assert draw(Bitmap(254), bounds, Random(3)) == drawn
    assert draw(filled(254, range(*bounds)), bounds, Random(3)) is None


def test_nothing_to_draw_from() -> None:
    """B3: a band of no addresses has none, and is no question for the random source."""
    random = Random(0)
    assert draw(Bitmap(14), (0, 0), random) is None
    assert random.asked == []


def test_drawing_leaves_the_bitmap_alone() -> None:
    """B3, B7: what is drawn is not allocated by that; a dry run can draw as well."""
    bitmap = filled(254, [3])
    assert draw(bitmap, (0, 254), Random(3)) == 4
    assert [*bitmap] == [3]


@pytest.mark.parametrize(
    ("held", "taken", "drawn"),
    [
        ([], {20}, 21),
        ([21], {20, 22}, 23),
        ([], {20, 21, 22, 23}, 16),
        ([16], {17, 18, 20, 21, 22, 23}, 19),
        ([*range(16, 20)], {20, 21, 22, 23}, None),
        ([], {*range(16, 24)}, None),
    ],
)
def test_past_what_is_taken_elsewhere(held: list[int], taken: set[int], drawn: int | None) -> None:
    """B3: what somebody else has is not drawn, though its bit is clear."""
    assert draw(filled(254, held), (16, 24), Random(4), taken) == drawn


OFFSETS = st.integers(0, 39)


@given(st.sets(OFFSETS), st.sets(OFFSETS), OFFSETS, st.integers(1, 40), st.data())
def test_as_if_tried_one_by_one(held: set[int], taken: set[int], first: int, width: int, data: st.DataObject) -> None:
    """B3: what is drawn is the first free offset when each is tried in turn, from the start around to it again."""
    width = min(width, 40 - first)
    start = data.draw(st.integers(0, width - 1))
    in_turn = [first + (start + step) % width for step in range(width)]
    expected = next((offset for offset in in_turn if offset not in held | taken), None)
    assert draw(filled(40, held), (first, first + width), Random(start), taken) == expected
