// Wheel, drag, pinch and click on the map.
import { useEffect, useRef, type PointerEvent, type RefObject } from "react";
import { cellAt, gridOf, panned, zoomed, type Viewport } from "./viewport";

interface Gestures {
  canvas: RefObject<HTMLCanvasElement | null>;
  view: Viewport | null;
  margin: number;
  change: (next: Viewport) => void;
  onHover: (cell: number | null) => void;
  onClick: (cell: number) => void;
}

// A finger that moved less than this wanted to tap.
const TAP_PIXELS = 5;

export function useMapGestures({ canvas, view, margin, change, onHover, onClick }: Gestures) {
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(0);
  const spread = useRef(0);

  useEffect(() => {
    const element = canvas.current;
    if (!element || !view) return;
    const onWheel = (event: WheelEvent) => {
      const box = element.getBoundingClientRect();
      const y = event.clientY - box.top;
      // Trackpads report a pinch as a wheel with Ctrl.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const offset = cellAt(view, event.clientX - box.left - margin, y) ?? 0;
        change(zoomed(view, event.deltaY < 0 ? 1 : -1, offset, y));
        return;
      }
      const next = panned(view, event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY);
      // At its ends the map lets the page scroll on.
      if (next.top === view.top) return;
      event.preventDefault();
      change(next);
    };
    // React's own listeners are passive, and could not keep the page from scrolling.
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [canvas, view, margin, change]);

  if (!view) return {};
  const pointOf = (event: PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left - margin, y: event.clientY - box.top };
  };
  const overflows = gridOf(view).rows * gridOf(view).row > view.height + 1;

  return {
    style: { touchAction: overflows ? "none" : "pan-y" },
    onPointerDown: (event: PointerEvent<HTMLCanvasElement>) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      pointers.current.set(event.pointerId, pointOf(event));
      moved.current = 0;
      spread.current = spreadOf(pointers.current);
    },
    onPointerMove: (event: PointerEvent<HTMLCanvasElement>) => {
      const point = pointOf(event);
      const before = pointers.current.get(event.pointerId);
      if (!before) {
        onHover(cellAt(view, point.x, point.y));
        return;
      }
      pointers.current.set(event.pointerId, point);
      moved.current += Math.abs(point.x - before.x) + Math.abs(point.y - before.y);
      if (pointers.current.size === 1) {
        if (moved.current > TAP_PIXELS) change(panned(view, before.y - point.y));
        return;
      }
      const now = spreadOf(pointers.current);
      const steps = Math.trunc(Math.log2(now / spread.current) * 2);
      if (steps !== 0 && Number.isFinite(steps)) {
        spread.current = now;
        change(zoomed(view, steps, cellAt(view, point.x, point.y) ?? 0, point.y));
      }
    },
    onPointerUp: (event: PointerEvent<HTMLCanvasElement>) => {
      const alone = pointers.current.size === 1;
      pointers.current.delete(event.pointerId);
      const point = pointOf(event);
      const cell = cellAt(view, point.x, point.y);
      if (alone && moved.current <= TAP_PIXELS && cell !== null) onClick(cell);
    },
    onPointerCancel: (event: PointerEvent<HTMLCanvasElement>) => pointers.current.delete(event.pointerId),
    onPointerLeave: () => onHover(null),
  };
}

function spreadOf(pointers: Map<number, { x: number; y: number }>): number {
  const [one, other] = [...pointers.values()];
  return one && other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
}
