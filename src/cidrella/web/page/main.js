// Puts the page together: what comes from the server goes into the store, and then to whatever shows it.

import { ActivityView } from "./activity.js";
import { growOlder } from "./ages.js";
import { AttentionView } from "./attention.js";
import { DetailsView } from "./details.js";
import { byId, h, keyed, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { beforeNextFrame } from "./frame.js";
import { MapView } from "./map.js";
import { listen } from "./mapinput.js";
import { nodesTable } from "./nodes.js";
import { Palette } from "./palette.js";
import { poolsTable } from "./pools.js";
import { SearchBox } from "./searchbox.js";
import { ServicesView } from "./services.js";
import { Store } from "./store.js";
import { showSummary, showTitle } from "./summary.js";
import { tabs } from "./tabs.js";
import { Theme } from "./theme.js";
import { Voice } from "./voice.js";
import { clock } from "./words.js";

const AGES = 5000; // milliseconds between looks at how long ago things were
const NARROW = matchMedia("(max-width: 47.5em)"); // as in style.css

const store = new Store();
const palette = new Palette();
const voice = new Voice(byId("voice"));

const map = new MapView(
  {
    stage: byId("stage"),
    base: byId("map-base"),
    overlay: byId("map"),
    tooltip: byId("tooltip"),
    rings: byId("rings"),
    where: byId("map-where"),
    nothing: byId("no-range"),
  },
  store,
  palette,
  { changed: () => details.open && details.show(map.chosen), say: (text) => voice.say(text) },
);
const details = new DetailsView(byId("details"), { store, picture: () => map.picture, closed: leave, go, uncovered });
listen(
  map,
  { closer: byId("closer"), farther: byId("farther"), all: byId("all") },
  { details: (how) => details.show(map.chosen, how), leave },
);

const pools = poolsTable(byId("pools"), palette, go);
const nodes = nodesTable(byId("nodes"), palette, go);
const services = new ServicesView(byId("services"), go);
const attention = new AttentionView(byId("troubles"), byId("calm"), byId("troubles-more"), go);
const activity = new ActivityView(byId("entries"), byId("quiet"), byId("activity-choice"), go);
const searchBox = new SearchBox(byId("search"), byId("hits"), byId("search-status"), {
  find: () => ({ store, picture: map.picture }),
  go,
});

const theme = new Theme(byId("theme"), recolour);
palette.dark = theme.dark;

let tab = "tab-pools";
tabs(byId("tabs"), (id) => {
  tab = id;
  if (store.cluster) show();
});

/** Choose a thing, from anywhere on the page: the map comes into view, flies there, and tells about it. */
function go(thing) {
  byId("map-card").scrollIntoView({ block: "nearest" });
  details.show(thing);
  map.choose(thing, { near: true });
  map.overlay.focus({ preventScroll: true });
}

/** On a narrow screen, what needs somebody comes before the map; also for who goes through the page by keyboard. */
function placeAttention() {
  if (NARROW.matches) byId("map-card").before(byId("attention"));
  else byId("side").prepend(byId("attention"));
}

/** How much of the map the details lie on. */
function uncovered() {
  const beside = getComputedStyle(details.panel).position === "absolute";
  map.camera.covered = details.open && beside ? details.panel.offsetWidth : 0;
}

function leave() {
  const inside = details.panel.contains(document.activeElement);
  map.choose(null);
  details.show(null);
  if (inside) map.overlay.focus({ preventScroll: true });
}

function recolour() {
  palette.dark = theme.dark;
  map.recolour();
  pools.refresh();
  nodes.refresh();
}

function show() {
  showCluster();
  voice.tell(showSummary(store));
  if (tab === "tab-pools") pools.show([...store.pools.values()]);
  if (tab === "tab-nodes") nodes.show([...store.nodes.values()]);
  if (tab === "tab-services") services.show(store);
  attention.show(store);
  activity.show(store);
  details.refresh();
  searchBox.refresh();
}

function showCluster() {
  const { name, leading, replica, program, missing, remarks } = store.cluster;
  setText(byId("cluster"), name);
  setText(byId("role"), leading ? "this replica leads" : "this replica looks on");
  byId("role").title = replica;
  setText(byId("program"), program);
  byId("not-ready").hidden = !missing.length;
  setText(byId("not-ready"), missing.length ? `Not ready: ${missing.join("; ")}` : "");
  byId("remarks").hidden = !remarks.length;
  keyed(
    byId("remarks"),
    remarks,
    (remark) => remark,
    (remark) => h("p", {}, remark),
  );
}

function showLink(word, text, stale = "") {
  byId("link").dataset.link = word;
  setText(byId("link-word"), text);
  byId("stale").hidden = !stale;
  setText(byId("stale"), stale);
}

const feed = new Feed({
  state(document_) {
    store.replace(document_);
    map.load();
    beforeNextFrame(show);
  },
  change(change) {
    map.update(store.apply(change));
    if (document.hidden) showTitle(store); // no frame comes then, but the title is still seen
    beforeNextFrame(show);
  },
  session(begun) {
    byId("sign-out").hidden = !begun;
  },
  live() {
    showLink("live", "Live");
  },
  paused() {
    showLink("connecting", "Paused");
    if (store.cluster) showTitle(store, { waiting: 0 }); // rather than what may be true no more
  },
  lost(heard) {
    const stale = store.cluster ? `The server is not heard. What is shown is as of ${clock(heard)}.` : "";
    showLink("lost", "Connection lost, trying again", stale);
  },
});

map.painted = () => {
  if (!store.cluster) return;
  performance.mark("cidrella-drawn");
  map.painted = null;
};

setInterval(growOlder, AGES);

NARROW.addEventListener("change", placeAttention);
placeAttention();
feed.start();
feed.watch();
feed.share();
