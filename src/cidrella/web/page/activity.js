// What happened of late: blocks given and released, and events; the newest first.

import { age } from "./ages.js";
import { h, keyed, linkButton, setText } from "./dom.js";

const SHOWN = 40;

export class ActivityView {
  constructor(list, calm, choice, go) {
    Object.assign(this, { list, calm, choice, go });
    choice.addEventListener("change", () => this.show(this.store));
  }

  show(store) {
    this.store = store;
    const kind = this.choice.querySelector("input:checked").value;
    const entries = [
      ...(kind === "events" ? [] : store.allocations),
      ...(kind === "allocations" ? [] : store.events.values()),
    ];
    const newest = entries
      .map((entry, at) => [entry, at])
      .sort((one, two) => (one[0].time === two[0].time ? two[1] - one[1] : one[0].time < two[0].time ? 1 : -1));
    keyed(
      this.list,
      newest.slice(0, SHOWN).map(([entry]) => entry),
      keyOf,
      (entry) => this.item(entry),
    );
    this.calm.hidden = entries.length > 0;
    setText(this.calm, "Nothing has happened since this page's server began.");
  }

  item(entry) {
    return h("li", { class: "entry" }, age(entry.time, "ago"), entry.what ? this.allocation(entry) : this.event(entry));
  }

  allocation({ what, node, blocks, pools }) {
    const pool = [...new Set(pools)].filter(Boolean).join(", ");
    return h(
      "p",
      {},
      linkButton(node, () => this.go({ kind: "node", name: node, at: blocks[0] ?? "" }), "go"),
      what === "given" ? " got " : " gave back ",
      h("span", { class: "mono" }, blocks.join(", ")),
      pool ? ` ${what === "given" ? "from" : "to"} ${pool}` : "",
    );
  }

  event({ type, reason, kind, name, note, count }) {
    const about =
      kind === "Node"
        ? [linkButton(name, () => this.go({ kind: "node", name, at: "" }), "go")]
        : [h("bdi", {}, kind), " ", h("bdi", {}, name)];
    return h(
      "p",
      {},
      h("span", { class: type === "Warning" ? "tag waiting" : "tag" }, reason),
      " ",
      ...about,
      count > 1 ? h("span", { class: "under" }, ` (${count} times)`) : null,
      h("span", { class: "note" }, note),
    );
  }
}

function keyOf(entry) {
  return entry.what ? `${entry.time} ${entry.what} ${entry.node}` : `event ${entry.id}`;
}
