import { describe, expect, test } from "vitest";
import { SegmentIndex, type Makeup } from "./segmentIndex";
import { inventedPool, seededChance } from "./testing";

/** The same answer, found by looking at every address. */
function countOneByOne(index: SegmentIndex, from: number, to: number): Makeup {
  const made: Makeup = { held: 0, planned: 0, free: 0, reserved: 0, outside: 0 };
  for (let number = 0; number < index.length; number += 1) {
    const { first, size, kind } = index.segment(number);
    const overlap = Math.min(to, first + size) - Math.max(from, first);
    if (overlap <= 0) continue;
    made[kind === "free" || kind === "reserved" || kind === "outside" || kind === "planned" ? kind : "held"] += overlap;
  }
  return made;
}

describe.each([28, 24, 20, 16, 8])("in a /%i", (prefix) => {
  const count = 2 ** (32 - prefix);
  const index = new SegmentIndex(inventedPool({ prefix, allocations: Math.min(300, count / 4), seed: prefix }));
  const chance = seededChance(prefix);

  test("segments cover the pool without gaps", () => {
    let at = 0;
    for (let number = 0; number < index.length; number += 1) {
      expect(index.first[number]).toBe(at);
      at += index.size[number] ?? 0;
    }
    expect(at).toBe(count);
  });

  test("every address is found in its segment", () => {
    for (let tries = 0; tries < 500; tries += 1) {
      const offset = Math.floor(chance() * count);
      const { first, size } = index.segment(index.indexAt(offset));
      expect(offset).toBeGreaterThanOrEqual(first);
      expect(offset).toBeLessThan(first + size);
    }
  });

  test("the makeup of any run is what counting one by one gives", () => {
    for (let tries = 0; tries < 200; tries += 1) {
      const from = Math.floor(chance() * count);
      const to = from + 1 + Math.floor(chance() * (count - from));
      expect(index.makeup(from, to)).toEqual(countOneByOne(index, from, to));
    }
    expect(index.makeup(0, count)).toEqual(countOneByOne(index, 0, count));
  });
});

test("a segment knows its holder, and a reserved block its purpose", () => {
  const index = new SegmentIndex(inventedPool({ prefix: 24, allocations: 3 }));
  const all = Array.from({ length: index.length }, (_, number) => index.segment(number));
  expect(all.find(({ kind }) => kind === "reserved")?.note).toBe("gateway and switches");
  expect(all.filter(({ allocation }) => allocation).map(({ allocation }) => allocation)).toEqual([
    "allocation-0",
    "allocation-1",
    "allocation-2",
  ]);
});
