"""The map as an SVG: stands alone, follows the browser's light or dark scheme, and tells on hover who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from cidrella.app.mapping import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.app.mapping import Area, Map, RangeMap

_WIDTH = 1000
"""A row's width in pixels."""
_MARGIN = 20
_ROW = 26
_HEADING = 48
_MAX_ROWS = 32
_GOOD_BLOCK = 8
"""Pixels that the smallest block should be wide; rows are added for it."""
_LETTER = 6.6
_TOO_NARROW = 1.0
"""Pixels below which neighbours are drawn as one."""
_NAMES = 6
_HUES = (145, 200, 45, 262, 95, 20, 320, 178)

_STYLE = """
  :root { --page: #ffffff; --ink: #1c2330; --soft: #5b6678; --free: #eef1f5; --edge: #ffffff; --light: 42%; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #12161d; --ink: #e6eaf1; --soft: #9aa5b6; --free: #222a35; --edge: #12161d; --light: 40%; }
  }
  svg { background: var(--page); }
  text { font-family: ui-sans-serif, system-ui, sans-serif; fill: var(--ink); font-size: 12px; }
  .range { font-size: 16px; font-weight: 600; }
  .soft { fill: var(--soft); }
  .free { fill: var(--free); }
  rect.area { stroke: var(--edge); stroke-width: 0.6; }
  rect.area:hover { stroke: var(--ink); stroke-width: 1.6; }
  .service { fill: url(#hatch); }
  .conflict { fill: #d7263d; }
  .on { fill: #ffffff; font-size: 11px; pointer-events: none; }
"""

_HATCH = """<defs>
  <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <rect width="6" height="6" fill="#a24fb5"/><rect width="2" height="6" fill="#c98ad6"/>
  </pattern>
</defs>"""


@dataclass(slots=True)
class _Box:
    """What is drawn as one rectangle, in pixels along all rows laid end to end."""

    start: float
    end: float
    areas: list[Area]


def svg(result: Map) -> str:
    """The whole map as one document. Its size depends on what can be seen, not on how much is held."""
    pools = sorted({area.pool for each in result.ranges for area in each.areas})
    hues = {pool: _HUES[number % len(_HUES)] for number, pool in enumerate(pools)}
    body: list[str] = []
    y = _MARGIN
    for each in result.ranges:
        rows = _rows(each)
        body += _range(each, rows, y, hues)
        y += _HEADING + rows * _ROW + _MARGIN
    for block, node in result.outside[:_MAX_ROWS]:
        body.append(_text(_MARGIN, y + 12, f"{block}  {node}, in no range"))
        y += 18
    if len(result.outside) > _MAX_ROWS:
        body.append(_text(_MARGIN, y + 12, f"… and {len(result.outside) - _MAX_ROWS} more in no range"))
        y += 18
    body += _legend(y, {pool: hues[pool] for pool in pools if pool})
    return _document(body, y + 40)


def _document(body: list[str], height: int) -> str:
    width = _WIDTH + 2 * _MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Address space">',
            f"<style>{_STYLE}</style>",
            _HATCH,
            *body,
            "</svg>\n",
        ]
    )


def _rows(each: RangeMap) -> int:
    """As many rows, a power of two, as make the smallest block wide enough to see and to point at."""
    smallest = min((area.size for area in each.areas if area.kind is not Kind.FREE), default=each.cidr.size)
    rows = 1
    while rows < _MAX_ROWS and smallest * _WIDTH * rows < _GOOD_BLOCK * each.cidr.size:
        rows *= 2
    return rows


def _range(each: RangeMap, rows: int, y: int, hues: dict[str, int]) -> Iterator[str]:
    yield _text(_MARGIN, y + 14, str(each.cidr), "range")
    free = 100 * each.free / each.cidr.size
    yield _text(_MARGIN, y + 34, f"{free:.4g} % free · {', '.join(each.pools) or 'no pool'}", "soft")
    top = y + _HEADING
    for box in _boxes(each, rows):
        kind, pool = box.areas[0].kind, box.areas[0].pool
        fill = f' style="fill: hsl({hues[pool]} 55% var(--light))"' if kind is Kind.NODE else ""
        title = escape(_title(each, box))
        parts = list(_split(box))
        for row, x, width in parts:
            yield (
                f'<rect class="area {kind.value.split()[0]}"{fill} x="{_MARGIN + x:.2f}" y="{top + row * _ROW}" '
                f'width="{width:.2f}" height="{_ROW - 4}"><title>{title}</title></rect>'
            )
        row, x, width = max(parts, key=lambda part: part[2])
        label = _label(box)
        if kind is not Kind.FREE and len(label) * _LETTER + 6 <= width:
            yield _text(round(_MARGIN + x) + 4, top + row * _ROW + 15, label, "on")


def _boxes(each: RangeMap, rows: int) -> Iterator[_Box]:
    """The areas in pixels; neighbours of one kind that are too narrow to tell apart become one box."""
    scale = _WIDTH * rows / each.cidr.size
    pending: _Box | None = None
    for area in each.areas:
        start = (area.first - each.cidr.network) * scale
        end = start + area.size * scale
        narrow = end - start < _TOO_NARROW
        if pending and narrow and (area.kind, area.pool) == (pending.areas[0].kind, pending.areas[0].pool):
            pending.end = end
            pending.areas.append(area)
            continue
        if pending:
            yield pending
        pending = _Box(start, end, [area])
    if pending:
        yield pending


def _split(box: _Box) -> Iterator[tuple[int, float, float]]:
    """A box cut at the ends of rows: (row, x, width). The first and last of many whole rows stand for all between."""
    row = int(box.start // _WIDTH)
    start = box.start
    while start < box.end - 1e-9:
        end = min(box.end, (row + 1) * _WIDTH)
        yield row, start - row * _WIDTH, max(end - start, 0.3)
        row, start = row + 1, (row + 1) * _WIDTH


def _label(box: _Box) -> str:
    return box.areas[0].holders[0] if len(box.areas) == 1 and box.areas[0].holders else ""


def _title(each: RangeMap, box: _Box) -> str:
    first = box.areas[0]
    if len(box.areas) > 1:
        names = ", ".join(name for area in box.areas[:_NAMES] for name in area.holders)
        return f"{len(box.areas)} areas from {each.span(first)} on\n{first.pool}: {names}, …"
    who = ", ".join(first.holders) or first.kind.value
    pool = f"\npool {first.pool}" if first.pool else ""
    return f"{each.span(first)}\n{'conflict: ' if first.kind is Kind.CONFLICT else ''}{who}{pool}"


def _legend(y: int, hues: dict[str, int]) -> Iterator[str]:
    x = _MARGIN
    entries = [(f' style="fill: hsl({hue} 55% var(--light))"', "node", pool) for pool, hue in hues.items()][:12]
    entries += [("", kind.value.split()[0], kind.value) for kind in Kind if kind is not Kind.NODE]
    for fill, name, label in entries:
        yield f'<rect class="{name}"{fill} x="{x}" y="{y + 4}" width="14" height="14" rx="3"/>'
        yield _text(x + 20, y + 16, label, "soft")
        x += 34 + round(len(label) * _LETTER)


def _text(x: int, y: int, text: str, name: str = "") -> str:
    return f'<text x="{x}" y="{y}"{f" class={chr(34)}{name}{chr(34)}" if name else ""}>{escape(text)}</text>'
