// For those who hear the page: what was chosen, at once; what happened by itself, now and then.

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
    const news = `${figures.waiting} nodes wait, ${figures.full} pools are full, ${figures.wrong} nodes have problems.`;
    const now = performance.now();
    if (this.before === null) this.before = news;
    if (news === this.before || now - this.last < PAUSE) return;
    this.before = news;
    this.last = now;
    this.say(news);
  }
}
