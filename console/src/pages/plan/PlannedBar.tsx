// A pool in one line as it is now, with the ranges that are planned over it, all in true positions.
import { useElementSize } from "@mantine/hooks";
import { useId, useMemo } from "react";
import { formatAddress, parseAddress } from "../../address-space/addresses";
import { barParts } from "../../address-space/layoutParts";
import { heatColour } from "../../address-space/palette";
import { SegmentIndex } from "../../address-space/segmentIndex";
import { SvgPatterns } from "../../address-space/SvgPatterns";
import { usePalette } from "../../address-space/usePalette";
import type { AddressRange, Segments } from "../../api/types";
import { plural } from "../../words";
import classes from "./plan.module.css";

const HEIGHT = 26;
const NARROWEST = 3;

export function PlannedBar({ segments, planned }: { segments: Segments; planned: AddressRange[] }) {
  const index = useMemo(() => new SegmentIndex(segments), [segments]);
  const { ref, width } = useElementSize<HTMLDivElement>();
  const palette = usePalette();
  const id = useId();
  const parts = useMemo(() => (width > 0 ? barParts(index, width) : []), [index, width]);
  const marks = useMemo(() => marksOf(planned, index, width), [planned, index, width]);
  const addresses = planned.reduce((sum, range) => sum + range.count, 0);
  return (
    <div className={classes.layout}>
      <div ref={ref}>
        <svg
          width="100%"
          height={HEIGHT}
          className={classes.bar}
          role="img"
          aria-label={`${segments.cidr} now, with ${plural(addresses, "planned address", "planned addresses")}`}
        >
          <SvgPatterns id={id} palette={palette} />
          {parts.map(({ from, x, width: wide, makeup }) => {
            const given = makeup.held + makeup.free;
            const box = { x, width: Math.max(1, wide - 1) };
            if (given === 0) {
              const kind = makeup.reserved >= makeup.outside ? "reserved" : "outside";
              return <rect key={from} {...box} height={HEIGHT} fill={`url(#${id}-${kind})`} />;
            }
            const high = (HEIGHT * makeup.held) / given;
            return (
              <g key={from}>
                <rect {...box} height={HEIGHT} fill={palette.free} />
                {high > 0 && <rect {...box} y={HEIGHT - high} height={high} fill={heatColour(palette, makeup.held / given)} />}
              </g>
            );
          })}
          {marks.map(({ x, width: wide }) => (
            <g key={x}>
              <rect x={x} width={wide} height={HEIGHT} fill={palette.tenants[1]} />
              <rect x={x} width={wide} y={HEIGHT / 2 - 2} height={4} fill={palette.onTenant} />
            </g>
          ))}
        </svg>
      </div>
      <div className={classes.ends} aria-hidden>
        <span className="mono">{formatAddress(index.start)}</span>
        {planned.length > 0 ? (
          <span className={classes.key}>
            <svg width={14} height={14}>
              <rect width={14} height={14} fill={palette.tenants[1]} />
              <rect width={14} y={5} height={4} fill={palette.onTenant} />
            </svg>
            planned
          </span>
        ) : (
          <span>nothing is planned here</span>
        )}
        <span className="mono">{formatAddress(index.start + index.count - 1)}</span>
      </div>
    </div>
  );
}

/** Ranges as pixels; neighbours that touch are drawn as one, so that a thousand tenants do not make a thousand marks. */
function marksOf(planned: AddressRange[], index: SegmentIndex, width: number): { x: number; width: number }[] {
  if (width === 0) return [];
  const scale = width / index.count;
  const sorted = planned
    .map((range) => ({ first: (parseAddress(range.start) ?? 0) - index.start, size: range.count }))
    .sort((left, right) => left.first - right.first);
  const marks: { x: number; width: number }[] = [];
  for (const { first, size } of sorted) {
    const x = first * scale;
    const wide = Math.max(NARROWEST, size * scale);
    const last = marks.at(-1);
    if (last && x <= last.x + last.width + 0.5) last.width = Math.max(last.width, x + wide - last.x);
    else marks.push({ x, width: wide });
  }
  return marks;
}
