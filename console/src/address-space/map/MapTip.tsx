// What is under the pointer, beside it.
import type { Words } from "../describe";
import classes from "./AddressMap.module.css";
import { placeOf, type Viewport } from "./viewport";

interface MapTipProps {
  view: Viewport;
  cell: number;
  margin: number;
  words: Words;
}

const GAP = 8;

export function MapTip({ view, cell, margin, words }: MapTipProps) {
  const place = placeOf(view, cell);
  // On the side where there is more room.
  const toTheLeft = place.x > view.width / 2;
  const above = place.y > view.height / 2;
  const style = {
    ...(toTheLeft
      ? { right: `calc(100% - ${margin + place.x - GAP}px)` }
      : { left: margin + place.x + place.cell + GAP }),
    ...(above ? { bottom: view.height - place.y - place.row } : { top: place.y }),
  };
  return (
    <div className={classes.tip} style={style} aria-hidden>
      <div className={classes.tipTitle}>{words.title}</div>
      {words.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
