// Which parts a layout bar has: one for each segment that is wide enough to be seen, and one for each run of those
// that are not.
import type { Makeup, SegmentIndex } from "./segmentIndex";

export interface BarPart {
  /** Offsets of the first address, and of the one behind the last. */
  from: number;
  to: number;
  x: number;
  width: number;
  makeup: Makeup;
}

const NARROWEST = 4;

export function barParts(index: SegmentIndex, width: number): BarPart[] {
  const parts: BarPart[] = [];
  const scale = width / index.count;
  let from = 0;
  const close = (to: number) => {
    if (to > from) {
      parts.push({ from, to, x: from * scale, width: (to - from) * scale, makeup: index.makeup(from, to) });
    }
    from = to;
  };
  for (let at = 0; at < index.length; at += 1) {
    const first = index.first[at] ?? 0;
    const end = first + (index.size[at] ?? 0);
    const wide = (end - first) * scale >= NARROWEST;
    // A wide segment stands alone; narrow ones gather until they are wide enough together.
    if (wide) close(first);
    if (wide || (end - from) * scale >= NARROWEST) close(end);
  }
  close(index.count);
  return parts;
}

export interface Total {
  sort: keyof Makeup;
  words: string;
  addresses: number;
}

/** The whole pool by use, without uses that do not occur. */
export function totalsOf(index: SegmentIndex): Total[] {
  const made = index.makeup(0, index.count);
  const all: Total[] = [
    { sort: "held", words: "held", addresses: made.held },
    { sort: "planned", words: "planned", addresses: made.planned },
    { sort: "free", words: "free", addresses: made.free },
    { sort: "reserved", words: "reserved", addresses: made.reserved },
    { sort: "outside", words: "not handed out", addresses: made.outside },
  ];
  return all.filter(({ addresses }) => addresses > 0);
}
