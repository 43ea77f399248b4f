// A pool from its first to its last address in one line, in true positions: what is reserved, held and free. Segments
// that are narrower than a few pixels are drawn together; each part can be reached with the arrow keys and is told.
import { useElementSize } from "@mantine/hooks";
import { useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { count } from "../words";
import { formatAddress, formatRange } from "./addresses";
import { describeCell } from "./describe";
import classes from "./LayoutBar.module.css";
import { barParts, totalsOf, type BarPart } from "./layoutParts";
import { heatColour, type Palette } from "./palette";
import { givenOf, type SegmentIndex } from "./segmentIndex";
import { SvgPatterns } from "./SvgPatterns";
import { usePalette } from "./usePalette";

const HEIGHT = 30;

export function LayoutBar({ index }: { index: SegmentIndex }) {
  const { ref, width } = useElementSize<HTMLDivElement>();
  const palette = usePalette();
  const id = useId();
  const parts = useMemo(() => (width > 0 ? barParts(index, width) : []), [index, width]);
  const [told, setTold] = useState<number | null>(null);
  const bar = useRef<SVGSVGElement>(null);
  const part = told === null ? undefined : parts[told];

  const onKeyDown = (event: KeyboardEvent) => {
    const at = told ?? 0;
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: parts.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    setTold(Math.min(Math.max(0, next), parts.length - 1));
  };
  const words = part ? wordsOf(index, part) : "";
  return (
    <div className={classes.layout}>
      <div ref={ref}>
        <svg
          ref={bar}
          width="100%"
          height={HEIGHT}
          className={classes.bar}
          tabIndex={0}
          role="application"
          aria-roledescription="layout bar"
          aria-label={`Layout of ${index.segments.cidr}. Left and right arrow keys go through its parts.`}
          onKeyDown={onKeyDown}
          onFocus={() => setTold((before) => before ?? 0)}
          onBlur={() => setTold(null)}
          onPointerMove={(event) => {
            const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
            setTold(parts.findIndex((candidate) => x < candidate.x + candidate.width));
          }}
          onPointerLeave={() => setTold(null)}
        >
          <SvgPatterns id={id} palette={palette} />
          {parts.map((drawn) => (
            <Part key={drawn.from} part={drawn} palette={palette} patterns={id} />
          ))}
          {part && (
            <rect
              x={part.x + 1}
              y={1}
              width={Math.max(2, part.width - 2)}
              height={HEIGHT - 2}
              fill="none"
              stroke={palette.focus}
              strokeWidth={2}
            />
          )}
        </svg>
      </div>
      <div className={classes.ends} aria-hidden>
        <span>{formatAddress(index.start)}</span>
        <span className={classes.told}>{words}</span>
        <span>{formatAddress(index.start + index.count - 1)}</span>
      </div>
      <div role="status" className="visually-hidden">
        {words}
      </div>
      <Totals index={index} palette={palette} id={id} />
    </div>
  );
}

function wordsOf(index: SegmentIndex, part: BarPart): string {
  const { lines } = describeCell(index, part.from, part.to - part.from);
  return `${formatRange(index.start + part.from, part.to - part.from)} · ${lines.join(" · ")}`;
}

function Part({ part, palette, patterns }: { part: BarPart; palette: Palette; patterns: string }) {
  const { x, width, makeup } = part;
  const given = givenOf(makeup);
  // One pixel of ground between parts keeps neighbours apart.
  const box = { x, width: Math.max(1, width - 1) };
  if (given === 0) {
    const kind = makeup.reserved >= makeup.outside ? "reserved" : "outside";
    return <rect {...box} height={HEIGHT} fill={`url(#${patterns}-${kind})`} />;
  }
  const share = makeup.held / given;
  const high = heightOf(share);
  const planned = Math.max(heightOf((makeup.held + makeup.planned) / given), high + 2);
  return (
    <>
      <rect {...box} height={HEIGHT} fill={palette.free} />
      {makeup.planned > 0 && <rect {...box} y={HEIGHT - planned} height={planned} fill={palette.planned} />}
      {high > 0 && <rect {...box} y={HEIGHT - high} height={high} fill={heatColour(palette, share)} />}
    </>
  );
}

/** Little is never drawn as nothing, and nearly all never as all. */
function heightOf(share: number): number {
  if (share === 0 || share === 1) return HEIGHT * share;
  return Math.min(HEIGHT - 2, Math.max(2, HEIGHT * share));
}

function Totals({ index, palette, id }: { index: SegmentIndex; palette: Palette; id: string }) {
  const totals = useMemo(() => totalsOf(index), [index]);
  const swatches = {
    held: heatColour(palette, 0.99),
    planned: palette.planned,
    free: palette.free,
    reserved: `url(#${id}-reserved)`,
    outside: `url(#${id}-outside)`,
  };
  return (
    <ul className={classes.totals} aria-label="Addresses by use">
      {totals.map(({ sort, words, addresses }) => (
        <li key={sort}>
          <svg width={14} height={14} aria-hidden className={classes.swatch}>
            <rect width={14} height={14} fill={swatches[sort]} />
          </svg>
          <strong>{count(addresses)}</strong> {words}
        </li>
      ))}
    </ul>
  );
}
