// Segments and cells in words: what tooltips show and screen readers say.
import { count, percent, plural } from "../words";
import { formatRange, prefixOf } from "./addresses";
import { givenOf, type DrawnKind, type Segment, type SegmentIndex } from "./segmentIndex";

export const KIND_WORDS: Record<DrawnKind, string> = {
  allocated: "held",
  granting: "being granted",
  draining: "going back",
  planned: "planned",
  free: "free",
  reserved: "reserved",
  outside: "not handed out",
};

export interface Words {
  /** The addresses. */
  title: string;
  lines: string[];
}

const TYPE_WORDS: Record<string, string> = { nodes: "nodes", loadbalancer: "load balancers" };

export function describeSegment(index: SegmentIndex, segment: Segment): Words {
  const { first, size, kind, tenant, allocation, type, note, heldBy, stranded } = segment;
  const lines = [`${KIND_WORDS[kind]}, ${plural(size, "address", "addresses")}`];
  if (tenant) lines.push(`${tenant}, for ${TYPE_WORDS[type] ?? type}`);
  if (allocation) lines.push(`allocation ${allocation}`);
  if (note) lines.push(note);
  if (stranded) lines.push("held, although the pool does not hand it out");
  if (heldBy > 1) lines.push(`held by ${heldBy} allocations at once: a fault`);
  return { title: formatRange(index.start + first, size), lines };
}

/** A cell of the map: one address with what it belongs to, or many with how much of them is held. */
export function describeCell(index: SegmentIndex, offset: number, perCell: number): Words {
  const size = Math.min(perCell, index.count - offset);
  const title = formatRange(index.start + offset, size);
  const left = index.indexAt(offset);
  if (left === index.indexAt(offset + size - 1)) {
    const words = describeSegment(index, index.segment(left));
    return size === 1 ? { title, lines: [...words.lines, `in ${words.title}`] } : { title, lines: words.lines };
  }
  const made = index.makeup(offset, offset + size);
  const given = givenOf(made);
  const lines = given > 0 ? [`${percent((100 * made.held) / given)} held: ${count(made.held)} of ${count(given)}`] : [];
  if (made.planned > 0) lines.push(`${count(made.planned)} planned`);
  if (made.reserved > 0) lines.push(`${count(made.reserved)} reserved`);
  if (made.outside > 0) lines.push(`${count(made.outside)} not handed out`);
  return { title, lines };
}

/** `each cell is one address`, `each cell is 256 addresses, a /24`. */
export function cellInWords(perCell: number): string {
  if (perCell === 1) return "Each cell is one address";
  const prefix = prefixOf(perCell);
  return `Each cell is ${count(perCell)} addresses${prefix === null ? "" : `, a /${prefix}`}`;
}
