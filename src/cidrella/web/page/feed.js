// The connection: the whole document once, then changes as they come. Whatever happens to it, it comes back.

import { askForState } from "./early.js";

const PAUSES = [0, 1000, 2000, 4000, 8000]; // milliseconds before another try, half as long or half as long again
const STEADY = 10000; // milliseconds: a stream that lasted so long was none that failed
const LOST = 3000; // milliseconds: a stream that has come to its end is taken up again sooner, and nobody needs to know
const SILENT = 40000; // milliseconds: the server says something every 15 seconds
const LOOKS = 5000; // milliseconds between looks at how long it has been silent

export class Feed {
  /**
   * Handlers: `state(document)`, `change(change)`, `session(begun)`; and of the connection `live()`, `paused()`, and
   * `lost(heard)`, with when the server was last heard.
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.failures = 0;
    this.source = null;
    this.opened = 0; // when the stream was last opened, by the clock of the page
    this.heard = 0; // when the server last said something, by the clock on the wall: that goes on while a laptop sleeps
    this.losing = null;
    this.next = null;
    this.paused = false;
    this.turn = 0; // what was asked for in an earlier turn is not waited for any more
  }

  async start() {
    this.stop();
    this.paused = false;
    const { turn } = this;
    try {
      const reply = await askForState();
      if (reply.status === 401) {
        location.assign("login");
        return;
      }
      if (!reply.ok) throw new Error(`status ${reply.status}`);
      this.handlers.session(reply.headers.has("Cidrella-Session"));
      const state = await reply.json();
      if (turn !== this.turn) return;
      this.handlers.state(state);
      this.follow(state.version);
    } catch {
      if (turn !== this.turn) return;
      this.lose();
      this.again();
    }
  }

  /** The browser itself takes up a stream that was cut, where it was cut; what ends for good begins anew here. */
  follow(version) {
    const source = new EventSource(`api/v1/stream?since=${version}`);
    this.source = source;
    this.hear();
    source.addEventListener("open", () => {
      this.opened = performance.now();
      this.live();
    });
    source.addEventListener("change", (event) => {
      this.hear();
      this.handlers.change(JSON.parse(event.data));
    });
    source.addEventListener("alive", () => this.hear());
    source.addEventListener("reload", () => {
      source.close();
      this.again();
    });
    source.addEventListener("error", () => {
      this.lose();
      if (source.readyState === EventSource.CLOSED) this.again();
    });
  }

  /** Begin anew, later each time: streams may all come to another server than the one that was asked for the state. */
  again() {
    if (this.opened && performance.now() - this.opened > STEADY) this.failures = 0;
    this.opened = 0;
    const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)] * (0.5 + Math.random());
    this.failures++;
    this.next = setTimeout(() => this.start(), pause);
  }

  stop() {
    this.turn++;
    clearTimeout(this.next);
    this.source?.close();
    this.source = null;
  }

  /**
   * A browser has no more than six connections to a server, and each stream takes one: of several tabs, those that are
   * not seen let go of theirs when another comes into view, until they do.
   */
  share() {
    const tabs = new BroadcastChannel("cidrella");
    tabs.addEventListener("message", () => {
      if (document.hidden) this.pause();
    });
    const come = () => {
      if (document.hidden) return;
      tabs.postMessage("seen");
      if (this.paused) this.start();
    };
    document.addEventListener("visibilitychange", come);
    come();
  }

  pause() {
    this.stop();
    this.paused = true;
    clearTimeout(this.losing);
    this.losing = null;
    this.handlers.paused();
  }

  /** A connection that went without a word, as they do while a laptop sleeps, is known by its silence. */
  watch() {
    setInterval(() => {
      if (!this.source || Date.now() - this.heard < SILENT) return;
      this.stop();
      this.lose();
      this.again();
    }, LOOKS);
  }

  hear() {
    this.heard = Date.now();
  }

  live() {
    clearTimeout(this.losing);
    this.losing = null;
    this.hear();
    this.handlers.live();
  }

  lose() {
    this.losing ??= setTimeout(() => this.handlers.lost(this.heard), LOST);
  }
}
