// The colours of the map. Ten hues of one lightness, so that no pool looks more important than another; on each of them
// the label's colour has a contrast of 4.5 to 1 at least. Colour never stands alone: text and patterns say the same.

const LIGHT = {
  hues: ["#3f6da7", "#167f5c", "#925f18", "#7a5b9c", "#007c89", "#9e553b", "#96517a", "#577832", "#6064a7", "#7f6a0c"],
  label: "#ffffff",
  ink: "#1a2230",
  soft: "#566173",
  free: "#eef1f5",
  nobody: "#6b7585",
  service: "#5b6a80",
  band: { static: "#c3cbd8", dynamic: "#dde2ea" },
  bad: "#b3261e",
  badStripe: "#7d150f",
  focus: "#111827",
  halo: "#ffffff",
  tint: 0.13,
  edge: 0.22,
};

const DARK = {
  hues: ["#82aee6", "#6dbe9c", "#d1a066", "#b99cdb", "#57bcc7", "#df967d", "#d693b9", "#97b777", "#9fa4e6", "#bdaa62"],
  label: "#0d1117",
  ink: "#e7ebf2",
  soft: "#9aa6b8",
  free: "#1f2630",
  nobody: "#8a95a6",
  service: "#a9b6ca",
  band: { static: "#3d4859", dynamic: "#2a3340" },
  bad: "#ff8f87",
  badStripe: "#c9544c",
  focus: "#ffffff",
  halo: "#0d1117",
  tint: 0.16,
  edge: 0.25,
};

export class Palette {
  constructor() {
    this.numbers = new Map();
    this.colours = LIGHT;
  }

  set dark(dark) {
    this.colours = dark ? DARK : LIGHT;
  }

  /** Give each pool a colour, in the order given; a pool keeps its own for as long as the page is open. */
  assign(names) {
    for (const name of names) {
      if (!this.numbers.has(name)) this.numbers.set(name, this.numbers.size);
    }
  }

  /** The colour of a pool; grey for no pool. */
  of(pool) {
    const number = this.numbers.get(pool);
    return number === undefined ? this.colours.nobody : this.colours.hues[number % this.colours.hues.length];
  }
}
