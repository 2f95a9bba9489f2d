// Where the tiles lie: a section for each family, tiles in the order of their addresses, all of it in view at once.
//
// Ranges differ so much in size that areas in proportion would show only the largest. So a tile has one of two sizes,
// by how many blocks its range has beside the others of its family; with very many tiles all are alike.

const ASPECT = 2; // a tile's width to its height
const HEADING = 26;
const SECTION_GAP = 10;
const CAPTION = 0.2; // a tile's caption beside its height, at most CAPTION_MAX
const CAPTION_MAX = 20;
const GAP = 0.06; // between tiles, beside a tile's width, at most GAP_MAX
const GAP_MAX = 14;
const ALIKE_FROM = 40; // tiles in a section
const LARGE_WITHIN = 3; // bits below the range with the most blocks

/**
 * Put sections of tiles into a viewport. A section is { title, tiles }, a tile has `blockBits`; each tile is given
 * `box`, the whole, and `body`, where blocks are drawn; each section `y`. In CSS pixels of a view that is not zoomed.
 */
export function layout(sections, width, height) {
  const filled = sections.filter((section) => section.tiles.length);
  for (const section of filled) sizes(section.tiles);
  const largest = Math.max(1, ...filled.flatMap((section) => section.tiles.map((tile) => tile.span)));
  let low = 4;
  let high = width / largest;
  for (let round = 0; round < 24; round++) {
    const unit = (low + high) / 2;
    if (heightOf(filled, unit, width) <= height) low = unit;
    else high = unit;
  }
  arrange(filled, Math.min(low, width / largest), width);
}

function sizes(tiles) {
  const most = Math.max(...tiles.map((tile) => tile.blockBits));
  const alike = tiles.length > ALIKE_FROM;
  for (const tile of tiles) tile.span = !alike && tile.blockBits >= most - LARGE_WITHIN ? 2 : 1;
  if (tiles.every((tile) => tile.span === 2)) for (const tile of tiles) tile.span = 1;
}

function heightOf(sections, unit, width) {
  return sections.reduce((sum, section) => sum + HEADING + rows(section.tiles, unit, width) * tall(unit) + SECTION_GAP, 0);
}

function tall(unit) {
  return unit / ASPECT + Math.min((CAPTION * unit) / ASPECT, CAPTION_MAX);
}

function rows(tiles, unit, width) {
  return pack(tiles, columnsOf(unit, width)).rows;
}

function columnsOf(unit, width) {
  return Math.max(1, Math.floor(width / unit + 1e-6));
}

/** The cells that tiles take in a grid of columns: each the first place that is free, from the top. */
function pack(tiles, columns) {
  const taken = [];
  const places = [];
  let from = 0; // no row before it has room
  for (const tile of tiles) {
    const span = Math.min(tile.span, columns);
    let row = from;
    let column = find(taken, row, span, columns);
    while (column < 0) column = find(taken, ++row, span, columns);
    for (let y = row; y < row + span; y++) {
      taken[y] ??= { cells: new Uint8Array(columns), count: 0 };
      taken[y].cells.fill(1, column, column + span);
      taken[y].count += span;
    }
    while (taken[from]?.count === columns) from++;
    places.push({ row, column, span });
  }
  return { places, rows: taken.length };
}

function find(taken, row, span, columns) {
  for (let column = 0; column + span <= columns; column++) {
    let free = true;
    for (let y = row; y < row + span && free; y++) {
      for (let x = column; x < column + span && free; x++) free = !taken[y]?.cells[x];
    }
    if (free) return column;
  }
  return -1;
}

function arrange(sections, unit, width) {
  const step = tall(unit);
  let y = 0;
  for (const section of sections) {
    section.y = y;
    section.heading = HEADING;
    const { places, rows: count } = pack(section.tiles, columnsOf(unit, width));
    section.tiles.forEach((tile, at) => put(tile, places[at], unit, step, y + HEADING));
    y += HEADING + count * step + SECTION_GAP;
  }
}

function put(tile, place, unit, step, top) {
  const gap = Math.min(GAP * unit, GAP_MAX);
  const box = { x: place.column * unit, y: top + place.row * step, w: place.span * unit - gap, h: place.span * step - gap };
  const caption = Math.min(CAPTION * box.h, CAPTION_MAX);
  tile.box = box;
  tile.body = { x: box.x, y: box.y + caption, w: box.w, h: box.h - caption };
}
