// What the map is made of: a tile for each range, in it the areas of pools, the bands of service ranges, and blocks, of
// nodes and of Services, in the order of addresses. Kept up to date node by node.

import { BITS, cover, parsePrefix, Prefix } from "./address.js";
import { Grid } from "./grid.js";

const LOOSE = { IPv4: 16, IPv6: 48 }; // the length of ranges made up for blocks that lie in none

/** A rectangle of a tile with what it stands for. */
class Block {
  constructor(tile, prefix, facts) {
    this.tile = tile;
    this.prefix = prefix;
    Object.assign(this, facts);
    this.rect = tile.grid.place(prefix);
  }
}

class Tile {
  constructor(prefix, blockLength, pools, services) {
    this.prefix = prefix;
    this.text = prefix.text;
    this.family = prefix.family;
    this.blockLength = Math.max(blockLength, prefix.length);
    this.blockBits = pools.length ? this.blockLength - prefix.length : 0;
    this.grid = new Grid(prefix, this.blockLength);
    this.pools = pools;
    this.services = services;
    this.areas = [];
    this.bands = [];
    this.blocks = [];
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
  }

  /** Whether a store's ranges differ from those that the tiles were made of. */
  differs(store) {
    return this.shape !== shapeOf(store);
  }

  /** Make all tiles and blocks anew. */
  build(store) {
    this.shape = shapeOf(store);
    this.byNode.clear();
    this.byService.clear();
    this.byPool.clear();
    this.tiles = store.ranges.map((range) => makeTile(range, store)).filter(Boolean);
    this.sort();
    for (const pool of store.pools.values()) this.addAreas(pool);
    for (const tile of this.tiles) tile.areas.sort((one, two) => one.prefix.length - two.prefix.length);
    for (const range of store.serviceRanges) this.addBands(range);
    for (const node of store.nodes.values()) this.setNode(node);
    for (const service of store.services.values()) this.setService(service);
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
        const cell = tile.grid.place(new Prefix(prefix.family, prefix.first, family.blockSize));
        const area = { tile, pool: pool.name, prefix, blockSize: family.blockSize, cell, rect: tile.grid.place(prefix) };
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
        for (const tile of this.around(prefix)) tile.bands.push({ kind, range, rect: tile.grid.place(prefix) });
      }
    }
  }

  /** Take in a node. Returns its blocks. */
  setNode(node) {
    this.removeNode(node.name);
    const blocks = node.blocks.flatMap((text, at) => {
      const prefix = parsePrefix(text);
      const pool = node.pools[at] ?? "";
      return prefix ? this.addBlock(prefix, { kind: "node", node: node.name, pool, state: node.state }) : [];
    });
    if (blocks.length) this.byNode.set(node.name, blocks);
    return blocks;
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
    return blocks;
  }

  removeService(address) {
    for (const block of this.byService.get(address) ?? []) block.tile.remove(block);
    this.byService.delete(address);
  }

  addBlock(prefix, facts) {
    let tiles = this.around(prefix);
    if (!tiles.length) tiles = [this.addLoose(prefix)];
    return tiles.map((tile) => {
      const block = new Block(tile, prefix, facts);
      tile.add(block);
      return block;
    });
  }

  /** A tile for a block that is in no range, with room for its neighbours. */
  addLoose(prefix) {
    const length = Math.min(LOOSE[prefix.family], prefix.length);
    const range = new Prefix(prefix.family, prefix.first, length);
    const inner = this.tiles.filter((tile) => range.overlaps(tile.prefix));
    const tile = new Tile(inner.length ? prefix : range, prefix.length, [], []);
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
        BITS[other.family] < BITS[prefix.family] || (other.family === prefix.family && other.prefix.last < prefix.first);
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
    return Boolean(grown);
  }
}

function inOrder(tiles) {
  return [...tiles.filter((tile) => !tile.services.length), ...tiles.filter((tile) => tile.services.length)];
}

function makeTile(range, store) {
  const prefix = parsePrefix(range.range);
  if (!prefix) return null;
  const sizes = range.pools
    .flatMap((name) => store.pools.get(name)?.families ?? [])
    .filter((family) => family.family === range.family)
    .map((family) => family.blockSize);
  const blockLength = sizes.length ? Math.max(...sizes) : BITS[prefix.family];
  return new Tile(prefix, blockLength, range.pools, range.services);
}

function shapeOf(store) {
  const pools = [...store.pools.values()].map((pool) => [
    pool.name,
    ...pool.families.map((family) => `${family.range} ${family.blockSize}`),
  ]);
  return JSON.stringify([store.ranges, store.serviceRanges.map(({ range, static: low, dynamic: high }) => [range, low?.last, high?.last]), pools]);
}

function compare(one, two) {
  if (one === two) return 0;
  return one < two ? -1 : 1;
}
