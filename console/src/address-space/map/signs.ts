// Patterns that stand beside colours: what is reserved, coming, going or not handed out can be told in grey too.
import type { Palette } from "../palette";

export interface Signs {
  outside: CanvasPattern | string;
  reserved: CanvasPattern | string;
  granting: CanvasPattern | string;
  draining: CanvasPattern | string;
}

const TILE = 6;

/** `ratio` is device pixels per pixel: patterns are drawn sharp, at the same size on every screen. */
export function signsFor(palette: Palette, ratio: number): Signs {
  return {
    outside: tile(palette.outside, ratio, (draw) => line(draw, palette.outsideSign, "/")),
    reserved: tile(palette.reserved, ratio, (draw) => {
      draw.fillStyle = palette.reservedSign;
      draw.fillRect(1, 1, 1.4, 1.4);
      draw.fillRect(4, 4, 1.4, 1.4);
    }),
    granting: tile(null, ratio, (draw) => line(draw, palette.gap, "/", 1.8)),
    draining: tile(null, ratio, (draw) => line(draw, palette.gap, "\\", 1.8)),
  };
}

type Draw = CanvasRenderingContext2D;

function tile(ground: string | null, ratio: number, paint: (draw: Draw) => void): CanvasPattern | string {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.round(TILE * ratio);
  const draw = canvas.getContext("2d");
  if (!draw) return ground ?? "transparent";
  draw.scale(canvas.width / TILE, canvas.height / TILE);
  if (ground !== null) {
    draw.fillStyle = ground;
    draw.fillRect(0, 0, TILE, TILE);
  }
  paint(draw);
  const pattern = draw.createPattern(canvas, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(TILE / canvas.width, TILE / canvas.height));
  return pattern ?? ground ?? "transparent";
}

function line(draw: Draw, colour: string, direction: "/" | "\\", width = 1.1): void {
  draw.strokeStyle = colour;
  draw.lineWidth = width;
  draw.beginPath();
  // Three strokes, so that the tiles join without a seam at the corners.
  for (const shift of [-TILE, 0, TILE]) {
    const [from, to] = direction === "/" ? [TILE, 0] : [0, TILE];
    draw.moveTo(shift - 1, from + (direction === "/" ? 1 : -1));
    draw.lineTo(shift + TILE + 1, to + (direction === "/" ? -1 : 1));
  }
  draw.stroke();
}
