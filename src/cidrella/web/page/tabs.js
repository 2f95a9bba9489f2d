// Tabs: one stop for the Tab key, arrows from one to the next.

export function tabs(list, chosen) {
  const buttons = [...list.querySelectorAll("[role=tab]")];
  const choose = (at, focus = true) => {
    buttons.forEach((button, index) => {
      const on = index === at;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
      document.getElementById(button.getAttribute("aria-controls")).hidden = !on;
    });
    if (focus) buttons[at].focus();
    chosen(buttons[at].id);
  };
  buttons.forEach((button, at) => button.addEventListener("click", () => choose(at)));
  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    choose((next + buttons.length) % buttons.length);
  });
  choose(0, false);
}
