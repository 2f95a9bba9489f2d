"""The map in a terminal: a bar for each range, and under it what the bar is made of."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from cidrella.app.mapping import Kind
from cidrella.core.prefix import format_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from cidrella.app.mapping import Area, Map, RangeMap


class Marks(NamedTuple):
    """What the bar is drawn with."""

    kinds: Mapping[Kind, str]
    some_nodes: str
    """For a cell of which nodes hold less than half."""
    more: str


BLOCKS = Marks({Kind.FREE: "·", Kind.NODE: "█", Kind.SERVICE: "▒", Kind.CONFLICT: "!"}, "▄", "…")
ASCII = Marks({Kind.FREE: ".", Kind.NODE: "#", Kind.SERVICE: "~", Kind.CONFLICT: "!"}, "+", "...")
"""For terminals that can show no more."""

_STYLES = {Kind.FREE: "dim", Kind.NODE: "", Kind.SERVICE: "magenta", Kind.CONFLICT: "bold red"}
_POOL_STYLES = ("green", "cyan", "yellow", "blue", "bright_green", "bright_cyan")
_LINES = 40
"""Lines under a range; what is beyond is counted."""
_NAMES = 4
"""Nodes named on a line; the others are counted."""


def marks_for(console: Console) -> Marks:
    """What a terminal, or whatever is in its place, can show."""
    return BLOCKS if (console.encoding or "").lower().startswith("utf") else ASCII


def picture(result: Map, width: int, marks: Marks = BLOCKS) -> Text:
    """The whole map. Marks tell things apart where there are no colours."""
    text = Text()
    pools = sorted({area.pool for each in result.ranges for area in each.areas if area.pool})
    styles = {pool: _POOL_STYLES[number % len(_POOL_STYLES)] for number, pool in enumerate(pools)}
    for each in result.ranges:
        _range(text, each, width, styles, marks)
    if result.outside:
        text.append(f"in no range: {len(result.outside)}\n", "bold")
        for block, node in result.outside[:_LINES]:
            text.append(f"  {block}  {node}\n")
        _more(text, len(result.outside) - _LINES, marks)
    if result.ranges:
        text.append("  ".join(f"{mark} {kind.value}" for kind, mark in marks.kinds.items()) + "\n", "dim")
    else:
        text.append("there is neither a pool nor a service range to draw\n")
    return text


def _range(text: Text, each: RangeMap, width: int, styles: dict[str, str], marks: Marks) -> None:
    text.append(str(each.cidr), "bold")
    text.append(f"  {_percent(each.free, each.cidr.size)} free  ")
    text.append(f"{', '.join(each.pools) or 'no pool'}\n", "dim")
    for mark, style in _cells(each, width, styles, marks):
        text.append(mark, style)
    text.append("\n")
    runs = [list(run) for _, run in groupby(each.areas, key=_alike)]
    for run in runs[:_LINES]:
        text.append(f"  {marks.kinds[run[0].kind]} ", _style(run[0], styles))
        text.append(f"{_span(each, run)}  ")
        text.append(f"{_told(run)}\n", "dim" if run[0].kind is Kind.FREE else "")
    _more(text, len(runs) - _LINES, marks)
    text.append("\n")


def _alike(area: Area) -> tuple[object, ...]:
    """Neighbours that share a line: blocks of one pool; conflicts only among the same holders."""
    return area.kind, area.pool, () if area.kind is Kind.NODE else area.holders


def _span(each: RangeMap, run: list[Area]) -> str:
    if len(run) == 1:
        return each.span(run[0])
    family = each.cidr.family
    return f"{format_address(family, run[0].first)} - {format_address(family, run[-1].last)}"


def _told(run: list[Area]) -> str:
    first = run[0]
    if first.kind is Kind.FREE:
        return "free"
    names = list(dict.fromkeys(name for area in run for name in area.holders))
    listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
    match first.kind:
        case Kind.CONFLICT:
            return f"conflict: {listed}"
        case Kind.NODE:
            return f"{first.pool or 'in no pool'}: {listed}"
        case _:
            return listed


def _cells(each: RangeMap, width: int, styles: dict[str, str], marks: Marks) -> Iterator[tuple[str, str]]:
    """The bar: for each of its cells, a mark and a style for what most of it is. Conflicts always show."""
    cells = min(width, each.cidr.size)
    areas = iter(each.areas)
    area = next(areas)
    for cell in range(cells):
        first = each.cidr.network + each.cidr.size * cell // cells
        last = each.cidr.network + each.cidr.size * (cell + 1) // cells - 1
        shares = [(_overlap(area, first, last), area)]
        while area.last < last:
            area = next(areas)
            shares.append((_overlap(area, first, last), area))
        yield _cell(shares, styles, marks)
        if area.last == last and cell + 1 < cells:
            area = next(areas)


def _cell(shares: list[tuple[int, Area]], styles: dict[str, str], marks: Marks) -> tuple[str, str]:
    for kind in (Kind.CONFLICT, Kind.NODE):
        found = [(share, area) for share, area in shares if area.kind is kind]
        if found:
            held, total = sum(share for share, _ in found), sum(share for share, _ in shares)
            mark = marks.some_nodes if kind is Kind.NODE and 2 * held < total else marks.kinds[kind]
            return mark, _style(max(found, key=lambda each: each[0])[1], styles)
    largest = max(shares, key=lambda each: each[0])[1]
    return marks.kinds[largest.kind], _style(largest, styles)


def _overlap(area: Area, first: int, last: int) -> int:
    return min(area.last, last) - max(area.first, first) + 1


def _style(area: Area, styles: dict[str, str]) -> str:
    return styles.get(area.pool) or _STYLES[area.kind]


def _percent(part: int, whole: int) -> str:
    """Rounded towards the middle: only what is full is 0 % free, and only what is empty is 100 %."""
    if part in (0, whole):
        return f"{100 * part // whole} %"
    return f"{min(99, max(1, round(100 * part / whole)))} %"


def _more(text: Text, count: int, marks: Marks) -> None:
    if count > 0:
        text.append(f"  {marks.more} and {count} more lines\n", "dim")
