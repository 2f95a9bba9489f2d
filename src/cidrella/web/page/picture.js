// What the map is made of: a tile for each range, in it the areas of pools, the bands of service ranges, and blocks, of
// nodes and of Services, in the order of addresses. Kept up to date node by node.
//
// Of a range in which next to nothing is used, as of most in IPv6, all at once would show nothing. Where one pool alone
// gives it, the tile shows the part around what is used, its scope, and the rest as a strip below: that is free.

import { BITS, cover, parsePrefix, Prefix } from "./address.js";
import { Grid } from "./grid.js";

const SCOPE_BITS = 8; // below a scope there are as many blocks, at least
const SCOPE_ROOM = 2; // bits that a scope is larger than what is used in it
const SCOPE_WORTH = 3; // bits that it leaves out, at least; else all is shown
const SCOPE_SHARE = 0.86; // of a tile's height; what is left is for the rest, below
const REST_FROM = 0.9;

const LOOSE_BITS = 8; // that a range made up for a block that lies in none is larger than it

/** A rectangle of a tile with what it stands for. */
class Block {
  constructor(tile, prefix, facts) {
    this.tile = tile;
    this.prefix = prefix;
    Object.assign(this, facts);
    this.rect = tile.place(prefix);
  }
}

class Tile {
  constructor(prefix, blockLength, pools, services, flat) {
    this.prefix = prefix;
    this.text = prefix.text;
    this.family = prefix.family;
    this.blockLength = Math.max(blockLength, prefix.length);
    this.pools = pools;
    this.services = services;
    this.flat = flat;
    this.used = null; // the first and the last address in use, for the scope
    this.rest = null; // the strip for what is out of the scope
    this.look(prefix);
    this.areas = [];
    this.bands = [];
    this.blocks = [];
  }

  /** Show this part of it, from now on. */
  look(scope) {
    this.scope = scope;
    this.grid = new Grid(scope, this.blockLength, this.flat);
    this.blockBits = this.pools.length ? this.blockLength - scope.length : 0;
  }

  /** A block is in use. */
  stretch(prefix) {
    const first = prefix.first < this.prefix.first ? this.prefix.first : prefix.first;
    const last = prefix.last > this.prefix.last ? this.prefix.last : prefix.last;
    const { used } = this;
    this.used = used
      ? { first: first < used.first ? first : used.first, last: last > used.last ? last : used.last }
      : { first, last };
  }

  /** Choose the scope by what is in use. */
  focus() {
    if (this.pools.length !== 1 || this.services.length) return;
    const { first, last } = this.used ?? { first: this.prefix.first, last: this.prefix.first };
    const common = BITS[this.family] - (first ^ last).toString(2).length;
    const length = Math.min(common - SCOPE_ROOM, this.blockLength - SCOPE_BITS);
    if (length - this.prefix.length < SCOPE_WORTH) return;
    this.look(new Prefix(this.family, first, length));
    this.rest = { tile: this, rect: { x: 0, y: REST_FROM, w: 1, h: 1 - REST_FROM } };
    this.rest.blocks = 2 ** (this.blockLength - this.prefix.length) - 2 ** (this.blockLength - length);
  }

  /** Where a prefix is drawn: in the scope, or in the strip for the rest. */
  place(prefix) {
    if (!this.rest) return this.grid.place(prefix);
    if (!this.scope.overlaps(prefix)) return this.rest.rect;
    const rect = this.grid.place(prefix);
    rect.y *= SCOPE_SHARE;
    rect.h *= SCOPE_SHARE;
    return rect;
  }

  /** Whether a prefix can be drawn where it is. */
  shows(prefix) {
    return this.scope.overlaps(prefix);
  }

  /** The prefix of a length at a point; null in the strip for the rest, and above it. */
  at(x, y, length) {
    if (!this.rest) return this.grid.at(x, y, length);
    return y < SCOPE_SHARE ? this.grid.at(x, y / SCOPE_SHARE, length) : null;
  }

  add(block) {
    this.blocks.splice(this.indexOf(block.prefix), 0, block);
  }

  remove(block) {
    const at = this.blocks.indexOf(block);
    if (at >= 0) this.blocks.splice(at, 1);
  }

