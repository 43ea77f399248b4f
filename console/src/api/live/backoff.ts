// How long to wait before the next try to connect.
const FIRST_MS = 250;
const LONGEST_MS = 15_000;

/** Doubles with each failure, and is spread by chance: many consoles must not come back in the same instant. */
export function waitBefore(attempt: number, chance: number): number {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return most / 2 + (most / 2) * chance;
}
