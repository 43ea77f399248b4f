// What colours and patterns mean, in words.
import { useId } from "react";
import { heatColour, type Palette } from "./palette";
import classes from "./Legend.module.css";
import { SvgPatterns } from "./SvgPatterns";
import { usePalette } from "./usePalette";

interface LegendProps {
  /** Cells stand for many addresses and show how much of them is held. */
  shares?: boolean;
  /** Something is planned. */
  planned?: boolean;
}

const SWATCH = { width: 22, height: 14 };

export function Legend({ shares = false, planned = false }: LegendProps) {
  const palette = usePalette();
  const id = useId();
  const entries: [string, React.ReactNode][] = shares
    ? [
        ["free", <rect key="free" {...SWATCH} fill={palette.free} />],
        ["the higher a cell is filled, the more of it is held", <Shares key="shares" palette={palette} />],
      ]
    : [
        ["free", <rect key="free" {...SWATCH} fill={palette.free} />],
        ["nodes, a colour for each tenant", <rect key="nodes" {...SWATCH} fill={palette.tenants[0]} />],
        ["load balancers", <Dots key="lb" palette={palette} />],
        ["being granted", <Striped key="granting" palette={palette} pattern={`url(#${id}-granting)`} />],
        ["going back", <Striped key="draining" palette={palette} pattern={`url(#${id}-draining)`} />],
      ];
  if (planned) entries.push(["planned", <Planned key="planned" palette={palette} striped={!shares} />]);
  entries.push(
    ["reserved", <rect key="reserved" {...SWATCH} fill={`url(#${id}-reserved)`} />],
    ["not handed out", <rect key="outside" {...SWATCH} fill={`url(#${id}-outside)`} />],
  );
  return (
    <ul className={classes.legend} aria-label="Legend">
      <svg width={0} height={0} aria-hidden className={classes.patterns}>
        <SvgPatterns id={id} palette={palette} />
      </svg>
      {entries.map(([words, swatch]) => (
        <li key={words} className={classes.entry}>
          <svg {...SWATCH} aria-hidden className={classes.swatch}>
            {swatch}
          </svg>
          {words}
        </li>
      ))}
    </ul>
  );
}

function Shares({ palette }: { palette: Palette }) {
  return (
    <>
      <rect {...SWATCH} fill={palette.free} />
      {[0.2, 0.5, 1].map((share, index) => (
        <rect
          key={share}
          x={index * 7.5}
          y={14 - 14 * share}
          width={6.5}
          height={14 * share}
          fill={heatColour(palette, share - 0.01)}
        />
      ))}
    </>
  );
}

function Planned({ palette, striped }: { palette: Palette; striped: boolean }) {
  return (
    <>
      <rect {...SWATCH} fill={palette.planned} />
      {striped && <rect y={5.5} width={22} height={3} fill={palette.onTenant} />}
    </>
  );
}

function Dots({ palette }: { palette: Palette }) {
  return (
    <>
      <rect {...SWATCH} fill={palette.tenants[0]} />
      <path d="M4 5.5h3v3H4zM15 5.5h3v3h-3z" fill={palette.onTenant} />
    </>
  );
}

function Striped({ palette, pattern }: { palette: Palette; pattern: string }) {
  return (
    <>
      <rect {...SWATCH} fill={palette.tenants[0]} />
      <rect {...SWATCH} fill={pattern} />
    </>
  );
}
