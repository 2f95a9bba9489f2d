// A table that is sorted, filtered and shown page by page, so that thousands of rows cost no more than those in view.

import { h, keyed, rebuild, setText } from "./dom.js";
import { count } from "./words.js";

const PAGE = 15;

export class PagedTable {
  /**
   * Columns are { title, cell(row) → node or text, key(row) → what to sort by, class }; without `key`, a column is
   * not sorted by. `text(row)` is what the filter looks at, `id(row)` tells rows apart.
   */
  constructor(host, { caption, filterLabel, columns, id, text, sort, descending = false, empty }) {
    Object.assign(this, { columns, id, text, empty, sorted: sort, descending, page: 0, rows: [] });
    this.filter = h("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": filterLabel,
      autocomplete: "off",
      spellcheck: "false",
    });
    this.filter.addEventListener("input", () => this.turn(0));
    this.heads = columns.map((column, at) => this.head(column, at));
    this.body = h("tbody", { role: "rowgroup" });
    this.nothing = h("p", { class: "empty" });
    this.before = this.pageButton("Previous page", "‹", -1);
    this.after = this.pageButton("Next page", "›", 1);
    this.range = h("span", { class: "range" });
    this.status = h("p", { class: "unseen", role: "status" }); // what was asked for: rows come and go by themselves
    this.pager = h("div", { class: "pager" }, this.before, this.range, this.after);
    // Roles are said, for on a narrow screen rows are laid out as grids, and would be tables no more.
    const head = h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, this.heads));
    const table = h("table", { role: "table" }, h("caption", { class: "unseen" }, caption), head, this.body);
    this.scroller = h("div", { class: "scroller", role: "region", "aria-label": caption, tabindex: "0" }, table);
    host.append(h("div", { class: "table-tools" }, this.filter, this.pager), this.scroller, this.nothing, this.status);
  }

  head(column, at) {
    if (!column.key) return h("th", { role: "columnheader", scope: "col", class: column.class }, column.title);
    const button = h(
      "button",
      { type: "button", onclick: () => this.sortBy(at) },
      column.title,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    );
    return h("th", { role: "columnheader", scope: "col", class: column.class }, button);
  }

  pageButton(label, sign, by) {
    return h(
      "button",
      { type: "button", class: "square", "aria-label": label, onclick: () => this.turn(this.page + by) },
      sign,
    );
  }

  sortBy(at) {
    this.descending = this.sorted === at ? !this.descending : (this.columns[at].descendingFirst ?? false);
    this.sorted = at;
    this.turn(0);
  }

  turn(page) {
    this.page = page;
    this.show(this.rows);
    setText(this.status, this.range.textContent || this.nothing.textContent);
  }

  /** Show these rows, as many as are in view. */
  show(rows) {
    this.rows = rows;
    const wanted = this.filter.value.trim().toLowerCase();
    const found = wanted ? rows.filter((row) => this.text(row).toLowerCase().includes(wanted)) : [...rows];
    const { key } = this.columns[this.sorted];
    const sign = this.descending ? -1 : 1;
    const keys = new Map(found.map((row) => [row, key(row)]));
    found.sort((one, two) => sign * compare(keys.get(one), keys.get(two)) || compare(this.id(one), this.id(two)));
    this.page = Math.max(0, Math.min(this.page, Math.ceil(found.length / PAGE) - 1));
    const from = this.page * PAGE;
    keyed(this.body, found.slice(from, from + PAGE), this.id, (row) => this.row(row));
    this.showState(found.length, from);
  }

  row(row) {
    return h(
      "tr",
      { role: "row" },
      this.columns.map((column) => h("td", { role: "cell", class: column.class }, column.cell(row))),
    );
  }

  showState(found, from) {
    this.heads.forEach((head, at) => {
      if (at === this.sorted) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    setText(this.range, found ? `${count(from + 1)}–${count(Math.min(from + PAGE, found))} of ${count(found)}` : "");
    // Neither disabled nor hidden under the keyboard's focus, which would be lost.
    this.before.setAttribute("aria-disabled", from === 0);
    this.after.setAttribute("aria-disabled", from + PAGE >= found);
    this.pager.hidden = found <= PAGE && !this.pager.contains(document.activeElement);
    this.filter.hidden = this.rows.length <= PAGE && !this.filter.value && document.activeElement !== this.filter;
    this.scroller.hidden = found === 0;
    this.nothing.hidden = found > 0;
    setText(this.nothing, this.rows.length ? "Nothing matches the filter." : this.empty);
  }

  /** Build all rows anew, for new colours. */
  refresh() {
    rebuild(this.body);
    this.show(this.rows);
  }
}

function compare(one, two) {
  if (one === two) return 0;
  return one < two ? -1 : 1;
}
