// For those who hear the page: what was chosen, at once; what happened by itself, now and then.

import { plural } from "./words.js";

const PAUSE = 15000; // milliseconds between two sentences about what happened

export class Voice {
  constructor(element) {
    this.element = element;
    this.told = null;
    this.news = "";
    this.waiting = null;
  }

  say(text) {
    this.element.textContent = text;
  }

  /** Tell how the figures changed, if they did: at once, and then not again too soon. */
  tell({ waiting, full, wrong }) {
    this.news = `${plural(waiting, "node")} waiting, ${plural(full, "full pool")}, ${plural(wrong, "problem")}.`;
    this.told ??= this.news;
    if (!this.waiting) this.next();
  }

  next() {
    this.waiting = null;
    if (this.news === this.told) return;
    this.told = this.news;
    this.say(this.news);
    this.waiting = setTimeout(() => this.next(), PAUSE);
  }
}
