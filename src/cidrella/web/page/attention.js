// What needs somebody: nodes that wait, nodes that something is wrong with, pools that are full or invalid. Nodes with
// the same reason stand together, since what helps one helps all of them.

import { age } from "./ages.js";
import { h, keyed, linkButton, setText } from "./dom.js";
import { plural } from "./words.js";

const NAMED = 5; // nodes of a group that are named at once
const NAMED_MORE = 50;
const SHOWN = 12; // groups
const KINDS = {
  unreadable: { rank: 0, title: "cannot be read", level: "bad" },
  conflict: { rank: 1, title: "in conflict", level: "bad" },
  waiting: { rank: 2, title: "waiting", level: "warn" },
  untracked: { rank: 4, title: "in no pool", level: "plain" },
};
const POOL_KINDS = { invalid: { rank: 3, title: "invalid pool", level: "bad" } };

export class AttentionView {
  constructor(list, calm, more, go) {
    Object.assign(this, { list, calm, more, go, groups: new Map(), open: new Set() });
  }

  show(store) {
    this.store = store;
    const groups = [...nodeGroups(store), ...poolGroups(store)].sort(
      (one, two) => one.kind.rank - two.kind.rank || two.names.length - one.names.length,
    );
    const shown = groups.slice(0, SHOWN).map((group) => this.kept(group));
    this.groups = new Map(shown.map((group) => [group.key, group]));
    keyed(
      this.list,
      shown,
      (group) => group.key,
      (group) => this.card(group),
    );
    this.calm.hidden = groups.length > 0;
    setText(this.calm, store.nodes.size ? "Nothing waits, nothing is wrong." : "No node yet.");
    this.more.hidden = groups.length <= SHOWN;
    setText(this.more, `and ${plural(groups.length - SHOWN, "more reason")}: see the table of nodes`);
  }

  /** The group as it was, where nothing about it changed: then its card stays as it is. */
  kept(group) {
    const before = this.groups.get(group.key);
    const same =
      before &&
      before.names.length === group.names.length &&
      before.names.every((name, at) => name === group.names[at]);
    return same ? before : group;
  }

  card(group) {
    const open = this.open.has(group.key);
    const names = group.names.slice(0, open ? NAMED_MORE : NAMED);
    const rest = group.names.length - names.length;
    const toggle = () => {
      if (open) this.open.delete(group.key);
      else this.open.add(group.key);
      this.groups.delete(group.key); // so that its card is built anew
      this.show(this.store);
    };
    return h(
      "li",
      { class: `trouble ${group.kind.level}` },
      h(
        "h3",
        {},
        group.title,
        group.since ? h("span", { class: "under" }, " for ", age(group.since, "lasting")) : null,
      ),
      h("p", { class: "reason" }, group.reason),
      group.help ? h("p", { class: "help" }, h("span", { class: "help-word" }, "What helps: "), group.help) : null,
      h(
        "p",
        { class: "names" },
        names.map((name) => [linkButton(name, () => this.go(group.thing(name)), `name-${name}`), " "]).flat(),
        rest > 0 && !open ? linkButton(`and ${rest} more`, toggle, "more") : null,
        rest > 0 && open ? h("span", { class: "under" }, `and ${rest} more`) : null,
        open ? linkButton("fewer", toggle, "more") : null,
      ),
    );
  }
}

function nodeGroups(store) {
  const groups = new Map();
  for (const node of store.nodes.values()) {
    const kind = KINDS[node.state];
    if (!kind) continue;
    const key = `${node.state}\n${node.reason}\n${node.help}`;
    if (!groups.has(key))
      groups.set(key, {
        key,
        kind,
        reason: node.reason,
        help: node.help,
        names: [],
        since: node.since,
        thing: thingOfNode(store),
      });
    const group = groups.get(key);
    group.names.push(node.name);
    if (node.since < group.since) group.since = node.since;
  }
  for (const group of groups.values()) group.title = `${plural(group.names.length, "node")} ${group.kind.title}`;
  return groups.values();
}

function thingOfNode(store) {
  return (name) => ({ kind: "node", name, at: store.nodes.get(name)?.blocks[0] ?? "" });
}

function poolGroups(store) {
  return [...store.pools.values()]
    .filter((pool) => POOL_KINDS[pool.state])
    .map((pool) => ({
      key: `pool\n${pool.name}\n${pool.message}`,
      kind: POOL_KINDS[pool.state],
      title: "1 invalid pool",
      reason: pool.message,
      help: "",
      names: [pool.name],
      since: "",
      thing: (name) => ({ kind: "pool", name }),
    }));
}
