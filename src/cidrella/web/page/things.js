// Things that can be pointed at, chosen and found, each as a few plain fields that stay true while everything changes:
//
//   { kind: "node", name, at }        a node's block; `at` is the block's text, "" for all of them
//   { kind: "service", address }      a Service's address
//   { kind: "pool", name }            what a pool may give
//   { kind: "range", range }          a range
//   { kind: "free", prefix }          addresses that nobody has
//   { kind: "rest", range }           what of a range is out of its tile's scope
//
// Here: where a thing is in the picture, and what it is in words.

import { parsePrefix } from "./address.js";
import { count, percent, plural, poolsOf, stateOf } from "./words.js";

const NAMED = 4; // holders of parts of what is free in part

/** Where a thing is: [{ tile, rect }], nothing where it is not in the picture. */
export function placesOf(thing, picture) {
  switch (thing?.kind) {
    case "node": {
      const blocks = picture.byNode.get(thing.name) ?? [];
      const first = blocks.filter((block) => block.prefix.text === thing.at);
      return [...first, ...blocks.filter((block) => !first.includes(block))];
    }
    case "service":
      return picture.byService.get(thing.address) ?? [];
    case "pool":
      return picture.byPool.get(thing.name) ?? [];
    case "range":
      return picture.tiles.filter((tile) => tile.text === thing.range).map((tile) => ({ tile, rect: WHOLE }));
    case "rest":
      return picture.tiles.filter((tile) => tile.text === thing.range && tile.rest).map((tile) => tile.rest);
    case "free":
      return picture.around(thing.prefix).map((tile) => ({ tile, rect: tile.place(thing.prefix) }));
    default:
      return [];
  }
}

const WHOLE = { x: 0, y: 0, w: 1, h: 1 };

export function thingOf(block) {
  if (block.kind === "service") return { kind: "service", address: block.service.address };
  return { kind: "node", name: block.node, at: block.prefix.text };
}

/** A thing in words: { title, lines }; null where it is gone. */
export function describe(thing, store, picture) {
  switch (thing.kind) {
    case "node":
      return describeNode(thing, store);
    case "service":
      return describeService(store.services.get(thing.address));
    case "pool":
      return describePool(store.pools.get(thing.name));
    case "rest":
      return describeRest(thing.range, picture);
    case "range":
      return describeRange(thing.range, store, picture);
    default:
      return describeFree(thing.prefix, store, picture);
  }
}

function describeNode(thing, store) {
  const node = store.nodes.get(thing.name);
  if (!node) return null;
  const at = node.blocks.indexOf(thing.at);
  const pool = at >= 0 ? node.pools[at] : poolsOf(node);
  const lines = [at >= 0 ? thing.at : node.blocks.join(", ") || "no block"];
  if (pool) lines.push(`pool ${pool}`);
  if (node.state !== "served" || node.terminating) lines.push(stateOf(node));
  if (node.reason) lines.push(node.reason);
  return { title: node.name, lines };
}

function describeService(service) {
  if (!service) return null;
  const band = service.band ? `, ${service.band} band` : "";
  return { title: service.holder, lines: [service.address, `Service${band}`] };
}

function describePool(pool) {
  if (!pool) return null;
  const families = pool.families.map(
    ({ range, blockSize, free, total }) =>
      `${range} in blocks of /${blockSize}: ${count(free)} of ${count(total)} free`,
  );
  return { title: pool.name, lines: [`pool, ${pool.state}`, ...families] };
}

function describeRange(text, store, picture) {
  const tile = picture.tiles.find((each) => each.text === text);
  if (!tile) return null;
  const lines = [];
  if (tile.pools.length)
    lines.push(tile.pools.length > 3 ? plural(tile.pools.length, "pool") : `pool ${tile.pools.join(", ")}`);
  if (tile.services.length) lines.push("service range");
  if (!tile.pools.length && !tile.services.length) lines.push("in no pool");
  const share = usedShare(tile, store);
  if (share !== null) lines.push(`${percent(share)} used`);
  lines.push(tile.blocks.length ? plural(tile.blocks.length, "block") + " in use" : "nothing in use");
  return { title: text, lines };
}

function describeRest(text, picture) {
  const tile = picture.tiles.find((each) => each.text === text && each.rest);
  if (!tile) return null;
  return { title: `the rest of ${text}`, lines: [tile.rest.text, `pool ${tile.pools[0]}`] };
}

function describeFree(prefix, store, picture) {
  const [tile] = picture.around(prefix);
  const text = prefix.single ? prefix.text.replace(/\/\d+$/, "") : prefix.text;
  if (!tile) return { title: text, lines: ["in no range"] };
  const services = store.serviceRanges.find((range) => parsePrefix(range.range)?.overlaps(prefix));
  if (services && parsePrefix(services.range).contains(prefix))
    return {
      title: text,
      lines: [`free, ${bandOf(prefix, services)}`, `in ${services.range}, which no node is given`],
    };
  const taken = tile.blocks.filter((block) => block.prefix.overlaps(prefix)).map(holding);
  if (services) taken.unshift(`Services: ${services.range}`);
  const area = tile.areaOf(prefix);
  const where = area ? `pool ${area.pool}` : `in ${tile.text}`;
  if (taken.length) return { title: text, lines: ["free in part", where, ...shortened(taken)] };
  return { title: text, lines: [area ? "free" : "free, and in no pool", where] };
}

/** Who holds a block. */
function holding(block) {
  return block.kind === "service"
    ? `${block.service.holder}: ${block.service.address}`
    : `${block.node}: ${block.prefix.text}`;
}

function shortened(lines) {
  if (lines.length <= NAMED) return lines;
  return [...lines.slice(0, NAMED), `and ${count(lines.length - NAMED)} more`];
}

function bandOf(prefix, range) {
  for (const name of ["static", "dynamic"]) {
    const first = range[name] && parsePrefix(range[name].first);
    const last = range[name] && parsePrefix(range[name].last);
    if (first && last && first.first <= prefix.first && prefix.last <= last.last) return `${name} band of Services`;
  }
  return "service range";
}

/** How much of what pools may give of a range cannot be given now; null where no pool gives any of it. */
export function usedShare(tile, store) {
  let total = 0;
  let free = 0;
  for (const name of tile.pools) {
    for (const family of store.pools.get(name)?.families ?? []) {
      if (family.family !== tile.family) continue;
      total += family.total;
      free += family.free;
    }
  }
  return total ? (total - free) / total : null;
}
