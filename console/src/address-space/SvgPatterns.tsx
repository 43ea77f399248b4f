// The map's patterns for pictures in SVG: the same signs mean the same everywhere.
import type { Palette } from "./palette";

/** `id` keeps the patterns of several pictures on a page apart. */
export function SvgPatterns({ id, palette }: { id: string; palette: Palette }) {
  const tile = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
  return (
    <defs>
      <pattern id={`${id}-outside`} {...tile}>
        <rect width={6} height={6} fill={palette.outside} />
        <path d="M-1 7 7 -1M-1 1 1 -1M5 7 7 5" stroke={palette.outsideSign} strokeWidth={1.1} />
      </pattern>
      <pattern id={`${id}-reserved`} {...tile}>
        <rect width={6} height={6} fill={palette.reserved} />
        <path d="M1 1h1.4v1.4H1zM4 4h1.4v1.4H4z" fill={palette.reservedSign} />
      </pattern>
      <pattern id={`${id}-granting`} {...tile}>
        <path d="M-1 7 7 -1M-1 1 1 -1M5 7 7 5" stroke={palette.gap} strokeWidth={1.8} />
      </pattern>
      <pattern id={`${id}-draining`} {...tile}>
        <path d="M-1 -1 7 7M5 -1 7 1M-1 5 1 7" stroke={palette.gap} strokeWidth={1.8} />
      </pattern>
    </defs>
  );
}
