// A whole pool in a line: 64 parts of its network, each filled up from below as its addresses are held.
import { useId } from "react";
import { heatColour } from "./palette";
import { stripInWords } from "./strip";
import { SvgPatterns } from "./SvgPatterns";
import { usePalette } from "./usePalette";

interface PoolStripProps {
  /** Percent held of each part; -1 where nothing is handed out. */
  strip: number[];
  height?: number;
}

const PART = 4;

export function PoolStrip({ strip, height = 18 }: PoolStripProps) {
  const palette = usePalette();
  const id = useId();
  const width = strip.length * PART;
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width="100%"
      height={height}
      preserveAspectRatio="none"
      role="img"
      aria-label={stripInWords(strip)}
      style={{ display: "block", minWidth: 96, borderRadius: 2 }}
    >
      <SvgPatterns id={id} palette={palette} />
      <rect width={width} height={height} fill={palette.free} />
      {strip.map((percent, index) => {
        const x = index * PART;
        if (percent < 0) return <rect key={index} x={x} width={PART} height={height} fill={`url(#${id}-outside)`} />;
        if (percent === 0) return null;
        // Little is never drawn as nothing, and nearly all never as all.
        const high = percent >= 100 ? height : Math.min(height - 2, Math.max(2, (height * percent) / 100));
        return (
          <rect
            key={index}
            x={x + 0.25}
            y={height - high}
            width={PART - 0.5}
            height={high}
            fill={heatColour(palette, percent / 100)}
          />
        );
      })}
    </svg>
  );
}
