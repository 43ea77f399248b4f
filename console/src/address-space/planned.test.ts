import { describe, expect, test } from "vitest";
import type { PlannedBlock, Segments } from "../api/types";
import { formatAddress } from "./addresses";
import { withPlanned } from "./planned";
import { SegmentIndex, type Segment } from "./segmentIndex";
import { inventedPool, seededChance } from "./testing";

function every(index: SegmentIndex): Segment[] {
  return Array.from({ length: index.length }, (_, number) => index.segment(number));
}

function block(name: string, index: SegmentIndex, first: number, count: number): PlannedBlock {
  const [start, end] = [index.start + first, index.start + first + count - 1].map(formatAddress) as [string, string];
  const range = { start, end, count };
  return { name, tenant: `${name}/${name}`, type: "nodes", pool: "invented", count, range, reason: "", message: "" };
}

/** Some ranges within free segments, several of them in one. */
function invented(segments: Segments, seed: number): PlannedBlock[] {
  const index = new SegmentIndex(segments);
  const chance = seededChance(seed);
  return every(index)
    .filter(({ kind }) => kind === "free")
    .flatMap(({ first, size }, number) => {
      const one = Math.ceil((size / 2) * chance());
      const other = Math.floor((size - one) * chance());
      const blocks = [block(`planned-${number}`, index, first, one)];
      return other > 0 ? [...blocks, block(`planned-${number}-too`, index, first + size - other, other)] : blocks;
    })
    .reverse();
}

describe.each([28, 24, 16, 8])("in a /%i", (prefix) => {
  const segments = inventedPool({ prefix, allocations: Math.min(200, 2 ** (32 - prefix) / 4), seed: prefix });
  const now = new SegmentIndex(segments);
  const blocks = invented(segments, prefix);
  const then = new SegmentIndex(withPlanned(segments, blocks));

  test("planned ranges take free addresses and nothing else", () => {
    const before = now.makeup(0, now.count);
    const after = then.makeup(0, then.count);
    const taken = blocks.reduce((sum, { range }) => sum + (range?.count ?? 0), 0);
    expect(after).toEqual({ ...before, planned: taken, free: before.free - taken });
  });

  test("the pool is still covered without gaps, and what is held stays where it is", () => {
    let at = 0;
    for (const segment of every(then)) {
      expect(segment.first).toBe(at);
      at += segment.size;
    }
    expect(at).toBe(now.count);
    const held = (index: SegmentIndex) =>
      every(index)
        .filter(({ heldBy }) => heldBy > 0)
        .map(({ first, size, allocation }) => ({ first, size, allocation }));
    expect(held(then)).toEqual(held(now));
  });

  test("each range has the name of who would get it", () => {
    const found = every(then).filter(({ kind }) => kind === "planned");
    expect(new Set(found.map(({ allocation }) => allocation))).toEqual(new Set(blocks.map(({ name }) => name)));
  });
});

test("nothing planned leaves a pool as it is", () => {
  const segments = inventedPool({ prefix: 24, allocations: 3 });
  expect(withPlanned(segments, [])).toBe(segments);
});

test("what would lie over something held is not drawn over it", () => {
  const segments = inventedPool({ prefix: 24, allocations: 3 });
  const index = new SegmentIndex(segments);
  const held = every(index).find(({ heldBy }) => heldBy > 0);
  const then = new SegmentIndex(withPlanned(segments, [block("wrong", index, held?.first ?? 0, 1)]));
  expect(then.makeup(0, then.count).held).toBe(index.makeup(0, index.count).held);
});
