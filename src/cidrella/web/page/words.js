// Numbers and times as people read them. By hand: the browser's own formats take longer to load than all else.

const COUNT_MAX = Number.MAX_SAFE_INTEGER; // the server says this of all that is more

export function count(number) {
  if (number >= COUNT_MAX) return "> 9 × 10¹⁵";
  if (number >= 1e9) {
    const power = Math.floor(Math.log10(number));
    return `${(number / 10 ** power).toFixed(1)} × 10${raised(power)}`;
  }
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function raised(number) {
  return [...String(number)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("");
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A share, 0 to 1, in per cent; 0 and 100 only where they are exact. */
export function percent(share) {
  if (!(share > 0)) return "0 %";
  if (share >= 1) return "100 %";
  if (share < 0.001) return "< 0.1 %";
  const digits = share < 0.1 || share > 0.99 ? 1 : 0;
  const hundredths = Math.min(share * 100, 99.9);
  return `${digits ? Math.floor(hundredths * 10) / 10 : Math.floor(hundredths)} %`;
}

/** How long ago: "now", "12 s", "5 min", "3 h", "2 d". */
export function ago(iso, now = Date.now()) {
  return span(iso, now, "now");
}

/** For how long: "a moment", "12 s", and so on. */
export function lasting(iso, now = Date.now()) {
  return span(iso, now, "a moment");
}

function span(iso, now, least) {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 5) return least;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** A time, as text or in milliseconds, on the clocks of whoever looks. */
export function clock(when) {
  const time = new Date(when);
  if (Number.isNaN(time.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-");
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** The names of the pools of a node, each once. */
export function poolsOf(node) {
  return [...new Set(node.pools)].filter(Boolean).join(", ");
}

const NODE_STATES = {
  served: "served",
  pending: "being written",
  waiting: "waiting",
  untracked: "in no pool",
  conflict: "conflict",
  unreadable: "unreadable",
};

/** A node's state in words. */
export function stateOf(node) {
  const word = NODE_STATES[node.state] ?? node.state;
  return node.terminating ? `${word}, being deleted` : word;
}
