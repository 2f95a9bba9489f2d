// Times that grow older while one looks at them.

import { h, setText } from "./dom.js";
import { ago, clock, lasting } from "./words.js";

const WORDS = { ago, lasting };

/** A time as how long `ago` it was, or how long something is `lasting` since. */
export function age(iso, how) {
  return h("time", { datetime: iso, title: clock(iso), "data-age": how }, WORDS[how](iso));
}

/** Say anew how old everything on the page is. */
export function growOlder() {
  for (const time of document.querySelectorAll("time[data-age]")) setText(time, WORDS[time.dataset.age](time.dateTime));
}
