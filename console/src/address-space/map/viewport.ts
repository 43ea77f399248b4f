// What the map shows: rows of cells in order of address, like lines of a page. Zooming changes how many addresses a
// cell stands for (a power of two, so that cells are networks), panning moves the page up and down. All pure.

export interface Viewport {
  /** Addresses of the pool. */
  count: number;
  /** Pixels that the cells have, without the addresses at the left. */
  width: number;
  height: number;
  /** Addresses per cell, a power of two. */
  perCell: number;
  /** Pixels that are scrolled out of sight at the top. */
  top: number;
}

/** What follows from a viewport. */
export interface Grid {
  columns: number;
  rows: number;
  /** Width of a cell and height of a row in pixels. */
  cell: number;
  row: number;
  perRow: number;
}

// A cell of one address is big enough for a sign in it and for a finger; cells of many may be smaller.
const SMALLEST_SINGLE = 14;
const SMALLEST_SHARED = 9;
const LARGEST = 26;
const LOWEST_SINGLE_ROW = 20;
const HIGHEST_ROW = 30;

export function gridOf({ count, width, height, perCell }: Viewport): Grid {
  const smallest = perCell === 1 ? SMALLEST_SINGLE : SMALLEST_SHARED;
  const cells = Math.ceil(count / perCell);
  const fitting = Math.max(1, 2 ** Math.floor(Math.log2(Math.max(1, width / smallest))));
  const columns = Math.min(fitting, 2 ** Math.ceil(Math.log2(cells)));
  const rows = Math.ceil(cells / columns);
  const cell = Math.min(LARGEST, width / columns);
  const lowest = perCell === 1 ? Math.max(LOWEST_SINGLE_ROW, cell) : cell;
  // A few rows stretch to fill what room there is.
  const row = Math.max(lowest, Math.min(HIGHEST_ROW, height / rows));
  return { columns, rows, cell, row, perRow: columns * perCell };
}

/** The viewport with `top` where there is something to see. */
export function clamped(view: Viewport): Viewport {
  const { rows, row } = gridOf(view);
  const most = Math.max(0, rows * row - view.height);
  return { ...view, top: Math.min(Math.max(0, view.top), most) };
}

/** The most addresses per cell that make sense: then the whole pool is in sight. */
export function coarsest(view: Viewport): number {
  let perCell = 1;
  for (;;) {
    const { rows, row } = gridOf({ ...view, perCell });
    if (rows * row <= view.height + 0.01 || perCell >= view.count) return perCell;
    perCell *= 2;
  }
}

/** The whole pool. */
export function fitted(view: Viewport): Viewport {
  return { ...view, perCell: coarsest(view), top: 0 };
}

export function panned(view: Viewport, byPixels: number): Viewport {
  return clamped({ ...view, top: view.top + byPixels });
}

/** Zoomed by so many doublings (above 0 is closer), with the address `offset` staying at height `y`. */
export function zoomed(view: Viewport, steps: number, offset: number, y: number): Viewport {
  const perCell = Math.min(coarsest(view), Math.max(1, view.perCell * 2 ** -steps));
  const next = { ...view, perCell };
  const { row, perRow } = gridOf(next);
  return clamped({ ...next, top: (Math.floor(offset / perRow) + 0.5) * row - y });
}

/** Scrolled as little as needed to have a cell in sight. */
export function revealing(view: Viewport, offset: number): Viewport {
  const { row, perRow } = gridOf(view);
  const y = Math.floor(offset / perRow) * row;
  if (y < view.top) return clamped({ ...view, top: y });
  if (y + row > view.top + view.height) return clamped({ ...view, top: y + row - view.height });
  return view;
}

/** The first address of the cell at a point; null where there is none. */
export function cellAt(view: Viewport, x: number, y: number): number | null {
  const { columns, cell, row, perRow } = gridOf(view);
  const column = Math.floor(x / cell);
  const line = Math.floor((y + view.top) / row);
  if (column < 0 || column >= columns || line < 0) return null;
  const offset = line * perRow + column * view.perCell;
  return offset < view.count ? offset : null;
}

/** Where the cell with an address is drawn. */
export function placeOf(view: Viewport, offset: number): { x: number; y: number; cell: number; row: number } {
  const { columns, cell, row, perRow } = gridOf(view);
  const column = Math.floor((offset % perRow) / view.perCell);
  return { x: Math.min(column, columns - 1) * cell, y: Math.floor(offset / perRow) * row - view.top, cell, row };
}

/** Rows that are at least partly in sight, from the first to before the last. */
export function rowsInSight(view: Viewport): { first: number; end: number } {
  const { rows, row } = gridOf(view);
  return {
    first: Math.max(0, Math.floor(view.top / row)),
    end: Math.min(rows, Math.ceil((view.top + view.height) / row)),
  };
}
