// Asks for everything before the rest of the page has come: both are on their way at the same time.

/** The answer to the first question; whoever takes it leaves nothing for the next. */
let first = ask();

function ask() {
  const reply = fetch("api/v1/state", { headers: { Accept: "application/json" }, cache: "no-store" });
  reply.catch(() => {}); // whoever waits for it is told; until then nobody does
  return reply;
}

/** The whole document, as the server answers now, or answered to the first question. */
export function askForState() {
  const reply = first ?? ask();
  first = null;
  return reply;
}
