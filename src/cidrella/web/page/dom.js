// Elements from names and text. Text is only ever text: nothing here, or anywhere on the page, reads markup.

/** An element: `h("button", { class: "quiet", onclick }, "Close")`. Children are nodes or text, or null. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Change an element's text only where it differs, so that nothing is told twice. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button that reads like a link. `focus` names it among its neighbours: see `keyed`. */
export function linkButton(text, onclick, focus = "link", label = null) {
  return h("button", { type: "button", class: "link", "data-focus": focus, "aria-label": label, onclick }, text);
}

/**
 * Make the children of an element those of a list, with as little change as possible: an item that is the same object
 * keeps its element, and the keyboard's focus stays where it was, also in an element that was built anew. Where what
 * had the focus is gone, what came to its place gets it.
 */
export function keyed(host, items, keyOf, build) {
  const old = host.built ?? new Map();
  const focused = host.contains(document.activeElement) ? document.activeElement : null;
  const focusedAt = [...old.values()].findIndex((entry) => entry.element.contains(focused));
  const focusedKey = [...old.keys()][focusedAt];
  const next = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const entry = old.get(key);
    next.set(key, entry && entry.item === item ? entry : { item, element: build(item) });
  }
  for (const [key, entry] of old) {
    if (next.get(key) !== entry) entry.element.remove();
  }
  let at = host.firstElementChild;
  for (const { element } of next.values()) {
    if (element === at) at = at.nextElementSibling;
    else host.insertBefore(element, at);
  }
  host.built = next;
  if (!focused || document.activeElement === focused) return;
  const { element } = next.get(focusedKey) ?? [...next.values()][Math.min(focusedAt, next.size - 1)] ?? {};
  const place = () => stopIn(element, focused.dataset.focus) ?? stopIn(element) ?? placeAround(host);
  (focused.isConnected ? focused : place())?.focus({ preventScroll: true });
}

/** The part of an element that is named so for the keyboard's focus; without a name, the first that has any. */
export function stopIn(element, name = null) {
  const stops = [...(element?.querySelectorAll("[data-focus]") ?? [])];
  return stops.find((stop) => name === null || stop.dataset.focus === name);
}

/** What a list is a part of, made fit for the keyboard's focus: from there one goes on where one was. */
function placeAround(host) {
  const place = host.closest("[role=tabpanel], section");
  if (place) place.tabIndex = -1;
  return place;
}

/** Forget what `keyed` built, so that all of it is built anew: for what items themselves do not tell, as colours. */
export function rebuild(host) {
  for (const entry of host.built?.values() ?? []) entry.item = undefined;
}
