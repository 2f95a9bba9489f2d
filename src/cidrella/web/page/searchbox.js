// The search box: a combobox as screen readers know it. "/" leads to it from anywhere; arrows walk the hits, Enter goes
// to one.

import { h } from "./dom.js";
import { keyOf, search } from "./search.js";
import { plural } from "./words.js";

export class SearchBox {
  /** `go(thing)` when a hit was chosen; `find()` gives { store, picture }. */
  constructor(input, list, status, { find, go }) {
    Object.assign(this, { input, list, status, find, go });
    this.hits = [];
    this.shown = "";
    this.at = -1;
    input.addEventListener("input", () => this.look());
    input.addEventListener("focus", () => this.look());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.key(event));
    // Before the input loses the focus, or the list would be gone when the click arrives.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) =>
      this.take(Number(event.target.closest("[role=option]")?.dataset.at ?? -1)),
    );
    document.addEventListener("keydown", (event) => this.shortcut(event));
  }

  shortcut(event) {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.input.focus();
    this.input.select();
  }

  /** Show the hits for what was typed. */
  look() {
    const { hits, more } = this.search();
    this.show(hits, more);
    const empty = !this.input.value.trim();
    this.list.hidden = empty;
    this.input.setAttribute("aria-expanded", String(!empty));
    this.status.textContent = empty ? "" : hits.length ? plural(hits.length + more, "hit") : "No hits";
    this.mark(hits.length ? 0 : -1);
  }

  /** Something changed: while the hits are looked at they are those of now, and the one that was marked still is. */
  refresh() {
    if (this.list.hidden) return;
    const { hits, more } = this.search();
    if (signatureOf(hits, more) === this.shown) return;
    const marked = this.hits[this.at] && keyOf(this.hits[this.at]);
    this.show(hits, more);
    const at = hits.findIndex((hit) => keyOf(hit) === marked);
    this.mark(at < 0 ? Math.min(0, hits.length - 1) : at);
  }

  search() {
    const { store, picture } = this.find();
    return search(this.input.value, store, picture);
  }

  show(hits, more) {
    const empty = !this.input.value.trim();
    this.hits = hits;
    this.shown = signatureOf(hits, more);
    this.list.replaceChildren(...hits.map((hit, at) => optionOf(hit, at)));
    if (!empty && !this.hits.length)
      this.list.append(h("li", { class: "nothing", role: "presentation" }, "Nothing has that name or address."));
    if (more) this.list.append(h("li", { class: "nothing", role: "presentation" }, `and ${more} more`));
  }

  mark(at) {
    this.at = at;
    for (const option of this.list.querySelectorAll("[role=option]")) {
      const chosen = Number(option.dataset.at) === at;
      option.setAttribute("aria-selected", String(chosen));
      if (chosen) option.scrollIntoView({ block: "nearest" });
    }
    if (at >= 0) this.input.setAttribute("aria-activedescendant", `hit-${at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const last = this.hits.length - 1;
    if (event.key === "ArrowDown" && last >= 0) this.mark(this.at >= last ? 0 : this.at + 1);
    else if (event.key === "ArrowUp" && last >= 0) this.mark(this.at <= 0 ? last : this.at - 1);
    else if (event.key === "Enter") this.take(this.at);
    else if (event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
  }

  clear() {
    if (this.list.hidden) this.input.blur();
    this.input.value = "";
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  take(at) {
    const hit = this.hits[at];
    if (!hit) return;
    this.close();
    this.go(hit.thing);
  }
}

/** What of hits is seen. */
function signatureOf(hits, more) {
  return JSON.stringify([more, hits.map(({ what, title, note }) => [what, title, note])]);
}

function optionOf({ title, note, what }, at) {
  return h(
    "li",
    { role: "option", id: `hit-${at}`, "data-at": at, "aria-selected": "false" },
    h("span", { class: "what" }, what),
    h("span", { class: "title" }, title),
    h("span", { class: "note" }, note),
  );
}
