// Addresses and prefixes: text at the border, BigInt inside. What cannot be read is null, never an exception.

export const BITS = { IPv4: 32, IPv6: 128 };

/** A prefix: family, first and last address, length, and its canonical text. Host bits are cleared. */
export class Prefix {
  constructor(family, value, length) {
    const host = BigInt(BITS[family] - length);
    this.family = family;
    this.length = length;
    this.first = (value >> host) << host;
    this.last = this.first + (1n << host) - 1n;
  }

  get text() {
    return `${formatAddress(this.family, this.first)}/${this.length}`;
  }

  /** Whether it is one address. */
  get single() {
    return this.length === BITS[this.family];
  }

  contains(other) {
    return this.family === other.family && this.first <= other.first && other.last <= this.last;
  }

  overlaps(other) {
    return this.family === other.family && this.first <= other.last && other.first <= this.last;
  }
}

/** "10.0.0.0/8", "fd00::/64", or an address alone, which is a prefix of full length. */
export function parsePrefix(text) {
  const [addressText, lengthText, ...rest] = text.trim().split("/");
  const address = parseAddress(addressText);
  if (!address || rest.length) return null;
  const bits = BITS[address.family];
  if (lengthText === undefined) return new Prefix(address.family, address.value, bits);
  if (!/^\d{1,3}$/.test(lengthText) || Number(lengthText) > bits) return null;
  return new Prefix(address.family, address.value, Number(lengthText));
}

/** What the beginning of an address stands for: "10.1" and "10.1." for 10.1.0.0/16, "fd00:1" for fd00:1::/32. */
export function parseBeginning(text) {
  const wanted = text.trim().replace(/\/$/, "");
  if (/^\d+(\.\d+)*\.?$/.test(wanted) && wanted.includes(".")) {
    const parts = wanted.split(".").filter(Boolean);
    return parsePrefix(`${[...parts, "0", "0", "0"].slice(0, 4).join(".")}/${Math.min(parts.length * 8, 32)}`);
  }
  if (!/^[0-9a-f]+(:[0-9a-f]+)*:?$/i.test(wanted) || !wanted.includes(":")) return parsePrefix(wanted);
  const groups = wanted.split(":").filter(Boolean);
  return parsePrefix(`${groups.join(":")}${groups.length < 8 ? "::" : ""}/${groups.length * 16}`);
}

export function parseAddress(text) {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

function parseV4(text) {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return null;
  const value = parts.reduce((sum, part) => sum * 256 + Number(part), 0);
  return { family: "IPv4", value: BigInt(value) };
}

function parseV6(text) {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half) => (half ? half.split(":") : []));
  let groups = head;
  if (tail) {
    const missing = 8 - head.length - tail.length;
    if (missing < 1) return null;
    groups = [...head, ...Array(missing).fill("0"), ...tail];
  }
  if (groups.length !== 8 || !groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
  const digits = groups.map((group) => group.padStart(4, "0")).join("");
  return { family: "IPv6", value: BigInt(`0x${digits}`) };
}

function formatAddress(family, value) {
  return family === "IPv4" ? formatV4(Number(value)) : formatV6(value);
}

function formatV4(value) {
  return [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join(".");
}

/** As RFC 5952 has it: small letters, the longest run of two or more zero groups left out, the first of equals. */
function formatV6(value) {
  const digits = value.toString(16).padStart(32, "0");
  const groups = digits.match(/.{4}/g).map((group) => group.replace(/^0{1,3}/, ""));
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === "0") length++;
    if (length > best.length) best = { at, length };
  }
  if (best.length < 2) return groups.join(":");
  return `${groups.slice(0, best.at).join(":")}::${groups.slice(best.at + best.length).join(":")}`;
}

/** The fewest prefixes that make up all addresses from first to last, in order. */
export function cover(family, first, last) {
  const bits = BITS[family];
  const found = [];
  while (first <= last) {
    let host = 0;
    while (host < bits && (first >> BigInt(host)) % 2n === 0n && first + (1n << BigInt(host + 1)) - 1n <= last) host++;
    found.push(new Prefix(family, first, bits - host));
    first += 1n << BigInt(host);
  }
  return found;
}
