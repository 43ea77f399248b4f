// A pool's segments for quick questions: what is at this address, how many of these addresses are held. Sums from the
// left (one for each kind) and binary search answer them in microseconds, whatever the size of the pool.
import type { SegmentKind, Segments } from "../api/types";
import { parseAddress } from "./addresses";

/** What the server knows, and what it would come to (`planned.ts`). */
export type DrawnKind = SegmentKind | "planned";

export type DrawnSegments = Omit<Segments, "kinds"> & { kinds: DrawnKind[] };

export interface Segment {
  index: number;
  /** Offset from the first address of the pool. */
  first: number;
  size: number;
  kind: DrawnKind;
  allocation: string;
  tenant: string;
  type: string;
  /** What a reserved block is for. */
  note: string;
  heldBy: number;
  stranded: boolean;
}

/** How many addresses of a run are of each sort. */
export interface Makeup {
  held: number;
  planned: number;
  free: number;
  reserved: number;
  outside: number;
}

type Sort = keyof Makeup;

/** How many addresses of a run are there for tenants: held, planned or free. */
export function givenOf({ held, planned, free }: Makeup): number {
  return held + planned + free;
}

const SORT_OF: Record<DrawnKind, Sort> = {
  allocated: "held",
  granting: "held",
  draining: "held",
  planned: "planned",
  free: "free",
  reserved: "reserved",
  outside: "outside",
};

const SORTS: Sort[] = ["held", "planned", "free", "reserved", "outside"];

export class SegmentIndex {
  /** The first address of the pool, as a number. */
  readonly start: number;
  readonly count: number;
  readonly length: number;
  readonly first: Float64Array;
  readonly size: Float64Array;
  readonly kind: Uint8Array;
  readonly kinds: readonly DrawnKind[];
  readonly holder: Int32Array;
  private readonly sums: Record<Sort, Float64Array>;

  constructor(readonly segments: DrawnSegments) {
    const { columns, kinds, start, count } = segments;
    this.start = start === null ? 0 : (parseAddress(start) ?? 0);
    this.count = count;
    this.length = columns.first.length;
    this.first = Float64Array.from(columns.first);
    this.size = Float64Array.from(columns.size);
    this.kind = Uint8Array.from(columns.kind);
    this.holder = Int32Array.from(columns.holder);
    this.kinds = kinds;
    this.sums = sumsFromTheLeft(this.size, this.kind, kinds);
  }

  /** The number of the segment in which an offset lies. */
  indexAt(offset: number): number {
    let low = 0;
    let high = this.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.first[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What the addresses from `from` to before `to` are made of. */
  makeup(from: number, to: number): Makeup {
    const left = this.indexAt(from);
    const right = this.indexAt(Math.min(to, this.count) - 1);
    const between = (sort: Sort) => this.sumTo(sort, right, to) - this.sumTo(sort, left, from);
    return {
      held: between("held"),
      planned: between("planned"),
      free: between("free"),
      reserved: between("reserved"),
      outside: between("outside"),
    };
  }

  segment(index: number): Segment {
    const { columns, holders, notes } = this.segments;
    const holder = holders[columns.holder[index] ?? -1];
    return {
      index,
      first: this.first[index] ?? 0,
      size: this.size[index] ?? 0,
      kind: this.kinds[this.kind[index] ?? 0] ?? "free",
      allocation: holder?.allocation ?? "",
      tenant: holder?.tenant ?? "",
      type: holder?.type ?? "",
      note: notes[columns.note[index] ?? -1] ?? "",
      heldBy: columns.heldBy[index] ?? 0,
      stranded: columns.stranded[index] ?? false,
    };
  }

  /** Addresses of a sort from the pool's first to before `offset`, which lies in or right behind segment `index`. */
  private sumTo(sort: Sort, index: number, offset: number): number {
    const before = this.sums[sort][index] ?? 0;
    const kind = this.kinds[this.kind[index] ?? 0];
    if (kind === undefined || SORT_OF[kind] !== sort) return before;
    return before + Math.min(offset - (this.first[index] ?? 0), this.size[index] ?? 0);
  }
}

function sumsFromTheLeft(
  size: Float64Array,
  kind: Uint8Array,
  kinds: readonly DrawnKind[],
): Record<Sort, Float64Array> {
  const sums = Object.fromEntries(SORTS.map((sort) => [sort, new Float64Array(size.length)])) as Record<
    Sort,
    Float64Array
  >;
  const running: Makeup = { held: 0, planned: 0, free: 0, reserved: 0, outside: 0 };
  for (let index = 0; index < size.length; index += 1) {
    for (const sort of SORTS) sums[sort][index] = running[sort];
    const of = kinds[kind[index] ?? 0];
    if (of !== undefined) running[SORT_OF[of]] += size[index] ?? 0;
  }
  return sums;
}