  /** Where a prefix comes among the blocks: by its first address, the larger of two first. */
  indexOf(prefix) {
    let low = 0;
    let high = this.blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.blocks[middle].prefix;
      const before = other.first < prefix.first || (other.first === prefix.first && other.length <= prefix.length);
      if (before) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** A rectangle of the tile in the coordinates of the picture. */
  toWorld(rect) {
    const { x, y, w, h } = this.body;
    return { x: x + rect.x * w, y: y + rect.y * h, w: rect.w * w, h: rect.h * h };
  }

  /** The block at a point of the tile, of several the smallest, which is drawn last; null on free space. */
  blockAt(x, y) {
    let found = null;
    for (const block of this.blocks) {
      const { rect } = block;
      if (x < rect.x || y < rect.y || x >= rect.x + rect.w || y >= rect.y + rect.h) continue;
      if (!found || block.prefix.length >= found.prefix.length) found = block;
    }
    return found;
  }

  /** What could be given around a prefix that is smaller; else the prefix. */
  cellAround(prefix) {
    const length = this.areaOf(prefix)?.blockSize ?? this.blockLength;
    return prefix.length > length ? new Prefix(prefix.family, prefix.first, length) : prefix;
  }

  /** The smallest area of a pool around a prefix; null where no pool gives it. */
  areaOf(prefix) {
    return this.areas.findLast((area) => area.prefix.contains(prefix)) ?? null;
  }
}

export class Picture {
  constructor() {
    this.tiles = [];
    this.byNode = new Map(); // name → blocks
    this.byService = new Map(); // address → blocks
    this.byPool = new Map(); // name → areas
    this.shape = "";
    this.flat = false;
    this.grown = false; // tiles came, for which there is no place yet
    this.outgrown = false; // a block came that is out of its tile's scope
  }

  /** Whether a store's ranges differ from those that the tiles were made of. */
  differs(store) {
    return this.shape !== shapeOf(store);
  }

  /** Make all tiles and blocks anew, for tiles that are flat or not. */
  build(store, flat = this.flat) {
    this.flat = flat;
    this.shape = shapeOf(store);
    this.byNode.clear();
    this.byService.clear();
    this.byPool.clear();
    this.tiles = store.ranges.map((range) => makeTile(range, store, flat)).filter(Boolean);
    this.sort();
    const nodes = [...store.nodes.values()].map((node) => [node, node.blocks.map(parsePrefix)]);
    for (const prefix of nodes.flatMap(([, prefixes]) => prefixes)) {
      for (const tile of prefix ? this.around(prefix) : []) tile.stretch(prefix);
    }
    for (const tile of this.tiles) tile.focus();
    for (const pool of store.pools.values()) this.addAreas(pool);
    for (const tile of this.tiles) tile.areas.sort((one, two) => one.prefix.length - two.prefix.length);
    for (const range of store.serviceRanges) this.addBands(range);
    for (const [node, prefixes] of nodes) this.setNode(node, prefixes);
    for (const service of store.services.values()) this.setService(service);
    this.outgrown = false;
  }

  /** The tiles of each family that has any: those of pools, then those of Services. */
  get sections() {
    return ["IPv4", "IPv6"]
      .map((family) => ({ title: family, tiles: inOrder(this.tiles.filter((tile) => tile.family === family)) }))
      .filter((section) => section.tiles.length);
  }

  sort() {
    this.tiles.sort((one, two) => BITS[one.family] - BITS[two.family] || compare(one.prefix.first, two.prefix.first));
  }

  addAreas(pool) {
    const areas = [];
    for (const family of pool.families) {
      const prefix = parsePrefix(family.range);
      for (const tile of prefix ? this.around(prefix) : []) {
        const first = prefix.contains(tile.scope) ? tile.scope.first : prefix.first;
        const cell = tile.place(new Prefix(prefix.family, first, family.blockSize));
        const area = { tile, pool: pool.name, prefix, blockSize: family.blockSize, cell, rect: tile.place(prefix) };
        tile.areas.push(area);
        areas.push(area);
      }
    }
    this.byPool.set(pool.name, areas);
  }

