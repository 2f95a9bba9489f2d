// Service ranges with both bands, and who sits where.

import { parsePrefix } from "./address.js";
import { h, keyed, linkButton } from "./dom.js";
import { PagedTable } from "./table.js";
import { count, percent } from "./words.js";

export class ServicesView {
  constructor(host, go) {
    this.ranges = h("div", { class: "service-ranges" });
    const table = h("div");
    host.append(this.ranges, table);
    this.table = new PagedTable(table, {
      caption: "Addresses of Services",
      filterLabel: "Filter Services by name, address or band",
      id: (service) => service.address,
      text: (service) => [service.address, service.band, service.holder].join(" "),
      sort: 0,
      empty: "No Service has an address here.",
      columns: [
        {
          title: "Service",
          key: (service) => service.holder,
          cell: (service) => linkButton(service.holder, () => go({ kind: "service", address: service.address }), "go"),
        },
        {
          title: "Address",
          class: "mono",
          key: (service) => parsePrefix(service.address)?.first ?? 0n,
          cell: (service) => service.address,
        },
        { title: "Band", key: (service) => service.band, cell: (service) => service.band || "in no range" },
      ],
    });
  }

  show(store) {
    keyed(this.ranges, store.serviceRanges, (range) => range.range, rangeCard);
    this.table.show([...store.services.values()]);
  }
}

function rangeCard(range) {
  return h(
    "article",
    { class: "service-range" },
    h(
      "h3",
      {},
      h("span", { class: "mono" }, range.range),
      h("span", { class: "under" }, ` ${range.family} · ${range.source}`),
    ),
    ["static", "dynamic"].map((name) => (range[name] ? bandRow(name, range[name]) : null)),
    range.message ? h("p", { class: "remark" }, range.message) : null,
  );
}

function bandRow(name, band) {
  const share = band.total ? band.used / band.total : 0;
  return h(
    "div",
    { class: "band" },
    h("span", { class: "band-name" }, name),
    h("span", { class: "under mono" }, `${band.first} – ${band.last}`),
    h(
      "span",
      { class: share >= 1 ? "meter full" : "meter" },
      h("span", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${share * 100}%` } })),
      h("span", { class: "value" }, `${count(band.used)} of ${count(band.total)} (${percent(share)})`),
    ),
  );
}
