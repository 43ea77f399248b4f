import { expect, test } from "vitest";
import type { AddressAnswer, Owner, Place } from "../../api/types";
import { verdictOf } from "./verdict";

const place = (over: Partial<Place>): Place => ({
  start: "10.0.0.1",
  end: "10.0.0.1",
  count: 1,
  pool: "lb",
  kind: "free",
  description: null,
  stranded: false,
  held: false,
  owners: [],
  ...over,
});

const owner = (tenant: string) => ({ tenant }) as Owner;

function sentence(places: Place[], over: Partial<AddressAnswer> = {}): string {
  const asked = { start: "10.0.0.1", end: "10.0.0.1", count: 1 };
  return verdictOf({
    asked,
    known: true,
    places,
    earlier: [],
    wanted: [],
    pools: [],
    nearestPool: null,
    knownAs: [],
    ...over,
  }).sentence;
}

test("who holds it comes first", () => {
  expect(sentence([place({ kind: "allocated", owners: [owner("team/a")] })])).toBe("10.0.0.1 is held by team/a");
  expect(sentence([place({ kind: "draining", owners: [owner("team/a")] })])).toBe("10.0.0.1 is going back from team/a");
});

test("two holders are a fault", () => {
  expect(sentence([place({ kind: "allocated", owners: [owner("team/a"), owner("team/b")] })])).toContain("at once");
});

test("what no tenant holds is free, reserved, or in no pool", () => {
  expect(sentence([place({})])).toBe("10.0.0.1 is free");
  expect(sentence([place({ kind: "reserved", description: "Gateway" })])).toBe("10.0.0.1 is reserved: Gateway");
  expect(sentence([place({ kind: "none", pool: null })], { nearestPool: { name: "lb", cidr: "10.1.0.0/24" } })).toBe(
    "10.0.0.1 is in no pool; the nearest is lb, 10.1.0.0/24",
  );
});

test("a range is told in sums", () => {
  expect(
    sentence([place({ kind: "allocated", count: 3 }), place({ count: 1 }), place({ kind: "allocated", count: 2 })]),
  ).toBe("10.0.0.1: 5 addresses held, 1 address free");
});
