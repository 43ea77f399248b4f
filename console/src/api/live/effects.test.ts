import { describe, expect, test } from "vitest";
import { matches, patchOne, patchPage, staleAfter, staleAfterReset } from "./effects";
import { readFrame, type Changed, type StreamItem } from "./frames";

function changed(parts: Partial<Changed>): Changed {
  return {
    type: "changed",
    position: "7",
    heard: "",
    kind: "pool",
    namespace: "home",
    name: "a",
    item: null,
    pools: [],
    tenants: [],
    ...parts,
  };
}

const item = (name: string, count = 0) => ({ namespace: "home", name, count });
const page = { items: [item("a"), item("b")], total: 12, next: "more" };

describe("a page of a list", () => {
  test("shows the object as it came", () => {
    const patched = patchPage(page, changed({ item: item("b", 5) as unknown as StreamItem, name: "b" }));
    expect(patched.items).toEqual([item("a"), item("b", 5)]);
    expect(patched.total).toBe(12);
  });

  test("loses the object that went, and counts one less", () => {
    expect(patchPage(page, changed({}))).toEqual({ items: [item("b")], total: 11, next: "more" });
  });

  test("is the very same when the object is not on it, or another namespace's", () => {
    expect(patchPage(page, changed({ name: "c" }))).toBe(page);
    expect(patchPage(page, changed({ namespace: "away" }))).toBe(page);
  });

  test("of activity goes by id, as several entries are about one object", () => {
    const list = {
      items: [
        { id: "1", count: 1 },
        { id: "2", count: 1 },
      ],
      total: 2,
      next: null,
    };
    const patched = patchPage(
      list,
      changed({ kind: "activity", item: { id: "2", count: 4 } as unknown as StreamItem }),
    );
    expect(patched.items).toEqual([
      { id: "1", count: 1 },
      { id: "2", count: 4 },
    ]);
  });
});

describe("an object's own page", () => {
  test("takes the item and keeps the rest until it is asked for again", () => {
    const detail = { pool: item("a"), holes: [1] };
    expect(patchOne(detail, changed({ item: item("a", 3) as unknown as StreamItem }))).toEqual({
      pool: item("a", 3),
      holes: [1],
    });
  });

  test("stays while the object goes", () => {
    const detail = { pool: item("a") };
    expect(patchOne(detail, changed({}))).toBe(detail);
  });
});

describe("what is asked for again", () => {
  const stale = staleAfter(changed({ kind: "allocation", name: "x-lb", pools: ["lb"], tenants: ["team/x"] }));
  const isStale = (key: unknown[]) => stale.some((pattern) => matches(pattern, key));

  test("after an allocation changed: its pool's map and its tenant, and no other's", () => {
    expect(isStale(["pools", "one", "home", "lb", "segments"])).toBe(true);
    expect(isStale(["pools", "one", "home", "nodes", "segments"])).toBe(false);
    expect(isStale(["tenants", "one", "team", "x", "addresses"])).toBe(true);
    expect(isStale(["tenants", "one", "team", "y"])).toBe(false);
    expect(isStale(["allocations", "list", { pool: "lb" }])).toBe(true);
    expect(isStale(["overview"])).toBe(true);
  });

  test("never who is signed in", () => {
    expect(isStale(["me"])).toBe(false);
    expect(staleAfterReset(["pool", "allocation"]).some((pattern) => matches(pattern, ["me"]))).toBe(false);
  });

  test("after a reset: everything of the kinds", () => {
    const after = staleAfterReset(["tenant"]);
    expect(after.some((pattern) => matches(pattern, ["tenants", "list", {}]))).toBe(true);
    expect(after.some((pattern) => matches(pattern, ["providers", "list", {}]))).toBe(false);
  });
});

test("a frame of an unknown type is passed over", () => {
  expect(readFrame('{"type":"novelty","position":"1"}')).toBeNull();
  expect(readFrame("nonsense")).toBeNull();
  expect(readFrame('{"type":"beat","position":"1"}')).toEqual({ type: "beat", position: "1" });
});
