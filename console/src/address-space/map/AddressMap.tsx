// Every address of a pool, in true positions, from a /28 to a /8: rows in order of address, zoomed and panned with the
// wheel, fingers, buttons or keys. One tab stop; what has the focus is spoken. SegmentTable tells the same in text.
import { useElementSize } from "@mantine/hooks";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { cellInWords, describeCell } from "../describe";
import { Legend } from "../Legend";
import type { Segment, SegmentIndex } from "../segmentIndex";
import { usePalette } from "../usePalette";
import classes from "./AddressMap.module.css";
import { drawMap } from "./draw";
import { afterKey, zoomTo } from "./keys";
import { MapTip } from "./MapTip";
import { MapToolbar } from "./MapToolbar";
import { signsFor } from "./signs";
import { useMapGestures } from "./useMapGestures";
import { clamped, coarsest, fitted, gridOf, type Viewport } from "./viewport";

interface AddressMapProps {
  index: SegmentIndex;
  selected: Segment | null;
  onSelect: (segment: Segment | null) => void;
}

const MARGIN = 108;
const TALLEST = 440;
// So far a click on a cell of many addresses leads in: sixteen times closer.
const LEAD_IN = 4;

export function AddressMap({ index, selected, onSelect }: AddressMapProps) {
  const { ref: sizeRef, width } = useElementSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [view, setView] = useView(index.count, width);
  const [focus, setFocus] = useState(0);
  const [focused, setFocused] = useState(false);
  const [hover, setHover] = useState<number | null>(null);
  const [tipHidden, setTipHidden] = useState(false);

  const choose = useCallback(
    (cell: number) => {
      if (!view) return;
      setFocus(cell);
      const at = index.indexAt(cell);
      const whole = at === index.indexAt(Math.min(cell + view.perCell, index.count) - 1);
      if (whole) onSelect(index.segment(at));
      else setView(zoomTo(view, LEAD_IN, cell).view);
    },
    [view, index, onSelect, setView],
  );
  const gestures = useMapGestures({
    canvas,
    view,
    margin: MARGIN,
    change: setView,
    onHover: setHover,
    onClick: choose,
  });

  const cellInFocus = view ? Math.floor(Math.min(focus, index.count - 1) / view.perCell) * view.perCell : 0;
  useDrawing(canvas, { index, view, selected, focus: focused ? cellInFocus : null, hover });

  const onKeyDown = (event: KeyboardEvent) => {
    if (!view) return;
    setTipHidden(event.key === "Escape");
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cellInFocus);
      return;
    }
    if (event.key === "Escape") onSelect(null);
    const next =
      event.altKey || event.metaKey ? null : afterKey({ view, focus: cellInFocus }, event.key, event.ctrlKey);
    if (!next) return;
    event.preventDefault();
    setView(next.view);
    setFocus(next.focus);
    setHover(null);
  };

  const told = hover ?? (focused ? cellInFocus : null);
  const spoken = view && focused ? describeCell(index, cellInFocus, view.perCell) : null;
  return (
    <div>
      {view && (
        <MapToolbar
          index={index}
          view={view}
          focus={cellInFocus}
          onChange={(next, cell) => {
            setView(next);
            setFocus(cell);
          }}
          onFind={(offset) => {
            setFocus(offset);
            onSelect(index.segment(index.indexAt(offset)));
            canvas.current?.focus();
          }}
        />
      )}
      <div ref={sizeRef} className={classes.frame}>
        {/* Canvas has no children to point at: it is an application with keys of its own, told in the label. */}
        <canvas
          ref={canvas}
          className={classes.canvas}
          tabIndex={0}
          // eslint-disable-next-line jsx-a11y/no-interactive-element-to-noninteractive-role -- the pattern for what has keys of its own
          role="application"
          aria-roledescription="address map"
          aria-label={`Map of ${index.segments.cidr}. Arrow keys move, plus and minus zoom, 0 shows all, Enter selects.`}
          onKeyDown={onKeyDown}
          onFocus={(event) => setFocused(event.currentTarget.matches(":focus-visible"))}
          onBlur={() => setFocused(false)}
          {...gestures}
        />
        {view && told !== null && !tipHidden && (
          <MapTip view={view} cell={told} margin={MARGIN} words={describeCell(index, told, view.perCell)} />
        )}
      </div>
      <div role="status" className="visually-hidden">
        {spoken && `${spoken.title}: ${spoken.lines.join("; ")}. ${view ? cellInWords(view.perCell) : ""}`}
      </div>
      <Legend shares={view !== null && view.perCell > 1} planned={index.kinds.includes("planned")} />
    </div>
  );
}

/** The viewport, which keeps its place when the window or the pool changes its size. */
function useView(count: number, width: number): [Viewport | null, (next: Viewport) => void] {
  const [chosen, setChosen] = useState<Viewport | null>(null);
  const view = useMemo(() => {
    if (width <= MARGIN || count < 1) return null;
    const inner = width - MARGIN - 2;
    const { rows, row } = gridOf({ count, width: inner, height: 0, perCell: 1, top: 0 });
    const size = { count, width: inner, height: Math.min(TALLEST, Math.ceil(rows * row)) };
    if (chosen?.count !== count) return fitted({ ...size, perCell: 1, top: 0 });
    const resized = { ...chosen, ...size };
    return clamped({ ...resized, perCell: Math.min(resized.perCell, coarsest(resized)) });
  }, [count, width, chosen]);
  return [view, setChosen];
}

type Sight = { view: Viewport | null } & Omit<Parameters<typeof drawMap>[1], "view" | "palette" | "signs" | "margin">;

/** Draws once per frame, however often something changed in between. */
function useDrawing(canvas: React.RefObject<HTMLCanvasElement | null>, sight: Sight): void {
  const palette = usePalette();
  const ratio = window.devicePixelRatio || 1;
  const signs = useMemo(() => signsFor(palette, ratio), [palette, ratio]);
  const { index, view, selected, focus, hover } = sight;
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const element = canvas.current;
      const draw = element?.getContext("2d");
      if (!element || !draw || !view) return;
      const size = [MARGIN + view.width + 2, view.height] as const;
      const [wide, high] = size.map((side) => Math.round(side * ratio)) as [number, number];
      if (element.width !== wide || element.height !== high) {
        [element.width, element.height] = [wide, high];
        [element.style.width, element.style.height] = size.map((side) => `${side}px`) as [string, string];
      }
      draw.setTransform(ratio, 0, 0, ratio, 0, 0);
      drawMap(draw, { index, view, palette, signs, margin: MARGIN, selected, focus, hover });
    });
    return () => cancelAnimationFrame(frame);
  }, [canvas, index, view, selected, focus, hover, palette, signs, ratio]);
}
