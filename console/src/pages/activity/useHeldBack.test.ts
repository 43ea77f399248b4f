import { expect, test } from "vitest";
import { heldBack } from "./useHeldBack";

const items = ["d", "c", "b", "a"].map((id) => ({ id }));

test("what came since is counted, and not shown", () => {
  expect(heldBack(items, ["b", "a"])).toEqual({ shown: [{ id: "b" }, { id: "a" }], fresh: 2 });
});

test("nothing new is nothing to tell", () => {
  expect(heldBack(items, ["d", "c", "b", "a"]).fresh).toBe(0);
});
