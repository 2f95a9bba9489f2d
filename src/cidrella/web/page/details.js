// What is chosen, in full, beside the map. For a node: also every pool, and why it gets it or not.

import { age } from "./ages.js";
import { h, linkButton, stopIn } from "./dom.js";
import { describe } from "./things.js";
import { count, percent, plural, stateOf } from "./words.js";

export class DetailsView {
  /** `closed()` when somebody closed it; `go(thing)` to choose another thing; `uncovered()` when it came or went. */
  constructor(panel, { store, picture, closed, go, uncovered }) {
    Object.assign(this, { panel, store, picture, closed, go, uncovered });
    this.heading = panel.querySelector("h2");
    this.content = panel.querySelector(".content");
    panel.querySelector(".close").addEventListener("click", () => closed());
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") closed();
    });
    this.thing = null;
    this.shown = "";
    this.verdicts = null;
    this.explained = null; // the node as it was when those were asked for
  }

  get open() {
    return !this.panel.hidden;
  }

  show(thing, { focus = false } = {}) {
    if (thing?.name !== this.thing?.name || thing?.kind !== this.thing?.kind) this.verdicts = null;
    this.thing = thing;
    this.panel.hidden = !thing;
    this.uncovered();
    this.shown = "";
    this.refresh();
    if (thing && focus) this.heading.focus();
  }

  /** Show what is true now. Built anew only where that differs, so that nobody loses their place for nothing. */
  refresh() {
    if (!this.thing) return;
    const facts = this.facts();
    if (this.verdicts && facts.node && facts.node !== this.explained) this.explain(facts.node);
    const signature = JSON.stringify([facts, this.verdicts]);
    if (signature === this.shown) return;
    this.shown = signature;
    const focus = this.content.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    this.heading.textContent = facts.title;
    this.content.replaceChildren(...this.build(facts));
    if (focus) (stopIn(this.content, focus) ?? this.heading).focus();
  }

  facts() {
    const { thing, store } = this;
    if (thing.kind === "node" && store.nodes.has(thing.name))
      return { title: thing.name, node: store.nodes.get(thing.name) };
    if (thing.kind === "pool" && store.pools.has(thing.name))
      return { title: thing.name, pool: store.pools.get(thing.name) };
    const words = describe(thing, store, this.picture());
    return words ?? { title: thing.name ?? thing.address ?? thing.range ?? "", lines: ["It is gone."] };
  }

  build({ node, pool, lines }) {
    if (node) return this.node(node);
    if (pool) return this.pool(pool);
    return [
      h(
        "ul",
        { class: "lines" },
        lines.map((line) => h("li", {}, line)),
      ),
    ];
  }

  node(node) {
    const blocks = node.blocks.map((block, at) => [
      h("span", { class: "mono" }, block),
      node.pools[at] ? [h("span", { class: "under" }, " from "), this.poolLink(node.pools[at])] : null,
    ]);
    return [
      facts([
        [
          "State",
          [
            h("span", { class: `tag ${node.state}` }, stateOf(node)),
            h("span", { class: "under" }, " for ", age(node.since, "lasting")),
          ],
        ],
        [
          node.blocks.length === 1 ? "Block" : "Blocks",
          blocks.length
            ? h(
                "ul",
                { class: "plain" },
                blocks.map((each) => h("li", {}, each.flat())),
              )
            : "none",
        ],
      ]),
      node.reason ? h("p", { class: "reason" }, node.reason) : null,
      node.help ? h("p", { class: "help" }, h("span", { class: "help-word" }, "What helps: "), node.help) : null,
      ...this.explanation(node),
    ].filter(Boolean);
  }

  poolLink(name) {
    return linkButton(name, () => this.go({ kind: "pool", name }), `pool-${name}`);
  }

  explanation(node) {
    if (!this.verdicts || this.verdicts.error) {
      const ask = () => this.explain(node);
      return [
        this.verdicts ? h("p", { class: "remark", role: "status" }, this.verdicts.error) : null,
        h(
          "button",
          { type: "button", class: "plain-button", "data-focus": "explain", onclick: ask },
          "Which pools apply, and why",
        ),
      ];
    }
    const applying = this.verdicts.filter((verdict) => verdict.applies);
    const others = this.verdicts.filter((verdict) => !verdict.applies);
    const parts = [
      h(
        "h3",
        { tabindex: "-1", "data-focus": "explain" },
        applying.length ? "Pools that apply, in this order" : "No pool applies",
      ),
    ];
    if (applying.length)
      parts.push(
        h(
          "ol",
          { class: "verdicts" },
          applying.map((verdict) => this.verdict(verdict)),
        ),
      );
    if (others.length) {
      const shown = others.slice(0, 20);
      const rest = others.length - shown.length;
      parts.push(
        h("h3", {}, "Pools that do not"),
        h(
          "ul",
          { class: "verdicts" },
          shown.map((verdict) => this.verdict(verdict)),
        ),
      );
      if (rest) parts.push(h("p", { class: "under" }, `and ${plural(rest, "more pool")}`));
    }
    return parts;
  }

  verdict({ pool, why, room, applies, beforeNext }) {
    return h(
      "li",
      {},
      this.poolLink(pool),
      applies && !room ? h("span", { class: "tag full" }, "full") : null,
      h("span", { class: "note" }, [why, beforeNext].filter(Boolean).join("; ")),
    );
  }

  /** Ask why a node has what it has; again, when it has something else. */
  async explain(node) {
    const { name } = node;
    this.explained = node;
    let verdicts;
    try {
      const reply = await fetch(`api/v1/explain/${encodeURIComponent(name)}`, { cache: "no-store" });
      const answer = await reply.json();
      verdicts = reply.ok ? answer.pools : { error: answer.error };
    } catch {
      verdicts = { error: "The server cannot be reached." };
    }
    if (this.thing?.name !== name) return;
    this.verdicts = verdicts;
    this.refresh();
  }

  pool(pool) {
    const families = pool.families.map(({ range, blockSize, free, used, total }) =>
      h(
        "li",
        {},
        h("span", { class: "mono" }, range),
        h(
          "span",
          { class: "note" },
          `blocks of /${blockSize}: ${count(used)} used, ${count(free)} free, ${count(total)} in all`,
        ),
      ),
    );
    return [
      facts([
        ["State", h("span", { class: `tag ${pool.state}` }, pool.state)],
        ["Kind", pool.kind || "from the command line"],
        ["Selector", pool.selector || "none: a default for every node"],
        ["Nodes", count(pool.nodes)],
        ["Used", percent(pool.utilisation)],
        pool.forecast.text ? ["Forecast", pool.forecast.text] : null,
      ]),
      families.length ? h("ul", { class: "plain" }, families) : null,
      h("p", { class: "reason" }, pool.message),
    ].filter(Boolean);
  }
}

function facts(pairs) {
  return h(
    "dl",
    {},
    pairs.filter(Boolean).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}
