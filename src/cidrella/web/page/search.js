// Finding: nodes by a part of their name, and whatever is at an address or in a prefix. Nothing is typed twice: what
// reads as an address, or as the beginning of one, is looked up as that, and everything is also looked for by name.

import { parseBeginning, parsePrefix } from "./address.js";
import { poolsOf, stateOf } from "./words.js";

const SHOWN = 12;

/**
 * Hits for a text: { hits, more }, the best first. A hit is { thing, title, note, what }: a thing of things.js, and
 * what to show of it.
 */
export function search(text, store, picture) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return { hits: [], more: 0 };
  const prefix = parsePrefix(wanted) ?? parseBeginning(wanted);
  const found = [...(prefix ? byAddress(prefix, store, picture) : []), ...byName(wanted, store)];
  const hits = [...new Map(found.map((hit) => [keyOf(hit), hit])).values()];
  return { hits: hits.slice(0, SHOWN), more: Math.max(hits.length - SHOWN, 0) };
}

/** What tells a hit from others. */
export function keyOf({ what, title }) {
  return `${what} ${title}`;
}

function byName(wanted, store) {
  const ranked = [];
  const look = (name, make) => {
    const at = name.toLowerCase().indexOf(wanted);
    if (at < 0) return;
    ranked.push({ rank: (at > 0 ? 1e6 : 0) + name.length, name, make });
  };
  for (const node of store.nodes.values()) look(node.name, () => nodeHit(node));
  for (const pool of store.pools.values()) look(pool.name, () => poolHit(pool));
  for (const service of store.services.values()) look(service.holder, () => serviceHit(service));
  ranked.sort((one, two) => one.rank - two.rank || (one.name < two.name ? -1 : 1));
  return ranked.map((each) => each.make());
}

/** The blocks that share addresses with a prefix, the smallest first; then what may give it; then the place itself. */
function byAddress(prefix, store, picture) {
  const tiles = picture.around(prefix);
  const blocks = tiles.flatMap((tile) => tile.blocks.filter((block) => block.prefix.overlaps(prefix)));
  const nearness = (block) => Math.abs(block.prefix.length - prefix.length);
  blocks.sort((one, two) => nearness(one) - nearness(two));
  const hits = blocks.map((block) =>
    block.kind === "service" ? serviceHit(block.service) : nodeHit(store.nodes.get(block.node), block.prefix.text),
  );
  if (!blocks.some((block) => block.prefix.contains(prefix)) && tiles.some((tile) => tile.prefix.contains(prefix))) {
    const title = prefix.single ? prefix.text.replace(/\/\d+$/, "") : prefix.text;
    hits.unshift({
      thing: { kind: "free", prefix },
      title,
      note: blocks.length ? "in part" : "nobody has it",
      what: "free",
    });
  }
  const areas = tiles.flatMap((tile) => tile.areas.filter((area) => area.prefix.overlaps(prefix)));
  return [...hits, ...areas.reverse().map((area) => poolHit(store.pools.get(area.pool)))];
}

function nodeHit(node, at = "") {
  const note = [node.blocks.join(", ") || stateOf(node), poolsOf(node)].filter(Boolean).join(" · ");
  return {
    thing: { kind: "node", name: node.name, at: at || node.blocks[0] || "" },
    title: node.name,
    note,
    what: "node",
  };
}

function poolHit(pool) {
  const note = pool.families.map((family) => family.range).join(", ");
  return { thing: { kind: "pool", name: pool.name }, title: pool.name, note, what: "pool" };
}

function serviceHit(service) {
  return {
    thing: { kind: "service", address: service.address },
    title: service.holder,
    note: service.address,
    what: "Service",
  };
}
