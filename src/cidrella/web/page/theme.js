// Light or dark: as the system says, or as chosen here. The choice stays in this browser.

const KEY = "cidrella-theme";
const CHOICES = ["system", "light", "dark"];
const DARK = matchMedia("(prefers-color-scheme: dark)");

export class Theme {
  /** `changed` is called when colours have to be taken anew. */
  constructor(button, changed) {
    this.button = button;
    this.changed = changed;
    this.choice = read();
    this.show();
    DARK.addEventListener("change", () => changed());
    button.addEventListener("click", () => this.next());
  }

  get dark() {
    return this.choice === "system" ? DARK.matches : this.choice === "dark";
  }

  next() {
    this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // A browser that keeps nothing still shows what was chosen, for as long as the page is open.
    }
    this.show();
    this.changed();
  }

  show() {
    if (this.choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    this.button.dataset.choice = this.choice;
    const label = `Colours: ${this.choice === "system" ? "as the system" : this.choice}`;
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
  }
}

function read() {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}
