// The pools: how full each is, and when it runs out.

import { h, linkButton } from "./dom.js";
import { PagedTable } from "./table.js";
import { clock, count, percent } from "./words.js";

const NEARLY = 0.9; // from here on a bar asks to be looked at

const STATES = { active: "active", full: "full", terminating: "being deleted", invalid: "invalid", pending: "pending" };

export function poolsTable(host, palette, go) {
  return new PagedTable(host, {
    caption: "Pools",
    filterLabel: "Filter pools by name, range, selector or state",
    id: (pool) => pool.name,
    text: (pool) =>
      [pool.name, pool.kind, STATES[pool.state], pool.selector, ...pool.families.map((family) => family.range)].join(
        " ",
      ),
    sort: 3,
    descending: true,
    empty: "There is no pool. Nodes wait until there is one.",
    columns: [
      { title: "Pool", key: (pool) => pool.name, cell: (pool) => nameCell(pool, palette, go) },
      { title: "Ranges", cell: rangesCell },
      {
        title: "Free",
        class: "number",
        key: (pool) => Math.min(...pool.families.map((family) => family.free)),
        cell: freeCell,
      },
      {
        title: "Used",
        class: "use",
        key: (pool) => pool.utilisation + (pool.state === "full" ? 1 : 0),
        descendingFirst: true,
        cell: usedCell,
      },
      { title: "Runs out", class: "forecast", key: outKey, cell: forecastCell },
    ],
  });
}

function nameCell(pool, palette, go) {
  const swatch = h("span", {
    class: "swatch",
    "aria-hidden": "true",
    style: { backgroundColor: palette.of(pool.name) },
  });
  return [
    h(
      "div",
      { class: "named" },
      swatch,
      linkButton(pool.name, () => go({ kind: "pool", name: pool.name }), "go"),
    ),
    pool.state === "active" || pool.state === "full"
      ? null
      : h("span", { class: `tag ${pool.state}` }, STATES[pool.state] ?? pool.state),
    h("div", { class: "under" }, pool.selector || "any node"),
  ];
}

function rangesCell(pool) {
  if (!pool.families.length) return h("span", { class: "under" }, pool.message);
  return pool.families.map(({ range, blockSize }) =>
    h(
      "div",
      { class: "range-line" },
      h("span", { class: "mono" }, range),
      h("span", { class: "under" }, ` by /${blockSize}`),
    ),
  );
}

function freeCell(pool) {
  return pool.families.map(({ free }) => h("div", {}, count(free)));
}

function usedCell(pool) {
  if (!pool.families.length) return "–";
  const full = pool.state === "full";
  const level = full ? "full" : pool.utilisation >= NEARLY ? "nearly" : "";
  return h(
    "div",
    { class: `meter ${level}` },
    h(
      "span",
      { class: "bar", "aria-hidden": "true" },
      h("span", { style: { width: `${Math.min(pool.utilisation, 1) * 100}%` } }),
    ),
    h("span", { class: "value" }, full ? "full" : percent(pool.utilisation)),
  );
}

/** What is full comes first, what does not run out last. */
function outKey(pool) {
  return pool.state === "full" ? "" : (pool.forecast.exhaustedAt ?? "~");
}

function forecastCell(pool) {
  if (!pool.families.length) return "–";
  if (pool.state === "full") return h("span", { class: "bad-text" }, "now");
  const { text, exhaustedAt } = pool.forecast;
  if (!text) return h("span", { class: "under" }, "not in sight");
  return h("span", { title: exhaustedAt ? clock(exhaustedAt) : null }, text);
}
