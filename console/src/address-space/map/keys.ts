// What keys do on the map: pure, the component only passes them on.
import { gridOf, rowsInSight, zoomed, placeOf, fitted, revealing, type Viewport } from "./viewport";

export interface Position {
  view: Viewport;
  /** First address of the cell with the focus. */
  focus: number;
}

/** Where a key leads; null for a key that means nothing here. */
export function afterKey({ view, focus }: Position, key: string, ctrl: boolean): Position | null {
  const { perRow } = gridOf(view);
  const { perCell, count } = view;
  const rowStart = Math.floor(focus / perRow) * perRow;
  const last = Math.floor((count - 1) / perCell) * perCell;
  const page = Math.max(1, rowsInSight(view).end - rowsInSight(view).first - 1) * perRow;
  const column = focus - rowStart;
  const lastInColumn = last - ((((last - column) % perRow) + perRow) % perRow);
  switch (key) {
    case "ArrowLeft":
      return at(view, Math.max(0, focus - perCell));
    case "ArrowRight":
      return at(view, Math.min(last, focus + perCell));
    case "ArrowUp":
      return at(view, focus >= perRow ? focus - perRow : focus);
    case "ArrowDown":
      return at(view, focus + perRow <= last ? focus + perRow : focus);
    case "PageUp":
      return at(view, Math.max(column, focus - page));
    case "PageDown":
      return at(view, Math.max(focus, Math.min(lastInColumn, focus + page)));
    case "Home":
      return at(view, ctrl ? 0 : rowStart);
    case "End":
      return at(view, ctrl ? last : Math.min(last, rowStart + perRow - perCell));
    case "+":
    case "=":
      return zoomTo(view, 1, focus);
    case "-":
    case "_":
      return zoomTo(view, -1, focus);
    case "0":
      return at(fitted(view), focus);
    default:
      return null;
  }
}

/** Zoomed around a cell, which keeps the focus. */
export function zoomTo(view: Viewport, steps: number, focus: number): Position {
  const { y, row } = placeOf(view, focus);
  const height = Math.min(Math.max(y + row / 2, 0), view.height);
  return at(zoomed(view, steps, focus, height), focus);
}

function at(view: Viewport, offset: number): Position {
  const focus = Math.floor(offset / view.perCell) * view.perCell;
  return { view: revealing(view, focus), focus };
}
