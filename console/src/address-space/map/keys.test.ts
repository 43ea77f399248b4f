import { describe, expect, test } from "vitest";
import { seededChance } from "../testing";
import { afterKey } from "./keys";
import { fitted, gridOf, placeOf, zoomed } from "./viewport";

const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", "+", "-", "0"];

describe.each([28, 24, 21, 16, 8])("in a /%i", (prefix) => {
  const start = fitted({ count: 2 ** (32 - prefix), width: 900, height: 420, perCell: 1, top: 0 });

  test("no sequence of keys leaves the pool or loses sight of the focus", () => {
    const chance = seededChance(prefix);
    let position = { view: start, focus: 0 };
    for (let step = 0; step < 2000; step += 1) {
      const key = KEYS[Math.floor(chance() * KEYS.length)] ?? "+";
      position = afterKey(position, key, chance() < 0.2) ?? position;
      const { view, focus } = position;
      expect(focus).toBeGreaterThanOrEqual(0);
      expect(focus).toBeLessThan(view.count);
      expect(focus % view.perCell).toBe(0);
      const { y, row } = placeOf(view, focus);
      expect(y).toBeGreaterThanOrEqual(-1e-6);
      expect(y + row).toBeLessThanOrEqual(view.height + 1e-6);
    }
  });

  test("up and down stay in their column, Home and End in their row", () => {
    const view = zoomed(start, 3, start.count / 2, 200);
    const { perRow } = gridOf(view);
    const focus = Math.floor(start.count / 2 / view.perCell) * view.perCell;
    const down = afterKey({ view, focus }, "ArrowDown", false)?.focus ?? focus;
    expect((down - focus) % perRow).toBe(0);
    const home = afterKey({ view, focus }, "Home", false)?.focus ?? -1;
    expect(Math.floor(home / perRow)).toBe(Math.floor(focus / perRow));
  });
});

test("other keys are left to the browser", () => {
  const view = fitted({ count: 256, width: 900, height: 420, perCell: 1, top: 0 });
  expect(afterKey({ view, focus: 0 }, "a", false)).toBeNull();
  expect(afterKey({ view, focus: 0 }, "Tab", false)).toBeNull();
});
