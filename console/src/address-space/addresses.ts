// IPv4 addresses as numbers. Plain arithmetic only: JavaScript's bitwise operators are signed and 32 bits wide, and
// turn everything from 128.0.0.0 on into negative numbers.

const OCTET = 256;
export const ADDRESSES = OCTET ** 4;

/** The number of an address, 0 to 2^32-1; null for what is no address. */
export function parseAddress(text: string): number | null {
  const octets = text.split(".");
  if (octets.length !== 4) return null;
  let value = 0;
  for (const octet of octets) {
    // No leading zeros: some programs read them as octal, so 010 is not 10.
    if (!/^(0|[1-9]\d{0,2})$/.test(octet)) return null;
    const number = Number(octet);
    if (number >= OCTET) return null;
    value = value * OCTET + number;
  }
  return value;
}

export function formatAddress(value: number): string {
  const octets: number[] = [];
  for (let rest = value, index = 0; index < 4; index += 1) {
    octets.unshift(rest % OCTET);
    rest = Math.floor(rest / OCTET);
  }
  return octets.join(".");
}

export interface Network {
  first: number;
  size: number;
}

/** The network of `10.40.0.0/21`; null for what is none, also for one with bits behind its prefix. */
export function parseNetwork(text: string): Network | null {
  const [address = "", prefix = "", ...more] = text.split("/");
  const first = parseAddress(address);
  if (first === null || more.length > 0 || !/^\d{1,2}$/.test(prefix) || Number(prefix) > 32) return null;
  const size = 2 ** (32 - Number(prefix));
  return first % size === 0 ? { first, size } : null;
}

/** Whether a network has all of another's addresses and more. */
export function isLarger(network: string, than: string): boolean {
  const [large, small] = [parseNetwork(network), parseNetwork(than)];
  if (!large || !small || large.size <= small.size) return false;
  return large.first <= small.first && small.first + small.size <= large.first + large.size;
}

/** `10.0.0.4` for one address, `10.0.0.4–10.0.0.9` for more. */
export function formatRange(first: number, size: number): string {
  const start = formatAddress(first);
  return size === 1 ? start : `${start}–${formatAddress(first + size - 1)}`;
}

/** The prefix of networks of this size: 256 is a /24; null when there is none. */
export function prefixOf(size: number): number | null {
  const bits = Math.log2(size);
  return Number.isInteger(bits) && bits <= 32 ? 32 - bits : null;
}
