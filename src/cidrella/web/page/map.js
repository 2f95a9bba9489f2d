// The map: the picture, the camera, what is pointed at and what is chosen. How people get at it is in mapinput.js.

import { Camera } from "./camera.js";
import { setText } from "./dom.js";
import { beforeNextFrame } from "./frame.js";
import { columnHeight, inOneColumn, layout } from "./layout.js";
import { Painter } from "./paint.js";
import { Picture } from "./picture.js";
import { describe, placesOf, thingOf, usedShare } from "./things.js";
import { percent, plural } from "./words.js";

const NEAR = 0.22; // how much of the view a block fills that was flown to
const MOST = 0.8; // how much a range fills, or what a pool may give
const WHOLE = new Set(["pool", "range", "rest"]);
const LEGIBLE = 26; // pixels wide, from which a block can be walked to without coming closer
const TOUCHED = 4; // pixels around a tiny block that still mean it
const PULSES = 24; // at once
const TIP_LEFT = 14; // pixels from where a tooltip would be for a pointer
const TIP_UP = 8;
const STEP = 90; // pixels that a key pans

export class MapView {
  /** Elements by name; `changed()` when something was chosen, or nothing; `say(text)` for those who do not see it. */
  constructor(elements, store, palette, { changed, say }) {
    Object.assign(this, elements, { store, palette, changed, say });
    this.picture = new Picture();
    this.sections = [];
    this.stale = true; // all of it has to be drawn anew
    this.touched = new Set(); // or these tiles
    this.painter = new Painter(this.base, this.overlay, palette);
    this.camera = new Camera(() => this.moved());
    this.pointed = null;
    this.chosen = null;
    this.tipped = false; // what is chosen has a tooltip, for it was walked to
    this.size = { width: 0, height: 0 };
    this.drawBase = () => this.paint();
    this.drawOverlay = () => this.paintOverlay();
    new ResizeObserver(() => this.resize()).observe(this.stage);
  }

  // What there is ----------------------------------------------------------------------------------------------------

  /** Everything is new. */
  load() {
    this.palette.assign(poolsByAddress(this.store));
    this.picture.build(this.store, this.flat);
    this.arrange();
  }

  /** A change was taken in: what `Store.apply` returned. */
  update(done) {
    const { picture, store } = this;
    let reshaped = (done.ranges || done.pools.length > 0) && picture.differs(store);
    if (reshaped) {
      this.palette.assign(poolsByAddress(store));
    } else {
      this.touch(done);
      for (const [before, after] of done.nodes) after ? picture.setNode(after) : picture.removeNode(before.name);
      for (const [before, after] of done.services)
        after ? picture.setService(after) : picture.removeService(before.address);
      this.touch(done);
      reshaped = picture.outgrown;
    }
    if (reshaped) picture.build(store, this.flat);
    if (reshaped || picture.takeGrown()) this.arrange();
    else this.annotate();
    const served = done.nodes.filter(([before, after]) => after?.blocks.length && !before?.blocks.length);
    this.pulse(served.flatMap(([, after]) => picture.byNode.get(after.name) ?? []));
    beforeNextFrame(this.drawBase);
    beforeNextFrame(this.drawOverlay);
  }

  /** The ranges in which something that changed lies, now, have to be drawn anew. */
  touch({ nodes, services, pools }) {
    const { byNode, byService, byPool } = this.picture;
    const places = [
      ...nodes.flatMap(([before, after]) => byNode.get((after ?? before).name) ?? []),
      ...services.flatMap(([before, after]) => byService.get((after ?? before).address) ?? []),
      ...pools.flatMap(([before, after]) => byPool.get((after ?? before).name) ?? []),
    ];
    for (const { tile } of places) this.touched.add(tile);
  }

