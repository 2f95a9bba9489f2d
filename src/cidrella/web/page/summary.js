// The figures at the top.

import { byId, setText } from "./dom.js";
import { count, percent, plural } from "./words.js";

const WRONG = new Set(["conflict", "unreadable"]);

/** What there is to count, in one walk over nodes and pools. */
export function figures(store) {
  const found = {
    nodes: store.nodes.size,
    served: 0,
    waiting: 0,
    wrong: 0,
    pools: store.pools.size,
    full: 0,
    families: new Map(),
  };
  for (const node of store.nodes.values()) {
    if (node.blocks.length) found.served++;
    if (node.state === "waiting") found.waiting++;
    if (WRONG.has(node.state)) found.wrong++;
  }
  for (const pool of store.pools.values()) {
    if (pool.state === "full") found.full++;
    for (const { family, total, free } of pool.families) {
      const sum = found.families.get(family) ?? { total: 0, free: 0 };
      sum.total += total;
      sum.free += free;
      found.families.set(family, sum);
    }
  }
  return found;
}

export function showSummary(store) {
  const found = figures(store);
  show(
    "nodes",
    count(found.nodes),
    !found.nodes ? "none yet" : found.served === found.nodes ? "all have blocks" : `${count(found.served)} have blocks`,
  );
  show("waiting", count(found.waiting), found.waiting ? "see below" : "nobody waits", found.waiting ? "warn" : "");
  show("wrong", count(found.wrong), found.wrong ? "see below" : "none", found.wrong ? "bad" : "");
  const fullness = found.full ? `${count(found.full)} full` : "none is full";
  show("pools", count(found.pools), found.pools ? fullness : "none yet", found.full ? "bad" : "");
  for (const family of ["IPv4", "IPv6"]) {
    const sum = found.families.get(family);
    byId(`figure-${family}`).hidden = !sum;
    if (sum) show(family, percent((sum.total - sum.free) / sum.total), `${plural(sum.free, "block")} free`);
  }
  showTitle(store, found);
  return found;
}

export function showTitle(store, found = figures(store)) {
  const waiting = found.waiting ? `(${count(found.waiting)} waiting) ` : "";
  document.title = waiting + [store.cluster.name, "Cidrella"].filter(Boolean).join(" · ");
}

function show(name, value, note, level = "") {
  const figure = byId(`figure-${name}`);
  setText(figure.querySelector(".value"), value);
  setText(figure.querySelector(".note"), note);
  figure.dataset.level = level;
}
