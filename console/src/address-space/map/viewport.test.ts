import { describe, expect, test } from "vitest";
import { seededChance } from "../testing";
import {
  cellAt,
  clamped,
  coarsest,
  fitted,
  gridOf,
  panned,
  placeOf,
  revealing,
  rowsInSight,
  zoomed,
  type Viewport,
} from "./viewport";

const SIZES = [
  { width: 256, height: 320 },
  { width: 900, height: 420 },
  { width: 1500, height: 600 },
];

const CASES = Array.from({ length: 21 }, (_, index) => 28 - index).flatMap((prefix) =>
  SIZES.map((size) => ({ prefix, ...size })),
);

function viewOf({ prefix, width, height }: { prefix: number; width: number; height: number }): Viewport {
  return fitted({ count: 2 ** (32 - prefix), width, height, perCell: 1, top: 0 });
}

describe.each(CASES)("a /$prefix on $width x $height", (at) => {
  const view = viewOf(at);
  const chance = seededChance(at.prefix * at.width);

  test("is in sight as a whole at first, within the width", () => {
    const { rows, columns, cell, row } = gridOf(view);
    expect(rows * row).toBeLessThanOrEqual(at.height + 0.01);
    expect(columns * cell).toBeLessThanOrEqual(at.width + 1e-6);
    expect(rowsInSight(view)).toEqual({ first: 0, end: rows });
  });

  test("finds the cell that it drew, at every zoom and scroll", () => {
    let moving = view;
    for (let tries = 0; tries < 60; tries += 1) {
      const offset = Math.floor(chance() * view.count);
      moving = revealing(zoomed(moving, Math.round(chance() * 6 - 2.5), offset, chance() * at.height), offset);
      const { x, y, cell, row } = placeOf(moving, offset);
      const first = cellAt(moving, x + cell / 2, y + row / 2);
      expect(first).toBe(Math.floor(offset / moving.perCell) * moving.perCell);
    }
  });

  test("never scrolls past its ends", () => {
    const close = zoomed(view, 40, view.count - 1, 0);
    expect(close.perCell).toBe(1);
    expect(panned(close, 1e12).top).toBe(clamped({ ...close, top: 1e12 }).top);
    expect(panned(close, -1e12).top).toBe(0);
    expect(rowsInSight(panned(close, 1e12)).end).toBe(gridOf(close).rows);
  });
});

test("zooming out stops when all is in sight", () => {
  const view = viewOf({ prefix: 8, width: 900, height: 420 });
  expect(zoomed(view, -10, 0, 0).perCell).toBe(coarsest(view));
});

test("zooming keeps the address under the pointer", () => {
  const view = viewOf({ prefix: 8, width: 900, height: 420 });
  const y = 200;
  const offset = cellAt(view, 300, y) ?? 0;
  const closer = zoomed(view, 4, offset, y);
  const place = placeOf(closer, offset);
  expect(Math.abs(place.y + place.row / 2 - y)).toBeLessThanOrEqual(1);
});
