// Asks for everything before the rest of the page has come: both are on their way at the same time.

const PATIENCE = 60000; // milliseconds; what takes longer will not come

/** The answer to the first question; whoever takes it leaves nothing for the next. */
let first = ask();

function ask() {
  const signal = AbortSignal.timeout(PATIENCE);
  const reply = fetch("api/v1/state", { headers: { Accept: "application/json" }, cache: "no-store", signal });
  reply.catch(() => {}); // whoever waits for it is told; until then nobody does
  return reply;
}

/** The whole document, as the server answers now, or answered to the first question. */
export function askForState() {
  const reply = first ?? ask();
  first = null;
  return reply;
}