  addBands(range) {
    for (const kind of ["static", "dynamic"]) {
      const first = range[kind] && parsePrefix(range[kind].first);
      const last = range[kind] && parsePrefix(range[kind].last);
      if (!first || !last || first.family !== last.family) continue;
      for (const prefix of cover(first.family, first.first, last.first)) {
        for (const tile of this.around(prefix)) tile.bands.push({ kind, rect: tile.place(prefix) });
      }
    }
  }

  /** Take in a node, with its blocks as prefixes where they have been read already. */
  setNode(node, prefixes = node.blocks.map(parsePrefix)) {
    this.removeNode(node.name);
    const blocks = prefixes.flatMap((prefix, at) => {
      const pool = node.pools[at] ?? "";
      return prefix ? this.addBlock(prefix, { kind: "node", node: node.name, pool, state: node.state }) : [];
    });
    if (blocks.length) this.byNode.set(node.name, blocks);
  }

  removeNode(name) {
    for (const block of this.byNode.get(name) ?? []) block.tile.remove(block);
    this.byNode.delete(name);
  }

  setService(service) {
    this.removeService(service.address);
    const prefix = parsePrefix(service.address);
    const blocks = prefix && service.range ? this.addBlock(prefix, { kind: "service", service }) : [];
    if (blocks.length) this.byService.set(service.address, blocks);
  }

  removeService(address) {
    for (const block of this.byService.get(address) ?? []) block.tile.remove(block);
    this.byService.delete(address);
  }

  addBlock(prefix, facts) {
    let tiles = this.around(prefix);
    if (!tiles.length) tiles = [this.addLoose(prefix)];
    return tiles.map((tile) => {
      this.outgrown ||= !tile.shows(prefix);
      const block = new Block(tile, prefix, facts);
      tile.add(block);
      return block;
    });
  }

  /** A tile for a block that is in no range, with room for its neighbours. */
  addLoose(prefix) {
    const range = new Prefix(prefix.family, prefix.first, Math.max(prefix.length - LOOSE_BITS, 0));
    const inner = this.tiles.filter((tile) => range.overlaps(tile.prefix));
    const tile = new Tile(inner.length ? prefix : range, prefix.length, [], [], this.flat);
    this.tiles.push(tile);
    this.sort();
    this.grown = true;
    return tile;
  }

  /** The tiles that share addresses with a prefix. O(log n + those found). */
  around(prefix) {
    const { tiles } = this;
    let low = 0;
    let high = tiles.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = tiles[middle];
      const before =
        BITS[other.family] < BITS[prefix.family] ||
        (other.family === prefix.family && other.prefix.last < prefix.first);
      if (before) low = middle + 1;
      else high = middle;
    }
    const found = [];
    while (tiles[low] && prefix.overlaps(tiles[low].prefix)) found.push(tiles[low++]);
    return found;
  }

  /** Whether tiles came since this was last asked, for which there is no place yet. */
  takeGrown() {
    const grown = this.grown;
    this.grown = false;
    return grown;
  }
}

function inOrder(tiles) {
  return [...tiles.filter((tile) => !tile.services.length), ...tiles.filter((tile) => tile.services.length)];
}

function makeTile(range, store, flat) {
  const prefix = parsePrefix(range.range);
  if (!prefix) return null;
  const sizes = range.pools
    .flatMap((name) => store.pools.get(name)?.families ?? [])
    .filter((family) => family.family === range.family)
    .map((family) => family.blockSize);
  const blockLength = sizes.length ? Math.max(...sizes) : BITS[prefix.family];
  return new Tile(prefix, blockLength, range.pools, range.services, flat);
}

function shapeOf(store) {
  const pools = [...store.pools.values()].map((pool) => [
    pool.name,
    ...pool.families.map((family) => `${family.range} ${family.blockSize}`),
  ]);
  return JSON.stringify([
    store.ranges,
    store.serviceRanges.map(({ range, static: low, dynamic: high }) => [range, low?.last, high?.last]),
    pools,
  ]);
}

function compare(one, two) {
  if (one === two) return 0;
  return one < two ? -1 : 1;
}
