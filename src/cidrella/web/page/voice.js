// For those who hear the page: what was chosen, at once; what happened by itself, now and then.

import { plural } from "./words.js";

const PAUSE = 5000; // milliseconds between two sentences about what happened

export class Voice {
  constructor(element) {
    this.element = element;
    this.last = 0;
    this.before = null;
  }

  say(text) {
    this.element.textContent = text;
  }

  /** Tell how the figures changed, if they did, and not too often. */
  tell(figures) {
    const { waiting, full, wrong } = figures;
    const news = `${plural(waiting, "node")} waiting, ${plural(full, "full pool")}, ${plural(wrong, "problem")}.`;
    const now = performance.now();
    if (this.before === null) this.before = news;
    if (news === this.before || now - this.last < PAUSE) return;
    this.before = news;
    this.last = now;
    this.say(news);
  }
}
