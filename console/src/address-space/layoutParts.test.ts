import { describe, expect, test } from "vitest";
import { barParts, totalsOf } from "./layoutParts";
import { SegmentIndex } from "./segmentIndex";
import { inventedPool } from "./testing";

describe.each([
  [28, 3],
  [24, 20],
  [16, 2000],
  [8, 50_000],
])("a /%i with %i allocations", (prefix, allocations) => {
  const index = new SegmentIndex(inventedPool({ prefix, allocations }));
  const parts = barParts(index, 900);

  test("is covered from end to end, in true positions", () => {
    let at = 0;
    for (const part of parts) {
      expect(part.from).toBe(at);
      expect(part.x).toBeCloseTo((900 * part.from) / index.count);
      at = part.to;
    }
    expect(at).toBe(index.count);
  });

  test("has no more parts than can be seen", () => expect(parts.length).toBeLessThanOrEqual(2 * (900 / 4) + 1));

  test("counts every address once", () => {
    const whole = index.makeup(0, index.count);
    const held = parts.reduce((sum, part) => sum + part.makeup.held, 0);
    expect(held).toBe(whole.held);
    expect(totalsOf(index).reduce((sum, { addresses }) => sum + addresses, 0)).toBe(index.count);
  });
});
