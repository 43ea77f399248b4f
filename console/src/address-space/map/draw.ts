// Draws the part of a pool that is in sight, and nothing else: the cost of a frame goes with the size of the canvas.
import { formatAddress } from "../addresses";
import { heatColour, tenantColour, type Palette } from "../palette";
import { givenOf, type Segment, type SegmentIndex } from "../segmentIndex";
import type { Signs } from "./signs";
import { gridOf, placeOf, rowsInSight, type Grid, type Viewport } from "./viewport";

export interface Scene {
  index: SegmentIndex;
  view: Viewport;
  palette: Palette;
  signs: Signs;
  /** Pixels at the left for the addresses of rows. */
  margin: number;
  selected: Segment | null;
  /** The cell with the keyboard's focus, by its first address. */
  focus: number | null;
  hover: number | null;
}

type Draw = CanvasRenderingContext2D;

export function drawMap(draw: Draw, scene: Scene): void {
  const { view, margin, palette } = scene;
  const grid = gridOf(view);
  draw.fillStyle = palette.gap;
  draw.fillRect(0, 0, margin + view.width, view.height);
  drawRowNames(draw, scene, grid);
  draw.save();
  draw.beginPath();
  draw.rect(margin - 2, 0, view.width + 4, view.height);
  draw.clip();
  draw.translate(margin, -view.top);
  if (view.perCell === 1) drawRuns(draw, scene, grid);
  else drawShares(draw, scene, grid);
  drawSelected(draw, scene, grid);
  draw.restore();
  for (const [cell, width] of [
    [scene.hover, 1],
    [scene.focus, 2],
  ] as const) {
    if (cell !== null) drawFrame(draw, scene, cell, width);
  }
}

function drawRowNames(draw: Draw, { index, view, palette, margin }: Scene, { row: high, perRow }: Grid): void {
  const { first, end } = rowsInSight(view);
  // Every row has its name where there is room, else each second, fourth ...
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(13 / high)));
  draw.font = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
  draw.textBaseline = "middle";
  draw.textAlign = "right";
  draw.fillStyle = palette.textFaint;
  for (let row = Math.ceil(first / step) * step; row < end; row += step) {
    const y = (row + 0.5) * high - view.top;
    if (y > 5 && y < view.height - 4) draw.fillText(formatAddress(index.start + row * perRow), margin - 8, y);
  }
}

/** One address per cell: what belongs together is one line, with its name in it. */
function drawRuns(draw: Draw, scene: Scene, { cell, row: high, perRow }: Grid): void {
  const { index, view } = scene;
  const { first, end } = rowsInSight(view);
  for (let row = first; row < end; row += 1) {
    const from = row * perRow;
    const to = Math.min(from + perRow, view.count);
    for (let at = index.indexAt(from); at < index.length && (index.first[at] ?? 0) < to; at += 1) {
      const segment = index.segment(at);
      const left = Math.max(segment.first, from) - from;
      const right = Math.min(segment.first + segment.size, to) - from;
      drawRun(draw, scene, segment, { x: left * cell, y: row * high, cells: right - left, cell, high });
    }
  }
}

interface Run {
  x: number;
  y: number;
  cells: number;
  cell: number;
  high: number;
}

function drawRun(draw: Draw, { palette, signs }: Scene, segment: Segment, run: Run): void {
  const box = [run.x + 1, run.y + 1, run.cells * run.cell - 2, run.high - 2] as const;
  const { kind, tenant, type, heldBy, stranded } = segment;
  if (kind === "free" || kind === "outside" || kind === "reserved") {
    draw.fillStyle = kind === "free" ? palette.free : signs[kind];
    draw.fillRect(...box);
    if (kind === "free") separate(draw, palette.freeEdge, run);
    return;
  }
  const colour = kind === "planned" ? palette.planned : tenantColour(palette, tenant);
  draw.fillStyle = colour;
  draw.fillRect(...box);
  if (kind === "granting" || kind === "draining") {
    draw.fillStyle = signs[kind];
    draw.fillRect(...box);
  }
  separate(draw, `${palette.gap}66`, run);
  if (kind === "planned") stripe(draw, palette.onTenant, box);
  else if (type === "loadbalancer") dots(draw, palette.onTenant, run);
  nameRun(draw, palette, colour, tenant, box);
  if (stranded || heldBy > 1) {
    draw.strokeStyle = palette.wrong;
    draw.lineWidth = 2;
    draw.setLineDash([4, 2]);
    draw.strokeRect(...box);
    draw.setLineDash([]);
  }
}

/** Faint lines between the addresses of a run, so that they can be counted. */
function separate(draw: Draw, colour: string, { x, y, cells, cell, high }: Run): void {
  draw.fillStyle = colour;
  for (let index = 1; index < cells; index += 1) draw.fillRect(x + index * cell - 0.5, y + 1, 1, high - 2);
}

