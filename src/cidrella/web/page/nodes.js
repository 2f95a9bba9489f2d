// The nodes: what each holds, and how it stands. Also what the map shows, for those who do not see it.

import { h, linkButton } from "./dom.js";
import { PagedTable } from "./table.js";
import { poolsOf, stateOf } from "./words.js";

const ORDER = ["unreadable", "conflict", "waiting", "pending", "untracked", "served"];

export function nodesTable(host, palette, go) {
  return new PagedTable(host, {
    caption: "Nodes",
    filterLabel: "Filter nodes by name, block, pool or state",
    id: (node) => node.name,
    text: (node) => [node.name, ...node.blocks, ...node.pools, stateOf(node)].join(" "),
    sort: 0,
    empty: "There is no node yet.",
    columns: [
      {
        title: "Node",
        key: (node) => node.name,
        cell: (node) =>
          linkButton(node.name, () => go({ kind: "node", name: node.name, at: node.blocks[0] ?? "" }), "go"),
      },
      { title: "Blocks", class: "mono", cell: (node) => node.blocks.map((block) => h("div", {}, block)) },
      { title: "Pool", key: poolsOf, cell: (node) => poolCell(node, palette) },
      { title: "State", key: (node) => ORDER.indexOf(node.state), cell: stateCell },
    ],
  });
}

function poolCell(node, palette) {
  return [...new Set(node.pools)]
    .filter(Boolean)
    .map((pool) =>
      h(
        "div",
        { class: "named" },
        h("span", { class: "swatch", "aria-hidden": "true", style: { backgroundColor: palette.of(pool) } }),
        pool,
      ),
    );
}

function stateCell(node) {
  return h("span", { class: `tag ${node.state}` }, stateOf(node));
}