  /** A ring around what has just come. Elements, for those move without this thread's help. */
  pulse(blocks) {
    if (document.hidden || !this.size.width || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const block of blocks.slice(0, PULSES - this.rings.childElementCount)) {
      const { x, y, w, h } = this.camera.toScreen(worldOf(block));
      if (x < 0 || y < 0 || x + w > this.size.width || y + h > this.size.height) continue;
      const ring = document.createElement("span");
      Object.assign(ring.style, { left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${h}px` });
      ring.addEventListener("animationend", () => ring.remove());
      this.rings.append(ring);
    }
  }

  /** Lay the tiles out; what is in the middle of the view, or was, stays there. */
  arrange(anchor = this.anchor()) {
    this.picture.takeGrown();
    this.sections = this.picture.sections;
    this.nothing.hidden = this.sections.length > 0;
    this.stage.classList.toggle("bare", !this.sections.length);
    const { width, height } = this.size;
    if (width && this.sections.length) {
      this.stage.style.height = this.flat ? `${columnHeight(this.sections)}px` : "";
      layout(this.sections, width, height);
      if (anchor) this.restore(anchor);
    }
    this.annotate();
    this.redraw();
  }

  /** What is in the middle of a zoomed view: a range, a point of it, and how wide it is on the screen. */
  anchor() {
    this.camera.land();
    if (!this.camera.zoomed) return null;
    const { middle } = this.camera;
    const { x, y } = this.camera.toWorld(middle.x, middle.y);
    const tile = nearest(this.tiles, x, y);
    if (!tile) return null;
    const { body } = tile;
    return { text: tile.text, x: (x - body.x) / body.w, y: (y - body.y) / body.h, width: body.w * this.camera.scale };
  }

  /** Bring that back to the middle, wherever it lies now. */
  restore({ text, x, y, width }) {
    const tile = this.picture.tiles.find((each) => each.text === text);
    if (!tile) return;
    const { body } = tile;
    const scale = Math.max(width / body.w, 1);
    const { camera } = this;
    const { middle } = camera;
    camera.go(body.x + x * body.w - middle.x / scale, body.y + y * body.h - middle.y / scale, scale, false);
  }

  /** What stands beside the ranges' names. */
  annotate() {
    for (const section of this.sections) {
      section.note = plural(section.tiles.length, "range");
      for (const tile of section.tiles) {
        tile.title = titleOf(tile);
        if (tile.rest) tile.rest.text = `${plural(tile.rest.blocks, "more block")}, all free`;
        const share = usedShare(tile, this.store);
        tile.note = share === null ? null : { text: share >= 1 ? "full" : `${percent(share)} used`, bad: share >= 1 };
      }
    }
  }

  /** Whether the ranges lie below each other. */
  get flat() {
    return inOneColumn(this.store.ranges.length, this.size.width);
  }

  resize() {
    const width = this.stage.clientWidth;
    const height = this.stage.clientHeight;
    if (!width || !height || (width === this.size.width && height === this.size.height)) return;
    this.size = { width, height };
    this.painter.resize(width, height, window.devicePixelRatio || 1);
    const anchor = this.anchor();
    if (this.flat !== this.picture.flat) this.picture.build(this.store, this.flat);
    this.camera.resize(width, height);
    this.arrange(anchor);
  }

  recolour() {
    if (this.size.width) this.painter.recolour();
    this.redraw();
  }

  // Drawing ----------------------------------------------------------------------------------------------------------

  redraw() {
    this.stale = true;
    beforeNextFrame(this.drawBase);
    beforeNextFrame(this.drawOverlay);
  }

  moved() {
    this.overlay.dataset.zoomed = this.camera.zoomed;
    this.overlay.dataset.scale = this.camera.scale.toPrecision(4);
    this.overlay.setAttribute("aria-busy", this.camera.landing !== null);
    this.hideTooltip();
    this.rings.replaceChildren();
    this.redraw();
  }

  paint() {
    if (!this.size.width) return;
    this.painter.draw(
      this.sections,
      this.camera,
      getComputedStyle(this.stage).backgroundColor,
      this.stale ? null : this.touched,
    );
    this.stale = false;
    this.touched.clear();
    setText(this.where, this.whereabouts());
    this.painted?.();
  }

  paintOverlay() {
    if (!this.size.width) return;
    const marks = [...this.marks(this.pointed, "pointed"), ...this.marks(this.chosen, "chosen")];
    this.painter.drawOverlay(this.camera, marks);
    if (this.tipped) this.showTip();
  }

  marks(thing, kind) {
    return placesOf(thing, this.picture).map((place) => ({ rect: worldOf(place), kind }));
  }

  /** The range in the middle of the view, where it is not all of them. */
  whereabouts() {
    if (!this.camera.zoomed) return "";
    const { middle } = this.camera;
    const { x, y } = this.camera.toWorld(middle.x, middle.y);
    const tile = this.tileAt(x, y);
    return tile ? [tile.text, tile.title].filter(Boolean).join(" · ") : "";
  }

  // Pointing ---------------------------------------------------------------------------------------------------------

  tileAt(x, y) {
    return this.picture.tiles.find(
      ({ box }) => box && x >= box.x && y >= box.y && x < box.x + box.w && y < box.y + box.h,
    );
  }

  /** The thing at a point of the view; null between ranges. */
  thingAt(screenX, screenY) {
    const { x, y } = this.camera.toWorld(screenX, screenY);
    const tile = this.tileAt(x, y);
    if (!tile) return null;
    const { body } = tile;
    if (y < body.y) return { kind: "range", range: tile.text };
    const insideX = (x - body.x) / body.w;
    const insideY = (y - body.y) / body.h;
    const block = tile.blockAt(insideX, insideY) ?? this.tinyAt(tile, screenX, screenY);
    if (block) return thingOf(block);
    const prefix = this.freeAt(tile, insideX, insideY);
    return prefix ? { kind: "free", prefix } : { kind: "rest", range: tile.text };
  }

  /** A block that is drawn larger than it is, near a point. */
  tinyAt(tile, screenX, screenY) {
    let nearest = null;
    let least = TOUCHED;
    for (const block of tile.blocks) {
      const { x, y, w, h } = this.camera.toScreen(worldOf(block));
      if (w > TOUCHED && h > TOUCHED) continue;
      const distance = Math.max(Math.abs(x + w / 2 - screenX) - w / 2, Math.abs(y + h / 2 - screenY) - h / 2);
      if (distance < least) [nearest, least] = [block, distance];
    }
    return nearest;
  }

  /** What could be given at a point of a tile; null for the rest of a range. */
  freeAt(tile, x, y) {
    for (const area of [...tile.areas].reverse()) {
      const prefix = tile.at(x, y, area.blockSize);
      if (prefix && area.prefix.contains(prefix)) return prefix;
    }
    return tile.at(x, y, tile.blockLength);
  }

  point(x, y) {
    this.tipped = false;
    this.pointed = this.thingAt(x, y);
    const words = this.pointed && describe(this.pointed, this.store, this.picture);
    if (words) this.showTooltip(words, x, y);
    else this.hideTooltip();
    beforeNextFrame(this.drawOverlay);
  }

  unpoint() {
    this.tipped = false;
    this.pointed = null;
    this.hideTooltip();
    beforeNextFrame(this.drawOverlay);
  }

  showTooltip({ title, lines }, x, y) {
    const { tooltip } = this;
    const rows = [["strong", title], ...lines.map((line) => ["span", line])];
    tooltip.replaceChildren(
      ...rows.map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text })),
    );
    tooltip.hidden = false;
    const left = Math.max(4, Math.min(x + 14, this.size.width - tooltip.offsetWidth - 4));
    const above = y + 18 + tooltip.offsetHeight > this.size.height;
    const top = above ? Math.max(4, y - tooltip.offsetHeight - 12) : y + 18;
    tooltip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  /** The tooltip of what was walked to, beside it. */
  showTip() {
    const [place] = placesOf(this.chosen, this.picture);
    const words = describe(this.chosen, this.store, this.picture);
    if (!place || !words) return;
    const { x, y, w, h } = this.camera.toScreen(worldOf(place));
    this.showTooltip(words, x + w / 2 - TIP_LEFT, Math.min(y + h, this.size.height) - TIP_UP);
  }

  hideTooltip() {
    this.tooltip.hidden = true;
  }

  // Choosing ---------------------------------------------------------------------------------------------------------

  /** Choose a thing, or nothing; `near` flies to it, else it is brought into view; `tip` says beside it what it is. */
  choose(thing, { near = false, tip = false } = {}) {
    this.chosen = thing;
    this.tipped = tip;
    if (!tip) this.hideTooltip();
    const [place] = placesOf(thing, this.picture);
    if (place?.tile.body) {
      if (near) this.fly(thing, place);
      else this.approach(worldOf(place));
    }
    if (thing) this.say(this.sentence(thing));
    beforeNextFrame(this.drawOverlay);
    this.changed();
  }

  /** To an address that nobody has as to the block that it is in: closer, there is nothing to be seen. */
  fly(thing, { tile, rect }) {
    const target = thing.kind === "free" ? tile.place(tile.cellAround(thing.prefix)) : rect;
    this.camera.show(tile.toWorld(target), WHOLE.has(thing.kind) ? MOST : NEAR);
  }

  approach(rect) {
    if (rect.w * this.camera.bound.scale < LEGIBLE) this.camera.show(rect, LEGIBLE / this.size.width);
    else this.camera.reveal(rect, 24);
  }

  sentence(thing) {
    const words = describe(thing, this.store, this.picture);
    return words ? [words.title, ...words.lines].join(", ") : "";
  }

  /** In the order in which they lie. */
  get tiles() {
    return this.sections.flatMap((section) => section.tiles);
  }

  /** To the next block (1) or the one before (-1), in the order of addresses, range after range. */
  walk(by) {
    const filled = this.tiles.filter((tile) => tile.blocks.length);
    if (!filled.length) return;
    const place = this.chosen && placesOf(this.chosen, this.picture)[0];
    let next;
    if (!place) {
      next = by > 0 ? filled[0].blocks[0] : filled.at(-1).blocks.at(-1);
    } else {
      const at = place.tile.blocks.indexOf(place);
      next = at >= 0 ? place.tile.blocks[at + by] : this.beside(place.tile, by);
      next ??= endOf(neighbour(filled, this.tiles, place.tile, by), by);
    }
    if (next) this.choose(thingOf(next), { tip: true });
  }

  /** The block next to what is chosen and is none itself: free space, or all of the range. */
  beside(tile, by) {
    const { chosen } = this;
    if (chosen.kind !== "free") return by > 0 ? tile.blocks[0] : undefined;
    const at = tile.indexOf(chosen.prefix);
    return by > 0 ? tile.blocks[at] : tile.blocks[at - 1];
  }

  /** To the next range, or the one before. */
  walkRanges(by) {
    const { tiles } = this;
    if (!tiles.length) return;
    const place = this.chosen && placesOf(this.chosen, this.picture)[0];
    const at = place ? tiles.indexOf(place.tile) + by : by > 0 ? 0 : tiles.length - 1;
    const tile = tiles[Math.min(Math.max(at, 0), tiles.length - 1)];
    this.choose({ kind: "range", range: tile.text }, { tip: true });
  }

  /** To the first or the last block of the range. */
  walkToEnd(by) {
    const place = this.chosen && placesOf(this.chosen, this.picture)[0];
    const tile = place?.tile ?? this.tiles[0];
    const block = tile && endOf(tile, -by);
    if (block) this.choose(thingOf(block), { tip: true });
  }

  pan(x, y) {
    this.camera.pan(x * STEP, y * STEP, true);
  }
}

function worldOf({ tile, rect }) {
  return tile.toWorld(rect);
}

function titleOf(tile) {
  if (tile.pools.length > 1) return plural(tile.pools.length, "pool");
  if (tile.pools.length) return tile.pools[0];
  return tile.services.length ? "Services" : "in no pool";
}

/** The next of the ranges that have blocks. */
function neighbour(filled, tiles, tile, by) {
  const at = tiles.indexOf(tile);
  return by > 0 ? filled.find((each) => tiles.indexOf(each) > at) : filled.findLast((each) => tiles.indexOf(each) < at);
}

/** The tile that is nearest to a point. */
function nearest(tiles, x, y) {
  const distance = ({ box }) => Math.hypot(box.x + box.w / 2 - x, box.y + box.h / 2 - y) - Math.hypot(box.w, box.h) / 2;
  return tiles.reduce((best, tile) => (!best || distance(tile) < distance(best) ? tile : best), null);
}

function endOf(tile, by) {
  return by > 0 ? tile?.blocks[0] : tile?.blocks.at(-1);
}

/** The pools' names in the order of their addresses, so that neighbours get colours that differ. */
function poolsByAddress(store) {
  const order = new Map(
    store.ranges
      .flatMap((range) => range.pools)
      .map((name, at) => [name, at])
      .reverse(),
  );
  return [...store.pools.keys()].sort(
    (one, two) => (order.get(one) ?? Infinity) - (order.get(two) ?? Infinity) || (one < two ? -1 : 1),
  );
}
