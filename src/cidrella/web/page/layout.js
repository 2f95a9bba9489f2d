// Where the tiles lie: a section for each family, tiles in the order given, all of it in view at once.
//
// Ranges differ so much in size that areas in proportion would show only the largest. So a tile has one of two sizes,
// by how many blocks its range has beside the others of its family; with very many tiles all are alike.

const HEADING = 28;
const SECTION_GAP = 12;
const ABREAST_GAP = 30; // between sections side by side
const CAPTION = 0.26; // a tile's caption beside its height, at most CAPTION_MAX
const CAPTION_MAX = 22;
const GAP = 0.08; // between tiles, beside a tile's width, at most GAP_MAX
const GAP_MAX = 16;
const FLATTEST = 3.2; // a tile's width to its height
const TALLEST = 1.2;
const ALIKE_FROM = 40; // tiles in a section
const LARGE_WITHIN = 3; // bits below the range with the most blocks
const ABREAST_UP_TO = 12; // tiles in all, for sections to lie side by side
const NARROW = 640; // pixels: below, sections lie below each other, and a few tiles as well
const COLUMN_UP_TO = 16; // tiles, in a narrow view
const COLUMN_SMALL = 56; // pixels of height for a tile with its caption
const COLUMN_LARGE = 92;
const COLUMN_LARGE_BITS = 6; // of so many blocks that they need it

/**
 * Put sections of tiles into a viewport. A section is { title, tiles }, a tile has `blockBits`, 0 for Services; each
 * tile is given `box`, the whole, and `body`, where blocks are drawn; each section `x`, `y`, `w` and the height of its
 * `heading`.
 * In CSS pixels of a view that is not zoomed.
 */
export function layout(sections, width, height) {
  for (const section of sections) sizes(section.tiles);
  const all = sections.reduce((sum, section) => sum + section.tiles.length, 0);
  if (inOneColumn(all, width)) {
    column(sections, width, height / columnHeight(sections));
    return;
  }
  if (sections.length < 2 || all > ABREAST_UP_TO || width < NARROW) {
    stack(sections, 0, width, height);
    return;
  }
  const weights = sections.map((section) => Math.max(Math.sqrt(cells(section.tiles)), 1));
  const sum = weights.reduce((one, two) => one + two);
  let x = 0;
  sections.forEach((section, at) => {
    const share = (width * weights[at]) / sum;
    stack([section], x, at === sections.length - 1 ? share : share - ABREAST_GAP, height);
    x += share;
  });
}

/** Whether so many tiles lie below each other, each as wide as the view: they are flat then. */
export function inOneColumn(count, width) {
  return width < NARROW && count <= COLUMN_UP_TO;
}

/** The height that a view needs for all of them in one column. */
export function columnHeight(sections) {
  const tiles = sections.flatMap((section) => section.tiles);
  const gaps = sections.length * HEADING + (sections.length - 1) * SECTION_GAP;
  return tiles.reduce((sum, tile) => sum + tallness(tile), gaps);
}

function tallness(tile) {
  return tile.blockBits >= COLUMN_LARGE_BITS ? COLUMN_LARGE : COLUMN_SMALL;
}

function column(sections, width, stretched) {
  let y = 0;
  for (const section of sections) {
    Object.assign(section, { x: 0, y, w: width, heading: HEADING * stretched });
    y += section.heading;
    for (const tile of section.tiles) {
      const height = tallness(tile) * stretched;
      tile.box = { x: 0, y, w: width, h: height - GAP_MAX / 2 };
      tile.body = { x: 0, y: y + CAPTION_MAX, w: width, h: tile.box.h - CAPTION_MAX };
      y += height;
    }
    y += SECTION_GAP * stretched;
  }
}

function sizes(tiles) {
  const most = Math.max(...tiles.map((tile) => tile.blockBits));
  const alike = tiles.length > ALIKE_FROM;
  for (const tile of tiles) tile.span = !alike && tile.blockBits >= most - LARGE_WITHIN ? 2 : 1;
  if (tiles.every((tile) => tile.span === 2)) for (const tile of tiles) tile.span = 1;
}

function cells(tiles) {
  return tiles.reduce((sum, tile) => sum + tile.span ** 2, 0);
}

/** Sections below each other: as many columns as make the tiles cover most. */
function stack(sections, x, width, height) {
  const room = height - sections.length * HEADING - (sections.length - 1) * SECTION_GAP;
  const most = Math.max(...sections.map((section) => cells(section.tiles)));
  let best = null;
  for (let columns = 1; columns <= Math.max(most, 2); columns += Math.ceil(columns / 16)) {
    const packed = sections.map((section) => pack(section.tiles, columns));
    const rows = packed.reduce((sum, each) => sum + each.rows, 0);
    let unit = widest(width, columns);
    let step = room / rows;
    if (unit < step * TALLEST) step = unit / TALLEST;
    else unit = Math.min(unit, step * FLATTEST);
    const covered = packed.reduce((sum, each) => sum + cells(each.places), 0) * unit * step;
    if (!best || covered > best.covered) best = { unit, step, packed, covered };
  }
  let y = 0;
  sections.forEach((section, at) => {
    Object.assign(section, { x, y, w: width, heading: HEADING });
    const { places, rows } = best.packed[at];
    section.tiles.forEach((tile, index) => put(tile, places[index], best, x, y + HEADING));
    y += HEADING + rows * best.step + SECTION_GAP;
  });
}

/** The width of a column with the gap after it; after the last there is none. */
function widest(width, columns) {
  const unit = (width + GAP_MAX) / columns;
  return GAP * unit >= GAP_MAX ? unit : width / (columns - GAP);
}

/** The cells that tiles take in a grid of columns: each the first that is free, from the top, large ones first. */
function pack(tiles, columns) {
  if (tiles.every((tile) => tile.span === 1)) {
    const places = tiles.map((_, at) => ({ row: Math.floor(at / columns), column: at % columns, span: 1 }));
    return { places, rows: Math.ceil(tiles.length / columns) };
  }
  const taken = [];
  const places = [];
  let from = 0; // no row before it has room
  const order = [...tiles.keys()].sort((one, two) => tiles[two].span - tiles[one].span || one - two);
  for (const at of order) {
    const span = Math.min(tiles[at].span, columns);
    let row = from;
    let column = find(taken, row, span, columns);
    while (column < 0) column = find(taken, ++row, span, columns);
    for (let y = row; y < row + span; y++) {
      taken[y] ??= { cells: new Uint8Array(columns), count: 0 };
      taken[y].cells.fill(1, column, column + span);
      taken[y].count += span;
    }
    while (taken[from]?.count === columns) from++;
    places[at] = { row, column, span };
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

function put(tile, place, { unit, step }, left, top) {
  const gap = Math.min(GAP * unit, GAP_MAX);
  const box = {
    x: left + place.column * unit,
    y: top + place.row * step,
    w: place.span * unit - gap,
    h: place.span * step - gap,
  };
  const caption = Math.min(CAPTION * box.h, CAPTION_MAX);
  tile.box = box;
  tile.body = { x: box.x, y: box.y + caption, w: box.w, h: box.h - caption };
}
