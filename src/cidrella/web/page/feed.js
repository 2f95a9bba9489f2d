// The connection: the whole document once, then changes as they come. Whatever happens to it, it comes back.

import { askForState } from "./early.js";

const PAUSES = [500, 1000, 2000, 4000, 8000]; // milliseconds before another try

export class Feed {
  /** Handlers: `state(document)`, `change(change)`, `session(begun)`, `link(word)`: connecting, live, lost. */
  constructor(handlers) {
    this.handlers = handlers;
    this.failures = 0;
    this.source = null;
  }

  async start() {
    this.handlers.link(this.failures ? "lost" : "connecting");
    try {
      const reply = await askForState();
      if (reply.status === 401) {
        location.assign("login");
        return;
      }
      if (!reply.ok) throw new Error(`status ${reply.status}`);
      this.handlers.session(reply.headers.has("Cidrella-Session"));
      const state = await reply.json();
      this.handlers.state(state);
      this.follow(state.version);
    } catch {
      this.again();
    }
  }

  /** The browser itself takes up a stream that was cut, where it was cut; what ends for good begins anew here. */
  follow(version) {
    this.source?.close();
    const source = new EventSource(`api/v1/stream?since=${version}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.failures = 0;
      this.handlers.link("live");
    });
    source.addEventListener("change", (event) => this.handlers.change(JSON.parse(event.data)));
    source.addEventListener("reload", () => {
      source.close();
      this.start();
    });
    source.addEventListener("error", () => {
      this.handlers.link("lost");
      if (source.readyState === EventSource.CLOSED) this.again();
    });
  }

  again() {
    this.handlers.link("lost");
    const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
    this.failures++;
    setTimeout(() => this.start(), pause);
  }
}
