// Pools out of thin air, for tests and for measuring the map: the same seed gives the same pool.
import type { SegmentKind, Segments } from "../api/types";
import { formatAddress } from "./addresses";

/** Numbers from 0 to 1 by chance, the same for the same seed (mulberry32). */
export function seededChance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const KINDS: SegmentKind[] = ["reserved", "outside", "allocated", "granting", "draining", "free"];

/** A pool of 2^(32-prefix) addresses with so many allocations, each followed by a free hole. */
export function inventedPool({
  prefix,
  allocations,
  seed = 1,
}: {
  prefix: number;
  allocations: number;
  seed?: number;
}): Segments {
  const chance = seededChance(seed);
  const count = 2 ** (32 - prefix);
  const start = 10 * 2 ** 24;
  const columns: Segments["columns"] = {
    first: [],
    size: [],
    kind: [],
    holder: [],
    note: [],
    heldBy: [],
    stranded: [],
  };
  const holders: Segments["holders"] = [];
  let at = 0;
  const add = (size: number, kind: SegmentKind, holder = -1) => {
    if (size <= 0) return;
    columns.first.push(at);
    columns.size.push(size);
    columns.kind.push(KINDS.indexOf(kind));
    columns.holder.push(holder);
    columns.note.push(kind === "reserved" ? 0 : -1);
    columns.heldBy.push(holder < 0 ? 0 : 1);
    columns.stranded.push(false);
    at += size;
  };
  add(1, "outside");
  add(Math.min(Math.floor(count / 64), 256), "reserved");
  const share = (count - at - 1) / Math.max(1, allocations);
  for (let index = 0; index < allocations; index += 1) {
    const room = Math.floor(share * (index + 1)) - Math.floor(share * index);
    const size = Math.max(1, Math.floor(room * (0.2 + 0.7 * chance())));
    const tenant = `team-${index % 40}/cluster-${index % 977}`;
    const type = chance() < 0.5 ? "nodes" : "loadbalancer";
    holders.push({ allocation: `allocation-${index}`, tenant, type, role: "initial", pool: "invented" });
    const kind = chance() < 0.95 ? "allocated" : chance() < 0.5 ? "granting" : "draining";
    add(size, kind, index);
    add(room - size, "free");
  }
  add(count - 1 - at, "free");
  add(count - at, "outside");
  return {
    pool: "invented",
    cidr: `${formatAddress(start)}/${prefix}`,
    start: formatAddress(start),
    end: formatAddress(start + count - 1),
    count,
    kinds: KINDS,
    columns,
    holders,
    notes: ["gateway and switches"],
    elsewhere: [],
    problems: [],
  };
}