/** Load balancers have a dot in each cell, nodes have none. */
function dots(draw: Draw, colour: string, { x, y, cells, cell, high }: Run): void {
  draw.fillStyle = colour;
  const size = Math.max(2, cell / 5);
  for (let index = 0; index < cells; index += 1) {
    draw.fillRect(x + (index + 0.5) * cell - size / 2, y + (high - size) / 2, size, size);
  }
}

type Box = readonly [x: number, y: number, width: number, height: number];

/** What is only planned has a line through it, so that it can be told from any tenant without colours. */
function stripe(draw: Draw, colour: string, [x, y, width, height]: Box): void {
  draw.fillStyle = colour;
  draw.fillRect(x, y + height / 2 - 1.5, width, 3);
}

function nameRun(draw: Draw, palette: Palette, colour: string, tenant: string, [x, y, width, height]: Box): void {
  if (height < 11 || width < 40) return;
  const name = tenant.slice(tenant.indexOf("/") + 1);
  draw.font = "600 11px system-ui, sans-serif";
  const room = draw.measureText(name).width;
  if (room + 10 > width) return;
  // A ground of the run's own colour under the name keeps it readable on stripes and dots.
  draw.fillStyle = colour;
  draw.fillRect(x, y, room + 10, height);
  draw.fillStyle = palette.onTenant;
  draw.textAlign = "left";
  draw.textBaseline = "middle";
  draw.fillText(name, x + 5, y + height / 2 + 0.5);
}

/** Many addresses per cell: each fills up from below as its addresses are held, and darkens. */
function drawShares(
  draw: Draw,
  { index, view, palette, signs }: Scene,
  { columns, cell, row: high, perRow }: Grid,
): void {
  const { first, end } = rowsInSight(view);
  const wide = cell - 1;
  const inner = high - 1;
  for (let row = first; row < end; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const from = row * perRow + column * view.perCell;
      if (from >= view.count) return;
      const made = index.makeup(from, Math.min(from + view.perCell, view.count));
      const given = givenOf(made);
      const x = column * cell + 0.5;
      const y = row * high + 0.5;
      if (given === 0) {
        draw.fillStyle = made.reserved >= made.outside ? signs.reserved : signs.outside;
        draw.fillRect(x, y, wide, inner);
        continue;
      }
      draw.fillStyle = palette.free;
      draw.fillRect(x, y, wide, inner);
      const held = filled(made.held / given, inner);
      const upto = filled((made.held + made.planned) / given, inner);
      if (made.planned > 0) {
        draw.fillStyle = palette.planned;
        draw.fillRect(x, y + inner - Math.max(upto, held + LITTLE), wide, Math.max(upto - held, LITTLE));
      }
      if (held > 0) {
        draw.fillStyle = heatColour(palette, made.held / given);
        draw.fillRect(x, y + inner - held, wide, held);
      }
    }
  }
}

const LITTLE = 1.5;

/** How high a share stands: little is never drawn as nothing, and nearly all never as all. */
function filled(share: number, height: number): number {
  if (share === 0 || share === 1) return height * share;
  return Math.min(height - LITTLE, Math.max(LITTLE, height * share));
}

/** One line around all rows of the segment. */
function drawSelected(
  draw: Draw,
  { view, palette, selected }: Scene,
  { cell, row: high, perRow, columns }: Grid,
): void {
  if (!selected) return;
  const lastAddress = selected.first + selected.size - 1;
  const [firstRow, lastRow] = [Math.floor(selected.first / perRow), Math.floor(lastAddress / perRow)];
  const left = (row: number) => (row === firstRow ? Math.floor((selected.first % perRow) / view.perCell) : 0);
  const right = (row: number) => (row === lastRow ? Math.floor((lastAddress % perRow) / view.perCell) + 1 : columns);
  const sight = rowsInSight(view);
  draw.strokeStyle = palette.focus;
  draw.lineWidth = 2;
  draw.beginPath();
  const line = (x: number, y: number, toX: number, toY: number) => {
    draw.moveTo(x * cell, y * high);
    draw.lineTo(toX * cell, toY * high);
  };
  for (let row = Math.max(sight.first, firstRow); row <= Math.min(sight.end - 1, lastRow); row += 1) {
    line(left(row), row, left(row), row + 1);
    line(right(row), row, right(row), row + 1);
    // Above and below only where the segment does not go on.
    line(left(row), row, row === firstRow ? right(row) : Math.min(right(row), left(row - 1)), row);
    line(row === lastRow ? left(row) : Math.max(left(row), right(row + 1)), row + 1, right(row), row + 1);
  }
  draw.stroke();
}

function drawFrame(draw: Draw, { view, margin, palette }: Scene, offset: number, width: number): void {
  const { x, y, cell, row } = placeOf(view, offset);
  draw.lineWidth = width + 2;
  draw.strokeStyle = palette.gap;
  draw.strokeRect(margin + x, y, cell, row);
  draw.lineWidth = width;
  draw.strokeStyle = palette.focus;
  draw.strokeRect(margin + x, y, cell, row);
}
