// Draws the picture on a canvas, as much of it as is in view; and on a second one above it what changes more often:
// what is pointed at and what is chosen.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const SMALLEST = 1; // pixels: what is smaller is drawn so large
const SMALLEST_ADDRESS = 3; // a Service's, of which there are few in a large range
const LABEL_WIDTH = 34;
const LABEL_HEIGHT = 14;
const LABEL_LETTERS = 7; // of a name that is cut: fewer say nothing
const LABEL_TAIL = 0.6; // names of nodes differ at the end
const TWO_LINES = 32;
const CELL_LINES = 9; // pixels of a free cell from which its edges are drawn
const REST_GAP = 0.04; // between a scope and the rest, beside a tile's height
const CAPTION_WIDTH = 64;
const CAPTION_HEIGHT = 13;
const KEPT_WIDTHS = 20000;

export class Painter {
  constructor(base, overlay, palette) {
    this.base = base.getContext("2d", { alpha: false });
    this.overlay = overlay.getContext("2d");
    this.palette = palette;
    this.widths = new Map();
    this.patterns = new Map();
  }

  resize(width, height, ratio) {
    Object.assign(this, { width, height, ratio });
    for (const { canvas } of [this.base, this.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.recolour();
  }

  recolour() {
    const { colours } = this.palette;
    this.patterns = new Map([
      ["static", this.stripes(colours.band.static, colours.free, 1)],
      ["dynamic", this.stripes(colours.band.dynamic, colours.free, 1)],
      ["conflict", this.stripes(colours.badStripe, colours.bad, -1)],
    ]);
  }

  /** Diagonal stripes, rising or falling. */
  stripes(front, back, direction) {
    const size = Math.round(7 * this.ratio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const context = tile.getContext("2d");
    context.fillStyle = back;
    context.fillRect(0, 0, size, size);
    context.strokeStyle = front;
    context.lineWidth = size / 3;
    context.beginPath();
    for (const shift of [-size, 0, size]) {
      context.moveTo(shift - size, direction > 0 ? size * 2 : -size);
      context.lineTo(shift + size * 2, direction > 0 ? -size : size * 2);
    }
    context.stroke();
    return this.base.createPattern(tile, "repeat");
  }

  // The picture ------------------------------------------------------------------------------------------------------

  /** All of it, or only some tiles where nothing else changed. */
  draw(sections, camera, page, only) {
    const context = this.base;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = page;
    if (!only) context.fillRect(0, 0, this.width, this.height);
    context.textBaseline = "middle";
    const shift = new DOMMatrix().scale(1 / this.ratio).translate(-camera.x * camera.scale, -camera.y * camera.scale);
    for (const pattern of this.patterns.values())
      pattern.setTransform(camera.scale < 2 ** 20 ? shift : new DOMMatrix());
    for (const section of sections) {
      if (!only) this.heading(section, camera);
      for (const tile of section.tiles) {
        if (only && !only.has(tile)) continue;
        const box = camera.toScreen(tile.box);
        if (!this.inView(box)) continue;
        if (only) this.clear(box, page);
        this.tile(tile, camera, page);
      }
    }
  }

  clear(box, page) {
    const { x, y, w, h } = this.cut(box);
    this.base.fillStyle = page;
    this.base.fillRect(x - 1, y - 1, w + 2, h + 2);
  }

  inView({ x, y, w, h }) {
    return x < this.width && y < this.height && x + w > 0 && y + h > 0;
  }

  heading(section, camera) {
    const { x, y, w, h } = camera.toScreen({ x: section.x, y: section.y, w: section.w, h: section.heading });
    if (!this.inView({ x, y, w, h })) return;
    const context = this.base;
    const [title, note] = [`600 13px ${FONT}`, `12px ${FONT}`];
    context.textAlign = "left";
    context.font = note;
    const rest = this.measure(section.note) + 10;
    context.font = title;
    const width = this.measure(section.title) + 10;
    // In view for as long as its section is, and within it.
    const left = Math.min(Math.max(x, 0), x + w - width - rest);
    context.fillStyle = this.palette.colours.ink;
    context.fillText(section.title, left, y + h / 2 - 1);
    context.font = note;
    context.fillStyle = this.palette.colours.soft;
    context.fillText(section.note, left + width, y + h / 2 - 1);
  }

  tile(tile, camera, page) {
    const context = this.base;
    const body = camera.toScreen(tile.body);
    this.caption(tile, camera.toScreen(tile.box), body);
    context.save();
    context.beginPath();
    const seen = this.cut(body);
    if (body.w < 4096 && body.h < 4096) context.roundRect(body.x, body.y, body.w, body.h, Math.min(6, body.w / 16));
    else context.rect(seen.x, seen.y, seen.w, seen.h);
    context.clip();
    context.fillStyle = this.palette.colours.free;
    context.fillRect(seen.x, seen.y, seen.w, seen.h);
    for (const area of tile.areas) this.area(area, body);
    for (const band of tile.bands) this.fill(band.rect, body, this.patterns.get(band.kind), 0); // no pool gives these
    if (tile.rest) this.rest(tile, body, page);
    this.blocks(tile, body);
    context.restore();
  }

  caption(tile, box, body) {
    const height = body.y - box.y;
    if (height < CAPTION_HEIGHT || box.w < CAPTION_WIDTH || box.y > this.height || body.y < 0) return;
    const context = this.base;
    const size = Math.min(12.5, height * 0.76);
    const y = body.y - Math.min(height / 2, 11);
    // In view for as long as its tile is.
    const left = Math.max(box.x, 0);
    const right = Math.min(box.x + box.w, this.width);
    let room = right - left;
    context.textAlign = "left";
    if (tile.note && room > 150) {
      context.font = `${tile.note.bad ? 600 : 400} ${size}px ${FONT}`;
      const width = this.measure(tile.note.text);
      context.fillStyle = tile.note.bad ? this.palette.colours.bad : this.palette.colours.soft;
      context.fillText(tile.note.text, right - width, y);
      room -= width + 10;
    }
    context.font = `600 ${size}px ${MONO}`;
    context.fillStyle = this.palette.colours.ink;
    const name = this.shorten(tile.text, room);
    context.fillText(name, left, y);
    const beside = this.measure(name) + 9;
    if (room - beside < 40 || !tile.title) return;
    context.font = `${size}px ${FONT}`;
    context.fillStyle = this.palette.colours.soft;
    context.fillText(this.shorten(tile.title, room - beside), left + beside, y);
  }

  /** What of a rectangle of the screen is in view. */
  cut({ x, y, w, h }) {
    const left = Math.max(x, -1);
    const top = Math.max(y, -1);
    return { x: left, y: top, w: Math.min(x + w, this.width + 1) - left, h: Math.min(y + h, this.height + 1) - top };
  }

  /** Fill a part of a tile, its edges on whole pixels. Returns where it is on the screen, or null if out of view. */
  fill(rect, body, style, gap, smallest = SMALLEST) {
    const x = body.x + rect.x * body.w;
    const y = body.y + rect.y * body.h;
    const w = rect.w * body.w;
    const h = rect.h * body.h;
    if (x > this.width || y > this.height || x + Math.max(w, smallest) < 0 || y + Math.max(h, smallest) < 0)
      return null;
    const seen = this.cut({ x, y, w, h });
    const left = this.snap(seen.x);
    const top = this.snap(seen.y);
    const width = Math.max(this.snap(seen.x + seen.w) - left - gap, smallest);
    const height = Math.max(this.snap(seen.y + seen.h) - top - gap, smallest);
    if (style) {
      this.base.fillStyle = style;
      this.base.fillRect(left, top, width, height);
    }
    return { x: left, y: top, w: width, h: height };
  }

  snap(value) {
    return Math.round(value * this.ratio) / this.ratio;
  }

  /** What a pool may give: a breath of its colour, and the edges of its cells where they are large enough. */
  area(area, body) {
    const context = this.base;
    context.globalAlpha = this.palette.colours.tint;
    const seen = this.fill(area.rect, body, this.palette.of(area.pool), 0);
    context.globalAlpha = 1;
    const stepX = area.cell.w * body.w;
    const stepY = area.cell.h * body.h;
    if (!seen || stepX < CELL_LINES || stepY < CELL_LINES) return;
    context.globalAlpha = this.palette.colours.edge;
    context.strokeStyle = this.palette.of(area.pool);
    context.lineWidth = 1;
    context.beginPath();
    const originX = body.x + area.rect.x * body.w;
    const originY = body.y + area.rect.y * body.h;
    for (let at = Math.max(1, Math.ceil((seen.x - originX) / stepX)); ; at++) {
      const x = this.snap(originX + at * stepX) - 0.5;
      if (x > seen.x + seen.w - 1) break;
      context.moveTo(x, seen.y);
      context.lineTo(x, seen.y + seen.h);
    }
    for (let at = Math.max(1, Math.ceil((seen.y - originY) / stepY)); ; at++) {
      const y = this.snap(originY + at * stepY) - 0.5;
      if (y > seen.y + seen.h - 1) break;
      context.moveTo(seen.x, y);
      context.lineTo(seen.x + seen.w, y);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  /** What is out of a tile's scope: a strip apart from it, which says so. */
  rest(tile, body, page) {
    const context = this.base;
    const { rect } = tile.rest;
    const apart = { x: 0, y: rect.y - REST_GAP, w: 1, h: REST_GAP };
    this.fill(apart, body, page, 0);
    context.globalAlpha = this.palette.colours.tint;
    const seen = this.fill(rect, body, this.palette.of(tile.pools[0]), 0);
    context.globalAlpha = 1;
    if (!seen || seen.h < LABEL_HEIGHT - 2 || !tile.rest.text) return;
    context.font = `${Math.min(11.5, seen.h * 0.75)}px ${FONT}`;
    context.textAlign = "left";
    context.fillStyle = this.palette.colours.soft;
    const text = this.shorten(tile.rest.text, seen.w - 12);
    if (text === tile.rest.text) context.fillText(text, seen.x + 6, seen.y + seen.h / 2 + 0.5);
  }

  blocks(tile, body) {
    const labels = [];
    for (const block of tile.blocks) {
      const width = block.rect.w * body.w;
      const gap = width > 7 ? 1 : width > 3 ? 0.5 : 0;
      const smallest = block.kind === "service" ? SMALLEST_ADDRESS : SMALLEST;
      const faint = block.state === "pending";
      if (faint) this.base.globalAlpha = 0.5;
      const seen = this.fill(block.rect, body, this.styleOf(block), gap, smallest);
      if (faint) this.base.globalAlpha = 1;
      if (seen && seen.w >= LABEL_WIDTH && seen.h >= LABEL_HEIGHT) labels.push([block, seen]);
    }
    for (const [block, seen] of labels) this.label(block, seen);
  }

  styleOf(block) {
    if (block.kind === "service") return this.palette.colours.service;
    return block.state === "conflict" ? this.patterns.get("conflict") : this.palette.of(block.pool);
  }

  label(block, { x, y, w, h }) {
    const context = this.base;
    const name = block.kind === "service" ? block.service.holder : block.node;
    const room = w - 10;
    context.textAlign = "left";
    const size = Math.min(12.5, h * 0.72);
    context.font = `${size}px ${FONT}`;
    const text = this.shorten(name, room, LABEL_TAIL);
    if (text.length < LABEL_LETTERS && text !== name) return;
    if (block.state === "conflict") {
      context.fillStyle = this.palette.colours.bad;
      context.fillRect(x, y + h / 2 - (h >= TWO_LINES ? 17 : 9), Math.min(w, room + 10), h >= TWO_LINES ? 34 : 18);
    }
    context.fillStyle = block.state === "pending" ? this.palette.colours.ink : this.palette.colours.label;
    const two = h >= TWO_LINES;
    context.fillText(text, x + 5, y + h / 2 - (two ? 7 : 0) + 0.5);
    if (!two) return;
    context.font = `11px ${MONO}`;
    const address = block.kind === "service" ? block.service.address : block.prefix.text;
    const below = this.shorten(address, room);
    if (below === address) context.fillText(below, x + 5, y + h / 2 + 8.5);
  }

  measure(text) {
    const key = `${this.base.font}\n${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > KEPT_WIDTHS) this.widths.clear();
      width = this.base.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** As much of a text as there is room for; `tail` is the share of it that is kept of the end. */
  shorten(text, room, tail = 0) {
    const width = this.measure(text);
    if (width <= room) return text;
    for (let letters = Math.floor((text.length * room) / width) - 1; letters > 0; letters--) {
      const last = Math.round(letters * tail);
      const cut = `${text.slice(0, letters - last)}…${text.slice(text.length - last)}`;
      if (this.base.measureText(cut).width <= room) return cut;
    }
    return "";
  }

  // What lies above it -----------------------------------------------------------------------------------------------

  /** `marks` are { rect, kind } in coordinates of the picture. */
  drawOverlay(camera, marks) {
    const context = this.overlay;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    for (const mark of marks) this.mark(camera.toScreen(mark.rect), mark.kind);
  }

  mark(screen, kind) {
    const { colours } = this.palette;
    const seen = this.cut(grown(screen, kind === "chosen" ? 10 : 4));
    if (seen.w <= 0 || seen.h <= 0) return;
    const context = this.overlay;
    const out = kind === "chosen" ? 1.5 : 0;
    for (const [style, width] of kind === "chosen"
      ? [
          [colours.halo, 6],
          [colours.focus, 2.5],
        ]
      : [[colours.focus, 1.5]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.roundRect(seen.x - out, seen.y - out, seen.w + 2 * out, seen.h + 2 * out, 3);
      context.stroke();
    }
  }
}

/** A rectangle that is at least so large, around the same middle. */
function grown({ x, y, w, h }, smallest) {
  const width = Math.max(w, smallest);
  const height = Math.max(h, smallest);
  return { x: x - (width - w) / 2, y: y - (height - h) / 2, w: width, h: height };
}
